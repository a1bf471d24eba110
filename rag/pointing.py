"""Which papers a follow-up points at: `who wrote the second one?`, `第三篇呢？`, and `it` in `when was it published?`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.intent import intent_of
from rag.types import Retrieved, Turn, cut

CONTEXT_LENGTH = 400
"""Characters of the last answer that a follow-up carries along: its first sentences name the subject."""

MARKER = re.compile(r"\s*\[\d+\]")
SENTENCE = re.compile(r"[^\n]+?(?:[.!?。！？](?=\s|$)|\n|$)")
OF_ONE_PAPER = ("authors", "year", "venue", "category", "link")
PLURAL = re.compile(r"\b(?:they|their|them|these|those|papers|both)\b|它们|这些|他们", re.IGNORECASE)

OPENING = (
    r"(?:(?:and|but|so|or|then|also|ok(?:ay)?|hi|hello|hey|thanks|thank you|great|good|nice|cool|perfect)\b[\s,.!]*"
    r"|(?:what|how) about\s+|那么?|以及)"
)
BEGINNING = re.compile(rf"^\W*(?:{OPENING})+", re.IGNORECASE)
"""How a follow-up begins."""

ORDINALS = {
    **{word: place for place, word in enumerate("first second third fourth fifth sixth seventh eighth ninth tenth".split())},
    **{f"{place + 1}{'st nd rd'.split()[place] if place < 3 else 'th'}": place for place in range(10)},
    **{word: place for place, word in enumerate("一二三四五六七八九十")},
    "last": -1,
    "former": 0,
    "latter": 1,
}
COUNTS = {"two": 2, "three": 3, "four": 4, "两": 2, "二": 2, "三": 3, "四": 4}
ORDINAL = "|".join(word for word in ORDINALS if word.isascii())
BEHIND_ORDINAL = (
    r"(?:\s(?:one|papers?|works?|methods?|approach|algorithm|abstract|study|article|item)\b(?!\s(?:to|that|which|on|about|of|by)\b)"
    r"|\s(?:of\s(?:them|these|those)|do|does|is|was|has|need|say|show|claim)\b|\s*(?:[?.!,;:)]|$))"
)
PLACE = re.compile(
    rf"""\b(?:the|and|or)\s(?P<word>{ORDINAL})(?:'s\b|’s\b)?
        (?={BEHIND_ORDINAL}|\s(?:and|or)\s(?:the\s)?(?:{ORDINAL}){BEHIND_ORDINAL})
      | \b(?:paper|number|no\.|item|footnote|citation)\s?\#?(?P<number>[1-9])\b
      | \[(?P<marker>[1-9]\d?)\]
      | 第(?P<chinese>[一二三四五六七八九十]|[1-9]\d?)(?:篇|个(?=[呢的是，？?]|$|方法|论文|工作|结果))
      | (?P<end>最后一?[篇个])
      | \bthe\s(?P<side>first|last)\s(?P<several>two|three|four)\b
      | (?P<chinese_side>[前后])(?P<chinese_several>[两二三四])篇""",
    re.IGNORECASE | re.VERBOSE,
)

FILLING = re.compile(
    r"\b(?:and|but|so|then|also|ok|okay|or|please|can|could|you|me|i|we|do|does|did|is|are|was|were|be|been|has|have|had|it|its|this|that"
    r"|these|those|they|them|their|theirs|the|a|an|of|in|at|on|by|from|for|to|up|with|about|there|any|some|all|each|both|more|other"
    r"|others|another|else|one|ones|papers?|works?|method|methods|article|study|what|how|who|whom|which|where|when|tell|give|name|names"
    r"|list|show|wrote|written|write|(?:co-?)?authors?|authored|again|published|publish|come|came|behind|appear|appeared|presented|released|year"
    r"|venue|conference|journal|category|area|field|made|created|link|url|doi|first|last|senior|exactly|s)\b"
    r"|论文|文章|工作|作者|发表|链接|其他|另外|还有|别的|相关|类似|更多|一下|第一(?=作者)"
    r"|[的是有谁写哪些那么这它其该呢吗在于年上一篇个什么会议期刊了请问都和与]",
    re.IGNORECASE,
)
"""Words that say nothing of a subject of their own."""


def has_subject(question: str) -> bool:
    """Whether a question says what it is about, beside pointing at papers and asking for authors, year or place."""
    return re.search(r"\w", FILLING.sub(" ", PLACE.sub(" ", BEGINNING.sub("", question)))) is not None


@dataclass(frozen=True, slots=True)
class Pointed:
    """The papers that a follow-up points at, best first, and what was said of them."""

    paper_ids: tuple[str, ...]
    said: str


def pointed_at(question: str, history: Sequence[Turn]) -> Pointed | None:
    """The papers meant by `the second one`, or by `it` in `who wrote it?`; None where no answer before tells."""
    places = places_in(question)
    answers = [turn for turn in reversed(history) if turn.paper_ids]
    if places:
        needed = max(2, *(place + 1 if place >= 0 else -place for place in places))
        turn = next((turn for turn in answers if len(turn.paper_ids) >= needed), None)
        alone = answers[0] if answers and set(places) <= {0, -1} else None
        return papers_at(places, turn or alone)
    if intent_of(question) not in OF_ONE_PAPER or has_subject(question) or not answers:
        return None
    paper_ids = answers[0].paper_ids if means_several(question) else answers[0].paper_ids[:1]
    return Pointed(paper_ids, what_was_said(history))


def is_meant(question: str, history: Sequence[Turn], papers: Sequence[Retrieved]) -> bool:
    """Whether the best of these papers is one that the question points at."""
    pointed = pointed_at(question, history)
    return pointed is not None and bool(papers) and papers[0].paper.paper_id in pointed.paper_ids


def means_several(question: str) -> bool:
    """Whether a question is about more than one of the papers it points at."""
    return PLURAL.search(question) is not None or len(places_in(question)) > 1


def papers_at(places: Sequence[int], turn: Turn | None) -> Pointed | None:
    """The papers at these places (from 0) of an answer, and its sentences with their markers."""
    if turn is None:
        return None
    places = list(dict.fromkeys(place % len(turn.paper_ids) for place in places))
    markers = [f"[{place + 1}]" for place in places]
    said = [line for line in SENTENCE.findall(turn.content) if any(marker in line for marker in markers)]
    text = " ".join(line.removeprefix("- ") for line in said) or turn.content
    return Pointed(tuple(turn.paper_ids[place] for place in places), cut(MARKER.sub("", text), CONTEXT_LENGTH))


def places_in(question: str) -> list[int]:
    """The places (from 0; -1 is the last) of papers in a list that a question names, in its order."""
    return [place for found in PLACE.finditer(question) for place in places_of(found)]


def places_of(found: re.Match[str]) -> list[int]:
    """The places that one match of PLACE names."""
    word = next(filter(None, (found["word"], found["number"], found["marker"], found["chinese"], found["end"])), "").lower()
    if word:
        return [-1 if found["end"] else int(word) - 1 if word.isdigit() else ORDINALS[word]]
    count = COUNTS[(found["several"] or found["chinese_several"]).lower()]
    at_end = (found["side"] or found["chinese_side"]).lower() in ("last", "后")
    return list(range(-count, 0) if at_end else range(count))


def what_was_said(history: Sequence[Turn]) -> str:
    """The last question that papers answered, with the start of its answer: what `it` and `that` in a follow-up stand for."""
    last = max((place for place, turn in enumerate(history) if turn.role == "assistant"), default=len(history))
    last = max((place for place, turn in enumerate(history) if turn.paper_ids), default=last)
    answered = history[last].content if last < len(history) else ""
    asked = next((turn.content for turn in reversed(history[:last]) if turn.role == "user"), "")
    return f"{asked} {cut(MARKER.sub('', answered), CONTEXT_LENGTH)}".strip()
