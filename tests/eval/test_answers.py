"""A run can be killed, resumed, capped and cached; nothing is asked twice and nothing is dropped."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from eval.answers import Asking, Limits, in_order
from eval.judges import Judge
from eval.question_set import Question, read_question_set
from eval.runs import Appender, Judgement, Manifest, Record, code_digest, newest, read_manifest, read_rows, read_run
from rag.errors import InputError, LLMUnavailable
from rag.query_engine import QueryEngine
from tests.eval.made import MANIFEST, FakeEngine, answer, judgement, question, record

QUESTIONS = [question(f"q{number}") for number in range(6)]


class FakeJudge:
    """Supports everything; `fail` may raise."""

    name = "llm:test@1"

    def __init__(self, fail: Callable[[], Exception | None] = lambda: None) -> None:
        self.judged: list[str] = []
        self._fail = fail

    async def judge(self, one: Question, of: object) -> Judgement:
        self.judged.append(one.id)
        if error := self._fail():
            raise error
        return judgement(one.id, "supported")


def asking(
    tmp_path: Path, engine: FakeEngine, judge: Judge | None = None, manifest: Manifest = MANIFEST, **given: object
) -> Asking:
    made = Asking(cast(QueryEngine, engine), judge, tmp_path / "run", tmp_path / "cache", manifest)
    for name, value in given.items():
        setattr(made, name, value)
    return made


async def test_every_question_is_answered_and_judged(tmp_path: Path) -> None:
    done: list[int] = []
    judge = FakeJudge()
    await asking(tmp_path, FakeEngine(), judge, on_done=lambda: done.append(1)).run(QUESTIONS)
    run = read_run(tmp_path / "run")
    assert set(run.records) == set(run.judgements) == {one.id for one in QUESTIONS}
    assert len(done) == len(QUESTIONS) and run.judge == judge.name


async def test_a_run_taken_up_again_asks_only_what_is_left(tmp_path: Path) -> None:
    first = FakeEngine()
    await asking(tmp_path, first, FakeJudge()).run(QUESTIONS[:4])
    file = tmp_path / "run" / "answers.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]) + lines[3][:40])  # killed while it wrote the fourth
    for kept in (tmp_path / "cache").rglob("*.json"):
        kept.unlink()
    second, judge = FakeEngine(), FakeJudge()
    await asking(tmp_path, second, judge).run(QUESTIONS[:4])
    assert len(second.asked) == 1
    assert set(newest(tmp_path / "run")) == {one.id for one in QUESTIONS[:4]}
    assert len(file.read_bytes().splitlines()) == 4
    assert judge.judged == [], "the same answer is not judged twice"


async def test_the_same_question_of_the_same_library_comes_from_the_cache_in_another_run(tmp_path: Path) -> None:
    await asking(tmp_path, FakeEngine(), FakeJudge()).run(QUESTIONS)
    engine, judge = FakeEngine(), FakeJudge()
    other = asking(tmp_path, engine, judge, folder=tmp_path / "other")
    await other.run(QUESTIONS)
    assert engine.asked == [] and judge.judged == []
    assert all(one.cached for one in newest(tmp_path / "other").values())
    assert other.used.tokens == 0


@pytest.mark.parametrize(
    "changed", [{"code_digest": "x"}, {"papers_digest": "x"}, {"prompts": {"answer": "x"}}, {"models": {"generator": "x"}}]
)
async def test_whatever_an_answer_depends_on_makes_it_be_asked_anew(tmp_path: Path, changed: dict[str, object]) -> None:
    await asking(tmp_path, FakeEngine()).run(QUESTIONS)
    engine = FakeEngine()
    await asking(tmp_path, engine, manifest=MANIFEST.model_copy(update=changed), folder=tmp_path / "other").run(QUESTIONS)
    assert len(engine.asked) == len(QUESTIONS)


async def test_a_folder_never_mixes_two_runs(tmp_path: Path) -> None:
    await asking(tmp_path, FakeEngine()).run(QUESTIONS)
    with pytest.raises(InputError, match=r"code_digest.*--out"):
        await asking(tmp_path, FakeEngine(), manifest=MANIFEST.model_copy(update={"code_digest": "x"})).run(QUESTIONS)
    assert read_manifest(tmp_path / "run") == MANIFEST


async def test_an_error_is_a_record_and_is_tried_again_when_the_run_goes_on(tmp_path: Path) -> None:
    errors = {"What of q1?": LLMUnavailable("it is down"), "What of q2?": RuntimeError("a fault of ours")}
    await asking(tmp_path, FakeEngine(errors.get), FakeJudge()).run(QUESTIONS)
    records = newest(tmp_path / "run")
    assert len(records) == len(QUESTIONS)
    assert {id_: one.error.code for id_, one in records.items() if one.error} == {"q1": "llm_unavailable", "q2": "RuntimeError"}
    engine = FakeEngine()
    await asking(tmp_path, engine, FakeJudge()).run(QUESTIONS)
    assert sorted(engine.asked) == ["What of q1?", "What of q2?"]
    assert not any(one.error for one in newest(tmp_path / "run").values())


async def test_a_judge_that_fails_leaves_the_answer_and_is_asked_again(tmp_path: Path) -> None:
    await asking(tmp_path, FakeEngine(), FakeJudge(lambda: LLMUnavailable("down"))).run(QUESTIONS)
    assert all(one.error == "down" for one in read_run(tmp_path / "run").judgements.values())
    engine, judge = FakeEngine(), FakeJudge()
    await asking(tmp_path, engine, judge).run(QUESTIONS)
    assert engine.asked == [] and len(judge.judged) == len(QUESTIONS)
    assert not any(one.error for one in read_run(tmp_path / "run").judgements.values())


@pytest.mark.parametrize("limits", [Limits(tokens=50), Limits(cost=0.05, price_in=1000, price_out=1500)])
async def test_a_cap_stops_cleanly_before_the_next_question(tmp_path: Path, limits: Limits) -> None:
    engine = FakeEngine()
    stopped = await asking(tmp_path, engine, limits=limits, at_once=1).run(QUESTIONS)
    assert "limit" in stopped
    assert len(engine.asked) == len(newest(tmp_path / "run")) == (3 if limits.tokens else 2)
    await asking(tmp_path, engine, at_once=1).run(QUESTIONS)
    assert len(newest(tmp_path / "run")) == len(QUESTIONS)


async def test_what_an_llm_failed_at_is_not_kept_in_the_cache(tmp_path: Path) -> None:
    await asking(tmp_path, FakeEngine(lambda asked: LLMUnavailable("down"))).run(QUESTIONS)
    assert not list((tmp_path / "cache").rglob("*.json"))


def test_half_a_line_is_cut_off_before_more_is_written(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    for left in (b'{"id": "a"', b"\n"):
        file.write_bytes(left if left == b"\n" else b'{"id": "z", "key": "z"}\n' + left)
        appender = Appender(file)
        appender.add(record("b", answer(("One", "a"))))
        appender.close()
        assert [one.id for one in read_rows(file, Record)][-1] == "b"


def test_a_line_that_is_wrong_is_named(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text('{"id": "a", "key": "a"}\n{"id": 3}\n', encoding="utf8")
    with pytest.raises(InputError, match="line 2"):
        newest(tmp_path)


def test_the_code_digest_changes_with_the_code(tmp_path: Path) -> None:
    (tmp_path / "rag").mkdir()
    (tmp_path / "rag" / "a.py").write_text("1", encoding="utf8")
    before = code_digest(tmp_path)
    (tmp_path / "rag" / "a.py").write_text("2", encoding="utf8")
    assert code_digest(tmp_path) != before


def test_the_order_is_drawn_by_the_seed_alone() -> None:
    assert in_order(QUESTIONS, None) == QUESTIONS
    assert in_order(QUESTIONS, 1) == in_order(QUESTIONS, 1) != QUESTIONS
    assert sorted(one.id for one in in_order(QUESTIONS, 1)) == [one.id for one in QUESTIONS]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"id": "a"}', "line 2: question"),
        ('{"id": "a", "question": "x", "kind": "fact"}', "needs gold"),
        ('{"id": "a", "question": "x", "kind": "unanswerable", "gold": ["b"]}', "has no gold"),
        ('{"id": "q", "question": "x", "gold": ["b"]}', "two questions with the id q"),
        ("not json", "line 2"),
    ],
)
def test_a_question_that_cannot_be_used_is_named_not_dropped(tmp_path: Path, line: str, said: str) -> None:
    file = tmp_path / "set.jsonl"
    file.write_text(json.dumps({"id": "q", "question": "x", "gold": ["a"]}) + "\n" + line + "\n", encoding="utf8")
    with pytest.raises(InputError, match=said):
        read_question_set(file)
