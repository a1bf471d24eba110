"""Kill −9 at any moment of an ingest: what was acknowledged is found at the next start, and nothing is there twice.

Five rounds, or as many as KILL_ROUNDS says.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rag.catalogue import Catalogue
from rag.index.indexes import Indexes
from tests.index.papers import EMBEDDER, first_sentence, found_densely, indexes_of, open_catalogue

ROUNDS = int(os.environ.get("KILL_ROUNDS", "5"))
LONGEST_SECONDS = 6.0
"""A round lives so long at most after its first acknowledgement: to be hit while it commits, applies, checks or rebuilds."""

INGEST = """
import sys
from itertools import count
from pathlib import Path
from rag.ingest import Models, Source, ingest
from tests.index.papers import EMBEDDER, about, indexes_of, open_catalogue

data, first, follow = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] == "follow"
catalogue = open_catalogue(data)
indexes = indexes_of(catalogue, data)
if follow:
    indexes.follow()

def acknowledge(step):
    print(f"committed {step.commit.added} revision {step.commit.revision}", file=sys.stderr, flush=True)

for start in count(first, 300):
    source = Source("test", lambda: iter([about(n) for n in range(start, start + 300)]))
    ingest(catalogue, Models(EMBEDDER), [source], on_step=acknowledge, catch_up=indexes.catch_up)
"""


@pytest.mark.timeout(60 * ROUNDS)
def test_what_was_acknowledged_survives_kills_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random()
    EMBEDDER.texts.clear()  # other tests of this process used it
    acknowledged = 0
    for round_number in range(ROUNDS):
        mode = "follow" if round_number % 2 else "sync"
        acknowledged += ingest_and_kill(tmp_path, acknowledged, mode, chance.uniform(0, LONGEST_SECONDS))
        catalogue = open_catalogue(tmp_path)
        indexes = indexes_of(catalogue, tmp_path)
        try:
            assert indexes.catch_up()
            assert_all_there_once(indexes, catalogue, acknowledged, chance)
        finally:
            indexes.close()
            catalogue.database.close()
        acknowledged = catalogue.count()  # what was committed but not yet acknowledged counts as well


def ingest_and_kill(data: Path, first: int, mode: str, seconds: float) -> int:
    """How many papers a child acknowledged before it was killed, `seconds` after the first."""
    command = [sys.executable, "-c", INGEST, str(data), str(first), mode]
    log = data / "child.log"
    with log.open("w") as stderr:
        child = subprocess.Popen(command, cwd=Path(__file__).parents[1], stderr=stderr)
    while "committed" not in log.read_text():
        assert child.poll() is None, log.read_text()
        time.sleep(0.01)
    time.sleep(seconds)
    assert child.poll() is None, log.read_text()
    child.kill()
    child.wait()
    return sum(int(count) for count in re.findall(r"committed (\d+) revision \d+\n", log.read_text()))


def assert_all_there_once(indexes: Indexes, catalogue: Catalogue, acknowledged: int, chance: random.Random) -> None:
    """The last 2,000 papers, and some of those before, are found by their own words and vector; the counts are right."""
    papers = catalogue.count()
    assert papers >= acknowledged
    assert indexes.keyword._disk.count() == papers
    assert indexes.dense._chroma.count() == papers
    everything = [paper_id for paper_id, _ in indexes.keyword.search("measure cold water", papers + 10)]
    assert len(everything) == len(set(everything)) == papers
    last = range(max(0, acknowledged - 2000), acknowledged)
    for n in [*last, *(chance.randrange(acknowledged) for _ in range(200))]:
        paper_id = catalogue.resolve(f"10.5555/paper.{n}")
        assert indexes.keyword.search(first_sentence(n), 1)[0][0] == paper_id
        assert found_densely(indexes, catalogue, paper_id)[0] == paper_id
    assert EMBEDDER.texts == []
