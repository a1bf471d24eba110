"""The keyword index: what is found, by which words, and that every text is a question."""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.errors import IndexDamaged
from rag.index.keyword import SET_LIMIT, TantivyIndex
from rag.types import IndexedPaper
from tests.index.papers import indexed

SHELF = [
    indexed(
        "paper-oja",
        "We analyse the compressed Oja algorithm. It needs few measurements per sample.",
        title="Streaming PCA",
        authors=("Csaba Szepesvári", "Łukasz Kaiser"),
        year=2020,
    ),
    indexed("paper-cache", "LU-KV evicts entries of the key-value cache.", authors=("Kaiming He", "周欣"), venue="ICLR"),
    indexed("paper-svd", "SAES-SVD compresses weights by a low-rank product.", authors=("Bo An",), keywords=("POKE-SMC",)),
    indexed("paper-greedy", "An $ε$-greedy policy with step size α explores.", category="Learning · Bandits"),
    indexed("paper-other", "Gardens in spring are green and full of birds.", authors=("Yang Liu",)),
]


@pytest.fixture
def index() -> TantivyIndex:
    keyword = TantivyIndex(None)
    keyword.apply(SHELF, [])
    return keyword


@pytest.mark.parametrize(
    ("question", "paper_id"),
    [
        ("LU-KV", "paper-cache"),
        ("what is LUKV?", "paper-cache"),
        ("SAES-SVD", "paper-svd"),
        ("saes svd", "paper-svd"),
        ("POKE-SMC", "paper-svd"),
        ("lowrank", "paper-svd"),
        ("szepesvari", "paper-oja"),
        ("Szepesvári", "paper-oja"),
        ("Szepesva\u0301ri's work", "paper-oja"),
        ("lukasz", "paper-oja"),
        ("What did He et al. propose?", "paper-cache"),
        ("周欣研究了什么", "paper-cache"),
        ("epsilon-greedy", "paper-greedy"),
        ("ε", "paper-greedy"),
        ("bandits", "paper-greedy"),
        ("iclr", "paper-cache"),
        ("analysing streams", "paper-oja"),
        ("compresed oja algo, hw many measurments per sampel", "paper-oja"),
        ("szepesvary", "paper-oja"),
        ("algo", "paper-oja"),
    ],
)
def test_question_finds_its_paper_first(index: TantivyIndex, question: str, paper_id: str) -> None:
    assert index.search(question, 3)[0][0] == paper_id


@pytest.mark.parametrize("question", ["", "   ", "what is there?", "the of and", "zzzzqqqq", "?!*", "\x00", "量子"])
def test_question_without_a_known_word_finds_nothing(index: TantivyIndex, question: str) -> None:
    assert index.search(question, 5) == []
    assert index.scores(question, ["paper-oja"]) == {}


@settings(deadline=None, max_examples=200)
@given(st.text(st.sampled_from("aA( )\"\\*:^~[]{}+-!?/<>|&'α周0.é\ud800\x00") | st.characters(exclude_categories=())))
def test_every_text_is_a_question(question: str) -> None:
    assert isinstance(SHARED.search(question, 3), list)
    assert isinstance(SHARED.correct(question), str)


SHARED = TantivyIndex(None)
SHARED.apply(SHELF, [])


def test_scores_of_chosen_papers_are_those_of_the_search(index: TantivyIndex) -> None:
    question = "compressed weights of an Oja algorithm cache"
    ranked = dict(index.search(question, 10))
    assert len(ranked) == 3
    assert index.scores(question, ["paper-svd", "paper-other", "paper-oja", "unknown-id"]) == {
        paper_id: ranked[paper_id] for paper_id in ("paper-svd", "paper-oja")
    }


def test_a_word_asked_twice_weighs_more(index: TantivyIndex) -> None:
    once, twice = (index.scores(question, ["paper-oja"])["paper-oja"] for question in ("oja", "oja oja"))
    assert twice == pytest.approx(2 * once)


def test_an_authors_name_counts_in_the_field_of_names_only_unstemmed(index: TantivyIndex) -> None:
    assert [paper_id for paper_id, _ in index.search("Yang", 5)] == ["paper-other"]
    assert index.search("Yan", 5) == []


def test_a_stand_in_counts_less_than_the_word_itself(index: TantivyIndex) -> None:
    exact, mistyped = (index.scores(question, ["paper-oja"])["paper-oja"] for question in ("compressed", "compresed"))
    assert 0 < mistyped < exact


def test_a_known_word_is_never_corrected(index: TantivyIndex) -> None:
    assert index.correct("Which  Oja-algorithm, compresses measurements?") == "Which  Oja-algorithm, compresses measurements?"


def test_unknown_words_are_corrected_in_place(index: TantivyIndex) -> None:
    assert index.correct("compresed  Oja: mesurments per sampel?") == "compressed  Oja: measurements per sample?"


