"""The whole line, on the sample papers and the real parts; LLMs are played by a scripted generator."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode, get_response_synthesizer

from rag.build import Library, open_library
from rag.cli_ingest import SAMPLES
from rag.errors import InputError, LLMRefused, LLMUnavailable
from rag.ingest import files
from rag.query_engine import Parts, QueryEngine
from rag.settings import Settings
from rag.types import (
    Answer,
    AnswerDone,
    AnswerEvent,
    Decided,
    DraftDone,
    Drafted,
    Filters,
    PapersFound,
    Piece,
    Retrieved,
    SentenceReady,
    Turn,
    Usage,
)

XRPO = "How much does XRPO gain over GRPO in pass@1?"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    with open_library(Settings(data=tmp_path_factory.mktemp("samples"))) as opened:
        opened.ingest(files([SAMPLES]))
        yield opened


def ask(engine: QueryEngine, question: str, **given: object) -> Answer:
    return asyncio.run(engine.answer(question, **given))  # type: ignore[arg-type]  # options by name


async def events_of(engine: QueryEngine, question: str) -> list[AnswerEvent]:
    return [event async for event in engine.stream(question)]


class Script:
    """A generator that gives the pieces it was made with, then raises the error, if any."""

    name = "scripted"
    prompt_version = "answer@00000000"

    def __init__(self, *pieces: Piece, error: Exception | None = None) -> None:
        self.pieces, self.error, self.closed = pieces, error, False

    async def generate(
        self, question: str, *, standalone: str, papers: Sequence[Retrieved], history: Sequence[Turn] = ()
    ) -> AsyncGenerator[Piece, None]:
        try:
            for piece in self.pieces:
                yield piece
            if self.error:
                raise self.error
        finally:
            self.closed = True


def with_generator(library: Library, script: Script, **changed: object) -> QueryEngine:
    parts: Parts = library.engine.parts
    return QueryEngine(replace(parts, generator=script, **changed))  # type: ignore[arg-type]  # parts by name


def check_promises(answer: Answer) -> None:
    """DESIGN's promises about every Answer."""
    assert [c.marker for c in answer.citations] == list(range(1, len(answer.citations) + 1))
    assert "".join(s.text for s in answer.sentences) == answer.text
    cited = {c.marker: c.paper for c in answer.citations}
    order: list[int] = []
    for sentence in answer.sentences:
        assert {e.marker for e in sentence.evidence} == set(sentence.markers)
        assert 0 <= sentence.score <= 1
        order += [marker for marker in sentence.markers if marker not in order]
        for one in sentence.evidence:
            assert cited[one.marker].abstract[one.start : one.end] == one.quote and one.quote.strip()
        for marker in sentence.markers:
            assert f"[{marker}]" in sentence.text
    assert order == list(cited)
    for citation in answer.citations:
        assert citation.paper.abstract[citation.start : citation.end] == citation.quote
    assert [p.score for p in answer.papers] == sorted((p.score for p in answer.papers), reverse=True)
    assert bool(answer.citations) or answer.status != "answered"
    assert not answer.citations or answer.status != "not_in_corpus"


def test_a_question_is_answered_from_the_paper_that_knows(library: Library) -> None:
    answer = ask(library.engine, XRPO)
    check_promises(answer)
    assert answer.status == "answered" and answer.generator == "extractive" and answer.prompt_version is None
    assert "4%" in answer.text and answer.citations[0].paper.authors[0] == "Udbhav Bamba"
    assert all(sentence.support == "ok" for sentence in answer.sentences)


def test_every_sample_question_keeps_the_promises(library: Library) -> None:
    lines = (Path(SAMPLES).with_name("questions.jsonl")).read_text(encoding="utf8").splitlines()
    for row in map(json.loads, lines):
        history = [Turn(turn["role"], turn["content"]) for turn in row.get("history", [])]
        check_promises(ask(library.engine, row["question"], history=history))


def test_what_is_not_in_the_papers_is_said_so_with_the_nearest(library: Library) -> None:
    answer = ask(library.engine, "What is a good recipe for a Neapolitan pizza dough?")
    check_promises(answer)
    assert answer.status == "not_in_corpus" and answer.text.startswith("Not in these papers.")
    assert answer.papers[0].paper.cite_as in answer.text


def test_an_abstention_speaks_the_question_s_language(library: Library) -> None:
    assert ask(library.engine, "披萨面团怎么做才好吃？").text.startswith("这些论文中没有答案。")


