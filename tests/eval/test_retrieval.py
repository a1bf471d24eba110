"""A retrieval set is read whole or refused, and its measures are trec_eval's."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.datasets import Query, RetrievalSet, documents, read_retrieval_set
from eval.retrieval import Ranking, measured
from footnote import app
from rag.errors import InputError
from rag.types import RawPaper, Rejected

DOCS = [
    {"_id": "d1", "title": "Sleep", "text": "Sheep are counted before sleep by most people who cannot fall asleep."},
    {"_id": "d2", "title": "Steel", "text": "Corrosion of steel bridges is slowed by paint that holds zinc."},
    {"_id": "d3", "title": "Stars", "text": "Young stars lose their discs within ten million years."},
    {"_id": "d4", "title": "A title alone", "text": ""},
    {"_id": "d5", "title": "", "text": " "},
]


def write(folder: Path, *, gz: bool = False) -> Path:
    opened = gzip.open if gz else open
    with opened(folder / f"corpus.jsonl{'.gz' if gz else ''}", "wt", encoding="utf8") as file:
        file.write("".join(json.dumps(row) + "\n" for row in DOCS))
    queries = [
        {"_id": "q1", "text": "what slows the corrosion of steel?"},
        {"_id": "q2", "text": "counting sheep to fall asleep"},
    ]
    qrels = [{"query_id": "q1", "doc_id": "d2", "score": 1}, {"query_id": "q2", "doc_id": "d1", "score": 2}]
    for name, rows in (("queries", queries), ("qrels", qrels)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    return folder


def test_the_command_prints_one_object_of_measures(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["eval", "retrieval", str(write(tmp_path, gz=True)), "--json", "--by-query"])
    found = json.loads(result.stdout)
    assert {name: found[name] for name in ("nDCG@10", "R@5", "R@10", "R@100", "RR@10")} == dict.fromkeys(
        ("nDCG@10", "R@5", "R@10", "R@100", "RR@10"), 1.0
    )
    assert found["by_query"]["q1"]["RR@10"] == 1.0
    assert (found["queries"], found["documents"]) == (2, 4)


def test_measures_are_the_textbook_s_and_a_query_without_a_ranking_counts_as_nothing_found() -> None:
    dataset = RetrievalSet(Path(), (Query("q1", ""), Query("q2", "")), {"q1": {"b": 1}, "q2": {"x": 1}})
    found = measured(dataset, [Ranking("q1", {"a": 0.9, "b": 0.8}, 0.1)], 3, {})
    assert found.by_query["q1"]["RR@10"] == 0.5
    assert found.by_query["q1"]["nDCG@10"] == pytest.approx(0.6309, abs=1e-4)
    assert found.measures["RR@10"] == 0.25


def test_a_document_without_text_is_known_by_its_title_and_one_without_either_is_rejected(tmp_path: Path) -> None:
    read = list(documents(write(tmp_path) / "corpus.jsonl"))
    assert [type(one) for one in read] == [RawPaper] * 4 + [Rejected]
    title_alone = read[3]
    assert isinstance(title_alone, RawPaper) and title_alone.abstract == "A title alone" and title_alone.title is None
    assert title_alone.external_ids == ("id:d4",)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("queries.jsonl", '{"_id": "q1"}\n', "queries.jsonl, line 1: an object with _id, text"),
        ("qrels.jsonl", "not json\n", "cannot be read as JSON Lines"),
        ("qrels.jsonl", "", "no queries or no qrels"),
        ("corpus.jsonl", None, "holds no corpus.jsonl"),
    ],
)
def test_a_folder_that_is_no_retrieval_set_is_refused_with_the_line_at_fault(
    tmp_path: Path, file: str, content: str | None, said: str
) -> None:
    write(tmp_path)
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_text(content, encoding="utf8")
    with pytest.raises(InputError, match=said):
        read_retrieval_set(tmp_path)
