"""Made questions rest on the paper, need it, stand by themselves and leak nowhere."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from eval.judges import LocalJudge
from eval.make_questions import QuestionMaker, drawn, fault_of, leaks, read_drafts, runs_of_words, shown_texts, split_of
from eval.question_set import pid, read_question_set
from rag.embedding import LocalEmbedder
from rag.errors import LLMUnavailable
from rag.index.keyword import TantivyIndex
from rag.passages import prepare
from rag.types import Paper
from tests.eval.made import PAPERS, FakeLLM, question

PAPER = Paper("paper-a", PAPERS["a"].abstract)
GOOD = {
    "question": "By how much does the Larkspur scheduler lift how busy a cluster is?",
    "note": "specific",
    "answer": "From 61% to 84%.",
    "points": ["from 61% to 84%"],
    "evidence": ["utilisation of a cluster from 61% to 84%"],
}
ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def judge() -> LocalJudge:
    corpus = TantivyIndex(None)
    corpus.apply([prepare(PAPER)], [])
    return LocalJudge(LocalEmbedder(), corpus)


def reply(*drafts: object) -> str:
    return json.dumps({"questions": drafts})


async def test_a_question_whose_evidence_stands_in_the_paper_is_kept(judge: LocalJudge) -> None:
    made = await QuestionMaker(FakeLLM([reply(GOOD), "I do not know."]), judge, []).make([PAPER])
    (kept,) = [one for questions in made.kept.values() for one in questions]
    assert kept.gold == (pid(PAPER.abstract),) and kept.points == ("from 61% to 84%",) and kept.note == "specific"
    assert made.kept[split_of(kept.gold[0])] == [kept]


async def test_a_question_answered_without_the_paper_is_dropped(judge: LocalJudge) -> None:
    made = await QuestionMaker(FakeLLM([reply(GOOD), "It rises from 61% to 84%."]), judge, []).make([PAPER])
    assert made.dropped == {"answered without the paper": 1} and not any(made.kept.values())


async def test_a_paper_on_which_the_llm_fails_is_counted(judge: LocalJudge) -> None:
    done: list[int] = []
    made = await QuestionMaker(FakeLLM([""], fail=LLMUnavailable("down")), judge, []).make([PAPER, PAPER], lambda: done.append(1))
    assert made.dropped == {"the LLM failed on a paper (LLMUnavailable)": 2} and len(done) == 2


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"evidence": ["from 61% to 94%"]}, "evidence not verbatim in the paper"),
        ({"evidence": ["from 61% to 84%", ""]}, "evidence not verbatim in the paper"),
        ({"question": "What does this paper say about clusters?"}, "does not stand by itself"),
        (
            {"question": "Is it so that Larkspur raises the utilisation of a cluster from 61% to 84%?"},
            "in the abstract's own words",
        ),
        ({"points": ["one two three four five six seven eight nine"]}, "leaks into a prompt or example"),
        ({}, ""),
    ],
)
def test_a_draft_is_dropped_for_what_is_wrong_with_it(changed: dict[str, object], reason: str) -> None:
    (draft,) = read_drafts(reply(GOOD | changed), Counter())
    shown = frozenset(runs_of_words("zero one two three four five six seven eight"))
    assert fault_of(draft, PAPER, shown) == reason


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"questions": 3}', reply({"question": "no"}), reply(GOOD | {"points": []})])
async def test_what_is_not_in_the_form_asked_for_is_counted(judge: LocalJudge, text: str) -> None:
    made = await QuestionMaker(FakeLLM([text]), judge, []).make([PAPER])
    assert made.dropped == {"not in the form asked for": 1}


def test_splits_are_by_paper_and_about_equal() -> None:
    splits = [split_of(f"{number:010x}") for number in range(400)]
    assert 150 < splits.count("dev") < 250
    assert split_of("abc") == split_of("abc")


def test_papers_are_drawn_by_the_seed() -> None:
    papers = [Paper(f"p{number}", "x") for number in range(20)]
    assert drawn(papers, None, 0) == papers
    assert drawn(papers, 5, 1) == drawn(papers, 5, 1) != drawn(papers, 5, 2)


def test_our_own_question_set_leaks_into_no_prompt() -> None:
    questions = read_question_set(ROOT / "rag" / "samples" / "questions.jsonl").questions
    assert leaks(questions, shown_texts()) == []


def test_a_leak_is_found_by_eight_words_in_a_row() -> None:
    one = question("q1", question="How many sheep are counted before sleep on a cold winter night?")
    assert leaks([one], ["they say: HOW many sheep are counted, before sleep, at dusk"]) == []
    assert leaks([one], ["they say: HOW many sheep are counted, before sleep — on a farm"]) == ["q1"]


def test_the_development_questions_leak_into_no_prompt() -> None:
    file = ROOT.parent / "shared" / "data" / "questions" / "seeds.dev.jsonl"
    if not file.exists():
        pytest.skip("needs ../shared/data/questions")
    assert leaks(read_question_set(file).questions, shown_texts()) == []