def test_what_only_the_full_text_can_know_names_the_paper(library: Library) -> None:
    answer = ask(library.engine, "Under which licence is the code of XRPO released, and what learning rate was used?")
    check_promises(answer)
    assert answer.status == "needs_full_text"
    assert answer.citations[0].paper.authors[0] == "Udbhav Bamba"


def test_authors_are_answered_from_the_catalogue(library: Library) -> None:
    answer = ask(library.engine, "Who wrote the XRPO paper?")
    check_promises(answer)
    assert answer.sentences[0].basis == "metadata" and "Udbhav Bamba" in answer.text and "Fan Lai" in answer.text
    assert answer.sentences[0].support == "ok"


def test_a_follow_up_is_asked_of_the_paper_before(library: Library) -> None:
    history = (Turn("user", XRPO), Turn("assistant", "XRPO gains as much as 4% in pass@1 [1]."))
    answer = ask(library.engine, "who wrote it?", history=history)
    assert "Udbhav Bamba" in answer.text and "XRPO" in answer.standalone_question


def test_papers_of_a_named_author_are_listed(library: Library) -> None:
    answer = ask(library.engine, "Which papers is Ziniu Li on?")
    check_promises(answer)
    assert {"Ziniu Li" in c.paper.authors for c in answer.citations} == {True} and len(answer.citations) > 1


def test_a_filter_that_matches_nothing_says_what_to_drop(library: Library) -> None:
    answer = ask(library.engine, XRPO, filters=Filters(year_min=2020, authors=("Hu Ding",)))
    check_promises(answer)
    assert answer.status == "not_in_corpus" and not answer.papers
    assert answer.notice is not None and answer.notice.startswith("No paper here has a year, so none")
    assert "without the years, 1 would" in answer.notice


def test_filters_hold(library: Library) -> None:
    answer = ask(library.engine, "What is shown?", filters=Filters(authors=("Hu Ding",)))
    assert answer.papers and all("Hu Ding" in scored.paper.authors for scored in answer.papers)


@pytest.mark.parametrize("question", ["", "  \n", "\0", "?!", "x" * 8001])
def test_no_question_and_a_document_are_refused(library: Library, question: str) -> None:
    with pytest.raises(InputError):
        ask(library.engine, question)


def test_the_same_question_gives_the_same_answer(library: Library) -> None:
    first, second = (ask(library.engine, XRPO) for _ in range(2))
    assert first.text == second.text and first.papers == second.papers and first.answer_id != second.answer_id


def test_a_stream_put_together_is_the_answer(library: Library) -> None:
    events = asyncio.run(events_of(library.engine, XRPO))
    found, *sentences, done = events
    assert isinstance(found, PapersFound) and isinstance(done, AnswerDone)
    ready = [event for event in sentences if isinstance(event, SentenceReady)]
    assert found.status == done.answer.status and found.papers == done.answer.papers
    assert "".join(one.sentence.text for one in ready) == done.answer.text
    assert tuple(c for one in ready for c in one.new_citations) == done.answer.citations


def test_a_paper_that_is_named_is_never_said_not_to_be_there(library: Library) -> None:
    answer = asyncio.run(library.engine.answer("Does LookWhere cure headaches in rainy winters?"))
    assert answer.status == "needs_full_text"
    assert answer.citations[0].paper.authors[0].endswith("Fuller")


def test_a_list_of_what_mentions_a_name_holds_what_does(library: Library) -> None:
    answer = asyncio.run(library.engine.answer("Which abstracts mention Latte in rainy winters?"))
    assert answer.status == "answered"
    assert all("Latte" in citation.paper.abstract for citation in answer.citations)


def test_fields_of_a_paper_on_another_subject_are_not_given(library: Library) -> None:
    answer = asyncio.run(library.engine.answer("Who wrote the paper on volcanic eruptions in Iceland?"))
    assert answer.status == "not_in_corpus"


def test_markers_are_numbered_by_first_use(library: Library) -> None:
    papers = library.retriever.find(XRPO, top_k=8)
    quotes = [paper.found.sentences[0].text.rstrip(".") for paper in papers]
    script = Script(
        Decided("answered"),
        Drafted(f"{quotes[2]} [3]. ", (3,)),
        Drafted(f"{quotes[0]} [1]. ", (1,)),
        Drafted(f"{quotes[2]} [3].", (3,)),
        DraftDone(Usage(10, 5), invalid_markers=1),
    )
    answer = ask(with_generator(library, script), XRPO)
    check_promises(answer)
    assert [s.markers for s in answer.sentences] == [(1,), (2,), (1,)]
    assert answer.citations[0].paper == papers[2].paper
    assert (answer.usage, answer.invalid_markers, answer.generator) == (Usage(10, 5), 1, "scripted")


