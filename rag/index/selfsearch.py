"""Child process of the check: searches an embedded Chroma store for papers by their own vectors.

`python -m rag.index.selfsearch FOLDER MODEL SAMPLE.npz` prints the ids not found as JSON. A broken store may hang or crash it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from rag.index.chroma import EmbeddedChroma


def main(folder: str, model: str, sample: str) -> None:
    """Writes a JSON list to stdout."""
    with np.load(sample) as given:
        paper_ids, vectors = given["paper_ids"].tolist(), given["vectors"]
    print(json.dumps(EmbeddedChroma(Path(folder), model).lacking(paper_ids, vectors)))


if __name__ == "__main__":
    main(*sys.argv[1:])
