import asyncio
from dataclasses import replace
from typing import Protocol

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rag.embedding import LocalEmbedder
from rag.index.keyword import TantivyIndex
from rag.passages import prepare, texts_to_embed
from rag.types import Basis, Drafted, IndexedPaper, Paper, Retrieved, Verdict
from rag.verify import LocalVerifier


class Check(Protocol):
    """Checks a sentence with these places as its markers."""

    def __call__(self, text: str, *markers: int, basis: Basis = "abstract") -> Verdict: ...


MAPS = Paper(
    "paper-maps",
    r"Robots get lost in long corridors. We present *LoopMap*, a mapping method that closes loops with radar alone. On the "
    r"Kelvin benchmark it needs 2.7$\times$ less memory than GridMap and loses its way in 12 of 1,000 runs. Code will follow.",
    title="LoopMap: radar mapping",
    authors=("Ida Brandt", "Wei Zhang", "周欣"),
    category="Robotics",
    venue="ICRA",
    year=2024,
    url="https://example.org/loopmap",
)
BEANS = Paper(
    "paper-beans",
    "We ask whether watering at night helps beans. In a field trial with 240 plots, night watering raised the yield by 18%. "
    "It did not change the taste. Farmers who water at dawn see half of that gain.",
    authors=("Ana Lima",),
    year=2021,
)
SLEEP = Paper(
    "paper-sleep", "Sleep after learning helps memory. In rats, naps doubled recall of mazes. We propose a spindle model."
)


@pytest.fixture(scope="module")
def embedder() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture(scope="module")
def papers(embedder: LocalEmbedder) -> list[IndexedPaper]:
    prepared = [prepare(paper) for paper in (MAPS, BEANS, SLEEP)]
    return [replace(found, vectors=embedder.embed_texts(texts_to_embed(found))) for found in prepared]


@pytest.fixture(scope="module")
def verifier(embedder: LocalEmbedder, papers: list[IndexedPaper]) -> LocalVerifier:
    corpus = TantivyIndex(None)
    corpus.apply(papers, [])
    return LocalVerifier(embedder, corpus)


@pytest.fixture
def check(verifier: LocalVerifier, papers: list[IndexedPaper]) -> Check:
    def check(text: str, *markers: int, basis: Basis = "abstract") -> Verdict:
        return verifier.check(Drafted(text, markers, basis), papers)

    return check


def quotes(verdict: Verdict) -> list[tuple[int, str]]:
    return [(evidence.marker, evidence.quote) for evidence in verdict.evidence]


@pytest.mark.parametrize(
    "text",
    [
        "We present LoopMap, a mapping method that closes loops with radar alone [1].",
        "Brandt et al., 2024: We present LoopMap, a mapping method that closes loops with radar alone [1]. ",
        "- Brandt et al., “LoopMap”: We present LoopMap, a mapping method that closes loops with radar alone [1].\n",
        "LoopMap, a mapping method that closes loops with radar alone [1].",
    ],
)
def test_the_abstracts_own_words_are_borne_out_without_a_doubt(check: Check, text: str) -> None:
    verdict = check(text, 1)
    assert (verdict.support, verdict.score) == ("ok", 1.0)
    assert quotes(verdict) == [(1, "We present *LoopMap*, a mapping method that closes loops with radar alone.")]


def test_a_quotation_with_words_added_is_no_quotation(check: Check) -> None:
    assert check("We present LoopMap, a mapping method that closes loops with radar alone and never fails [1].", 1).score < 1


def test_a_paraphrase_is_borne_out_and_shows_where(check: Check) -> None:
    verdict = check(
        "LoopMap closes loops by radar only and uses 2.7 times less memory than GridMap on the Kelvin benchmark [1].", 1
    )
    assert verdict.support == "ok"
    assert 0.8 < verdict.score < 1
    [(marker, quote)] = quotes(verdict)
    assert marker == 1
    assert r"2.7$\times$ less memory than GridMap" in quote
    assert "Code will" not in quote


def test_a_wrong_paper_is_replaced_by_the_one_that_says_it(check: Check) -> None:
    verdict = check("Watering beans at night raised their yield by 18% in a field trial [1].", 1)
    assert verdict.support == "ok"
    assert [marker for marker, _ in quotes(verdict)] == [2]
    assert "cited anew" in verdict.reason


