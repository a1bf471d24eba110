"""`POST /api/v1/formulas`: TeX formulas in texts as MathML, which browsers show by themselves."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from html import unescape
from xml.etree.ElementTree import Element, tostring

from fastapi import APIRouter
from latex2mathml.converter import convert_to_element

from api.context import OWN, Asker, The
from api.schemas import FormulaOut, FormulasIn, FormulasOut
from rag.tex import math_spans

router = APIRouter(tags=["papers"], prefix=OWN)

LONGEST = 1_000
"""Characters of a formula; a longer one is left as it is."""

MOST = 20_000
"""Characters of all formulas of a request; what comes after them is left as it is."""

DEFINES = re.compile(r"\\(?:def|newcommand|newenvironment)(?![A-Za-z])")
"""A dozen macros that each use the last twice make a formula of a million signs."""

ELEMENTS = frozenset(
    "math menclose mfrac mi mn mo mover mpadded mphantom mroot mrow mspace msqrt mstyle msub msubsup msup mtable mtd mtext mtr "
    "munder munderover".split()
)
ATTRIBUTES = frozenset(
    "accent columnalign columnspacing display displaystyle fence form largeop linethickness lspace mathvariant maxsize minsize "
    "movablelimits notation rowspacing rspace scriptlevel separator stretchy width".split()
)
VALUE = re.compile(r"[a-z -]{1,40}|[+-]?[0-9]?(?:\.[0-9]{1,4})?(?:em)?")
"""Words, and lengths that stay within the line."""

XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
"""What no XML document may hold."""


@router.post("/formulas")
async def render_formulas(body: FormulasIn, the: The, caller: Asker) -> FormulasOut:
    """Finds the formulas between dollars in each text. One that cannot be read, or is very long, is left out."""
    return FormulasOut(texts=await the.threads.run(lambda: formulas_of(body.texts)))


def formulas_of(texts: Sequence[str]) -> list[list[FormulaOut]]:
    """Each text's formulas, in order."""
    left = MOST
    found: list[list[FormulaOut]] = []
    for text in texts:
        spans = []
        for start, end, width in math_spans(text):
            left -= end - start
            if left >= 0:
                spans.append((start, end, width))
        found.append(list(rendered(text, spans)))
    return found


def rendered(text: str, spans: Sequence[tuple[int, int, int]]) -> Iterator[FormulaOut]:
    """The formulas at these places that can be read."""
    for start, end, width in spans:
        mathml = to_mathml(text[start + width : end - width], "block" if width == 2 else "inline")
        if mathml is not None:
            yield FormulaOut(start=start, end=end, mathml=mathml)


@lru_cache(4096)
def to_mathml(tex: str, display: str = "inline") -> str | None:
    """`<math …>…</math>`, well-formed, of ELEMENTS with ATTRIBUTES and nothing else; None if the TeX cannot be read."""
    if len(tex) > LONGEST or DEFINES.search(tex) or XML.search(tex):
        return None
    try:
        root = convert_to_element(tex, display=display)
    except Exception:  # for broken TeX it raises IndexError, KeyError, RecursionError and a dozen of its own
        return None
    for element in root.iter():
        if element.tag not in ELEMENTS or not tidy(element):
            return None
    return tostring(root, encoding="unicode")


def tidy(element: Element) -> bool:
    """Makes an element safe to show; whether it is.

    latex2mathml writes signs as references (`&#x0221E;`) and resolves them in the finished document, which lets
    `\\text{<img>}` through as an element. Here each text is resolved by itself and written as text.
    """
    element.text = unescape(element.text) if element.text else None
    kept = {name: value for name, value in element.attrib.items() if name in ATTRIBUTES and VALUE.fullmatch(value)}
    element.attrib.clear()
    element.attrib.update(kept)
    if element.tag == "math":
        element.set("xmlns", "http://www.w3.org/1998/Math/MathML")
    return not XML.search(element.text or "")
