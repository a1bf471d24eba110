"""The sample papers and questions that ship with Footnote hang together, and are nobody else's text."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from rag.questions import read_question
from rag.readers import read
from rag.types import RawPaper

SAMPLES = Path(__file__).parent.parent / "rag" / "samples"
SEEDS = Path(__file__).parent.parent.parent / "shared" / "seeds"
PAPERS = list(read(SAMPLES / "papers.txt"))
LINES = (SAMPLES / "questions.jsonl").read_text(encoding="utf8").splitlines()


def digest(abstract: str) -> str:
    """How question files name a paper, whatever its id is in a library."""
    return hashlib.sha256(abstract.encode()).hexdigest()[:10]


def phrases(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.lower())
    return {tuple(words[at : at + 8]) for at in range(len(words) - 7)}


def test_every_sample_paper_is_read_with_its_authors() -> None:
    assert [item for item in PAPERS if not isinstance(item, RawPaper) or not item.authors] == []
    assert len(PAPERS) == 44


def test_the_samples_show_every_turn_of_the_page_format() -> None:
    papers = [paper for paper in PAPERS if isinstance(paper, RawPaper)]
    assert sum(paper.category is None for paper in papers) == 4
    assert "Optimization" in {paper.category for paper in papers}
    assert {"周欣", "Wang"} <= {author for paper in papers for author in paper.authors}
    assert sum(paper.authors_truncated for paper in papers) == 6


def test_every_question_can_be_asked_and_its_gold_papers_are_there() -> None:
    known = {digest(paper.abstract) for paper in PAPERS if isinstance(paper, RawPaper)}
    for line in LINES:
        row = json.loads(line)
        assert read_question(line).question
        assert set(row["gold"]) <= known, row["id"]
        assert bool(row["gold"]) == (row["kind"] != "unanswerable"), row["id"]


def test_the_questions_cover_every_kind_and_have_ids_of_their_own() -> None:
    rows = [json.loads(line) for line in LINES]
    assert set(Counter(row["kind"] for row in rows)) == {"fact", "multi", "author", "unanswerable", "zh", "followup", "typo"}
    assert len({row["id"] for row in rows}) == len(rows)


def test_the_abstracts_share_no_wording_with_the_papers_whose_facts_they_tell() -> None:
    if not SEEDS.is_dir():
        pytest.skip("needs ../shared/seeds")
    taken = phrases(" ".join(file.read_text(encoding="utf8") for file in SEEDS.glob("*.txt")))
    assert [paper.where for paper in PAPERS if isinstance(paper, RawPaper) and phrases(paper.abstract) & taken] == []
