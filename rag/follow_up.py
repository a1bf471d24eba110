"""Whether a question needs the turns before it, and what it leaves out: `And KnapSpec?` after `How fast is LeMiCa?`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.intent import intent_of
from rag.match import names_in
from rag.pointing import BEGINNING, OPENING, PLACE, has_subject
from rag.types import Turn, unique

FEW_WORDS = 4
"""A question of so few words seldom stands alone."""

MOST_TURNS = 40
"""Turns looked through for what a question leaves out."""

LONGEST_NAME = 120
"""Characters of a question that is nothing but a name."""

BESIDE_CHINESE = re.compile(r"(?<=[\u4e00-\u9fff])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[\u4e00-\u9fff])")
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

ANOTHER_NAME = re.compile(
    rf"^\W*(?:(?:{OPENING})+(?P<name>.+?)(?:\s+(?:then|instead))?|(?P<named>.+?)呢|那么?(?P<then>.+?)呢)\W*$", re.IGNORECASE
)
BESIDE_A_NAME = re.compile(
    r"\b(?:the|a|an|and|or|with|for|from|at|in|of|paper|method|algorithm|approach|one|by)\b|那么?|呢|的|和|与|论文|方法",
    re.IGNORECASE,
)


def is_follow_up(question: str) -> bool:
    """Whether a question needs the turns before it: it points back (`it`, `the same`), or is too short to stand alone."""
    plain = BEGINNING.sub("", BESIDE_CHINESE.sub(" ", question))
    if names_in(plain) and STANDS_ALONE.search(plain):
        return REFERS_BACK.search(plain) is not None
    if REFERS_BACK.search(question) or ASKS_SHORTLY.search(question):
        return True
    return len(WORDS.findall(question)) <= FEW_WORDS


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
    if len(question) > LONGEST_NAME:
        return ""
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


def papers_named(history: Sequence[Turn]) -> tuple[str, ...]:
    """The papers that earlier answers cited."""
    return unique([paper_id for turn in history for paper_id in turn.paper_ids])
