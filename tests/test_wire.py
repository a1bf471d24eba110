"""The JSON forms keep DESIGN's promises."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from rag.types import (
    Answer,
    AnswerSentence,
    Citation,
    Evidence,
    Filters,
    IngestReport,
    Paper,
    Rejected,
    ScoredPaper,
    Usage,
)
from rag.wire import answer_to_json, filters_to_json, paper_to_json, report_to_json, to_line

PAPER = Paper("p-0000001", "Snow is white. It melts.", title="On snow", authors=("Ada Frost", "Bo Melt"), year=2024)
ANSWER = Answer(
    answer_id="a-1",
    question="Is snow white?",
    standalone_question="Is snow white?",
    status="answered",
    text="Snow is white [1].",
    sentences=(
        AnswerSentence("Snow is white [1].", (1,), "abstract", (Evidence(1, 0, 14, "Snow is white.", 1.0000001),), "ok", "", 0.9),
    ),
    citations=(Citation(1, PAPER, "Snow is white.", 0, 14),),
    papers=(ScoredPaper(PAPER, -0.01),),
    generator="extractive",
    prompt_version=None,
    verifier="local@1",
    filters=Filters(year_min=2020, venues=("ICML",)),
    revision=17,
    usage=Usage(3, 4),
    timings_ms={"total": 15},
)


def test_an_unknown_field_of_a_paper_is_null_and_no_key_is_missing() -> None:
    assert paper_to_json(Paper("p-0000002", "Text.")) == {
        "paper_id": "p-0000002",
        "title": None,
        "abstract": "Text.",
        "authors": [],
        "authors_truncated": False,
        "category": None,
        "venue": None,
        "year": None,
        "url": None,
        "doi": None,
        "cite_as": "Unknown authors",
    }


def test_an_answer_carries_every_key_of_the_contract() -> None:
    answer = answer_to_json(ANSWER)
    assert set(answer) == {
        *("answer_id", "question", "standalone_question", "status", "text", "sentences", "citations", "papers"),
        *("generator", "prompt_version", "verifier", "filters", "revision", "usage", "timings_ms", "notice", "invalid_markers"),
    }
    assert answer["usage"] == {"prompt_tokens": 3, "completion_tokens": 4}
    assert answer["citations"] == [{"marker": 1, "paper": paper_to_json(PAPER), "quote": "Snow is white.", "start": 0, "end": 14}]
    assert answer["sentences"] == [
        {
            "text": "Snow is white [1].",
            "markers": [1],
            "basis": "abstract",
            "evidence": [{"marker": 1, "start": 0, "end": 14, "quote": "Snow is white.", "score": 1.0}],
            "support": "ok",
            "reason": "",
            "score": 0.9,
        }
    ]


def test_scores_outside_the_unit_interval_are_held_to_it() -> None:
    assert answer_to_json(ANSWER)["papers"] == [{"paper": paper_to_json(PAPER), "score": 0.0}]


def test_only_filters_that_are_set_are_written() -> None:
    assert filters_to_json(Filters()) == {}
    assert filters_to_json(ANSWER.filters) == {"year_min": 2020, "venues": ["ICML"]}
    assert filters_to_json(Filters(year_max=0)) == {"year_max": 0}


def test_a_report_lists_each_rejected_record_with_its_reason() -> None:
    report = IngestReport(1, 2, 3, (), (Rejected("a.txt", "record 3", "no abstract"),), 9, True, {"read": 0.12345})
    assert report_to_json(report) == {
        "added": 1,
        "merged": 2,
        "unchanged": 3,
        "skipped": [],
        "rejected": [{"source": "a.txt", "where": "record 3", "reason": "no abstract"}],
        "revision": 9,
        "indexed": True,
        "seconds": {"read": 0.123},
    }


@given(st.text(st.characters(codec=None)))
def test_whatever_the_text_holds_it_is_one_line_of_valid_utf8(text: str) -> None:
    line = to_line({"text": text})
    assert line.splitlines() == [line]
    read = json.loads(line.encode("utf-8"))["text"]
    assert read == text or any("\ud800" <= character <= "\udfff" for character in text)
