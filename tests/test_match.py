"""Holding a paper's words against a question's, and deciding whether they are enough."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from rag.abstain import abstention
from rag.decide import CALIBRATION, Signals, calibration, decide, is_hopeless, signals
from rag.extract import marked, worth_listing
from rag.filters import Names
from rag.index.keyword import TantivyIndex
from rag.match import Match, match, meaning_coverage, names_in, places_by_author, role
from rag.relax import relaxation
from rag.retrieve import scored
from rag.scripts import is_latin, language_of, set_apart
from rag.spelling import is_english
from rag.text import clean, split_sentences
from rag.types import Filters, IndexedPaper, Paper, Retrieved
from rag.word_vectors import WordVectors

ABSTRACT = "We propose XRPO, which allocates rollouts. It converges 2.7 times sooner than GRPO on maths tasks."
COMMON = {"paper", "tasks", "maths"}


def weigh(text: str) -> Mapping[str, float]:
    """Words of four letters and more, the common ones light."""
    words = [word.strip(".,?!").lower() for word in text.split()]
    return {word: 0.5 if word in COMMON else 5.0 for word in words if len(word) > 3}


def retrieved(abstract: str = ABSTRACT, score: float = 0.5, **fields: object) -> Retrieved:
    paper = Paper("paper-0001", abstract, **fields)  # type: ignore[arg-type]  # fields by name
    sentences = split_sentences(abstract)
    found = IndexedPaper(paper, clean(abstract).text, sentences)
    return Retrieved(found, score, score, 0.0, tuple(0.5 for _ in sentences))


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("how much does XRPO gain over GRPO/GSPO?", ("XRPO", "GRPO", "GSPO")),
        ("Which paper uses LLaMA-2-13B?", ("LLaMA-2-13B",)),
        ("Is Mamba any good?", ("Mamba",)),
        ("What did Ann Other show? Nothing.", ("Ann", "Other")),
        ("nothing named here", ()),
        ("I've got several tasks", ()),
    ],
)
def test_names_are_words_with_capitals_or_digits(question: str, names: tuple[str, ...]) -> None:
    found = names_in(question)
    assert set(names) <= {part for name in found for part in (name, *name.split("/"))}
    assert bool(found) is bool(names)


def test_coverage_weighs_rare_words_more() -> None:
    found = match("rollouts for pizza tasks", retrieved(), weigh)
    assert found.coverage == pytest.approx((5.0 + 0.5) / (5.0 + 5.0 + 0.5))
    assert "pizza" in found.missing and "rollouts" not in found.missing


def test_a_paper_is_named_by_a_rare_name_it_holds() -> None:
    assert match("What does XRPO gain?", retrieved(), weigh).is_named
    assert not match("What does YRPO gain?", retrieved(), weigh).is_named
    assert match("What does YRPO gain?", retrieved(), weigh).missing_names == ("YRPO",)


class Synonyms:
    """An embedder that knows one pair of synonyms."""

    model, dimension = "synonyms", 2

    def embed_texts(self, texts: list[str]) -> np.ndarray:
        vectors: np.ndarray = np.array([[1, 0] if text in ("sooner", "faster") else [0, 1] for text in texts], dtype=np.float32)
        return vectors

    def embed_question(self, question: str) -> np.ndarray:
        vector: np.ndarray = self.embed_texts([question])[0]
        return vector


def test_a_word_in_other_words_counts_for_the_meaning() -> None:
    found = match("faster rollouts", retrieved("Rollouts come sooner."), weigh)
    assert meaning_coverage("faster rollouts", found, weigh, WordVectors(Synonyms())) == 1.0  # type: ignore[arg-type]  # enough of one
    assert found.coverage < 1.0


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("We propose a method.", 1),
        ("Experiments show gains.", 1),
        ("However, existing methods fail.", -1),
        ("The sky is blue.", 0),
        ("However, we propose another way.", 0),
    ],
)
def test_what_a_paper_does_is_told_from_what_others_do(sentence: str, expected: int) -> None:
    assert role(sentence) == expected


def test_papers_by_author_are_found_in_full_by_surname_and_without_accents() -> None:
    papers = [
        retrieved(authors=("Csaba Szepesvári",)),
        retrieved(authors=("Yejin Choi",)),
        retrieved(authors=("Jaemoo Choi",)),
        retrieved(authors=("周欣",)),
    ]
    assert places_by_author("What did Szepesvari prove?", papers) == [0]
    assert places_by_author("Anything from Yejin Choi?", papers) == [1]
    assert places_by_author("Anything by Choi?", papers) == [1, 2]
    assert places_by_author("周欣写了什么？", papers) == [3]
    assert places_by_author("choice of papers", papers) == []


def seen(**changed: float) -> Signals:
    plain = Signals(
        score=0.6,
        sentence=0.6,
        lead=0.3,
        coverage=0.8,
        sentence_coverage=0.6,
        meaning=0.9,
        is_named=1.0,
        missing_names=0.0,
        number_missing=0.0,
        full_text_matter=0.0,
        length=2.5,
    )
    return replace(plain, **changed)


def test_a_paper_far_ahead_that_says_it_is_an_answer() -> None:
    assert decide(seen()) == "answered"


def test_no_paper_ahead_of_the_rest_is_none() -> None:
    assert decide(seen(score=0.12, lead=0.005, coverage=0.05, missing_names=1.0)) == "not_in_corpus"


def test_a_named_paper_that_does_not_say_it_needs_its_full_text() -> None:
    silent = seen(meaning=0.2, sentence_coverage=0.05, number_missing=1.0)
    assert decide(silent) == "needs_full_text"
    assert decide(silent, one_paper=False) == "answered"
    assert decide(replace(silent, is_named=0.0)) == "answered"


def test_a_question_for_a_number_is_not_answered_without_one() -> None:
    paper = retrieved("XRPO is fast. It is quick.")
    held = match("How fast is XRPO?", paper, weigh)
    assert signals("How fast is XRPO?", [paper], held, lambda _: 1.0).number_missing == 1.0
    numbered = retrieved("XRPO is 2.7 times faster.")
    held = match("How fast is XRPO?", numbered, weigh)
    assert signals("How fast is XRPO?", [numbered], held, lambda _: 1.0).number_missing == 0.0


def test_what_abstracts_never_tell_is_known() -> None:
    paper = retrieved()
    held = match("What learning rate does XRPO use?", paper, weigh)
    assert signals("What learning rate does XRPO use?", [paper], held, lambda _: 1.0).full_text_matter == 1.0


def test_the_stored_calibration_is_whole_and_tells_how_it_was_found() -> None:
    stored = json.loads(CALIBRATION.read_text(encoding="utf8"))
    assert 0 < calibration().relevant.threshold < 1 and 0 < calibration().answered.threshold < 1
    for part in ("relevant", "answered"):
        assert stored["figures"][part]["auroc_cross_validated"] > 0.75
        assert set(stored[part]["model"]["weights"]) <= set(Signals.__dataclass_fields__)
    assert math.isclose(calibration().hopeless, stored["hopeless"])


def test_nothing_found_is_hopeless() -> None:
    assert is_hopeless([])
    assert is_hopeless([retrieved(score=0.01)])
    assert not is_hopeless([retrieved(score=0.5)])


def test_papers_near_the_best_are_listed() -> None:
    papers = [retrieved(score=score) for score in (0.5, 0.45, 0.2)]
    assert worth_listing(papers, [2, 1, 0]) == [1, 0]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("It works.", "It works [2]."),
        ("It works", "It works [2]"),
        ("As shown in [1], it works!", "As shown in (1), it works [2]!"),
        ("As shown in 【1】, it works!", "As shown in (1), it works [2]!"),
        ("它有效。", "它有效 [2]。"),
    ],
)
def test_a_sentence_gets_its_marker_before_the_full_stop(sentence: str, expected: str) -> None:
    assert marked(sentence, 2) == expected


def test_a_name_ends_where_chinese_goes_on() -> None:
    assert names_in("XRPO的作者是谁？和LU-KV比呢") == ("XRPO", "LU-KV")


def test_a_compound_is_one_thing_asked_for_however_it_is_written() -> None:
    weigh = TantivyIndex(None).weights
    for written in ("a speed-up of two", "a speedup of two"):
        for asked in ("How large a speed-up?", "How large a speedup?"):
            assert match(asked, retrieved(f"It gives {written}, which is large."), weigh).missing == ()
    assert match("Is fine-tuning of use?", retrieved("It needs no training."), weigh).missing == ("fine", "tune", "use")


def test_scores_are_fused_from_whole_two_sentences_and_words() -> None:
    paper = retrieved().found
    one = scored(paper, np.array([0.4, 0.2, 0.6], dtype=np.float32), 0.3)
    assert one.dense == pytest.approx(0.5 * 0.4 + 0.375 * 0.6 + 0.125 * 0.2)
    assert one.score == pytest.approx(0.55 * one.dense + 0.45 * 0.3)
    assert one.sentence_scores == pytest.approx((0.2, 0.6))


NAMES = Names(venues=("ICML",), categories=("Theory",))


def test_the_nearest_relaxation_of_a_filter_is_named() -> None:
    counts = {Filters(venues=("ICML",)): 3, Filters(year_min=2030): 0}
    said = relaxation(Filters(year_min=2030, venues=("ICML",)), lambda filters: ["x"] * counts[filters], NAMES)
    assert "without the earliest year, 3 would" in said
    assert "ask again without" in relaxation(Filters(year_min=2030), lambda filters: ["x"], NAMES)
    both = relaxation(
        Filters(2030, 2031, authors=("Kim",)), lambda filters: ["x"] * (filters == Filters(authors=("Kim",))), NAMES
    )
    assert "without the years, 1 would" in both


@pytest.mark.parametrize(
    ("filters", "said"),
    [
        (Filters(year_min=2020), "No paper here has a year, so none passes the filters; without the years, 9 would."),
        (Filters(year_max=2020, venues=("ICML",)), "No paper here has a year or a venue, so none passes the filters; "),
        (Filters(categories=("Theory",)), "No paper here has a category, so none passes the filters; without the category, "),
        (Filters(year_min=2020, authors=("Nobody",)), "; the other filters let none pass either."),
    ],
)
def test_a_filter_on_a_field_that_no_paper_has_is_told_so(filters: Filters, said: str) -> None:
    assert said in relaxation(filters, lambda left: ["x"] * (0 if left else 9), Names(has_years=False))


@pytest.mark.parametrize(
    ("text", "latin"),
    [("What is it?", True), ("KnapSpec 是什么？", False), ("the author 周欣", True), ("加速比最高是多少？", False), ("", True)],
)
def test_scripts_are_told_apart(text: str, latin: bool) -> None:
    assert is_latin(text) is latin


@pytest.mark.parametrize(
    ("word", "known"), [("unavoidable", True), ("imputation", True), ("measurments", False), ("gruop", False)]
)
def test_english_words_are_known(word: str, known: bool) -> None:
    assert is_english(word) is known


@pytest.mark.parametrize(
    ("text", "apart"),
    [
        ("XRPO把GRPO的准确率提高4%，快2.7倍", "XRPO 把 GRPO 的准确率提高 4%，快 2.7 倍"),
        ("DeepSearchは訓練に、DeepSearch는 학습에", "DeepSearch は訓練に、DeepSearch 는 학습에"),
        ("Plain English, naïve прямо.", "Plain English, naïve прямо."),
    ],
)
def test_latin_words_are_set_apart_from_the_script_around_them(text: str, apart: str) -> None:
    assert set_apart(text) == apart


def test_an_abstention_names_papers_in_the_language_of_the_question() -> None:
    assert language_of("图") == "zh" and language_of("graphs") == "en"
    papers = [retrieved(authors=("Ann Other",), title="A title")]
    ((first, verdict), (second, _)) = abstention("not_in_corpus", "graphs?", papers, ())
    assert first.text == "Not in these papers. " and "Other" in second.text and "A title" in second.text
    assert verdict.evidence == ()
    ((named, verdict), *_) = abstention("needs_full_text", "图？", papers, (1,))
    assert "[1]" in named.text and verdict.evidence[0].quote == "We propose XRPO, which allocates rollouts."


def test_what_comes_nearest_is_quoted_where_the_abstract_does_not_say() -> None:
    found = replace(retrieved("XRPO is new. It gives rollouts to prompts [3]."), sentence_scores=(0.2, 0.6))
    _, (nearest, verdict) = abstention("needs_full_text", "How does XRPO choose prompts?", [found], (1,))
    assert nearest.text == "What comes nearest there: “It gives rollouts to prompts (3).” [1]."
    assert verdict.evidence[0].quote == "It gives rollouts to prompts [3]."
    assert len(abstention("needs_full_text", "Which year is XRPO from?", [found], (1,))) == 1


def test_matches_prefer_contributions() -> None:
    background = "However, existing methods waste rollouts. We propose XRPO for rollouts."
    found: Match = match("rollouts", retrieved(background), weigh)
    assert found.sentence_scores[1] > found.sentence_scores[0]
