"""What a question asks for: the kind of answer, told by its words, and all that step 1 reads of it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from rag.types import Filters, Usage

Intent = Literal["explain", "list", "authors", "year", "venue", "category", "link", "count"]
"""What the answer should be: an explanation, a list of papers, or a field of the catalogue."""


@dataclass(frozen=True, slots=True)
class Understood:
    """A question, read. `question` is as asked, what it leaves out taken from the one before (`And SOAR?`); `search_text` is what
    is looked for (the standalone question without the words that set filters), empty when nothing is asked; papers in `exclude`
    were spoken of already and are not asked for again. With `counts`, all it asks is how many papers pass the filters,
    or which."""

    question: str
    standalone: str
    search_text: str
    filters: Filters
    intent: Intent
    exclude: tuple[str, ...] = ()
    counts: bool = False
    usage: Usage = Usage()
    notice: str | None = None


PATTERNS: tuple[tuple[Intent, str], ...] = (
    ("count", r"\bhow many (?:\w+ )?(?:papers|abstracts|articles|works|publications)\b|\bnumber of papers\b|(?:多少|几)篇"),
    ("count", r"^\W*(?:and |but )?how many (?:are there |are )?(?:in|from|by|at|since|before|after)\b(?!-)"),
    ("authors", r"\bwho (?:wrote|authored|published|came up with|is behind|are behind|did (?:it|this|that))\b"),
    (
        "authors",
        r"\bwho (?:made|created|invented|developed|proposed|introduced) (?:it|this|that|them|the (?:first|second|third|last)\b)",
    ),
    ("authors", r"\bwho(?:'s| is| are| were| was)? (?:the |its |their )(?:first |last |senior |co-?)?authors?\b"),
    ("authors", r"\bnames? of the authors?\b|\b(?:list|name) (?:the|its|their) authors\b"),
    ("authors", r"(?<!did the )(?<!do the )(?<!have the )\bauthors? of\b|\bwritten by (?:whom|who)\b|\bby whom\b"),
    ("authors", r"^\W*(?:and |what about |how about )*(?:the |its |their )?authors?\W*$|\bhow many (?:co-?)?authors\b"),
    ("authors", r"作者(?:是谁|有谁|有哪些|呢)|谁写"),
    ("year", r"\b(?:which|what) year\b|\bwhen (?:was|were) .{0,200}(?:published|written|released)\b"),
    ("year", r"(?:哪一?年|什么时候)(?:发表|出版|写)"),
    ("venue", r"\bwhere (?:was|were) .{0,200}(?:published|presented)\b|\b(?:which|what) (?:venue|conference|journal)\b"),
    ("venue", r"发表[在于](?:哪|什么)"),
    ("category", r"\b(?:which|what) (?:category|area|field) (?:is|does|was)\b|(?:哪个|什么)(?:类别|领域|方向)"),
    ("link", r"\b(?:the|its|a) (?:link|url|doi)(?=\W*$| please)|\b(?:link|url|doi) (?:to|of|for)\b|链接"),
    (
        "list",
        r"\b(?:which|what|any|other|all|the|show|list|find)(?: \w+){0,3} (?:papers|abstracts|works|articles|studies"
        r"|publications)\b",
    ),
    ("list", r"^\W*(?:list|show|find|collect)\b|\bdo we have\b|\banything (?:on|about|from|by)\b|\bI(?:'m| am) collecting\b"),
    (
        "list",
        r"\bpapers (?:on|about|by|from|in|since|before|after|until|that|which|is|are|has|have)\b"
        r"|\bappears? (?:in )?(?:twice|several)\b",
    ),
    ("list", r"\bwhat has .{0,200} (?:got|done|written|published)\b|\b(?:which|need) (?:results|methods|approaches|works)\b"),
    ("list", r"\blist (?:them|all)\b|\bwho (?:else )?(?:is |are )?(?:working|works?) on\b|\bwho (?:else )?uses\b|^\W*works on\b"),
    ("list", r"\bwhat(?:'s| is|s) (?:there|in here) (?:on|about|for)\b|\beverything (?:on|about)\b"),
    ("list", r"\bany (?:work|research|literature) (?:on|about|that|which)\b"),
    ("list", r"哪些(?:论文|文章|工作)|列出"),
)
INTENTS = tuple((intent, re.compile(pattern, re.IGNORECASE)) for intent, pattern in PATTERNS)


def intent_of(question: str) -> Intent:
    """The kind of answer a question asks for; `explain` unless its words say otherwise."""
    return next((intent for intent, pattern in INTENTS if pattern.search(question)), "explain")
