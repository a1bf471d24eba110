"""TeX in abstracts, read as a person would say it: `$\\mathcal{O}(n^2)$` is O(n^2), `\\'e` is é, `\\alpha` is α.

Symbols come from pylatexenc's macro table. Its converter is not used: it keeps no map back to the source, which quotes need.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from typing import Literal

from pylatexenc.latex2text import get_default_latex_context_db  # type: ignore[import-untyped]  # it ships no annotations

from rag.traced import Edit


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_COMBINING = {
    "'": "\u0301", "`": "\u0300", "^": "\u0302", '"': "\u0308", "~": "\u0303", "=": "\u0304", ".": "\u0307", "u": "\u0306",
    "v": "\u030c", "H": "\u030b", "c": "\u0327", "d": "\u0323", "b": "\u0331", "k": "\u0328", "r": "\u030a",
}  # fmt: skip
_ACCENT = re.compile(
    r"""\\(?P<mark>['`^"~=.]|[uvHcdbkr](?![A-Za-z]))[ ]?"""
    r"""(?:\{[ ]?(?P<in>\\?[A-Za-z])[ ]?\}|(?P<bare>\\[ij](?![A-Za-z])|(?<!\\)[A-Za-z]))"""
)
_LETTER = re.compile(r"\\(ss|ae|AE|oe|OE|o|O|l|L|aa|AA|dh|DH|th|TH)(?![A-Za-z])(?:\{\}|[ ](?=[a-z]))?")
_SHORT_FRACTION = re.compile(r"\\[dt]?frac ?(\d) ?(\d)")
_TIE = re.compile(r"(?<=[^\W\d_])~(?=\w|\\)|(?<=\.)~(?=[A-Z\d\\])|(?<=\w)~(?=\\)")
_DOLLAR = re.compile(r"(?<!\\)\$\$?")
_TOKEN = re.compile(
    r"\\(?:left|right)(?![A-Za-z])\.?|\\(?P<name>[A-Za-z]+)\*?(?:\s{0,3}(?=\{))?|\\(?P<sign>.)|\$\$?|[{}]", re.DOTALL
)
_ONE_PIECE = re.compile(r"-?(?:\w+|\\[A-Za-z]+(?:_\w)?|[*+⋆†'])")
_PROTECTED_WORD = re.compile(r"[\w-]+|.")

_SILENT = _words(
    """
    em it bf rm tt sc sl cal emph text textbf textit textsc texttt textrm textsf textmd textup textsl textnormal
    mathcal mathbb mathbf mathrm mathit mathsf mathtt mathfrak mathscr operatorname mbox hbox boldsymbol bm pmb
    widehat hat bar vec overline underline dot ddot mathring limits nolimits displaystyle textstyle xspace noindent
    small large centering ensuremath url nolinkurl enquote big Big bigg Bigg bigl bigr Bigl Bigr biggl biggr nonumber
    protect mathop bold Bbb uline boxed itshape bfseries path
    """
)
_UNREAD_ARGUMENT = _words(
    """
    cite citep citet citealp citealt citeauthor citeyear citeyearpar parencite textcite autocite nocite ref eqref
    autoref cref Cref pageref label begin end color textcolor href vspace hspace includegraphics ding footnotemark
    hypersetup
    """
)
_FRACTIONS = _words("frac dfrac tfrac cfrac nicefrac sfrac textfrac")
_SPACES = _words("quad qquad par newline item linebreak enskip smallskip medskip bigskip hfill")
_OWN = {
    "ie": "i.e.", "eg": "e.g.", "etal": "et al.", "tilde": "~", "widetilde": "~", "Tilde": "~", "eps": "ε", "mid": "|",
    "vert": "|", "textsuperscript": "^", "textsubscript": "_", "dag": "†", "ldots": "...", "dots": "...",
    "cdots": "...", "colon": ":",
}  # fmt: skip
_GLUED_PREFIX = re.compile(r"(?:mathcal|mathbb|mathbf|mathrm|mathsf|mathfrak|boldsymbol|widetilde|tilde|sqrt|bf)(?=.)")
_SIGNS = {
    "|": "‖",
    "\\": " ",
    " ": " ",
    ",": " ",
    ";": " ",
    ":": " ",
    "\n": " ",
    "!": "",
    "-": "",
    "/": "",
    "@": "",
    "(": "",
    ")": "",
    "[": "",
    "]": "",
}

Kind = Literal["plain", "group", "script", "numerator", "denominator", "aside", "unread"]


def tex_letters(text: str) -> Iterator[Edit]:
    """Accents (`\\'e`, `\\c{c}`), letters of their own (`\\ss`, `\\o`), short fractions (`\\frac12`) and ties (`Fig.~2`)."""
    if "\\" not in text and "~" not in text:
        return
    found = [*_ACCENT.finditer(text), *_LETTER.finditer(text), *_SHORT_FRACTION.finditer(text), *_TIE.finditer(text)]
    done = 0
    for match in sorted(found, key=re.Match.start):
        if match.start() >= done:
            yield Edit(match.start(), match.end(), _letter(match))
            done = match.end()


def _letter(match: re.Match[str]) -> str:
    if match.re is _TIE:
        return " "
    if match.re is _SHORT_FRACTION:
        return f"{match[1]}/{match[2]}"
    if match.re is _LETTER:
        return _symbols()[match[1]]
    return unicodedata.normalize("NFC", (match["in"] or match["bare"]).lstrip("\\") + _COMBINING[match["mark"]])


def math_spans(text: str) -> list[tuple[int, int, int]]:
    """Formulas between dollars as (start, end, width of a delimiter), the dollars included.

    Money is left alone by pandoc's rule (no space inside the dollars, no digit after them), unless the content can only be TeX.
    """
    spans: list[tuple[int, int, int]] = []
    opening: re.Match[str] | None = None
    for dollar in _DOLLAR.finditer(text):
        if opening and opening.group() == dollar.group() and _is_formula(text, opening.end(), dollar):
            spans.append((opening.start(), dollar.end(), len(dollar.group())))
            opening = None
        else:
            opening = dollar
    return spans


def _is_formula(text: str, start: int, closing: re.Match[str]) -> bool:
    inside = text[start : closing.start()]
    if any(sign in inside for sign in "\\^_{="):
        return "\n\n" not in inside
    money = text[closing.end() : closing.end() + 1].isdigit()
    return bool(inside) and not money and not inside[0].isspace() and not inside[-1].isspace()


@dataclass(slots=True)
class _Brace:
    start: int
    kind: Kind
    edit: int
    """Index of this brace's own edit; for an unread argument, of its macro's."""


@dataclass(slots=True)
class _Reader:
    """One pass over macros, braces and dollars. A brace's fate is known at its partner, so its edit is held open until then."""

    text: str
    edits: list[Edit] = field(default_factory=list)
    open: list[_Brace] = field(default_factory=list)
    next_kind: Kind | None = None
    next_at: int = -1

    def macro(self, match: re.Match[str]) -> None:
        name = match["name"] or ""
        kind: Kind = "group"
        if name in _FRACTIONS:
            kind = "numerator"
        elif name == "sqrt":
            kind = "script"
        elif name == "footnote":
            kind = "aside"
        elif name in _UNREAD_ARGUMENT:
            kind = "unread"
        self.edits.append(Edit(match.start(), match.end(), self._said(name, match.start())))
        self._expect(kind, match.end())

    def _said(self, name: str, at: int) -> str:
        said = say_macro(name)
        needs_space = said[:1].isascii() and said[:1].isalpha() and self.text[max(0, at - 1) : at].isalnum()
        return f" {said}" if needs_space else said

    def _expect(self, kind: Kind, at: int) -> None:
        self.next_kind, self.next_at = kind, at

    def open_brace(self, at: int, in_math: bool) -> None:
        kind: Kind = "group" if in_math else "plain"
        if self.next_kind and self.next_at == at:
            kind = self.next_kind
        elif at and self.text[at - 1] in "^_":
            kind = "script"
        self.open.append(_Brace(at, kind, len(self.edits) - (kind == "unread")))
        if kind != "unread":
            self.edits.append(Edit(at, at + 1, "{"))

    def close_brace(self, at: int) -> None:
        if not self.open:
            return
        brace = self.open.pop()
        if brace.kind == "unread":
            macro = self.edits[brace.edit]
            del self.edits[brace.edit :]
            self.edits.append(Edit(macro.start, at + 1, ""))
        else:
            before, after = self._delimiters(brace, at)
            self.edits[brace.edit] = Edit(brace.start, brace.start + 1, before)
            self.edits.append(Edit(at, at + 1, after))
        if brace.kind != "plain":
            self._expect("denominator" if brace.kind == "numerator" else "group", at + 1)

    def _delimiters(self, brace: _Brace, at: int) -> tuple[str, str]:
        if brace.kind == "aside":
            return " (", ")"
        if brace.kind == "group":
            return "", ""
        inside = self.text[brace.start + 1 : at] if at - brace.start < 60 else " "
        if brace.kind == "plain":
            return ("", "") if self._is_markup(inside) else ("{", "}")
        slash = "/" if brace.kind == "numerator" else ""
        return ("", slash) if not inside or _ONE_PIECE.fullmatch(inside) else ("(", ")" + slash)

    @staticmethod
    def _is_markup(inside: str) -> bool:
        """BibTeX's `{B}ayes`, `{\\em word}`, `{–}`, `{}`; not the set {a, b}."""
        return not inside or inside.startswith("\\") or bool(_PROTECTED_WORD.fullmatch(inside))


def tex_edits(text: str) -> list[Edit]:
    """Edits that turn macros, groups and formulas into readable text; a brace without its partner is left alone."""
    if "\\" not in text and "$" not in text and "{" not in text:
        return []
    reader = _Reader(text)
    dollars = {at for start, end, width in math_spans(text) for at in (start, end - width)}
    in_math = False
    for match in _TOKEN.finditer(text):
        token = match.group()
        if token == "{":
            reader.open_brace(match.start(), in_math)
        elif token == "}":
            reader.close_brace(match.start())
        elif token.startswith("$"):
            if match.start() in dollars:
                in_math = not in_math
                reader.edits.append(Edit(match.start(), match.end(), ""))
        elif match["sign"]:
            reader.edits.append(Edit(match.start(), match.end(), _SIGNS.get(match["sign"], match["sign"])))
        else:
            reader.macro(match)
    return reader.edits


def say_macro(name: str) -> str:
    """What stands for a macro: a symbol, nothing for pure layout, and for an unknown one (`\\modelname`) its own name."""
    if not name or name in _SILENT or name in _UNREAD_ARGUMENT or name in _FRACTIONS or name == "footnote":
        return ""
    if name in _SPACES:
        return " "
    if name == "sqrt":
        return "√"
    said = _OWN.get(name) or _symbols().get(name)
    return said if said is not None else _GLUED_PREFIX.sub("", name, count=1)


@cache
def _symbols() -> dict[str, str]:
    """pylatexenc's macros that stand for fixed text."""
    specs = get_default_latex_context_db().iter_macro_specs()
    return {
        spec.macroname: spec.simplify_repl
        for spec in specs
        if isinstance(spec.simplify_repl, str) and "%" not in spec.simplify_repl
    }
