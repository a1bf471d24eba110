from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import replace

import pytest

from rag.errors import LLMUnavailable
from rag.generate import CUT_OFF, Draft, OpenAIGenerator
from rag.protocols import Delta
from rag.types import Decided, DraftDone, Drafted, IndexedPaper, Paper, Piece, Retrieved, Sentence, Turn, Usage

USAGE = Usage(70, 7)


class ScriptedLLM:
    """Says one text, in pieces of a given length; then it ends, or raises."""

    model = "scripted"

    def __init__(self, text: str, *, piece: int = 3, cut: bool = False, fault: Exception | None = None) -> None:
        self._text, self._piece, self._cut, self._fault = text, piece, cut, fault
        self.asked: list[str] = []
        self.closed = False

    async def stream(self, system: str, user: str, *, max_tokens: int = 0) -> AsyncGenerator[Delta, None]:
        self.asked.append(user)
        try:
            for place in range(0, len(self._text), self._piece):
                yield Delta(self._text[place : place + self._piece])
            if self._fault:
                raise self._fault
            yield Delta("", USAGE, self._cut)
        finally:
            self.closed = True

    async def complete(
        self, system: str, user: str, *, json_schema: Mapping[str, object] | None = None, max_tokens: int = 0
    ) -> tuple[str, Usage]:
        raise AssertionError("the generator streams")


def retrieved(abstract: str) -> Retrieved:
    paper = Paper(paper_id="p1234567", abstract=abstract)
    return Retrieved(IndexedPaper(paper, abstract, (Sentence(0, len(abstract), abstract),)), 0.9, 0.9, 0.9)


PAPERS = [retrieved("First."), retrieved("Second."), retrieved("Third.")]


async def drafted(llm: ScriptedLLM, papers: list[Retrieved] = PAPERS) -> list[Piece]:
    return [piece async for piece in OpenAIGenerator(llm).generate("What?", standalone="What?", papers=papers)]


@pytest.mark.parametrize("piece", [1, 3, 1000])
async def test_a_decision_comes_first_then_sentences_then_the_end(piece: int) -> None:
    assert await drafted(ScriptedLLM("It works【2】. It is fast. [1, 9]\n\nSources:\n[1] A", piece=piece)) == [
        Decided("answered"),
        Drafted("It works [2]. ", (2,)),
        Drafted("It is fast [1].\n\n", (1,)),
        DraftDone(USAGE, invalid_markers=1),
    ]


async def test_the_first_sentence_does_not_wait_for_the_end() -> None:
    async with aclosing(
        OpenAIGenerator(llm := ScriptedLLM("It works [1]. It is")).generate("?", standalone="?", papers=PAPERS)
    ) as pieces:
        assert [await anext(pieces), await anext(pieces)] == [Decided("answered"), Drafted("It works [1]. ", (1,))]
        assert not llm.closed
    assert llm.closed, "leaving stops the model"


async def test_sentences_without_a_marker_wait_for_one_with() -> None:
    pieces = await drafted(ScriptedLLM("Sure, here it is. It works [1]."))
    assert pieces[:3] == [Decided("answered"), Drafted("Sure, here it is. ", ()), Drafted("It works [1].", (1,))]


async def test_an_answer_without_any_marker_is_given_for_others_to_judge() -> None:
    assert await drafted(ScriptedLLM("It works.")) == [Decided("answered"), Drafted("It works.", ()), DraftDone(USAGE)]


@pytest.mark.parametrize(
    "reply",
    [
        "NOT_IN_PAPERS",
        "**NOT_IN_PAPERS**\n",
        "`NOT_IN_PAPERS`.",
        "NOT_IN_PAPERS\nBut I know that it works [1].",
        "Sorry. NOT_IN_PAPERS",
    ],
)
async def test_an_abstention_is_a_decision_and_no_sentence(reply: str) -> None:
    assert await drafted(ScriptedLLM(reply)) == [Decided("not_in_corpus"), DraftDone(USAGE)]


@pytest.mark.parametrize(
    ("reply", "places"),
    [
        ("NEEDS_FULL_TEXT: [2]", (2,)),
        ("NEEDS_FULL_TEXT: 2", (2,)),
        ("NEEDS_FULL_TEXT [2].\nThe abstract does not say.", (2,)),
        ("NEEDS_FULL_TEXT: paper 3", (3,)),
        ("NEEDS_FULL_TEXT: [9]", (1,)),
        ("NEEDS_FULL_TEXT", (1,)),
    ],
)
async def test_asking_for_the_full_text_names_the_paper(reply: str, places: tuple[int, ...]) -> None:
    pieces = await drafted(ScriptedLLM(reply))
    assert pieces[0] == Decided("needs_full_text", places)
    assert [type(piece) for piece in pieces] == [Decided, DraftDone]


