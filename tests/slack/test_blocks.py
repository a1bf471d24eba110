"""The messages themselves, block by block."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from api.errors import ApiError
from api.slack_blocks import answer_reply, bib_messages, packed, section
from api.slack_sentences import sentence_of
from rag.errors import Busy, FootnoteError, IndexDamaged, InputError, LLMRefused, LLMUnavailable
from rag.query_engine import failure_notice
from rag.types import Answer, AnswerSentence, Evidence, Paper, ScoredPaper, Status
from tests.api.fakes import make_answer
from tests.slack.fake_slack import check_message

PAPER = Paper(
    "paper-01", "Otters sort pebbles by weight.", "Pebbles", ("Lutz, Ada",), venue="Small Things", year=2021, doi="10.5/o"
)
MOSS = Paper("paper-02", "Moss grows on stones.", authors=("Fern, Io", "Ash, Li", "Oak, Em"))


def sent(answer: Answer) -> list[tuple[dict[str, object], ...]]:
    """The blocks of each message, after Slack's stand-in has looked at them."""
    messages = answer_reply(answer, "slack:T1").messages
    for message in messages:
        check_message(message.text, [dict(block) for block in message.blocks])
    return [message.blocks for message in messages]


def test_a_plain_answer() -> None:
    answer = replace(make_answer("?", [PAPER, MOSS]), answer_id="a1")
    (blocks,) = sent(answer)
    up, down = (
        {
            "type": "button",
            "action_id": f"footnote_rate_{verdict}",
            "text": {"type": "plain_text", "text": sign, "emoji": True},
            "accessibility_label": label,
            "value": "slack:T1 a1",
        }
        for verdict, sign, label in [("up", "👍", "Helpful"), ("down", "👎", "Not helpful")]
    )
    assert list(blocks) == [
        {"type": "markdown", "text": "About Otters sor [1]. About Moss grows [2]."},
        section("*[1]* <https://doi.org/10.5/o|Lutz, 2021> · Small Things · Pebbles\n“Otters sor”"),
        section("*[2]* Fern et al.\n“Moss grows”"),
        {"type": "actions", "elements": [up, down]},
    ]


def test_an_abstention_names_the_nearest_papers_with_links() -> None:
    answer = replace(make_answer("?", []), text="Not in these papers.", papers=(ScoredPaper(PAPER, 0.3), ScoredPaper(MOSS, 0.2)))
    (blocks,) = sent(answer)
    assert blocks[0] == {"type": "markdown", "text": "Not in these papers."}
    nearest = "*Nearest papers*\n• <https://doi.org/10.5/o|Lutz, 2021> · Small Things · Pebbles"
    assert blocks[1] == section(nearest)
    assert [block["type"] for block in blocks] == ["markdown", "section", "actions"]


def test_what_only_a_full_text_tells_has_the_papers_footnote_and_no_list_of_nearest_ones() -> None:
    answer = replace(make_answer("?", [PAPER]), status="needs_full_text")
    (blocks,) = sent(answer)
    assert [block["type"] for block in blocks] == ["markdown", "section", "actions"]


def test_a_notice_is_small_print() -> None:
    (blocks,) = sent(replace(make_answer("?", [PAPER]), notice="Only <x> was cut off."))
    assert blocks[2]["type"] == "context"
    assert "Only &lt;x&gt; was cut off." in json.dumps(blocks[2])


@pytest.mark.parametrize("shown", [None, "answered"])
def test_an_outage_names_no_server_of_ours(shown: Status | None) -> None:
    fault = LLMUnavailable("The LLM m at http://10.0.0.7/v1 failed (gpu-7:8000 is (not) there). Is FOOTNOTE_LLM_BASE_URL right?")
    (blocks,) = sent(replace(make_answer("?", [PAPER]), notice=failure_notice(shown, fault)))
    told = json.dumps(blocks[2])
    assert "The language model does not answer at the moment." in told
    assert not any(name in told for name in ("10.0.0.7", "gpu-7", "FOOTNOTE"))


