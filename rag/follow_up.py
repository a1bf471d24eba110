"""What a follow-up leaves out, and which paper it points at: `And KnapSpec?`, `who wrote the second one?`, `那第二篇呢？`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rag.intent import intent_of
from rag.match import names_in
from rag.types import Retrieved, Turn, cut, unique

CONTEXT_LENGTH = 400
"""Characters of the last answer that a follow-up carries along: its first sentences name the subject."""

FEW_WORDS = 4
"""A question of so few words seldom stands alone."""

MOST_TURNS = 40
"""Turns looked through for what a question leaves out."""

MARKER = re.compile(r"\s*\[\d+\]")
SENTENCE = re.compile(r"[^\n]+?(?:[.!?。！？](?=\s|$)|\n|$)")
BESIDE_CHINESE = re.compile(r"(?<=[\u4e00-\u9fff])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[\u4e00-\u9fff])")
OF_ONE_PAPER = ("authors", "year", "venue", "category", "link")
PLURAL = re.compile(r"\b(?:they|their|them|these|those|papers|both)\b|它们|这些|他们", re.IGNORECASE)
WORDS = re.compile(r"[\u4e00-\u9fff]{1,2}|[^\W\u4e00-\u9fff]+")
"""Two Chinese characters are about a word."""

ASKS_FOR_OTHERS = re.compile(
    r"\b(?:other|others|another|else|besides|apart from|different one|more like)\b|其他|其它|另外|别的|还有", re.IGNORECASE
)

ONE = r"(?:one|papers?|works?|methods?|results?|approach|idea|claim|number|authors?|algorithm|abstract|study|article|answer)"
ITSELF = (
    r"\b(?:it|its|(?:the|this|that) (?:paper|work|method|article|study|algorithm|approach))\b"
    r"|它|[这该本][篇个]?(?:论文|文章|工作|方法)"
)
REFERS_BACK = re.compile(
    rf"""^(?:and|but|so|then|also|what\sabout|how\sabout|why|really|more)\b(?=.{{0,60}}$)
      | \b(?:it|its|they|them|their|theirs|these|those|he|she|his|her|him|this)\b
      | \bthat(?=\s*(?:[?.!,;]|$|in\b|for\b|with\b|on\b|\d|{ONE}\b))
      | \b(?:is|was|does|did|has|can)\sthat\b
      | \bthe\s(?:same|former|latter|other|two|first|second|{ONE})\b(?!\s(?:about|on|that|which|of|by|from|with)\b)
      | \b(?:which\sof|either|both|besides|instead|else|then(?=\?))\b
      | 它|他们|她们|这|那|(?<!应)该|(?<![尤极与])其(?![他它中实余])|上述|呢""",
    re.IGNORECASE | re.VERBOSE,
)
ASKS_SHORTLY = re.compile(
    r"^(?:who|when|where)\b(?!.*\bthe (?:paper|work|method|article|study)s? (?:on|about|that|which|of)\b)(?=.{0,60}$)",
    re.IGNORECASE,
)
"""`Where were the experiments run?`, but not `Who wrote the paper on bandits?`."""

STANDS_ALONE = re.compile(
    r"^(?:(?:who|what|which|how|why|when|where)\b.*?\b(?:is|are|was|were|do|does|did|can|could|has|have|wrote)|is|are|was|were|do|does"
    r"|did|can|has|have|tell|explain|summari[sz]e|compare)\b|是|有|吗|什么|怎么|如何|多少|谁",
    re.IGNORECASE,
)
"""A whole question, if it names something."""

OPENING = (
    r"(?:(?:and|but|so|or|then|also|ok(?:ay)?|hi|hello|hey|thanks|thank you|great|good|nice|cool|perfect)\b[\s,.!]*"
    r"|(?:what|how) about\s+|那么?|以及)"
)
BEGINNING = re.compile(rf"^\W*(?:{OPENING})+", re.IGNORECASE)
ANOTHER_NAME = re.compile(
    rf"^\W*(?:(?:{OPENING})+(?P<name>.+?)(?:\s+(?:then|instead))?|(?P<named>.+?)呢|那么?(?P<then>.+?)呢)\W*$", re.IGNORECASE
)
BESIDE_A_NAME = re.compile(
    r"\b(?:the|a|an|and|or|with|for|from|at|in|of|paper|method|algorithm|approach|one|by)\b|那么?|呢|的|和|与|论文|方法",
    re.IGNORECASE,
)

ORDINALS = {
    **{word: place for place, word in enumerate("first second third fourth fifth sixth seventh eighth".split())},
    **{f"{place + 1}{'st nd rd'.split()[place] if place < 3 else 'th'}": place for place in range(8)},
    **{word: place for place, word in enumerate("一二三四五六七八")},
    "last": -1,
    "former": 0,
    "latter": 1,
}
COUNTS = {"two": 2, "three": 3, "four": 4, "两": 2, "二": 2, "三": 3, "四": 4}
ORDINAL = "|".join(word for word in ORDINALS if word.isascii())
PLACE = re.compile(
    rf"""\b(?:the|and|or)\s(?P<word>{ORDINAL})(?:'s\b|’s\b)?(?=\s{ONE}\b(?!\s(?:to|that|which|on|about|of|by)\b)
            |\s(?:of\s(?:them|these|those)|and|or|do|does|is|was|has|need|say|show|claim)\b|\s*(?:[?.!,;:)]|$))
      | \b(?:paper|number|no\.|item|footnote|citation)\s?\#?(?P<number>[1-9])\b
      | \[(?P<marker>[1-9])\]
      | 第(?P<chinese>[一二三四五六七八1-8])(?:篇|个(?=[呢的是，？?]|$|方法|论文|工作|结果))
      | (?P<end>最后一?[篇个])
      | \bthe\s(?P<side>first|last)\s(?P<several>two|three|four)\b
      | (?P<chinese_side>[前后])(?P<chinese_several>[两二三四])篇""",
    re.IGNORECASE | re.VERBOSE,
)

FILLING = re.compile(
    r"\b(?:and|but|so|then|also|ok|okay|or|please|can|could|you|me|i|we|do|does|did|is|are|was|were|be|been|has|have|had|it|its|this|that"
    r"|these|those|they|them|their|theirs|the|a|an|of|in|at|on|by|from|for|to|up|with|about|there|any|some|all|each|both|more|other"
    r"|others|another|else|one|ones|papers?|works?|method|methods|article|study|what|how|who|whom|which|where|when|tell|give|name|names"
    r"|list|show|wrote|written|write|authors?|authored|published|publish|come|came|behind|appear|appeared|presented|released|year"
    r"|venue|conference|journal|category|area|field|made|created|link|url|doi|first|last|senior|exactly|s)\b"
    r"|[的是有谁写哪些那么这它其该呢吗在于年上一篇个什么会议期刊了请问都和与]|论文|文章|工作|作者|发表|链接|其他|另外|还有|别的|一下",
    re.IGNORECASE,
)
"""Words that say nothing of a subject of their own."""


def is_follow_up(question: str) -> bool:
    """Whether a question needs the turns before it: it points back (`it`, `the same`), or is too short to stand alone."""
    plain = BEGINNING.sub("", BESIDE_CHINESE.sub(" ", question))
    if names_in(plain) and STANDS_ALONE.search(plain):
        return REFERS_BACK.search(plain) is not None
    if REFERS_BACK.search(question) or ASKS_SHORTLY.search(question):
        return True
    return len(WORDS.findall(question)) <= FEW_WORDS


def has_subject(question: str) -> bool:
    """Whether a question says what it is about, beside pointing at papers and asking for authors, year or place."""
    return re.search(r"\w", FILLING.sub(" ", PLACE.sub(" ", BEGINNING.sub("", question)))) is not None


def completed(question: str, history: Sequence[Turn]) -> str:
    """The question with what it leaves out taken from the one before: `And KnapSpec?` after `How fast is LeMiCa?` is `How fast is
    KnapSpec?`; `the second one?` after `who wrote the first?` is `who wrote the first?`, of another paper. Else as it is."""
    return _completed(question, history[-MOST_TURNS:])


def _completed(question: str, history: Sequence[Turn]) -> str:
    before = next((place for place in reversed(range(len(history))) if history[place].role == "user"), None)
    name = name_alone(question)
    if before is None or not (name or says_nothing(question)):
        return question
    asked = _completed(history[before].content, history[:before])
    if name:
        return renamed(asked, name, history[before:])
    place = PLACE.search(question)
    if place is None:
        return asked
    return PLACE.sub(lambda _: place.group(), asked) if PLACE.search(asked) else f"{asked} ({place.group()})"


def name_alone(question: str) -> str:
    """The name in a question that is nothing but a name (`And what about KnapSpec?`); empty for any other."""
    spaced = BESIDE_CHINESE.sub(" ", question)
    found = ANOTHER_NAME.match(spaced)
    names = names_in(spaced) if found else ()
    rest = BESIDE_A_NAME.sub(" ", found.group(found.lastgroup or 0)) if found else ""
    for name in names:
        rest = rest.replace(name, " ")
    return " and ".join(names) if names and not re.search(r"\w", rest) else ""


def renamed(asked: str, name: str, exchange: Sequence[Turn]) -> str:
    """The question asked of another: `name` in place of what it was about, which the answer is likely to name too."""
    answered = " ".join(turn.content for turn in exchange if turn.role == "assistant")
    names = [re.sub(r"['’]s$", "", old) for old in names_in(BESIDE_CHINESE.sub(" ", asked))]
    olds = sorted(names, key=lambda old: old not in answered)
    about = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(olds[0])}(?![A-Za-z0-9_])" if olds else ITSELF, re.IGNORECASE)
    if name in asked or not about.search(asked):
        return f"{name}: {asked}"
    return about.sub(lambda _: name, asked, count=1)


def says_nothing(question: str) -> bool:
    """Whether a question only points at papers (`and the last one?`), so that what is asked of them was asked before."""
    if intent_of(question) != "explain" or has_subject(question):
        return False
    return bool(PLACE.search(question) or ASKS_FOR_OTHERS.search(question) or not re.search(ITSELF, question, re.IGNORECASE))


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
    places = [place % len(turn.paper_ids) for place in places]
    markers = [f"[{place + 1}]" for place in places]
    said = [line for line in SENTENCE.findall(turn.content) if any(marker in line for marker in markers)]
    text = " ".join(line.removeprefix("- ") for line in said) or turn.content
    return Pointed(unique([turn.paper_ids[place] for place in places]), cut(MARKER.sub("", text), CONTEXT_LENGTH))


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


def papers_named(history: Sequence[Turn]) -> tuple[str, ...]:
    """The papers that earlier answers cited."""
    return unique([paper_id for turn in history for paper_id in turn.paper_ids])