async def test_a_status_word_after_a_sentence_was_shown_is_left_out() -> None:
    pieces = await drafted(ScriptedLLM("It works [1].\n\nNOT_IN_PAPERS"))
    assert pieces == [Decided("answered"), Drafted("It works [1].\n\n", (1,)), DraftDone(USAGE)]


async def test_without_papers_no_model_is_asked() -> None:
    llm = ScriptedLLM("It works [1].")
    assert await drafted(llm, []) == [Decided("not_in_corpus"), DraftDone()]
    assert llm.asked == []


async def test_a_cut_answer_ends_with_its_last_whole_sentence_and_says_so() -> None:
    pieces = await drafted(ScriptedLLM("It works [1]. It is fa", cut=True))
    assert pieces == [Decided("answered"), Drafted("It works [1]. ", (1,)), DraftDone(USAGE, notice=CUT_OFF)]


async def test_an_answer_cut_before_its_first_sentence_ended_is_none() -> None:
    with pytest.raises(LLMUnavailable, match="before it was cut off"):
        await drafted(ScriptedLLM("It works in ca", cut=True))


async def test_a_fault_after_a_sentence_is_raised_after_it() -> None:
    generator = OpenAIGenerator(ScriptedLLM("It works [1]. It is", fault=LLMUnavailable("broke off")))
    pieces = generator.generate("What?", standalone="What?", papers=PAPERS)
    assert [await anext(pieces), await anext(pieces)] == [Decided("answered"), Drafted("It works [1]. ", (1,))]
    with pytest.raises(LLMUnavailable, match="broke off"):
        await anext(pieces)


async def test_the_model_is_given_papers_conversation_and_question() -> None:
    llm = ScriptedLLM("It works [1].")
    generator = OpenAIGenerator(llm)
    history = [Turn("user", "Is it good?")]
    async with aclosing(generator.generate("它呢？", standalone="What about it?", papers=PAPERS, history=history)) as pieces:
        assert await anext(pieces) == Decided("answered")
    (user,) = llm.asked
    assert all(part in user for part in ('<paper number="3">', "Third.", "Is it good?", "它呢？", "What about it?"))
    assert generator.name == "scripted"
    assert generator.prompt_version.startswith("answer@")


WRITTEN = replace(PAPERS[0].found.paper, authors=("Ada Li", "Jia (Kevin) Liu"), year=2024, venue="ICML", abstract="FedLPA works.")
BY_LI = replace(PAPERS[0], found=replace(PAPERS[0].found, paper=WRITTEN, text="FedLPA works."))


@pytest.mark.parametrize(
    ("sentence", "basis"),
    [
        ("FedLPA was written by Ada Li and Jia (Kevin) Liu [1].", "metadata"),
        ("It was published at ICML in 2024 [1].", "metadata"),
        ("FedLPA 的作者是 Ada Li 和 Jia Liu [1]。", "metadata"),
        ("Li and Liu show that FedLPA works [1].", "abstract"),
        ("FedLPA works [1].", "abstract"),
        ("FedLPA was written by Bob Stranger [1].", "abstract"),
        ("Ada Li wrote it.", "abstract"),
    ],
)
async def test_what_tells_only_of_authors_year_and_venue_rests_on_the_catalogue(sentence: str, basis: str) -> None:
    pieces = await drafted(ScriptedLLM(f"{sentence} Yes [1]."), [BY_LI])
    first = next(piece for piece in pieces if isinstance(piece, Drafted))
    assert first.basis == basis


@pytest.mark.parametrize("opener", ["Yes. ", "No, ", "有。"])
def test_a_bare_yes_or_no_is_one_with_the_sentence_that_bears_it_out(opener: str) -> None:
    draft = Draft(PAPERS)
    pieces = [*draft.take(f"{opener}It raises accuracy [1]. And more [2]."), *draft.finish()]
    sentences = [piece for piece in pieces if isinstance(piece, Drafted)]
    assert [sentence.markers for sentence in sentences] == [(1,), (2,)]
    assert sentences[0].text.startswith(opener.strip())
