"""Whether a question needs the turns before it, and what it leaves out: `And KnapSpec?` after `How fast is LeMiCa?`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rag.intent import intent_of
from rag.match import names_in
from rag.pointing import BEGINNING, OF_ONE_PAPER, OPENING, PLACE, has_subject
from rag.scripts import language_of, set_apart
from rag.types import Turn, unique

FEW_WORDS = 4
"""A question of so few words seldom stands alone."""

MOST_TURNS = 40
"""Turns looked through for what a question leaves out."""

LONGEST_GAP, MOST_TOPIC_WORDS = 120, 6
"""Characters of a question that leaves something out, and words of one that gives another topic."""

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

REST = re.compile(
    rf"^\W*(?:{OPENING})*(?:(?:papers )?(?:on|about|for|with|regarding)\s+)?(?P<rest>.+?)(?:\s+(?:then|instead)|呢)?\W*$",
    re.IGNORECASE,
)
"""`KnapSpec` in `And what about KnapSpec then?`."""

BESIDE_A_NAME = re.compile(
    r"\b(?:the|a|an|and|or|with|for|from|at|in|of|paper|method|algorithm|approach|one|by|is|are|do|does|did|can|has|have)\b"
    r"|的|和|与|论文|方法",
    re.IGNORECASE,
)
BEGINS_A_QUESTION = re.compile(
    r"(?:who|what|which|how|why|when|where|whose|is|are|was|were|do|does|did|can|could|has|have|any|list|show|tell|give)\b|谁|什么|为什么",
    re.IGNORECASE,
)
TOPIC = re.compile(r"\b(?P<before>on|about|regarding|with)\s+[^?？]+", re.IGNORECASE)


def is_follow_up(question: str) -> bool:
    """Whether a question needs the turns before it: it points back (`it`, `the same`), or is too short to stand alone."""
    plain = BEGINNING.sub("", set_apart(question))
    if STANDS_ALONE.search(plain) and names_in(plain[:LONGEST_GAP]):
        return REFERS_BACK.search(plain) is not None
    if REFERS_BACK.search(question) or ASKS_SHORTLY.search(question):
        return True
    return len(WORDS.findall(question)) <= FEW_WORDS


def completed(question: str, history: Sequence[Turn]) -> str:
    """The question with what it leaves out taken from those before: `And KnapSpec?` after `How fast is LeMiCa?` is `How fast is
    KnapSpec?`; `the second one?` after `who wrote the first?` is `who wrote the second?`. Else as it is."""
    asked: list[str] = []
    answered = ""
    for turn in history[-MOST_TURNS:]:
        if turn.role == "user":
            asked.append(filled(turn.content, asked, answered))
        answered = turn.content if turn.role == "assistant" else ""
    return filled(question, asked, answered)


def filled(question: str, asked: Sequence[str], answered: str) -> str:
    """The same, given the whole questions before and the answer to the last."""
    if not asked or len(question) > LONGEST_GAP:
        return question
    if says_nothing(question):
        return of_others(question, asked) if ASKS_FOR_OTHERS.search(question) else at_place(question, asked[-1])
    name = name_alone(question)
    if name and names_in(asked[-1]):
        return renamed(asked[-1], name, answered)
    if intent_of(asked[-1]) in ("list", "count") and (topic := name or topic_alone(question)):
        return on_topic(asked[-1], topic)
    return renamed(asked[-1], name, answered) if name else question


def of_others(question: str, asked: Sequence[str]) -> str:
    """The last question that says what others there may be of."""
    whole = (one for one in reversed(asked) if has_subject(one) and intent_of(one) not in OF_ONE_PAPER and not PLACE.search(one))
    return next(whole, question)


def at_place(question: str, before: str) -> str:
    """The question before, asked of the paper at the place that this one names."""
    place = PLACE.search(question)
    if place is None:
        return before
    return PLACE.sub(lambda _: place.group(), before) if PLACE.search(before) else f"{before} ({place.group()})"


def on_topic(before: str, topic: str) -> str:
    """The question for papers before, asked of another topic."""
    if TOPIC.search(before):
        return TOPIC.sub(lambda found: f"{found['before']} {topic}", before, count=1)
    return f"哪些论文研究{topic}？" if language_of(topic) == "zh" else f"Which papers are on {topic}?"


def name_alone(question: str) -> str:
    """The name in a question that is nothing but a name (`And what about KnapSpec?`); empty for any other."""
    found = REST.match(set_apart(question)) if len(question) <= LONGEST_GAP else None
    if found is None:
        return ""
    left = BESIDE_A_NAME.sub(" ", found["rest"])
    for name in names_in(question):
        left = left.replace(name, " ")
    return "" if re.search(r"\w", left) else " and ".join(names_in(question))


def topic_alone(question: str) -> str:
    """The topic in a question that is nothing but a topic (`and on speech recognition?`); empty for any other."""
    found = REST.match(question)
    if found is None or (found.start("rest") == 0 and not question.rstrip(" ?？").endswith("呢")):
        return ""
    topic = found["rest"]
    is_other = BEGINS_A_QUESTION.match(topic) or REFERS_BACK.search(topic) or PLACE.search(topic) or not has_subject(topic)
    return "" if is_other or len(WORDS.findall(topic)) > MOST_TOPIC_WORDS else topic


def renamed(before: str, name: str, answered: str) -> str:
    """The question before, asked of another: `name` in place of what it was about, which its answer is likely to name too."""
    olds = sorted((re.sub(r"['’]s$", "", old) for old in names_in(before)), key=lambda old: old not in answered)
    about = re.compile(rf"(?<![A-Za-z0-9_]){re.escape(olds[0])}(?![A-Za-z0-9_])" if olds else ITSELF, re.IGNORECASE)
    if name in before or not about.search(before):
        return f"{name}: {before}"
    return about.sub(lambda _: name, before, count=1)


def says_nothing(question: str) -> bool:
    """Whether a question only points at papers (`and the last one?`), so that what is asked of them was asked before."""
    if intent_of(question) != "explain" or has_subject(question):
        return False
    return bool(PLACE.search(question) or ASKS_FOR_OTHERS.search(question) or not re.search(ITSELF, question, re.IGNORECASE))


def papers_named(history: Sequence[Turn]) -> tuple[str, ...]:
    """The papers that earlier answers cited."""
    return unique([paper_id for turn in history for paper_id in turn.paper_ids])
