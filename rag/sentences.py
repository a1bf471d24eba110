"""Where the sentences of a cleaned abstract end."""

from __future__ import annotations

import re
from collections.abc import Iterator

PARAGRAPH = "\u2029"
"""Stands in the text for a blank line or a block tag."""

_CANDIDATE = re.compile(
    rf"""(?<![.!?…])(?P<stop>[.!?…]++)[)\]"'”’»]{{0,4}}(?:\[\d[\d,\s–-]{{0,20}}\])?(?=\s)"""
    r"""|(?P<chinese>[。！？]+[”’」』）)]{0,4})"""
    r"""|(?P<glued>(?:(?<=[a-z]{3})|(?<=[)\]%]))[.?!](?=(?:[A-Z][a-z]+|A|I)[\s,;:])|(?<=[a-z)])\.(?=[A-Z]{4,30}:))"""
    rf"""|(?P<line>{PARAGRAPH}|\n(?=(?:[A-Z][A-Z &/,]{{3,40}}|[A-Z][a-z]{{3,12}}(?: and [a-z]{{3,12}})?):))"""
)
_WORD = re.compile(r"[^\W_]")
_OPENING = "([{\"'“‘«*•–- "
_LABEL_ONLY = re.compile(r"\W*(?:[A-Z][A-Z &/,]{2,40}|[A-Z][a-z]+(?: [a-z]+){0,2})\W*")
_MIXED_CASE = re.compile(r"[a-z]{1,6}-?[A-Z0-9]")


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NEVER_LAST = _words("e.g i.e eg ie cf vs viz w.r.t wrt approx v.s ca c.f a.k.a s.t")
_TITLES = _words("Dr Prof Mr Mrs Ms St Mt")
_BEFORE_NUMBER = _words(
    """
    no nos fig figs eq eqs eqn sec sect vol pp p ch tab ref refs art thm lem def prop cor alg app ver
    """
)
_SELDOM_LAST = _words(
    """
    al resp inc ltd co corp ph.d m.d m.sc b.sc u.s u.k u.s.a e.u a.m p.m jr sr i.i.d sp spp var dept univ
    """
)
_FIRST_WORDS = _words(
    """
    A According Across Additionally After Also Although Among An And Another As At Based Because Besides Both But By
    Code Compared Consequently Conversely Current Despite Due During Each Empirically Existing Experimental
    Experiments Extensive Finally First Firstly For From Further Furthermore Given Hence Here How However I If
    Importantly In Inspired Instead It Its Lastly Many More Moreover Most Motivated Nevertheless No Nonetheless
    Notably Numerical On Once One Only Our Over Overall Patients Previous Prior Recent Recently Results Second
    Secondly Several Similarly Since So Some Specifically Such Surprisingly That The Their Then There Therefore These
    They Third This Those Through Thus To Together Traditional Two Ultimately Under Unfortunately Unlike Using Via We
    What When Where Whereas Whether Which While Why With Within Without Yet
    """
)


def sentence_ends(text: str) -> Iterator[int]:
    """The end of each sentence of `text` (cleaned, line ends kept), the last of them len(text).

    Text is cut at full stops that neither abbreviate nor belong to a number, name or address; at 。！？; at paragraphs; and
    before a structured abstract's label at the start of a line. A label alone stays with what it labels.
    """
    start = 0
    word = _WORD.search(text)
    for candidate in _CANDIDATE.finditer(text):
        end = candidate.end()
        if word is None or word.start() >= end or not _is_end(text, start, candidate) or not _WORD.search(text, end, end + 200):
            continue
        if candidate["line"] and end - start < 80 and _LABEL_ONLY.fullmatch(text, start, end):
            continue
        yield end
        start, word = end, _WORD.search(text, end)
    if text:
        yield len(text)


def _is_end(text: str, start: int, candidate: re.Match[str]) -> bool:
    if candidate["chinese"] or candidate["line"]:
        return True
    before = text[max(start, candidate.start() - 60) : candidate.start()]
    after = text[candidate.end() : candidate.end() + 60].lstrip()
    word = before.split()[-1] if before and not before[-1].isspace() else ""
    if candidate["glued"]:
        return _is_glued_end(word, after)
    if not word:
        return bool(after)
    if not _may_start(after):
        return False
    if candidate["stop"] != ".":
        return True
    return _is_full_stop(word.lstrip("([{\"'“‘*"), after, at_start=not before[: -len(word)].strip())


def _is_glued_end(word: str, after: str) -> bool:
    """`spaces.Specifically`, not `scikit.Learn` in an address, `DiaBiz.Kom` or `e.g.Wikipedia`."""
    if any(sign in word for sign in "/@.\\_") or not (word[-1:] in ")]%" or word[1:].islower()):
        return False
    return word.lower() not in _SELDOM_LAST or _first_word(after) in _FIRST_WORDS


def _is_full_stop(word: str, after: str, *, at_start: bool) -> bool:
    lower = word.lower()
    if lower in _NEVER_LAST or word in _TITLES:
        return False
    if after[0].isdigit() and (lower in _BEFORE_NUMBER or lower == "0"):
        return False
    if re.fullmatch(r"\(?\d{1,2}", word) and at_start:
        return False
    if lower in _SELDOM_LAST or re.fullmatch(r"(?:[A-Z]\.-?)*[A-Z]", word):
        return _first_word(after) in _FIRST_WORDS
    return True


def _first_word(after: str) -> str:
    found = re.match(r"\W*(\w+)", after)
    return found[1] if found else ""


def _may_start(after: str) -> bool:
    rest = after.lstrip(_OPENING)
    if not rest:
        return False
    if rest[0].islower() and rest[0].isascii():
        return bool(_MIXED_CASE.match(rest))
    return rest[0].isalnum() or not rest[0].isascii() or rest[0] in "√~^\\$<"
