"""Understanding and verifying with an LLM, its replies scripted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping

import pytest

from rag.counting import NOT_BY_TOPIC
from rag.errors import LLMRefused, LLMUnavailable
from rag.filters import Names
from rag.intent import Understood
from rag.protocols import Delta
from rag.types import Drafted, Evidence, Filters, IndexedPaper, Paper, Retrieved, Support, Turn, Usage, Verdict
from rag.understand import OTHER_SCRIPT, RuleUnderstanding
from rag.understand import understand as rules
from rag.understand_llm import LLMUnderstanding
from rag.verify_llm import LLMVerifier, find_quote

NAMES = Names(venues=("ICML",), categories=("Theory",))
HISTORY = (Turn("user", "What does SOAR do?"), Turn("assistant", "It decodes [1].", ("soar-paper",)))
READ = {
    "question": "Which models was SOAR tried on?",
    "topic": "models SOAR was tried on",
    "year_min": 2024,
    "year_max": None,
    "venues": ["ICML", "Nowhere"],
    "categories": [],
    "authors": ["Ann Other"],
    "asks_for": "explain",
    "other_papers": False,
}


class Replies:
    """An LLM that gives the replies it was made with, one a call; an exception is raised."""

    model = "scripted"

    def __init__(self, *replies: str | Exception) -> None:
        self.replies = list(replies)
        self.asked: list[str] = []

    def stream(self, system: str, user: str, *, max_tokens: int = 0) -> AsyncGenerator[Delta, None]:
        raise AssertionError("nothing here is streamed")

    async def complete(
        self, system: str, user: str, *, json_schema: Mapping[str, object] | None = None, max_tokens: int = 0
    ) -> tuple[str, Usage]:
        self.asked.append(user)
        reply = self.replies.pop(0)
        if isinstance(reply, Exception):
            raise reply
        return reply, Usage(7, 3)


def understand(llm: Replies, question: str, history: tuple[Turn, ...] = HISTORY, names: Names = NAMES) -> Understood:
    return asyncio.run(LLMUnderstanding(llm).understand(question, history, Filters(), names))


def test_a_follow_up_is_made_standalone_by_the_llm() -> None:
    read = understand(Replies(json.dumps(READ)), "and on which models?")
    assert (read.standalone, read.search_text) == (READ["question"], READ["topic"])
    assert read.filters == Filters(year_min=2024, venues=("ICML",))
    assert read.usage == Usage(7, 3)


def test_a_filter_the_library_cannot_have_is_not_set() -> None:
    read = understand(Replies(json.dumps(READ)), "and on which models?", names=Names(has_years=False))
    assert read.filters == Filters()


def test_a_chinese_question_is_searched_in_english() -> None:
    read = understand(Replies(json.dumps(READ)), "SOAR 在哪些模型上测试过？", history=())
    assert (read.question, read.search_text) == ("SOAR 在哪些模型上测试过？", READ["topic"])


def test_an_english_question_without_history_costs_no_call() -> None:
    llm = Replies()
    assert understand(llm, "Which models was SOAR tried on?", history=()).search_text == "Which models was SOAR tried on?"
    assert not llm.asked


@pytest.mark.parametrize(
    "question",
    ["Welche Modelle hat SOAR benutzt?", "Sur quels modèles SOAR a-t-il été testé ?", "smal agent gruop in clinial reasning"],
)
def test_a_question_that_does_not_read_as_english_is_put_into_it(question: str) -> None:
    assert understand(Replies(json.dumps(READ)), question, history=()).search_text == READ["topic"]


def test_papers_pointed_at_are_found_by_rules_and_kept_by_the_llm() -> None:
    listed = (Turn("user", "Which decode?"), Turn("assistant", "- A [1].\n- B [2].", ("a", "b")))
    assert understand(Replies(json.dumps(READ)), "who wrote the second one?", listed).filters.paper_ids == ("b",)


@pytest.mark.parametrize("question", ["Thanks!", "How many papers are there?"])
def test_thanks_and_counts_cost_no_call(question: str) -> None:
    llm = Replies()
    assert understand(llm, question) == rules(question, HISTORY, Filters(), NAMES)
    assert not llm.asked


def test_a_count_by_topic_is_not_left_to_the_llm_unsaid() -> None:
    reply = json.dumps({**READ, "asks_for": "count"})
    assert understand(Replies(reply), "Wie viele Arbeiten über SOAR gibt es?", ()).notice == NOT_BY_TOPIC


def test_others_are_asked_for_without_those_cited() -> None:
    assert understand(Replies(json.dumps({**READ, "other_papers": True})), "any others?").exclude == ("soar-paper",)


@pytest.mark.parametrize("reply", [LLMUnavailable("down"), LLMRefused("no key"), "no JSON", "[]", '{"question": ""}', "{}"])
def test_whatever_the_llm_does_the_rules_read_the_question(reply: str | Exception) -> None:
    read = understand(Replies(reply), "who wrote it?")
    assert read.intent == "authors" and "SOAR" in read.search_text


def test_without_a_way_to_read_chinese_the_reader_is_told_what_to_install() -> None:
    rules = RuleUnderstanding(multilingual=False)
    assert asyncio.run(rules.understand("图神经网络？", (), Filters(), NAMES)).notice == OTHER_SCRIPT
    assert asyncio.run(rules.understand("GNNs?", (), Filters(), NAMES)).notice is None
    able = RuleUnderstanding(multilingual=True)
    assert asyncio.run(able.understand("图神经网络？", (), Filters(), NAMES)).notice is None


ABSTRACT = "We \\emph{decode} in parallel.  It raises\naccuracy by 4\\%."
PAPERS = [Retrieved(IndexedPaper(Paper("soar-paper", ABSTRACT), "We decode in parallel. It raises accuracy by 4%.", ()), 1, 1, 1)]
DRAFTED = Drafted("SOAR lifts accuracy [1]. ", (1,))
LOCALLY = Verdict("ok", (Evidence(1, 0, 3, "We ", 0.9),), "near", 0.9)


class Locally:
    """A local verifier that always finds the same."""

    name = "local@00000000"

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    async def verify(self, drafted: Drafted, papers: object) -> Verdict:
        return self.verdict


def verdict(word: str, quote: str = "raises accuracy by 4%") -> str:
    entry = {"sentence": 1, "verdict": word, "paper": 1, "quote": quote, "reason": "so it says"}
    return json.dumps({"verdicts": [entry]})


def verify(llm: Replies, local: Verdict = LOCALLY) -> Verdict:
    return asyncio.run(LLMVerifier(llm, Locally(local)).verify(DRAFTED, PAPERS))


@pytest.mark.parametrize(
    ("word", "support"), [("supported", "ok"), ("partly", "weak"), ("not_stated", "mismatch"), ("contradicted", "mismatch")]
)
def test_the_llm_s_word_decides(word: str, support: Support) -> None:
    found = verify(Replies(verdict(word)))
    assert (found.support, found.reason) == (support, "so it says")
    assert bool(found.evidence) is (support != "mismatch")


def test_the_llm_s_quotation_is_shown_verbatim() -> None:
    (evidence,) = verify(Replies(verdict("supported"))).evidence
    assert evidence.quote == "raises\naccuracy by 4" == ABSTRACT[evidence.start : evidence.end]


@pytest.mark.parametrize("quote", ["", "raises accuracy by 9%"])
def test_support_without_a_quotation_that_is_there_is_weak(quote: str) -> None:
    assert verify(Replies(verdict("supported", quote))).support == "weak"


def test_a_broken_verdict_is_asked_for_once_more() -> None:
    assert verify(Replies("not JSON", verdict("supported"))).support == "ok"
    with pytest.raises(LLMUnavailable, match="no verdict"):
        verify(Replies("not JSON", json.dumps({"verdicts": []})))


def test_words_that_the_llm_quotes_rescue_a_sentence() -> None:
    nothing = Verdict("mismatch", (), "nothing comes near", 0.05)
    found = verify(Replies(verdict("supported")), nothing)
    assert (found.support, found.evidence[0].quote) == ("ok", "raises\naccuracy by 4")
    for word, quote in (("supported", "raises accuracy by 9%"), ("not_stated", "")):
        left = verify(Replies(verdict(word, quote)), nothing)
        assert (left.support, left.evidence, left.reason) == ("mismatch", (), "nothing comes near")


def test_what_a_verdict_cost_is_told_with_all_tries() -> None:
    assert verify(Replies(verdict("supported"))).usage == Usage(7, 3)
    assert verify(Replies("not JSON", verdict("supported"))).usage == Usage(14, 6)


@pytest.mark.parametrize("support", ["number_mismatch", "uncited"])
def test_what_fails_locally_needs_no_llm(support: Support) -> None:
    llm = Replies()
    assert verify(llm, Verdict(support, (), "no", 0.1)).support == support
    assert not llm.asked


def test_a_quotation_is_found_whatever_its_white_space_case_and_quotation_marks() -> None:
    assert find_quote("a  b\nc", "a b c") == (0, 6)
    assert find_quote("We say ``so'' – twice.", "we say “so”, twice") == (0, 21)
    assert find_quote("so", "s") is None
    assert find_quote("abc", "  ") is None
