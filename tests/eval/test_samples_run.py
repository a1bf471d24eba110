"""The gate: the sample papers' questions, asked offline, must not come out worse than the stored baseline. And the same run with
faults planted into it, which the report must call by their names."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from eval.conformal import run_module
from eval.driver import Finished, Plan, ask_set
from eval.figures import CIRCULAR
from eval.gate import Bound, hold_baseline, read_baseline
from eval.judges import LocalJudge
from eval.page import to_html
from eval.report import to_json, to_markdown, to_text
from eval.runs import Failure, Judgement, Record, Run
from eval.shelves import Distractors, open_papers
from eval.summary import Summary, summary_of
from footnote import app
from rag.build import Library
from rag.errors import InputError
from rag.settings import Settings
from tests.eval.planted import FAULTS

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "rag" / "samples"
BASELINE = ROOT / "eval" / "baseline.json"
PAPERS, QUESTIONS = SAMPLES / "papers.txt", SAMPLES / "questions.jsonl"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def finished(data: Path) -> Finished:
    return ask_set(Settings(data=data), Plan(QUESTIONS, papers=(PAPERS,)))


@pytest.fixture(scope="module")
def summary(finished: Finished) -> Summary:
    return summary_of(finished.run)


def test_the_samples_come_out_no_worse_than_the_baseline(summary: Summary) -> None:
    baseline = read_baseline(BASELINE)
    assert {"faithfulness", "citation_recall", "abstention_recall", "gold_in_top_5"} <= set(baseline)
    assert [f"{one.bound}: {one.said}" for one in hold_baseline(summary.figures, baseline) if not one.holds] == []


def test_every_question_is_there_and_a_sound_run_has_no_fault(summary: Summary) -> None:
    assert summary.asked == summary.questions == len(QUESTIONS.read_text(encoding="utf8").splitlines())
    assert summary.findings == ()


def test_extractive_answers_under_the_local_judge_are_called_circular_and_come_last(summary: Summary) -> None:
    assert summary.is_circular
    assert {one.name for one in summary.circular} == CIRCULAR
    assert summary.leading[0].name == "litqa_accuracy"
    for text in (to_text(summary), to_markdown(summary), to_html(summary)):
        assert text.index("litqa_accuracy") < text.index("circular") < text.index("citation_recall", text.index("circular"))


@pytest.fixture(scope="module")
def library(finished: Finished, data: Path) -> Iterator[Library]:
    with open_papers(Settings(data=data), [PAPERS], None, lambda step: None) as opened:
        yield opened


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_called_by_its_name(finished: Finished, library: Library, fault: str) -> None:
    plant = FAULTS[fault]
    judge = LocalJudge(library.embedder, library.indexes.keyword, library.catalogue)
    records, judgements = {}, {}
    for question in finished.run.questions:
        before = finished.run.records[question.id]
        assert before.answer is not None
        after = plant(before.answer)
        records[question.id] = Record(id=question.id, key="planted", answer=after)
        judgements[question.id] = asyncio.run(judge.judge(question, after))
    run = Run(finished.run.folder, finished.run.manifest, finished.run.questions, records, judgements, judge.name)
    found = summary_of(run)
    assert fault in [one.name for one in found.findings]
    assert fault in to_html(found) and fault in to_markdown(found) and fault in to_text(found)


def test_the_report_needs_nothing_but_itself(summary: Summary) -> None:
    page = to_html(summary)
    assert page.startswith("<!doctype html>")
    for other in ("<script", '<link rel="stylesheet', "http://", "https://"):
        assert other not in page.replace("http://www.w3.org/2000/svg", ""), other
    assert page.count("<svg") >= 5


def test_hostile_text_is_shown_and_not_obeyed(finished: Finished) -> None:
    attack = "<script>alert(1)</script>"
    questions = tuple(one.model_copy(update={"question": attack, "points": (attack,)}) for one in finished.run.questions)
    run = Run(finished.run.folder, finished.run.manifest, questions, {}, {}, "")
    one = finished.run.questions[0]
    run.records[one.id] = Record(id=one.id, key="", error=Failure(code="x", message=attack))
    page = to_html(summary_of(run))
    assert attack not in page and "&lt;script&gt;" in page


def test_the_json_says_undefined_and_counts(summary: Summary) -> None:
    found = json.loads(json.dumps(to_json(summary)))
    assert found["figures"]["contradiction_rate"]["value"] == "undefined"
    for figure in found["figures"].values():
        assert figure["n_scored"] <= figure["n_total"]
    assert found["manifest"]["commit"] and found["manifest"]["machine"]["cores"]
    assert {"confusion", "by_kind", "kappa", "balanced_accuracy"} <= set(found["judge_quality"][0])


def test_distractors_are_put_among_the_papers_in_another_order(tmp_path: Path) -> None:
    for name, count in (("own", 12), ("others", 30)):
        rows = [
            {"title": f"{name} {n}", "abstract": f"{n} {name} sheep are counted before sleep. All are white."}
            for n in range(count)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    distractors = Distractors(8, tmp_path / "others.jsonl", seed=3)
    with open_papers(Settings(data=tmp_path), [tmp_path / "own.jsonl"], distractors, lambda step: None) as opened:
        titles = [paper.title or "" for paper in opened.catalogue.list(limit=200)]
    kinds = [title.split()[0] for title in titles]
    assert sorted(kinds) == ["others"] * 8 + ["own"] * 12
    assert "others" in kinds[:12], "they are not all at the end"
    with pytest.raises(InputError, match="holds 30 other papers"):
        open_papers(Settings(data=tmp_path), [tmp_path / "own.jsonl"], replace(distractors, count=31), lambda step: None)


def test_the_command_line_goes_on_gates_and_reports(finished: Finished, data: Path, tmp_path: Path) -> None:
    runner = CliRunner()

    def footnote(*words: str | Path) -> tuple[int, str]:
        result = runner.invoke(app, ["eval", *map(str, words)])
        return result.exit_code, result.output + str(result.exception or "")

    out = tmp_path / "run"
    code, said = footnote("questions", QUESTIONS, "--papers", PAPERS, "--data", data, "--out", out, "--baseline", BASELINE)
    assert code == 0, said
    assert footnote("gate", out, "--min", "marker_validity=1", "--max", "error_rate=0")[0] == 0
    code, said = footnote("gate", out, "--min", "abstention_recall=1.0")
    assert code == 1 and "FAILS: abstention_recall" in said
    assert footnote("gate", out, "--min", "contradiction_rate=0")[0] == 1, "undefined holds nothing"
    assert footnote("report", out)[0] == 0 and (out / "report.html").exists() and (out / "report.md").exists()
    code, said = footnote(
        "questions", QUESTIONS, "--papers", PAPERS, "--data", data, "--out", tmp_path / "capped", "--max-tokens", "0"
    )
    assert code == 3 and "stopped at the limit" in said and "0 of" in said
    code, said = footnote("compare", out, finished.run.folder, "--json")
    assert code == 0 and not any(one["differs"] for one in json.loads(said)["measures"])
    lines = (out / "answers.jsonl").read_bytes().splitlines(keepends=True)
    (out / "answers.jsonl").write_bytes(b"".join(lines[:-1]))
    code, said = footnote("gate", out, "--min", "marker_validity=1")
    assert code == 1 and "every question asked" in said


def test_a_run_until_decided_stops_early_and_says_which_way(data: Path) -> None:
    for least, way in ((0.5, True), (0.999, None)):
        plan = Plan(QUESTIONS, papers=(PAPERS,), bounds=(Bound("gold_in_top_5", least, "min"),), until_decided=True, seed=1)
        plan = replace(plan, out=data / f"until-{least}")
        found = ask_set(Settings(data=data), plan)
        assert found.deciding is not None and found.deciding.decided is way
        assert (len(found.run.records) < len(found.run.questions)) == (way is not None)
        assert found.deciding.asked <= len(found.run.records)


def test_a_bound_from_too_few_questions_is_refused_and_nothing_is_written(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "abstention.json"
    words = ["eval", "calibrate", QUESTIONS, "--papers", PAPERS, "--data", data, "--out", out, "--wrong-at-most", "0.3"]
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == 1 and "calibrate on more questions" in str(result.exception) and not out.exists()


def test_a_fit_that_fails_says_why() -> None:
    with pytest.raises(InputError, match=r"eval.nothing failed: .*No module named"):
        run_module("eval.nothing")
    assert run_module("this", "x").startswith("The Zen")


def test_a_judgement_file_holds_one_line_a_question(finished: Finished) -> None:
    (file,) = finished.run.folder.glob("judgements-*.jsonl")
    rows = [Judgement.model_validate_json(line) for line in file.read_bytes().splitlines()]
    assert sorted(row.id for row in rows) == sorted(one.id for one in finished.run.questions)
