from dataclasses import replace

from rag.passages import prepare, text_hash, texts_to_embed
from rag.types import Paper

PAPER = Paper("footnote-paper-1", r"We use $O(n)$ time. It \emph{works}.", title="A {B}ayes title")


def test_the_whole_comes_first_then_each_sentence() -> None:
    assert texts_to_embed(prepare(PAPER)) == ["A Bayes title\nWe use O(n) time. It works.", "We use O(n) time.", "It works."]


def test_a_paper_without_title_is_its_abstract() -> None:
    assert texts_to_embed(prepare(replace(PAPER, title=None)))[0] == "We use O(n) time. It works."


def test_sentences_point_into_the_verbatim_abstract() -> None:
    indexed = prepare(PAPER)
    assert [PAPER.abstract[s.start : s.end] for s in indexed.sentences] == ["We use $O(n)$ time.", r"It \emph{works}."]
    assert indexed.vectors is None


def test_the_hash_changes_with_what_is_embedded_and_with_nothing_else() -> None:
    hashed = text_hash(prepare(PAPER))
    assert len(hashed) == 64
    assert text_hash(prepare(replace(PAPER, paper_id="other", year=2024, authors=("A B",)))) == hashed
    assert text_hash(prepare(replace(PAPER, abstract=r"We use $O(n)$ time. It \textbf{works}."))) == hashed
    assert text_hash(prepare(replace(PAPER, title="Another"))) != hashed
    assert text_hash(prepare(replace(PAPER, abstract="We use time."))) != hashed


def test_where_one_text_ends_matters_to_the_hash() -> None:
    assert text_hash(prepare(replace(PAPER, title=None, abstract="A b. C d."))) != text_hash(
        prepare(replace(PAPER, title="A b.", abstract="C d."))
    )
