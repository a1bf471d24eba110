"""An answer as Slack messages: the text in Markdown blocks, a footnote a section, buttons.

Slack takes 12,000 characters of Markdown, 3,000 a section, 50 blocks and about 13,000 characters a message.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from api import slack_sentences as say
from api.slack_text import link, paper_url, safe_cut, safe_line, safe_markdown, split
from rag.abstain import NEAREST
from rag.export import title_of, to_bibtex
from rag.types import Answer, AnswerSentence, Citation, Paper, unique
from rag.wire import JsonObject

MARKDOWN = 9_000
SECTION = 3_000
MOST_BLOCKS = 50
MESSAGE = 12_000
"""Characters of a message's blocks, as JSON; its `text` comes on top."""

FALLBACK = 900
"""Characters of a message's `text`: what notifications show, and screen readers that do not read blocks."""

MOST_PARTS = 4
"""Messages an answer's text may fill; beyond that it is shortened."""

QUOTE = 300
QUOTES = 3

RATE = "footnote_rate"


@dataclass(frozen=True, slots=True)
class Message:
    """One message: `text` alone, or shown where the blocks are not."""

    text: str
    blocks: tuple[JsonObject, ...] = ()


@dataclass(frozen=True, slots=True)
class Reply:
    """What is said to a question: the messages, and of an answer its text as well (safe Markdown) and the blocks below it."""

    messages: tuple[Message, ...]
    body: str = ""
    below: tuple[JsonObject, ...] = ()


def answer_reply(answer: Answer, owner: str) -> Reply:
    """An answer in one message, more where it is long. `owner` is whose answer it is in the journal, for the buttons."""
    text = "".join(map(with_warning, answer.sentences)) or answer.text
    return reply_of(text, tuple(blocks_below(answer, owner)), answer.text)


def broken_off(text: str, sentence: str) -> Reply:
    """Of an answer what was said so far, and why no more of it comes."""
    return reply_of(text, (section(f"⚠ {sentence}"),), f"{text} … {sentence}")


def reply_of(text: str, below: tuple[JsonObject, ...], plain: str) -> Reply:
    """Markdown and the blocks below it; `plain` is for where blocks are not shown."""
    body = safe_markdown(text)
    first, *rest = packed([*text_blocks(body), *below])
    return Reply((Message(safe_cut(plain, FALLBACK), first), *going_on(rest)), body, below)


def going_on(parts: Iterable[tuple[JsonObject, ...]]) -> Iterator[Message]:
    """The messages after the first."""
    return (Message(say.REST, blocks) for blocks in parts)


def text_blocks(body: str) -> Iterator[JsonObject]:
    """Safe Markdown in blocks, shortened where it would fill too many messages."""
    parts = split(body, MARKDOWN)
    for part in parts[:MOST_PARTS]:
        yield {"type": "markdown", "text": part}
    if len(parts) > MOST_PARTS:
        yield context(say.SHORTENED)


def blocks_below(answer: Answer, owner: str) -> Iterator[JsonObject]:
    """What stands below the text: footnotes, or the nearest papers; a notice; buttons."""
    for citation in answer.citations:
        yield section(footnote(citation, answer.sentences))
    nearest = [one.paper for one in answer.papers[:NEAREST] if paper_url(one.paper)] if answer.status == "not_in_corpus" else []
    if nearest:
        yield section("\n".join([say.NEAREST, *(f"• {described(paper)}" for paper in nearest)]))
    if answer.notice:
        yield context(safe_cut(answer.notice, FALLBACK))
    yield buttons(f"{owner} {answer.answer_id}")


def with_warning(sentence: AnswerSentence) -> str:
    """A sentence, and why to doubt it where there is a reason."""
    body = sentence.text.rstrip()
    if not sentence.doubt or not body:
        return sentence.text
    return f"{body} *(⚠ {sentence.doubt.replace('*', '')})*{sentence.text[len(body) :] or ' '}"


def footnote(citation: Citation, sentences: Sequence[AnswerSentence]) -> str:
    """`*[1]* Zhang et al., 2024 · ICML · title`, below it the words cited, and a warning where it is due."""
    citing = [sentence for sentence in sentences if citation.marker in sentence.markers]
    words = [one.quote for sentence in citing for one in sentence.evidence if one.marker == citation.marker]
    lines = [f"*[{citation.marker}]* {described(citation.paper)}"]
    lines += [f"“{safe_cut(quoted, QUOTE)}”" for quoted in unique([citation.quote, *words])[:QUOTES]]
    doubts = unique([sentence.doubt for sentence in citing if sentence.doubt])
    return "\n".join([*lines, *(f"⚠ {safe_cut(doubt, QUOTE)}" for doubt in doubts[:QUOTES])])


def described(paper: Paper) -> str:
    """The paper's name as a link, its venue and its title."""
    named = [paper.venue, paper.title if paper.authors else None]
    return " · ".join([link(paper), *(safe_cut(one, QUOTE) for one in named if one)])


def bib_messages(papers: Iterable[Paper]) -> list[Message]:
    """BibTeX of these papers, to be copied; without the abstracts, which would fill screens."""
    entries = "".join(to_bibtex(replace(paper, title=title_of(paper), abstract="") for paper in papers)).strip()
    if not entries:
        return [Message(say.NO_BIB)]
    parts = split(safe_markdown(f"```\n{entries}\n```"), SECTION)
    return [Message(say.BIB, blocks) for blocks in packed(map(section, parts))]


def asked_message(question: str) -> Message:
    """Shows what somebody asked by a command: the command itself is seen by nobody else."""
    return Message(say.ASKED.format(question=safe_cut(question, SECTION - 20)))


def section(text: str) -> JsonObject:
    """mrkdwn in which Slack itself finds no links and no names."""
    return {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}


def context(text: str) -> JsonObject:
    """A line in small print."""
    return {"type": "context", "elements": [{"type": "mrkdwn", "text": text, "verbatim": True}]}


def buttons(value: str) -> JsonObject:
    """Was it helpful? `value` comes back with the click."""
    choices = (("up", "👍", "Helpful"), ("down", "👎", "Not helpful"))
    return {
        "type": "actions",
        "elements": [
            {
                "type": "button",
                "action_id": f"{RATE}_{verdict}",
                "text": {"type": "plain_text", "text": sign, "emoji": True},
                "accessibility_label": label,
                "value": value,
            }
            for verdict, sign, label in choices
        ],
    }


def packed(blocks: Iterable[JsonObject]) -> Iterator[tuple[JsonObject, ...]]:
    """The blocks in as few messages as Slack's limits allow, in order."""
    current: list[JsonObject] = []
    size = 0
    for block in blocks:
        length = len(json.dumps(block, ensure_ascii=False))
        if current and (len(current) == MOST_BLOCKS or size + length > MESSAGE):
            yield tuple(current)
            current, size = [], 0
        current.append(block)
        size += length
    if current:
        yield tuple(current)


def beginning(message: Message, code: str) -> Message:
    """What is said when Slack refuses a message: why, and how it begins."""
    if message.text == say.REST:
        return Message(say.REFUSED_REST.format(code=safe_line(code)))
    return Message(say.REFUSED.format(code=safe_line(code)) + message.text)