def test_a_wrong_number_is_flagged_or_dropped(library: Library) -> None:
    right = "Training with XRPO converges up to 2.7 times sooner [1]. "
    wrong = "On maths and coding tasks XRPO gains as much as 9% in pass@1 over GRPO [1]."
    script = Script(Decided("answered"), Drafted(right, (1,)), Drafted(wrong, (1,)), DraftDone())
    flagged = ask(with_generator(library, script), XRPO)
    check_promises(flagged)
    assert [s.support for s in flagged.sentences] == ["ok", "number_mismatch"]
    dropped = ask(with_generator(library, script, unsupported="drop"), XRPO)
    check_promises(dropped)
    assert dropped.text == right


def test_a_sentence_on_the_wrong_paper_is_cited_anew(library: Library) -> None:
    sentence = "XRPO gains as much as 4% in pass@1 over GRPO, and its training converges up to 2.7 times sooner [2]."
    answer = ask(with_generator(library, Script(Decided("answered"), Drafted(sentence, (2,)), DraftDone())), XRPO)
    check_promises(answer)
    assert answer.citations[0].paper.authors[0] == "Udbhav Bamba" and answer.sentences[0].support == "ok"


@pytest.mark.parametrize("error", [LLMUnavailable("it at 10.0.0.7", told="It is busy."), LLMRefused("its key is wrong")])
def test_when_the_llm_fails_the_papers_own_sentences_stand_in(
    library: Library, error: LLMUnavailable | LLMRefused, caplog: pytest.LogCaptureFixture
) -> None:
    answer = ask(with_generator(library, Script(error=error)), XRPO)
    check_promises(answer)
    assert answer.status == "answered" and answer.generator == "extractive"
    assert answer.notice == f"{error.told} These are the papers' own sentences."
    assert str(error) in caplog.text and str(error) not in answer.notice


def test_when_the_llm_fails_half_way_what_was_shown_stays(library: Library) -> None:
    shown = "Training with XRPO converges up to 2.7 times sooner [1]. "
    script = Script(Decided("answered"), Drafted(shown, (1,)), error=LLMUnavailable("the connection broke"))
    answer = ask(with_generator(library, script), XRPO)
    check_promises(answer)
    assert answer.text == shown and answer.notice is not None and "ends here" in answer.notice


def test_an_llm_that_cites_nothing_that_holds_is_not_believed(library: Library) -> None:
    script = Script(Decided("answered"), Drafted("Pizza dough wants a long rest in the cold. ", ()), DraftDone())
    answer = ask(with_generator(library, script), XRPO)
    check_promises(answer)
    assert "Pizza" not in answer.text and answer.generator == "extractive"


def test_an_llm_may_abstain(library: Library) -> None:
    answer = ask(with_generator(library, Script(Decided("not_in_corpus"), DraftDone())), XRPO)
    check_promises(answer)
    assert answer.status == "not_in_corpus" and answer.generator == "scripted"


def test_leaving_a_stream_stops_the_generator(library: Library) -> None:
    script = Script(Decided("answered"), Drafted("Training with XRPO converges up to 2.7 times sooner [1]. ", (1,)), DraftDone())

    async def leave() -> None:
        events = with_generator(library, script).stream(XRPO)
        assert isinstance(await anext(events), PapersFound)
        await events.aclose()

    asyncio.run(leave())
    assert script.closed


def test_a_plain_llamaindex_program_can_use_engine_and_retriever(library: Library) -> None:
    assert isinstance(library.engine, BaseQueryEngine) and isinstance(library.retriever, BaseRetriever)
    response = library.engine.query(XRPO)
    assert "4%" in str(response) and "XRPO" in response.source_nodes[0].node.get_content()
    nodes = library.retriever.retrieve("XRPO rollouts")
    assert "XRPO" in nodes[0].node.get_content() and nodes[0].score is not None
    synthesizer = get_response_synthesizer(llm=MockLLM(), response_mode=ResponseMode.COMPACT)
    theirs = RetrieverQueryEngine(library.retriever, synthesizer).query(XRPO)
    assert theirs.source_nodes