@pytest.mark.parametrize(
    ("word", "corrected"),
    [
        ("gardns", "gardens"),
        ("agrdens", "gardens"),  # two letters swapped are one slip
        ("bxrds", "birds"),
        ("bxrdz", "bxrdz"),  # two slips in a short word could be anything
        ("meaxurementz", "measurements"),
        ("xeasurementz", "xeasurementz"),  # two slips, one of them in the first letter
        ("warden", "warden"),  # a word English knows
        ("analyze", "analyze"),  # an inflection that is there
        ("algo", "algorithm"),
        ("doesn't", "doesn't"),
    ],
)
def test_slips_of_the_pen_are_corrected_and_other_words_left_alone(index: TantivyIndex, word: str, corrected: str) -> None:
    index.apply([indexed("paper-spell", "Yes it does analyze; a garden also.")], [])
    assert index.correct(word) == corrected


def test_rarer_words_weigh_more_and_words_that_only_ask_nothing(index: TantivyIndex) -> None:
    index.apply([indexed("paper-more", "Birds of the low countries.")], [])
    weights = index.weights("What do birds show of gardens and volcanoes?")
    assert list(weights) == ["bird", "garden", "volcano"]
    assert weights["bird"] < weights["garden"] < weights["volcano"]
    assert weights["garden"] == pytest.approx(math.log(1 + 5.5 / 1.5))
    index.apply([indexed("paper-garden", "Another garden.")], [])
    assert index.weights("What do birds show of gardens and volcanoes?")["garden"] == pytest.approx(math.log(1 + 5.5 / 2.5))


def test_applying_twice_holds_each_paper_once(index: TantivyIndex) -> None:
    index.apply(SHELF, [])
    assert index.count() == len(SHELF)
    assert len(index.search("oja", 10)) == 1


def test_a_replaced_paper_is_found_by_its_new_words_only(index: TantivyIndex) -> None:
    index.apply([indexed("paper-oja", "Volcanoes of Iceland.")], [])
    assert index.search("oja szepesvari streaming", 5) == []
    assert index.search("volcano", 5)[0][0] == "paper-oja"


def test_a_deleted_paper_is_gone_and_an_unknown_one_is_no_error(index: TantivyIndex) -> None:
    index.apply([], ["paper-oja", "never-there"])
    assert index.count() == len(SHELF) - 1
    assert index.search("oja", 5) == []


def test_a_rebuild_holds_exactly_what_it_was_given(index: TantivyIndex) -> None:
    index.rebuild(iter([indexed("paper-new", "Volcanoes of Iceland.")]))
    assert index.count() == 1
    assert index.search("volcano oja", 5)[0][0] == "paper-new"


def test_a_rebuild_that_fails_changes_nothing(index: TantivyIndex) -> None:
    def papers() -> Iterator[IndexedPaper]:
        yield indexed("paper-new", "Volcanoes of Iceland.")
        raise RuntimeError("the catalogue is gone")

    with pytest.raises(RuntimeError):
        index.rebuild(papers())
    index.refresh()
    assert index.search("volcano", 5) == []
    index.apply([], [])
    assert index.count() == len(SHELF)
    assert index.search("volcano", 5) == []


def test_files_that_are_no_index_are_damage(tmp_path: Path) -> None:
    TantivyIndex(tmp_path).apply(SHELF, [])
    (tmp_path / "meta.json").write_text("{}")
    with pytest.raises(IndexDamaged, match="footnote reindex"):
        TantivyIndex(tmp_path)


@pytest.mark.parametrize("members", [3, SET_LIMIT + 500])
def test_a_search_within_ids_gives_the_best_of_exactly_those(members: int) -> None:
    keyword = TantivyIndex(None)
    keyword.apply([indexed(f"paper-{n:05}", "tide " * (1 + n % 7) + "moon " * (n % 50)) for n in range(4000)], [])
    within = [f"paper-{n:05}" for n in range(0, 4000, 4000 // members)][:members]
    everything = keyword.search("tide", 4000)
    assert len(everything) == 4000
    expected = [hit for hit in everything if hit[0] in set(within)]
    assert keyword.search("tide", 10, within) == expected[:10]
    assert keyword.search("tide", members + 10, within) == expected
    assert keyword.search("tide", 10, []) == []


def test_what_one_process_commits_another_reads(tmp_path: Path) -> None:
    reader = TantivyIndex(tmp_path)
    writing = (
        "import sys; from pathlib import Path\n"
        "from rag.index.keyword import TantivyIndex; from tests.index.papers import indexed\n"
        "TantivyIndex(Path(sys.argv[1])).apply([indexed('paper-new', 'Volcanoes of Iceland')], [])"
    )
    subprocess.run([sys.executable, "-c", writing, str(tmp_path)], check=True, cwd=Path(__file__).parents[2])
    reader.refresh()
    assert reader.search("volcano", 5)[0][0] == "paper-new"


@pytest.mark.parametrize("suffix", ["pos", "term", "store"])
def test_a_lost_file_is_damage_whatever_is_asked(tmp_path: Path, suffix: str) -> None:
    TantivyIndex(tmp_path).apply(SHELF, [])
    (lost,) = tmp_path.glob(f"*.{suffix}")
    lost.unlink()
    with pytest.raises(IndexDamaged):
        ask_everything(TantivyIndex(tmp_path))


def ask_everything(index: TantivyIndex) -> None:
    index.count()
    index.weights("oja")
    index.correct("compresed")
    index.scores("oja", ["paper-oja"])
    index.search("oja", 1)
