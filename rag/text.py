"""A paper's text made readable, with a map back to the verbatim characters, and cut into sentences.

Cleaning is a line of steps. Each looks at the text so far and names its edits; `Traced` applies them and keeps the map.
Every step is linear in the length of the text.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from rag.sentences import PARAGRAPH, sentence_ends
from rag.spelling import is_english
from rag.tex import math_spans, tex_edits, tex_letters
from rag.traced import Edit, Traced, replacing
from rag.types import Sentence


@dataclass(frozen=True, slots=True)
class CleanText:
    """`text[i]` was read from the verbatim code points `starts[i]:ends[i]`; both never decrease."""

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The verbatim span of the cleaned span `start:end`. Raises ValueError unless 0 <= start < end <= len(text)."""
        if not 0 <= start < end <= len(self.text):
            raise ValueError(f"no such span: {start}:{end} of {len(self.text)} cleaned characters")
        return self.starts[start], self.ends[end - 1]


def clean(verbatim: str) -> CleanText:
    """Readable text: no TeX, HTML, JATS or Markdown, no ligatures, line-end hyphens, control or invisible characters, one space
    where there was white space, none at the ends."""
    read = _read(verbatim)
    return CleanText(_one_line(read.text), tuple(read.starts), tuple(read.ends))


def split_sentences(verbatim: str) -> tuple[Sentence, ...]:
    """The sentences of an abstract, in order. Their spans are disjoint and cover all but white space; none is empty."""
    read = _read(verbatim)
    spans = list(_trimmed(read.text, sentence_ends(read.text)))
    edges = [(read.starts[start], read.ends[end - 1]) for start, end in spans]
    texts = [_one_line(read.text[start:end]) for start, end in spans]
    return tuple(Sentence(start, end, text) for (start, end), text in zip(_covering(verbatim, edges), texts, strict=True))


def _one_line(text: str) -> str:
    return text.replace("\n", " ").replace(PARAGRAPH, " ")