def test_a_claim_without_a_marker_is_cited_where_a_paper_says_it(check: Check) -> None:
    assert [marker for marker, _ in quotes(check("Watering beans at night raised their yield by 18% in a field trial."))] == [2]


def test_a_sentence_that_claims_nothing_stays_uncited(check: Check) -> None:
    verdict = check("Here is what the papers say:")
    assert (verdict.support, verdict.evidence) == ("uncited", ())


def test_what_no_paper_says_is_a_mismatch_without_evidence(check: Check) -> None:
    verdict = check("Quantum error correction with surface codes needs fewer physical qubits than expected [2].", 2)
    assert (verdict.support, verdict.evidence) == ("mismatch", ())
    assert "Lima, 2021" in verdict.reason


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("Night watering raised the yield of beans by 28% in a field trial with 240 plots [2].", "28"),
        ("Night watering raised the yield of beans by 18% in a field trial with 18 plots [2].", "18"),
    ],
)
def test_a_number_the_abstract_does_not_have_there_is_named(check: Check, text: str, wrong: str) -> None:
    verdict = check(text, 2)
    assert verdict.support == "number_mismatch"
    assert wrong in verdict.reason
    assert [marker for marker, _ in quotes(verdict)] == [2]


def test_digits_of_names_years_and_authors_are_no_wrong_numbers(check: Check) -> None:
    text = "Brandt, Zhang and 周欣 (ICRA 2024) present LoopMap, which closes loops with radar, unlike GPT-4 [1]."
    assert check(text, 1).support in ("ok", "weak")


def test_a_name_the_abstract_does_not_have_keeps_a_sentence_from_being_borne_out(check: Check) -> None:
    said = "{} closes loops with radar alone, needs 2.7x less memory than GridMap and loses its way in 12 of 1000 runs [1]."
    assert check(said.format("LoopMap"), 1).support == "ok"
    verdict = check(said.format("RingNet-2"), 1)
    assert verdict.support == "weak"
    assert "RingNet-2" in verdict.reason


def test_two_papers_together_bear_out_what_neither_does_alone(check: Check) -> None:
    text = "Night watering raised the yield of beans by 18%, and naps doubled the recall of mazes in rats {}."
    both = check(text.format("[2][3]"), 2, 3)
    assert both.support in ("ok", "weak")
    assert both.score > max(check(text.format("[2]"), 2).score, check(text.format("[3]"), 3).score)
    assert [marker for marker, _ in quotes(both)] == [2, 3]
    assert "18%" in both.evidence[0].quote
    assert "naps" in both.evidence[1].quote


def test_another_paper_beside_the_right_one_takes_no_support_away(check: Check) -> None:
    text = "Night watering raised the yield of beans by 18% in a field trial {}."
    assert check(text.format("[2][1]"), 2, 1).score >= check(text.format("[2]"), 2).score


@pytest.mark.parametrize(
    ("text", "support"),
    [
        ("LoopMap 仅用雷达闭合回环，内存减少 2.7 倍 [1]。", "weak"),
        ("LoopMap 仅用雷达闭合回环，内存减少 3.7 倍 [1]。", "number_mismatch"),
        ("LidarNet 仅用雷达闭合回环 [1]。", "mismatch"),
        ("Die Methode schließt Schleifen allein durch Radar und braucht deutlich weniger Speicher als andere [1].", "weak"),
        ("夜间浇水使豆类产量提高 [3]。", "weak"),
    ],
)
def test_a_sentence_in_another_language_is_judged_by_numbers_and_names_only(check: Check, text: str, support: str) -> None:
    marker = int(text[text.index("[") + 1])
    verdict = check(text, marker)
    assert verdict.support == support
    assert verdict.score == 0.5 or support != "weak"


def test_names_and_numbers_find_the_words_behind_a_chinese_sentence(check: Check) -> None:
    [(_, quote)] = quotes(check("LoopMap 的内存需求比 GridMap 少 2.7 倍 [1]。", 1))
    assert quote.startswith("On the Kelvin benchmark")


