"""Tells the blocks of a paper-search page apart by what they say: header, category, authors, prose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

Kind = Literal["header", "category", "authors", "prose"]

LONGEST_BLOCK = 200_000
"""Characters kept of one block: twice what an abstract may have, so that it is rejected and never cut."""

BLANK = "\ufeff \t\r\n\u3000\xa0"

HEADER = re.compile(
    r"(论文|文献|学术)?(检索|搜索|查询)(结果|页面?)?|论文(列表)?|(paper|article|literature)s?\s+search|(search\s+)?results|papers"
    r"|(共|第)?\s*\d+\s*(篇(论文)?|条(结果|记录)?|页|results|papers)",
    re.IGNORECASE,
)

CATEGORY_DOT = re.compile(r"\s+[·•・|›]\s+")

AREA_WORD = re.compile(
    r"""accountability|agents?|algorithms|alignment|applications|architectures?|aspects|astronomy|astrophysics|attention|audio
    |autoencoders|bandits|batch|bayesian|benchmarks?|bioinformatics|biology|brain|causality|cell|chemistry|climate|clustering
    |cognitive|combinatorics|communication|compression|computation|computational|computer|computing|control|convex|cryptography
    |data|databases?|datasets|diffusion|distributed|ecology|economics|education|energy|engineering|epidemiology|ethics|evaluation
    |everything|explainability|fairness|finance|foundation|games|gaussian|general|generation|generative|genetics|genomics|geometry
    |graphs?|graphics|hardware|health|image|imaging|infrastructure|interaction|interpretability|kernel|languages?|learning
    |linguistics|logic|machine|materials|mathematics|mechanics|mechanisms|medicine|methods|mining|modell?ing|models|multi-?agent
    |multimodal|networking|networks|neural|neuroscience|non-?convex|offline|oncology|online|optimi[sz]ation|others|parallel
    |perception|physics|planning|policy|privacy|probabilistic|probability|processes|processing|programming|psychology|quantum
    |recognition|reinforcement|representation|retrieval|rl|robotics|robustness|safety|sampling|scale|sciences?|security|signal
    |simulation|social|software|speech|statistical|statistics|stochastic|sustainability|systems|theory|time|transformers
    |transparency|trustworthy|unsupervised|video|vision""",
    re.VERBOSE,
)
"""Words of conference areas and fields of science that are no family names."""

CHINESE_AREA = re.compile(r"学习|优化|理论|应用|视觉|机器人|语言|模型|网络|统计|概率|安全|科学|方法|物理|数学|生物|医学|其他")
JOINING_WORD = re.compile(r"and|of|in|for|the|to|with|on|etc\.?|&|/")

PROSE_WORD = re.compile(
    r"(?<![\w.-])(the|we|is|are|was|were|that|this|these|those|which|our|it|its|from|by|been|has|have|had|not|than|such|their|can"
    r"|while|when|where|how|or|as|at|into|using)(?![\w-])|://"
)
"""Words in lower case that no name and no category has; `de`, `van`, `and`, `of` are none of them."""

SENTENCE_END = re.compile(r"[a-z0-9)$}%\"'”’*][.!?][\"'”’)*]*$|[。！？]")
DOTTED_NAME_END = re.compile(r"\b(jr|sr|al|ph\.?d|[a-z])\.$", re.IGNORECASE)
TRUNCATED = re.compile(r"[,，、;；]?\s*(等人?|\bet\s+al\.?|…|\.\.\.)\s*$", re.IGNORECASE)
NAME_COMMA = re.compile(r"[,，、;；]")
CHINESE_RUN = re.compile(r"[\u3400-\u9fff]{13,}")


@dataclass(frozen=True, slots=True)
class Block:
    """Lines between blank lines, without white space around them. `line` is the number of the first."""

    line: int
    text: str

    @property
    def kind(self) -> Kind:
        return kind_of(self.text)


def blocks(lines: Iterable[tuple[int, str]]) -> Iterator[Block]:
    """The blocks of numbered lines. Heads with no blank line below them are blocks of their own."""
    for block in _between_blank_lines(lines):
        for _ in range(3):
            first, _, rest = (part.strip(BLANK) for part in block.text.partition("\n"))
            kind = kind_of(first)
            if not rest or kind == "prose" or (kind == "authors" and not is_prose(rest)):
                break
            yield Block(block.line, first)
            block = Block(block.line + 1, rest)
        yield block


def kind_of(text: str) -> Kind:
    """What a block is, by what it says; what is none of the others is a list of authors."""
    if HEADER.fullmatch(text):
        return "header"
    if is_category(text):
        return "category"
    return "prose" if is_prose(text) else "authors"


def is_category(text: str) -> bool:
    """`Area · Topic`, or a few words that name a field (`Optimization`) rather than a person."""
    if "\n" in text or len(text) > 150 or (SENTENCE_END.search(text) and not text.endswith("etc.")):
        return False
    if CATEGORY_DOT.search(text):
        return True
    words = [word for word in re.split(r"[\s,/&:>·]+", text.lower()) if word and not JOINING_WORD.fullmatch(word)]
    areas = sum(bool(AREA_WORD.fullmatch(word)) for word in words)
    if areas and len(words) <= 8 and areas * 2 >= len(words) and not PROSE_WORD.search(text):
        return True
    return len(text) <= 20 and bool(CHINESE_AREA.search(text)) and not NAME_COMMA.search(text)


def is_prose(text: str) -> bool:
    """Sentences rather than names: function words in lower case, a part too long for a name, a full stop."""
    if PROSE_WORD.search(text) or CHINESE_RUN.search(text):
        return True
    names, truncated = names_of(text)
    if any(len(name.split()) > 7 or len(name) > 80 for name in names):
        return True
    return bool(SENTENCE_END.search(text)) and not DOTTED_NAME_END.search(text) and not truncated


def names_of(text: str) -> tuple[tuple[str, ...], bool]:
    """The names in order, repeats kept, and whether a trailing 等 ("et al.") says that there are more."""
    flat = " ".join(text.split())
    whole = TRUNCATED.sub("", flat)
    names = (name.strip() for name in NAME_COMMA.split(whole))
    return tuple(name for name in names if name), whole != flat


def _between_blank_lines(lines: Iterable[tuple[int, str]]) -> Iterator[Block]:
    held: list[str] = []
    size = start = 0
    for number, line in lines:
        if line.strip(BLANK):
            start = start or number
            if size < LONGEST_BLOCK:
                held.append(line)
                size += len(line) + 1
        elif held:
            yield Block(start, "\n".join(held).strip(BLANK))
            held, size, start = [], 0, 0
    if held:
        yield Block(start, "\n".join(held).strip(BLANK))