def _trimmed(text: str, ends: Iterable[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for end in ends:
        piece = text[start:end]
        if piece.strip():
            yield start + len(piece) - len(piece.lstrip()), end - len(piece) + len(piece.rstrip())
        start = end


_CLOSING_MARKUP = re.compile(r"(?:</[^<>]*>|[}$*_`]|\\[\])])*")


def _covering(verbatim: str, edges: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Gives the markup between two sentences to one of them: what closes to the first, the rest to the second."""
    start = len(verbatim) - len(verbatim.lstrip())
    for (_, end), (following, _) in pairwise(edges):
        closing = _CLOSING_MARKUP.match(verbatim, end, following)
        end = closing.end() if closing else end
        yield start, end
        between = verbatim[end:following]
        start = end + len(between) - len(between.lstrip())
    if edges:
        yield start, len(verbatim.rstrip())


_MOJIBAKE = re.compile("[\u00c2-\u00f4][\u0080-\u00bf]{1,3}")
_UNESCAPED_MACRO = re.compile(
    "(?:\t(?=ext[a-z]{2}\\{|imes\\b|heta\\b|ilde\\b|au\\b)|\b(?=eta\\b|f\\b|oldsymbol\\b|ar\\b)|\f(?=rac\\b)|\r(?=ho\\b|ight\\b))"
)
_LINE_END_HYPHEN = re.compile("(?<=[^\\W\\d_])[-\u2010\u00ad][ \t]{0,9}\r?\n[ \t]{0,99}(?P<next>[^\\W\\d_])")
_HYPHEN_AND_SPACE = re.compile(r"(?<![^\W_])(?P<left>[^\W\d_]{1,30})[-\u2010] (?=(?P<right>[a-z]{2,30})(?![^\W_]))")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff0-\ufffb"
    "\ufffd\ud800-\udfff\U000e0000-\U000e0fff]+"
)
_BLOCK = (
    "p|div|br|hr|li|ul|ol|dl|dt|dd|tr|table|tbody|h[1-6]|title|sec|section|abstract|abstracttext|list|list-item|disp-formula"
    "|blockquote|label"
)
_INLINE = (
    "i|b|u|s|em|strong|sub|sup|span|a|tt|code|small|big|font|q|cite|italic|bold|underline|monospace|sc|roman|sans-serif|xref|ext-link|uri"
    "|inline-formula|tex-math|alternatives|named-content|styled-content|math|mml|mrow|mi|mn|mo|mtext|msup|msub|mstyle|td|th|html|body"
)
_TAG = re.compile(
    rf"</?(?:[a-z]{{2,5}}:)?(?:(?P<block>{_BLOCK})|(?P<inline>{_INLINE}))(?:\s[^<>=]{{0,99}}=[^<>]{{0,999}})?\s?/?>|<!--[^<>]{{0,999}}-->",
    re.IGNORECASE,
)
_POWER = re.compile(r"<sup>(?=\s?[-−–+]?\d)", re.IGNORECASE)
_EMPHASIS = (
    re.compile(r"(?<![\w*\\^])(?P<mark>\*{1,3})(?=[^\s*])[^*\n]{0,400}[^\s*](?P=mark)(?:(?![\w*])|(?<=\*\*)(?!\*))"),
    re.compile(r"(?<![\w\\^])(?P<mark>_{1,3})(?=[^\s_\W])[^_\n]{0,400}[^\s_](?P=mark)(?!\w)"),
    re.compile(r"(?<![`\\])(?P<mark>`{1,3})(?=[^\s`])[^`\n']{0,400}[^\s`'](?P=mark)(?!`)"),
)
_COMPATIBLE = re.compile(
    "[\ufb00-\ufb06\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\U0001d400-\U0001d7ff\u2102\u210a-\u2115\u2119-\u211d\u2124\u2126\u212a-\u2131"
    "\u2133\u2134\u00b5\u03d0-\u03d6\u03f0\u03f1\u03f4-\u03f6\u0132\u0133\u01c4-\u01cc]+"
)
_SUPERSCRIPTS = re.compile("[⁺⁻]?[⁰¹²³⁴-⁹]+")
_SUBSCRIPTS = re.compile("[₀-₉]+")
_COMBINED = re.compile("[^\\W_][\u0300-\u036f]+")
_WHITE_SPACE = re.compile(r"\s+")
_EDGE_SPACE = re.compile(r"\A\s+|(?<!\s)\s+\Z")


def _repaired(found: re.Match[str]) -> str:
    """UTF-8 that was read as Latin-1 (`â\\x80\\x99` for ’); left alone unless a C1 control gives it away."""
    if not any("\x80" <= character <= "\x9f" for character in found.group()):
        return found.group()
    try:
        return found.group().encode("latin-1").decode("utf-8")
    except UnicodeDecodeError:
        return found.group()


def _macro_again(found: re.Match[str]) -> str:
    """`\\textbf` whose `\\t` a careless reader took for a tab."""
    return {"\t": "\\t", "\b": "\\b", "\f": "\\f", "\r": "\\r"}[found.group()]


def _joined_lines(text: str) -> Iterator[Edit]:
    """`algo-` + `rithm` is one word; before a capital (`Karush-` + `Kuhn`) the hyphen stays."""
    for found in _LINE_END_HYPHEN.finditer(text):
        yield Edit(found.start(), found.start("next"), "" if found["next"].islower() else "-")


def _joined_words(text: str) -> Iterator[Edit]:
    """`learn- ing`, where the end of the line was lost, is one word if that is English; `pre- and post-training` are two."""
    for found in _HYPHEN_AND_SPACE.finditer(text):
        if is_english(f"{found['left']}{found['right']}".lower()):
            yield Edit(found.end("left"), found.start("right"), "")


def _without_tag(found: re.Match[str]) -> str:
    return PARAGRAPH if found["block"] else ""


def _without_emphasis(text: str) -> Iterator[Edit]:
    """Markdown's delimiters outside formulas."""
    formulas = math_spans(text)
    marks = sorted(mark for pattern in _EMPHASIS for mark in _delimiters(pattern, text))
    done, formula = 0, 0
    for start, end in marks:
        while formula < len(formulas) and formulas[formula][1] <= start:
            formula += 1
        if start >= done and not (formula < len(formulas) and formulas[formula][0] < start):
            yield Edit(start, end, "")
            done = end


def _delimiters(pattern: re.Pattern[str], text: str) -> Iterator[tuple[int, int]]:
    for found in pattern.finditer(text):
        width = len(found["mark"])
        yield found.start(), found.start() + width
        yield found.end() - width, found.end()


def _compatible(found: re.Match[str]) -> str:
    return unicodedata.normalize("NFKC", found.group())


def _power(found: re.Match[str]) -> str:
    return "^" + _compatible(found).replace("\u2212", "-")


def _one_space(found: re.Match[str]) -> str:
    run = found.group()
    if PARAGRAPH in run or run.count("\n") > 1:
        return PARAGRAPH
    return "\n" if "\n" in run or "\r" in run else " "


_STEPS: tuple[Callable[[str], Iterable[Edit]], ...] = (
    replacing(_MOJIBAKE, _repaired),
    replacing(_UNESCAPED_MACRO, _macro_again),
    _joined_lines,
    _joined_words,
    replacing(_ENTITY, lambda found: html.unescape(found.group())),
    replacing(_ENTITY, lambda found: html.unescape(found.group())),
    replacing(_INVISIBLE, ""),
    replacing(_POWER, "^"),
    replacing(_TAG, _without_tag),
    tex_letters,
    _without_emphasis,
    tex_edits,
    replacing(_COMPATIBLE, _compatible),
    replacing(_SUPERSCRIPTS, _power),
    replacing(_SUBSCRIPTS, _compatible),
    replacing(_COMBINED, lambda found: unicodedata.normalize("NFC", found.group())),
    replacing(_WHITE_SPACE, _one_space),
    replacing(_EDGE_SPACE, ""),
)


def _read(verbatim: str) -> Traced:
    """Cleaned text in which a line end is still a line end and a blank line or block tag is `PARAGRAPH`."""
    traced = Traced.of(verbatim)
    for step in _STEPS:
        traced = traced.edited(step(traced.text))
    return traced