@pytest.mark.parametrize(
    ("text", "support"),
    [
        ("“LoopMap: radar mapping” was written by Ida Brandt, Wei Zhang and 周欣 [1]. ", "ok"),
        ("It is from 2024 [1].", "ok"),
        ("It appeared at ICRA and is at https://example.org/loopmap [1].", "ok"),
        ("There are three authors, and 1 paper by Brandt [1].", "ok"),
        ("It is from 2023 [1].", "number_mismatch"),
        ("There are four authors [1].", "number_mismatch"),
        ("It was written by Ana Lima [1].", "mismatch"),
        ("It appeared at NeurIPS [1].", "mismatch"),
        ("It is at https://example.org/other [1].", "mismatch"),
        ("It is from 2024.", "uncited"),
    ],
)
def test_a_sentence_from_the_catalogue_is_held_against_its_fields(check: Check, text: str, support: str) -> None:
    verdict = check(text, *([1] if "[1]" in text else []), basis="metadata")
    assert verdict.support == support
    assert quotes(verdict) == ([] if support == "uncited" else [(1, "Robots get lost in long corridors.")])


def test_places_of_no_paper_count_for_nothing(check: Check) -> None:
    assert check("Beans grow [7].", 7).support == "uncited"
    assert quotes(check("In rats, naps doubled recall of mazes [3][9].", 3, 9)) == [(3, "In rats, naps doubled recall of mazes.")]


def test_papers_without_vectors_get_them(verifier: LocalVerifier, papers: list[IndexedPaper]) -> None:
    drafted = Drafted("LoopMap closes loops by radar only and uses less memory than GridMap [1].", (1,))
    bare = verifier.check(drafted, [replace(papers[0], vectors=None)])
    assert bare.score == pytest.approx(verifier.check(drafted, papers[:1]).score, abs=1e-3)


def test_vectors_of_another_model_are_not_compared(
    embedder: LocalEmbedder, verifier: LocalVerifier, papers: list[IndexedPaper]
) -> None:
    corpus = TantivyIndex(None)
    corpus.apply(papers, [])
    drafted = Drafted("LoopMap closes loops by radar only and uses less memory than GridMap [1].", (1,))
    assert papers[0].vectors is not None
    foreign = replace(papers[0], vectors=-papers[0].vectors)
    elsewhere = LocalVerifier(embedder, corpus, vectors_of="text-embedding-3-small")
    assert elsewhere.check(drafted, [foreign]).score == pytest.approx(verifier.check(drafted, papers[:1]).score, abs=1e-3)


def test_a_sentence_may_be_checked_from_an_event_loop(verifier: LocalVerifier, papers: list[IndexedPaper]) -> None:
    retrieved = [Retrieved(found, 0.5, 0.5, 0.5) for found in papers]
    drafted = Drafted("In rats, naps doubled recall of mazes [3].", (3,))
    assert asyncio.run(verifier.verify(drafted, retrieved)) == verifier.check(drafted, papers)


def test_the_verifier_is_named_by_its_weights(verifier: LocalVerifier) -> None:
    assert len(verifier.name) == len("local@") + 8


def test_an_abstract_without_sentences_bears_nothing_out(verifier: LocalVerifier, embedder: LocalEmbedder) -> None:
    found = prepare(Paper("paper-empty", "\u200b"))
    empty = replace(found, vectors=embedder.embed_texts(texts_to_embed(found)))
    assert verifier.check(Drafted("Beans grow at night [1].", (1,)), [empty]).evidence == ()
    assert verifier.check(Drafted("Beans grow at night [1].", (1,), "metadata"), [empty]).evidence == ()


WORDS = st.sampled_from(
    "LoopMap radar 2.7x 18% beans night [1] [2][3] 豆 naps . ; memory $x$ not 2024 We “ - ** 1,000 Ana".split()
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(WORDS, max_size=14).map(" ".join), st.lists(st.integers(-1, 5), max_size=3, unique=True), st.booleans())
def test_every_verdict_quotes_the_abstract_and_scores_within_bounds(
    verifier: LocalVerifier, papers: list[IndexedPaper], text: str, markers: list[int], metadata: bool
) -> None:
    verdict = verifier.check(Drafted(text, tuple(markers), "metadata" if metadata else "abstract"), papers)
    assert 0 <= verdict.score <= 1
    assert verdict.reason
    assert "\n" not in verdict.reason
    for evidence in verdict.evidence:
        assert papers[evidence.marker - 1].paper.abstract[evidence.start : evidence.end] == evidence.quote != ""
        assert 0 <= evidence.score <= 1
