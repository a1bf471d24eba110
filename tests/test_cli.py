"""The command line keeps its contract with people and programs: what is printed where, and how it ends."""

from __future__ import annotations

import contextlib
import io
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import footnote
from rag.cli_ingest import SAMPLES
from rag.errors import FootnoteError

QUESTIONS = SAMPLES.parent / "questions.jsonl"
PAGE = """Paper search

Weather · Snow

Ada Frost, Bo Melt

Snow falls in winter and stays white for as long as nobody walks on it. We measure for how long that is, with a camera on a roof,
and find that fresh snow keeps its colour for three days on average, less near roads and more in parks.

Weather · Rain

Cy Wet, Di Damp

Rain falls all year round and nobody has to look for it. We count the drops that hit a drum within a minute, learn to tell showers
from drizzle by their sound alone, and give the rates at which both turn a path of sand into mud.
"""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Ended]


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that holds the sample papers; tests only read it."""
    folder = tmp_path_factory.mktemp("filled")
    subprocess.run([sys.executable, "-m", "footnote", "--data", str(folder), "ingest", str(SAMPLES)], check=True)
    return folder


@pytest.fixture
def page(tmp_path: Path) -> Path:
    """A file of two papers."""
    file = tmp_path / "page.txt"
    file.write_text(PAGE)
    return file


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Runs the command line in this process, on an empty data folder unless told otherwise."""
    for name in [name for name in os.environ if name.startswith(("FOOTNOTE_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("FOOTNOTE_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("COLUMNS", "80")

    def run(*words: object, stdin: str = "") -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as ended:
            footnote.main([str(word) for word in words])
        captured = capsys.readouterr()
        return Ended(int(ended.value.code or 0), captured.out, captured.err)

    return run


def test_the_demo_answers_with_footnotes_and_says_what_to_type_next(run: Run, tmp_path: Path) -> None:
    ended = run("demo")
    assert ended.code == 0
    assert "44 added" in ended.out
    assert "[1]" in ended.out
    assert "“" in ended.out
    assert "What to type next" in ended.out
    assert not (tmp_path / "data").exists()  # it has a library of its own


def test_ingest_reports_in_json_and_acknowledges_each_transaction_on_stderr(run: Run, page: Path) -> None:
    first, again = run("ingest", page, "--json"), run("ingest", page, "--json")
    assert first.code == again.code == 0
    (report,) = first.rows
    assert (report["added"], report["merged"], report["unchanged"], report["rejected"]) == (2, 0, 0, [])
    assert first.err.splitlines()[-1] == f"committed 2 revision {report['revision']}"
    assert [again.rows[0][name] for name in ("added", "unchanged", "revision")] == [0, 2, report["revision"]]


def test_ingest_ends_with_3_when_a_named_file_is_rejected_and_others_are_taken(run: Run, page: Path, tmp_path: Path) -> None:
    prose = tmp_path / "prose.md"
    prose.write_text("# Nothing here\n")
    ended = run("ingest", page, prose, "--json")
    assert ended.code == 3
    (report,) = ended.rows
    assert report["added"] == 2
    assert [one["source"] for one in report["rejected"]] == [str(prose)]  # type: ignore[attr-defined]  # a list of objects


def test_a_file_without_papers_met_in_a_folder_is_only_skipped(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "page.txt").write_text(PAGE)
    (folder / "notes.md").write_text("# Nothing here\n")
    ended = run("ingest", folder, "--json")
    assert ended.code == 0
    assert [len(ended.rows[0][name]) for name in ("skipped", "rejected")] == [1, 0]  # type: ignore[arg-type]  # lists


def test_ingest_of_nothing_but_unreadable_files_ends_with_1_and_one_line(run: Run, tmp_path: Path) -> None:
    ended = run("ingest", tmp_path / "missing.txt")
    assert ended.code == 1
    assert "No such file" in ended.err.splitlines()[-1]
    assert "Traceback" not in ended.err
    assert " ".join((ended.out + ended.err).split()).count("No such file") == 1


def test_reasons_are_given_once_when_nothing_could_be_taken(run: Run, tmp_path: Path) -> None:
    ended = run("ingest", tmp_path / "missing.txt", tmp_path / "absent.txt")
    assert ended.code == 1
    printed = "".join((ended.out + ended.err).split())  # long paths are folded
    assert [printed.count(f"{name}.txt") for name in ("missing", "absent")] == [1, 1]
    assert ended.err.splitlines()[-1] == "footnote: nothing could be taken: the reasons are listed above"


def test_a_terminal_shows_how_far_an_ingest_is_in_what_it_has_read(run: Run, page: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    drawn = run("ingest", page).err
    assert "2 papers" in drawn and "━" in drawn and "committed" not in drawn


def test_records_that_were_known_are_told_from_papers_added(run: Run, page: Path) -> None:
    again = page.with_name("again.txt")
    again.write_text(page.read_text().partition("Weather · Rain")[0])
    assert run("ingest", page, again).out == "3 records: 2 added, 1 known already; revision 1\n"
    assert run("ingest", page).out == "2 records: 0 added, 2 known already; revision 1\n"


def test_an_answer_in_json_is_one_line_and_keeps_its_promises(run: Run, filled: Path) -> None:
    ended = run("ask", "How", "much", "faster does Latte generate video with LeMiCa?", "--json", "--data", filled)
    assert ended.code == 0
    (answer,) = ended.rows
    assert answer["question"] == "How much faster does Latte generate video with LeMiCa?"
    assert answer["status"] == "answered"
    assert "2.9" in str(answer["text"])
    for citation in answer["citations"]:  # type: ignore[attr-defined]  # a list of objects
        assert citation["paper"]["abstract"][citation["start"] : citation["end"]] == citation["quote"]


def test_an_answer_for_people_shows_who_and_the_quoted_words_without_colours_in_a_pipe(run: Run, filled: Path) -> None:
    ended = run("ask", "How much faster does Latte generate video with LeMiCa?", "--data", filled)
    assert ended.code == 0
    assert "Huanlin Gao" in ended.out
    assert "“Latte runs 2.9 times faster" in " ".join(ended.out.split())
    assert "\x1b" not in ended.out + ended.err


def test_top_k_bounds_the_papers_of_an_answer(run: Run, filled: Path) -> None:
    (answer,) = run("ask", "reinforcement learning", "--top-k", 3, "--json", "--data", filled).rows
    assert len(answer["papers"]) == 3  # type: ignore[arg-type]  # a list


def test_filters_of_the_command_line_narrow_the_answer_and_are_echoed(run: Run, filled: Path) -> None:
    (answer,) = run("ask", "What is new?", "--category", "Theory", "--json", "--data", filled).rows
    assert answer["filters"] == {"categories": ["Theory"]}
    assert answer["papers"]
    for scored in answer["papers"]:  # type: ignore[attr-defined]  # a list of objects
        assert scored["paper"]["category"].startswith("Theory")


def test_an_empty_library_is_pointed_out_on_stderr(run: Run, filled: Path) -> None:
    assert "footnote ingest" in run("ask", "Why is snow white?").err
    assert run("ask", "Why is snow white?", "--data", filled).err == ""


def test_abstaining_is_success(run: Run, filled: Path) -> None:
    ended = run("ask", "What is the boiling point of ethanol?", "--json", "--data", filled)
    assert ended.code == 0
    assert ended.rows[0]["status"] == "not_in_corpus"


def test_a_question_file_gives_an_answer_a_line_in_order_and_errors_in_their_place(
    run: Run, filled: Path, tmp_path: Path
) -> None:
    file = tmp_path / "questions.jsonl"
    file.write_text('{"question": "What is SOAR?"}\nnot json\n\n{"question": "What is XRPO?", "filters": {"authors": ["Cao"]}}\n')
    ended = run("ask", "--file", file, "--json", "--data", filled)
    assert ended.code == 3
    first, error, last = ended.rows
    assert first["question"] == "What is SOAR?"
    assert error["line"] == 2
    assert error["error"]["code"] == "input_error"  # type: ignore[index]  # an object
    assert last["filters"] == {"authors": ["Cao"]}


def test_questions_may_come_from_stdin_with_their_history(run: Run, filled: Path) -> None:
    row = next(line for line in QUESTIONS.read_text().splitlines() if '"followup-01"' in line)
    ended = run("ask", "--file", "-", "--json", "--data", filled, stdin=row + "\n")
    assert ended.code == 0
    assert "XRPO" in str(ended.rows[0]["text"])


def test_questions_may_come_through_a_pipe(run: Run, filled: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_text('{"question": "What is SOAR?"}\n'))
    writer.start()
    ended = run("ask", "--file", pipe, "--json", "--data", filled)
    writer.join()
    assert [row["question"] for row in ended.rows] == ["What is SOAR?"]


def test_each_answer_to_a_file_is_printed_at_once(filled: Path) -> None:
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "footnote", "ask", "--file", "-", "--json", "--data", str(filled)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=buffered) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for question in ("What is SOAR?", "What is XRPO?"):
            process.stdin.write(json.dumps({"question": question}).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["question"] == question
        process.stdin.close()
    assert process.returncode == 0


def test_output_is_utf8_whatever_the_locale_says(filled: Path) -> None:
    command = [sys.executable, "-m", "footnote", "papers", "list", "--author", "周欣", "--json", "--data", str(filled)]
    ended = subprocess.run(command, env={**os.environ, "PYTHONIOENCODING": "ascii"}, capture_output=True, check=True)
    assert "周欣" in json.loads(ended.stdout)["authors"]


def test_chat_understands_a_question_in_the_light_of_the_one_before(run: Run, filled: Path) -> None:
    ended = run("chat", "--json", "--data", filled, stdin="What gains does XRPO report?\nWho wrote it?\n/quit\nnever asked\n")
    assert ended.code == 0
    assert len(ended.rows) == 2
    assert "Udbhav Bamba" in str(ended.rows[1]["text"])


def test_search_finds_papers_best_first(run: Run, filled: Path) -> None:
    found = run("search", "video diffusion caching", "-k", 3, "--json", "--data", filled).rows
    assert "LeMiCa" in found[0]["paper"]["abstract"]  # type: ignore[index]  # an object
    assert [one["score"] for one in found] == sorted((one["score"] for one in found), reverse=True)  # type: ignore[type-var]
    assert len(found) == 3


def test_a_search_that_a_filter_keeps_from_every_paper_says_why(run: Run, filled: Path) -> None:
    ended = run("--data", filled, "search", "snow", "--venue", "ICML", "--year-min", "2020")
    assert ended.code == 0 and ended.out.startswith("No paper here has a year or a venue, so none passes the filters;")
    assert run("--data", filled, "search", "snow", "--venue", "ICML", "--json").out == ""
    listed = run("--data", filled, "papers", "list", "--year-max", "2020")
    assert (listed.code, listed.out) == (0, "") and listed.err.startswith("No paper here has a year, so none passes")


def test_papers_are_listed_one_a_line_in_order_of_arrival(run: Run, filled: Path) -> None:
    papers = run("papers", "list", "--json", "--data", filled).rows
    assert len(papers) == 44
    assert papers[0]["authors"][0] == "Zhiyao Zhang"  # type: ignore[index]  # a list
    assert len(run("papers", "list", "--author", "周欣", "--data", filled).out.splitlines()) == 1


def test_a_removed_paper_is_neither_listed_nor_found(run: Run, page: Path) -> None:
    run("ingest", page)
    (paper,) = run("papers", "list", "--author", "Frost", "--json").rows
    assert run("papers", "remove", paper["paper_id"], "--json").rows[0]["removed"] == 1
    assert run("papers", "list", "--author", "Frost", "--json").rows == []
    found = run("search", "snow that falls").out
    assert "Cy Wet" in found
    assert "Ada Frost" not in found


def test_showing_a_paper_that_is_not_there_ends_with_1_and_says_what_to_do(run: Run, filled: Path) -> None:
    ended = run("papers", "show", "nobody", "--data", filled)
    assert ended.code == 1
    assert "papers list" in ended.err
    assert len(ended.err.splitlines()) == 1


def test_papers_are_exported_to_a_file(run: Run, filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "all.json"
    assert run("papers", "export", "--format", "csl-json", "--output", file, "--data", filled).code == 0
    assert len(json.loads(file.read_text())) == 44
    assert run("papers", "export", "--format", "bib", "--data", filled).out.count("@misc{") == 44


def test_reindex_makes_the_indexes_anew(run: Run, page: Path) -> None:
    run("ingest", page)
    assert run("reindex", "--json").rows[0]["papers"] == 2
    assert "Ada Frost" in run("search", "snow").out


def test_the_doctor_finds_each_part_and_says_what_to_do(run: Run, filled: Path) -> None:
    findings = {str(row["part"]): row for row in run("doctor", "--json", "--data", filled).rows}
    assert findings["catalogue"]["said"] == "44 papers, revision 1"
    assert findings["LLM"]["state"] == "off"
    assert "FOOTNOTE_LLM_MODEL" in str(findings["LLM"]["todo"])


def test_the_doctor_ends_with_1_when_what_is_configured_does_not_work(
    run: Run, filled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FOOTNOTE_LLM_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("FOOTNOTE_LLM_MODEL", "nobody")
    ended = run("doctor", "--data", filled)
    assert ended.code == 1
    assert "✗ LLM" in ended.out


@pytest.mark.parametrize(
    "words",
    [
        ["ask"],
        ["ask", "why", "--file", "q.jsonl"],
        ["ask", "why", "--top-k", "0"],
        ["ask", "why", "--year-min", "soon"],
        ["ingest"],
        ["ingest", "x", "--format", "nonsense"],
        ["papers", "export", "--format", "nonsense"],
        ["nonsense"],
        ["--nonsense"],
    ],
)
def test_wrong_usage_ends_with_2(run: Run, words: list[str]) -> None:
    ended = run(*words)
    assert ended.code == 2
    assert ended.out == ""


def test_a_mistyped_setting_is_refused_in_one_line(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FOOTNOTE_LLM_MODLE", "x")
    ended = run("papers", "list")
    assert (ended.code, ended.out) == (1, "")
    assert ended.err == "footnote: FOOTNOTE_LLM_MODLE is no setting; did you mean FOOTNOTE_LLM_MODEL?\n"


def test_debug_shows_the_error_itself(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FOOTNOTE_DATA", "put back after the test")
    with pytest.raises(FootnoteError, match="nobody"):
        footnote.main(["--debug", "--data", str(tmp_path), "papers", "show", "nobody"])


def test_with_nothing_configured_no_connection_is_tried_and_none_is_missed(tmp_path: Path) -> None:
    code = """
import sys
import threading
sys.addaudithook(lambda event, args: event in {"socket.connect", "socket.getaddrinfo"} and print("TRIED", args, file=sys.stderr))
import footnote
footnote.main(["demo"])
"""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("FOOTNOTE_", "OPENAI_"))}
    ended = subprocess.run(
        [*without_network(), sys.executable, "-c", code],
        env={**environment, "FOOTNOTE_DATA": str(tmp_path / "data")},
        capture_output=True,
        text=True,
    )
    assert (ended.returncode, ended.stderr) == (0, "committed 44 revision 1\n")
    assert "[1]" in ended.stdout


def without_network() -> list[str]:
    """What to put before a command to take the network away, loopback included; nothing where that is not allowed."""
    command = ["unshare", "--net", "--map-root-user"]
    allowed = shutil.which("unshare") and subprocess.run([*command, "true"], capture_output=True).returncode == 0
    return command if allowed else []


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_a_terminal_shows_colours_unless_told_not_to(filled: Path, environment: dict[str, str], coloured: bool) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "footnote", "ask", "What is SOAR?", "--data", str(filled)]
    with subprocess.Popen(command, stdout=theirs, env={**os.environ, "TERM": "xterm-256color", **environment}):
        os.close(theirs)
        shown = read_terminal(ours)
    assert "SOAR decodes diffusion language models" in shown
    assert ("\x1b[1;36m[1]" in shown) == coloured


def read_terminal(terminal: int) -> str:
    """All that was written to a terminal until its other side was closed."""
    pieces = []
    with os.fdopen(terminal, "rb") as stream, contextlib.suppress(OSError):  # how Linux tells the end
        while piece := stream.read1():
            pieces.append(piece)
    return b"".join(pieces).decode()


def test_a_reader_that_goes_away_ends_the_command_quietly(filled: Path) -> None:
    command = [sys.executable, "-m", "footnote", "papers", "export", "--format", "jsonl", "--data", str(filled)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    with process.stderr as errors:
        assert errors.read() == b""
    assert process.wait() == footnote.READER_GONE


def test_ctrl_c_ends_a_command_quietly(filled: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "footnote", "chat", "--json", "--data", str(filled)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # a runner may have it ignored
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdin.write(b"What is SOAR?\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["status"] == "answered"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == b""
    assert process.returncode == 130


def test_a_mistyped_command_is_answered_with_the_nearest(run: Run) -> None:
    assert "Did you mean 'papers'?" in run("ppaers").err


def test_asking_for_help_loads_no_server_and_no_index() -> None:
    heavy = ("chromadb", "fastapi", "llama_index", "openai", "onnxruntime", "slack_bolt")
    code = (
        f"import sys, footnote\ntry: footnote.main(['--help'])\nexcept SystemExit: assert not set(sys.modules) & {set(heavy)!r}"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr == ""
