"""Citation markers in a model's text: finding them in every form models write, and writing them in ours, `[1][2]`.

Text is read into a masked form, in which one character of Unicode's private use area stands for a run of markers and one for a
stretch that is left alone (code, mathematics, links). So the rules about white space and full stops are regular expressions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

MARKS = "\ue000-\uefff"
"""Masked: one run of markers."""
ALONE = "\uf000-\uf8ff"
"""Masked: one stretch left alone."""
RUN_OF_MARKS = rf"[{MARKS}](?:[ \t]*+(?:[,，、;；][ \t]*+)?[{MARKS}])*+"
"""Masked: markers next to each other, with commas or without."""
_MOST_MARKS, _MOST_ALONE = 0x1000, 0x0900
_PRIVATE = re.compile(f"[{MARKS}{ALONE}]")

STOPS = ".!?…。！？"
CLOSERS = "\"'”’»)）」』*_"

_NUMBER = r"(?:(?:papers?|sources?|refs?\.?|documents?|论文|文献)\s*)?[#^№]?\d{1,9}"
_SEPARATOR = r"\s*(?:[,，、;；&]|[-–—~]|\band\b)\s*|\s+"
_NUMBERS = rf"\s*{_NUMBER}(?:(?:{_SEPARATOR}){_NUMBER})*\s*(?:†[^\]】\n]{{0,80}})?"
_MARKER = re.compile(rf"\[\[{_NUMBERS}\]\]|\[{_NUMBERS}\]|［{_NUMBERS}］|【{_NUMBERS}】|【[^【】\n]*†[^【】\n]*】", re.IGNORECASE)
_LONGEST = 300
"""Characters after which an opening bracket, dollar sign or backtick without its partner is taken as itself."""
_LINK_TAIL = re.compile(r"\((?:[^()\n]|\([^()\n]*\))*\)")
_LINK_TEXT = re.compile(r"\[[^\[\]\n]*\]")
_OPENER = re.compile(r"[`$\\\[［【]")
_CLOSING = {"[": "]", "［": "］", "【": "】"}

_RANGE = re.compile(r"[-–—~]|[ \t]+(?:to|through)[ \t]+|[ \t]*[至到][ \t]*")
_RANGE_BEGUN = re.compile(r"(?:[-–—~]|[ \t]*[至到][ \t]*|[ \t]+(?:t|to[ \t]*|th|thr|thro|throu|throug|through[ \t]*)?)?")
"""Between two markers that are the ends of a range (`[1]–[3]`), and how that begins."""
_MOST_IN_RANGE = 20

_MARK = re.compile(f"[{MARKS}]")
_RUN = re.compile(rf"[ \t]*(?:[(（][ \t]*{RUN_OF_MARKS}[ \t]*[)）]|{RUN_OF_MARKS})")
_QUOTES = '"”»」』'
_IN_QUOTES = re.compile(rf"[ \t]*([(（][ \t]*{RUN_OF_MARKS}[ \t]*[)）]|{RUN_OF_MARKS})([{STOPS}]*)((?:[{_QUOTES}]|’(?!\w))+)")
"""Markers that stand inside a quotation, at its end."""
_AFTER_STOP = re.compile(rf"(?:[ \t]*([{MARKS}]))?([{STOPS}]+[{re.escape(CLOSERS)}]*)[ \t]*([{MARKS}])[{STOPS}]*(?=\s*$)")
_SPACE_AFTER_OPENING = re.compile(rf"(?:(?<=[(（\[{{“\n])|^)[ ](?=[{MARKS}])")
_MARK_THEN_WORD = re.compile(rf"(?<=[{MARKS}])(?=[A-Za-z0-9])")

_UNKNOWN = -1


class Masked:
    """Reads raw text, in pieces cut anywhere, into masked text; what a character stands for is kept until it is written out."""

    def __init__(self) -> None:
        self._raw = ""
        self._line_start = True
        self._numbers: list[tuple[int, ...]] = []
        self._alone: list[str] = []

    def feed(self, raw: str, *, whole: bool = False) -> str:
        """The masked text that no continuation can change; with `whole`, all of it."""
        self._raw += _PRIVATE.sub("\ufffd", raw)
        masked: list[str] = []
        position = 0
        while position < len(self._raw):
            end, token = self._token(position, whole)
            if end == _UNKNOWN:
                break
            masked.append(token)
            *lines, last = self._raw[position:end].split("\n")
            self._line_start = (self._line_start or bool(lines)) and not last.strip()
            position = end
        self._raw = self._raw[position:]
        return "".join(masked)

    def numbers(self, mark: str) -> tuple[int, ...]:
        """The numbers behind one character of MARKS."""
        return self._numbers[ord(mark) - 0xE000]

    def mark(self, numbers: Iterable[int]) -> str:
        """A character of MARKS that stands for these numbers."""
        if len(self._numbers) == _MOST_MARKS:
            return ""
        self._numbers.append(tuple(dict.fromkeys(numbers)))
        return chr(0xE000 + len(self._numbers) - 1)

    def written(self, masked: str) -> str:
        """The text as a reader sees it."""
        text = re.sub(f"[{MARKS}]", lambda found: "".join(f"[{number}]" for number in self.numbers(found[0])), masked)
        return re.sub(f"[{ALONE}]", lambda found: self._alone[ord(found[0]) - 0xF000], text)

    def _token(self, start: int, whole: bool) -> tuple[int, str]:
        """End and masked form of what begins at `start`; an end of _UNKNOWN where that depends on text yet to come."""
        opener = _OPENER.search(self._raw, start)
        if opener is None:
            return len(self._raw), self._raw[start:]
        if opener.start() > start:
            return opener.start(), self._raw[start : opener.start()]
        end = self._end_of_alone(start, whole)
        if end == _UNKNOWN:
            return _UNKNOWN, ""
        if end > start:
            return end, self._left_alone(self._raw[start:end])
        marker = _MARKER.match(self._raw, start)
        if marker:
            return self._marker(marker, whole)
        width = 2 if self._raw[start] == "\\" else _run_length(self._raw, start) if self._raw[start] == "`" else 1
        return min(start + width, len(self._raw)), self._raw[start : start + width]

    def _marker(self, marker: re.Match[str], whole: bool) -> tuple[int, str]:
        """The same for what begins with a marker, which may be the first end of a range."""
        numbers = _read_numbers(marker[0])
        if not _is_citation(marker[0]):
            return marker.end(), self._left_alone(marker[0])
        if len(numbers) > 1:
            return marker.end(), self.mark(numbers)
        end, last = self._end_of_range(marker.end(), whole)
        if end == _UNKNOWN:
            return _UNKNOWN, ""
        in_order = numbers[0] < last <= numbers[0] + _MOST_IN_RANGE
        return (end, self.mark(range(numbers[0], last + 1))) if in_order else (marker.end(), self.mark(numbers))

    def _end_of_range(self, start: int, whole: bool) -> tuple[int, int]:
        """Where the second marker of a range ends whose first ends at `start`, and its number; `start` and 0 where there is none;
        an end of _UNKNOWN where that depends on text yet to come."""
        raw, nothing = self._raw, (start, 0)
        between = _RANGE.match(raw, start)
        at = between.end() if between else start
        if between is None or at == len(raw):
            begun = _RANGE_BEGUN.fullmatch(raw, start)
            return (_UNKNOWN, 0) if begun and not whole else nothing
        if raw[at] not in _CLOSING:
            return nothing
        link = _end_of_link(raw, at, whole)
        marker = _MARKER.match(raw, at)
        if link != at or marker is None:
            return (_UNKNOWN, 0) if link == _UNKNOWN else nothing
        numbers = _read_numbers(marker[0])
        return (marker.end(), numbers[0]) if len(numbers) == 1 else nothing

    def _left_alone(self, text: str) -> str:
        if len(self._alone) == _MOST_ALONE:
            return text
        self._alone.append(text)
        return chr(0xF000 + len(self._alone) - 1)

    def _end_of_alone(self, start: int, whole: bool) -> int:
        """Where the code, mathematics or link that begins at `start` ends; `start` where none begins there; or _UNKNOWN."""
        raw, opener = self._raw, self._raw[start]
        if start + 1 == len(raw):
            return start if whole else _UNKNOWN
        if opener == "`":
            return _end_of_code(raw, start, whole, fence_allowed=self._line_start)
        if opener == "$":
            return _end_of_dollars(raw, start, whole)
        if opener == "\\":
            closing = {"(": r"\)", "[": r"\]"}.get(raw[start + 1])
            return _end_at(raw, start, closing, whole) if closing else start
        return _end_of_link(raw, start, whole)


def _run_length(text: str, start: int) -> int:
    return len(text) - start - len(text[start:].lstrip(text[start]))


def _given_up(raw: str, start: int, whole: bool, patience: int = _LONGEST) -> bool:
    """Whether the partner of the opener at `start` is no longer waited for."""
    return whole or len(raw) - start > patience


def _end_at(raw: str, start: int, closing: str, whole: bool) -> int:
    """Displayed mathematics, over several lines."""
    end = raw.find(closing, start + 2, start + 3 * _LONGEST)
    if end >= 0:
        return end + len(closing)
    return start if _given_up(raw, start, whole, 3 * _LONGEST) else _UNKNOWN


def _end_of_code(raw: str, start: int, whole: bool, *, fence_allowed: bool) -> int:
    """CommonMark §4.5, §6.1: closed by as many backticks as opened it; a fence that is never closed runs to the end."""
    width = _run_length(raw, start)
    after = start + width
    if after == len(raw) and not whole:
        return _UNKNOWN
    line_end = raw.find("\n", after)
    line = raw[after : line_end if line_end >= 0 else len(raw)]
    if fence_allowed and width >= 3 and "`" not in line:
        closing = re.compile(rf"\n[ ]{{0,3}}`{{{width},}}[ \t]*(?=\n)").search(raw, after)
        return closing.end() if closing else len(raw) if whole else _UNKNOWN
    inline = re.compile(rf"(?<!`)`{{{width}}}(?!`)").search(line, 0, _LONGEST)
    if inline is None:
        return start if line_end >= 0 or _given_up(raw, start, whole) else _UNKNOWN
    return after + inline.end() if whole or after + inline.end() < len(raw) else _UNKNOWN


def _end_of_dollars(raw: str, start: int, whole: bool) -> int:
    """Pandoc's rule for `$…$`: no space inside either dollar sign, no digit after the second; so `$5 and $6` are prices."""
    if raw.startswith("$$", start):
        return _end_at(raw, start, "$$", whole)
    if raw[start + 1].isspace():
        return start
    closing = re.compile(r"(?:[^$\\\n]|\\.){1,300}+\$").match(raw, start + 1)
    if closing is None:
        decided = re.compile(r"[^$\n]*\n").match(raw, start + 1) or _given_up(raw, start, whole)
        return start if decided else _UNKNOWN
    if closing.end() == len(raw) and not whole:
        return _UNKNOWN
    is_price = raw[closing.end() - 2].isspace() or raw[closing.end() : closing.end() + 1].isdigit()
    return start if is_price else closing.end()


