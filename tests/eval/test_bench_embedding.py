"""The embedding benchmark compares like with like."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from eval.bench_embedding import report, ways

TEXTS = ["We prove that the method converges.", "Spiking networks follow objects in the stream of an event camera."]


def test_all_ways_embed_the_same_texts_alike_without_a_download(tmp_path: Path) -> None:
    vectors = {name: np.array(cast(Any, embed(TEXTS))).reshape(2, -1) for name, embed in ways(tmp_path).items()}
    assert len(vectors) == 5
    for name, found in vectors.items():
        least = 0.99 if name == "footnote" else 0.9999
        assert float((found * vectors["chroma"]).sum(axis=1).min()) > least, name


def test_ratios_are_taken_within_a_round() -> None:
    chroma, footnote = report({"chroma": [8.0, 40.0, 12.0], "footnote": [2.0, 8.0, 3.0]}, papers=24)
    assert (chroma.papers_per_second, chroma.ratio, chroma.least, chroma.most) == pytest.approx((2.0, 4.0, 4.0, 5.0))
    assert footnote.ratio == 1.0
