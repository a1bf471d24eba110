"""Question files are read strictly where a slip would change the question, and leniently elsewhere."""

from __future__ import annotations

import pytest

from rag.errors import InputError
from rag.questions import Asked, completed, read_question
from rag.types import Filters, Turn


def test_a_question_comes_with_its_history_and_filters() -> None:
    line = (
        '{"id": "q1", "question": "and who wrote it?", "gold": ["x"],'
        ' "history": [{"role": "user", "content": "What is snow?"},'
        ' {"role": "assistant", "content": "Ice.", "paper_ids": ["p-1"]}],'
        ' "filters": {"year_min": 2020, "venues": ["ICML", "NeurIPS"]}}'
    )
    assert read_question(line) == Asked(
        "and who wrote it?",
        (Turn("user", "What is snow?"), Turn("assistant", "Ice.", ("p-1",))),
        Filters(year_min=2020, venues=("ICML", "NeurIPS")),
    )


def test_history_and_filters_may_be_null_or_missing() -> None:
    assert read_question('{"question": "Why?"}') == read_question(b'{"question": "Why?", "history": null, "filters": null}')


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"question": "Why?"', "Invalid JSON"),
        ("[]", "object"),
        ('{"text": "Why?"}', "question"),
        ('{"question": ""}', "question"),
        ('{"question": 3}', "question"),
        ('{"question": "Why?", "filters": {"venue": ["ICML"]}}', "filters.venue"),
        ('{"question": "Why?", "filters": {"year_min": "soon"}}', "filters.year_min"),
        ('{"question": "Why?", "history": [{"role": "system", "content": "x"}]}', "history.0.role"),
        (b'{"question": "\xff"}', "JSON"),
    ],
)
def test_a_faulty_line_is_refused_naming_the_key_at_fault(line: str | bytes, said: str) -> None:
    with pytest.raises(InputError, match=said):
        read_question(line)


def test_a_questions_own_filters_come_before_the_general_ones() -> None:
    own, general = Filters(year_min=2020, venues=("ICML",)), Filters(year_min=1990, year_max=2025, venues=("NeurIPS",))
    assert completed(own, general) == Filters(year_min=2020, year_max=2025, venues=("ICML",))
    assert completed(Filters(), general) == general