def _end_of_link(raw: str, start: int, whole: bool) -> int:
    """A bracket, a marker even, with an address right behind it."""
    bracket = _MARKER.match(raw, start) or _LINK_TEXT.match(raw, start)
    line = raw[start : start + _LONGEST].split("\n")[0]
    decided = len(line) < len(raw) - start or whole
    if bracket is None:
        closing = "]]" if line.startswith("[[") else _CLOSING[raw[start]]
        return start if decided or closing in line else _UNKNOWN
    if bracket.end() == len(raw):
        return start if whole else _UNKNOWN
    if raw[bracket.end()] != "(":
        return start
    tail = _LINK_TAIL.match(raw, bracket.end())
    return tail.end() if tail else start if decided else _UNKNOWN


def _read_numbers(marker: str) -> list[int]:
    """`[1, 3-5]` is 1, 3, 4, 5. A range that is too long or runs backwards is its two ends. `【4:0†file】`, which OpenAI's
    assistants write of their own files, is 0: it stands for none of ours."""
    if ":" in marker:
        return [0]
    numbers: list[int] = []
    for found in re.finditer(r"(\d+)(?:\s*[-–—~]\s*(\d+))?", marker.split("†")[0]):
        first, last = int(found[1]), int(found[2] or found[1])
        numbers += range(first, last + 1) if first <= last <= first + _MOST_IN_RANGE else (first, last)
    return numbers