def test_papers_are_counted_in_the_catalogue_and_some_cited(library: Library) -> None:
    answer = ask(library.engine, "How many papers are there?")
    check_promises(answer)
    assert answer.status == "answered" and f"holds {library.catalogue.count()} papers" in answer.text
    assert len(answer.citations) == 3 and answer.sentences[0].basis == "metadata"
    by_one = ask(library.engine, "How many papers by Ziniu Li are there?")
    check_promises(by_one)
    count = len(library.catalogue.matching(Filters(authors=("Ziniu Li",))))
    assert f"holds {count} papers by Ziniu Li" in by_one.text and len(by_one.citations) == count
    none = ask(library.engine, "How many papers are there from 2024?")
    assert none.status == "not_in_corpus" and none.notice is not None and "No paper here has a year" in none.notice


def test_a_count_by_topic_is_not_given(library: Library) -> None:
    answer = ask(library.engine, "How many papers are there on diffusion models?")
    assert answer.status == "answered" and answer.notice is not None and "not counted by topic" in answer.notice


def test_words_that_ask_nothing_get_a_reply_and_no_papers(library: Library) -> None:
    answer = ask(library.engine, "Thanks!", history=[Turn("user", XRPO), Turn("assistant", "4% [1].")])
    check_promises(answer)
    assert (answer.status, answer.text, answer.papers, answer.notice) == ("not_in_corpus", "You are welcome.", (), None)


def test_authors_name_the_paper_by_its_words_in_the_language_of_the_question(library: Library) -> None:
    english, chinese = (ask(library.engine, question) for question in ("Who wrote the XRPO paper?", "XRPO的作者是谁？"))
    opening = english.citations[0].quote[:30]
    assert english.text.startswith(f"The paper that begins “{opening}") and english.sentences[0].support == "ok"
    assert chinese.text.startswith(f"以“{opening}") and "、Fan Lai" in chinese.text and chinese.sentences[0].support == "ok"


def test_fields_are_told_of_every_paper_that_is_named_and_of_no_other(library: Library) -> None:
    answer = ask(library.engine, "Who are all the authors of the XRPO and LeMiCa papers?")
    assert [citation.paper.authors[0] for citation in answer.citations] == ["Udbhav Bamba", "Huanlin Gao"]


def test_a_paper_pointed_at_is_not_said_to_be_missing_however_little_was_said_of_it(library: Library) -> None:
    papers = library.catalogue.list(limit=3)
    said = "The library holds 3 papers [1][2][3]."
    history = [Turn("user", "How many papers are there?"), Turn("assistant", said, tuple(paper.paper_id for paper in papers))]
    authors = ask(library.engine, "Great. And who made the second?", history=history)
    assert authors.status == "answered" and papers[1].authors[0] in authors.text
    for question in ("what about the last one?", "最后一篇呢？"):
        about = ask(library.engine, question, history=history)
        assert (about.status, about.citations[0].paper) == ("answered", papers[2])
    off = ask(library.engine, "Does the first one bake bread in an oven?", history=history)
    assert off.status != "not_in_corpus" and off.citations[0].paper == papers[0]


def test_the_paper_listed_second_is_asked_for_its_authors(library: Library) -> None:
    listed = ask(library.engine, "Which papers is Ziniu Li on?")
    cited = [citation.paper for citation in listed.citations]
    turns = [Turn("user", listed.question), Turn("assistant", listed.text, tuple(paper.paper_id for paper in cited))]
    answer = ask(library.engine, "who wrote the second one?", history=turns)
    check_promises(answer)
    assert [citation.paper for citation in answer.citations] == [cited[1]] and cited[1].authors[0] in answer.text
    both = ask(library.engine, "compare the first and the second", history=turns)
    assert {citation.paper.paper_id for citation in both.citations} == {cited[0].paper_id, cited[1].paper_id}
    two = ask(library.engine, "who wrote the last two?", history=turns)
    assert {citation.paper.paper_id for citation in two.citations} == {cited[-2].paper_id, cited[-1].paper_id}
    every = ask(library.engine, "who wrote them?", history=turns)
    assert {citation.paper.paper_id for citation in every.citations} == set(turns[1].paper_ids)


def test_a_name_alone_is_asked_what_was_asked_before(library: Library) -> None:
    history = [Turn("user", "How much does LeMiCa gain in pass@1?"), Turn("assistant", "2.9 times [1].")]
    answer = ask(library.engine, "And what about XRPO?", history=history)
    assert "XRPO" in answer.standalone_question and "LeMiCa" not in answer.standalone_question
    assert answer.papers[0].paper.authors[0] == "Udbhav Bamba"