@pytest.mark.parametrize(("support", "warned"), [("ok", 0), ("weak", 0), ("mismatch", 2), ("number_mismatch", 2), ("uncited", 1)])
def test_a_warning_stands_in_the_text_and_at_the_footnote(support: str, warned: int) -> None:
    markers = () if support == "uncited" else (1,)
    sentence = AnswerSentence("Otters sing. ", markers, "abstract", (), support, "says nothing of singing", 0.1)  # type: ignore[arg-type]
    (blocks,) = sent(replace(make_answer("?", [PAPER]), sentences=(sentence,)))
    assert json.dumps(blocks, ensure_ascii=False).count("⚠") == warned
    if warned:
        assert blocks[0]["text"] == "Otters sing. *(⚠ says nothing of singing)*"


def test_a_footnote_quotes_all_it_was_cited_for() -> None:
    answer = make_answer("?", [PAPER])
    evidence = Evidence(1, 12, 19, "pebbles", 0.9)
    again = AnswerSentence("Again [1].", (1,), "abstract", (evidence,), "ok", "", 0.9)
    (blocks,) = sent(replace(answer, sentences=(*answer.sentences, again)))
    assert "“Otters sor”\n“pebbles”" in json.dumps(blocks[1], ensure_ascii=False).replace("\\n", "\n")


def test_an_answer_too_long_even_for_several_messages_is_shortened_and_says_so() -> None:
    answer = make_answer("?", [PAPER])
    long = tuple(replace(answer.sentences[0], text=f"Sentence {n} of a very long answer [1]. ") for n in range(3000))
    messages = sent(replace(answer, sentences=long))
    assert len(messages) <= 5
    assert "shortened" in json.dumps(messages)
    assert messages[-1][-1]["type"] == "actions"


def test_a_message_of_nothing_but_signs_to_escape_fits() -> None:
    answer = make_answer("?", [replace(PAPER, title="&" * 5000, venue="<" * 5000, authors=(">" * 5000,))])
    sent(replace(answer, text="&" * 14_000, sentences=(replace(answer.sentences[0], text="&<>" * 5000),)))


def test_blocks_are_packed_in_order_fifty_at_most() -> None:
    blocks = [section(str(n)) for n in range(120)]
    messages = list(packed(blocks))
    assert [block for message in messages for block in message] == blocks
    assert max(map(len, messages)) == 50


def test_bibtex_of_many_papers_is_cut_into_whole_fences() -> None:
    papers = [
        replace(PAPER, paper_id=f"paper-{n:04d}", title=f"On `pebbles` & <stones> {n}", authors=("Lutz, Ada",) * 30)
        for n in range(40)
    ]
    messages = bib_messages(papers)
    for message in messages:
        check_message(message.text, [dict(block) for block in message.blocks])
    shown = json.dumps([message.blocks for message in messages])
    assert shown.count("@misc") == 40
    assert "Otters sort" not in shown


def test_bibtex_of_a_paper_without_a_title_names_it_by_its_first_words() -> None:
    (message,) = bib_messages([MOSS])
    assert "title = {{[Moss grows on stones" in message.blocks[0]["text"]["text"]  # type: ignore[index]  # JSON


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (LLMUnavailable("x"), "does not answer"),
        (LLMRefused("x"), "refused"),
        (IndexDamaged("x"), "library cannot be reached"),
        (Busy("x"), "still being answered"),
        (ApiError(429, "too_many_answers", "x"), "Too many questions"),
        (TimeoutError(), "too long"),
        (FootnoteError("x"), "Something broke"),
        (InputError("Say <!here>."), "Say &lt;!here&gt;."),
    ],
)
def test_each_error_has_its_sentence(error: Exception, said: str) -> None:
    assert said in sentence_of(error)