def _is_citation(marker: str) -> bool:
    """`[0, 1]` is an interval; `[0]` is a marker of somebody who counts from nought, and stands for nothing."""
    numbers = _read_numbers(marker)
    return 0 not in numbers or len(numbers) == 1


class Tidied(NamedTuple):
    """Text with its markers in our form, their numbers in order of first use, and how many were removed."""

    text: str
    markers: tuple[int, ...]
    removed: int


def tidied(text: str, rename: Callable[[int], int | None]) -> Tidied:
    """`text` with every marker number replaced by what `rename` gives for it; where that is None, it is removed.

    Markers stand before the full stop and behind a closing quotation mark, one space before them, each number in brackets of its
    own and once in a run. Code, mathematics and links stay as they are. Tidying twice changes nothing.
    """
    masked = Masked()
    content = masked.feed(text, whole=True)
    removed = 0

    def renamed(found: re.Match[str]) -> str:
        nonlocal removed
        numbers = [rename(number) for mark in _MARK.findall(found[0]) for number in masked.numbers(mark)]
        kept = [number for number in numbers if number is not None]
        removed += len(numbers) - len(kept)
        return f" {masked.mark(kept)}" if kept else ""

    content = _IN_QUOTES.sub(lambda found: _ending(f"{found[2]}{found[3]}", found[1]), content)
    content = _RUN.sub(renamed, content)
    content = _AFTER_STOP.sub(lambda found: _ending(found[2], _merged(masked, (found[1] or "") + found[3])), content)
    content = _SPACE_AFTER_OPENING.sub("", content)
    content = _MARK_THEN_WORD.sub(" ", content)
    markers = dict.fromkeys(number for mark in _MARK.findall(content) for number in masked.numbers(mark))
    return Tidied(masked.written(content), tuple(markers), removed)


def _ending(stops: str, marks: str) -> str:
    """The end of a sentence with its markers: before its full stop, behind a quotation that it closes with (`“… works” [1].`)."""
    closers = stops.lstrip(STOPS)
    stop = stops[: len(stops) - len(closers)]
    if not any(quote in closers for quote in f"{_QUOTES}’"):
        return f" {marks}{stop}{closers}"
    return f"{closers} {marks}{stop}" if stop in ("", ".", "。") else f"{stop}{closers} {marks}"


def _merged(masked: Masked, marks: str) -> str:
    return masked.mark(number for mark in marks for number in masked.numbers(mark))


def only_of_papers(text: str, papers: int) -> Tidied:
    """`text` with markers of papers 1 to `papers` and no others, not even such as the removal of one puts together."""
    removed = 0
    while True:
        result = tidied(text, lambda number: number if 1 <= number <= papers else None)
        removed += result.removed
        if result.text == text:
            return Tidied(text, result.markers, removed)
        text = result.text


def with_markers(text: str, numbers: Sequence[int]) -> str:
    """A sentence with these markers, before its full stop, in place of its own; for no numbers, without any."""
    bare = without_markers(text)
    words = bare.rstrip()
    marks = "".join(f"[{number}]" for number in numbers)
    return tidied(words + marks, lambda number: number).text + bare[len(words) :]


def without_markers(text: str) -> str:
    """A sentence's words alone."""
    return tidied(text, lambda _: None).text


def in_round_brackets(text: str) -> str:
    """`text` with whatever would be taken for a marker put in round brackets instead."""
    masked = Masked()
    content = masked.feed(text, whole=True)
    return masked.written(_MARK.sub(lambda found: f"({', '.join(map(str, masked.numbers(found[0])))})", content))
