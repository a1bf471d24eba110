"""Step 6, first half: a model's stream becomes sentences, each with its markers in our form."""

from __future__ import annotations

import re

from rag.markers import ALONE, CLOSERS, MARKS, RUN_OF_MARKS, STOPS, Masked, only_of_papers
from rag.sentences import sentence_ends
from rag.types import Drafted

_BLOCK = re.compile(r"[ \t]*(?:(?:[-*+•‣–]|\d{1,2}[.)、]|[(（]\d{1,2}[)）]|#{1,6})[ \t]|\||>)")
"""Begins a list item, heading, table row or quotation."""
_BLOCK_WIDTH = 8
"""Characters of a line after which it is clear whether it begins a block."""
_LINE_ENDS = re.compile(rf"[{STOPS}:：{MARKS}][{re.escape(CLOSERS)}]*[ \t]*$")
_MARKED_STOP = re.compile(rf"[{MARKS}][ \t]*[{STOPS}]+[{re.escape(CLOSERS)}]*(?=[ \t]+[^a-z\s])")
_MARKS_AFTER = re.compile(rf"(?P<space>[ \t]*){RUN_OF_MARKS}(?P<stop>[{STOPS}]*)[ \t]*")
_SUBJECT = re.compile(rf"(?<=[{STOPS}*_])[ \t][{MARKS}](?=[ \t]+[a-z])")
_NO_WORDS = re.compile(rf"\*+|__+|[ \t]*{RUN_OF_MARKS}")
_MORE_MARKS = re.compile(r"(?:[,，、;；][ \t]*)?")
_WORD_COMPLETE = re.compile(r"[\W_]*(?:\w+\W|[^\W\x00-\x7f])")
_WORD = re.compile(rf"[^\W_]|[{ALONE}]")

_SOURCES = (
    *("sources", "source", "references", "reference", "citations", "bibliography", "works cited", "papers cited", "cited papers"),
    *("参考文献", "引用文献", "参考资料", "来源", "文献", "引用"),
)
_SOURCES_LINE = re.compile(rf"[\s#*_>-]*(?:{'|'.join(_SOURCES)})[\s*_]*(?:[:：].*)?", re.IGNORECASE)
_SOURCE_ENTRY = re.compile(rf"[ \t]*([{MARKS}])(?:[ \t]*[:：]|.*https?://|.*\b(?:19|20)\d\d[)）]?[.。]?\s*$)")


class MarkerFilter:
    """Cuts a model's text into sentences while it streams in, each with markers `[k]` in our form.

    A sentence is given once nothing to come can change it: cutting the stream anywhere shows no unfinished marker, and cutting
    the text into other pieces gives the same sentences. A list item, heading or table row is one sentence. Markers that stand
    for none of the `papers` papers are removed and counted in `removed`; a list of sources at the end is dropped.
    """

    def __init__(self, papers: int) -> None:
        self._papers = papers
        self._masked = Masked()
        self._buffer = ""
        self._at_start = True
        self._new_line = False
        self._used: set[int] = set()
        self._only_sources_left = False
        self.removed = 0

    def feed(self, text: str) -> list[Drafted]:
        """The sentences that `text` completes."""
        self._buffer += self._masked.feed(text)
        return self._take(whole=False)

    def finish(self, *, cut: bool = False) -> list[Drafted]:
        """The rest. Where the answer was `cut` off, a last sentence without its full stop is left out."""
        self._buffer += self._masked.feed("", whole=True)
        sentences = self._take(whole=True)
        if cut and sentences and not _is_ended(sentences[-1].text):
            sentences.pop()
        return sentences

    def _take(self, *, whole: bool) -> list[Drafted]:
        sentences: list[Drafted] = []
        while not self._only_sources_left:
            if self._at_start:
                self._buffer = self._buffer.lstrip()
            end = self._end_of_sources(whole)
            if end == 0:
                end = first_sentence_end(self._buffer, whole=whole)
                sentences += self._drafted(end or 0, whole)
            if not end:
                break
            self._at_start = False
            self._new_line = self._buffer[:end].endswith("\n")
            self._buffer = self._buffer[end:]
        return sentences

    def _drafted(self, end: int, whole: bool) -> list[Drafted]:
        """The sentence that ends there, unless there is no word in it."""
        masked, rest = self._buffer[:end], self._buffer[end:]
        if not _WORD.search(masked):
            return []
        text, markers, removed = only_of_papers(self._masked.written(masked), self._papers)
        self.removed += removed
        self._used.update(markers)
        if whole and not rest:
            text = text.rstrip()
        elif not text[-1].isspace() and re.match(rf"[A-Za-z0-9{MARKS}]", rest):
            text += " "
        return [Drafted(text, markers)]

    def _end_of_sources(self, whole: bool) -> int | None:
        """Where a line of a self-made list of sources ends that begins here; 0 where none does; None while that is open."""
        if not self._new_line:
            return 0
        line, newline, _ = self._buffer.partition("\n")
        if not newline and not whole:
            return None if _may_be_sources(line) else 0
        if _SOURCES_LINE.fullmatch(line):
            self._only_sources_left = True
            return len(self._buffer)
        entry = _SOURCE_ENTRY.match(line)
        return len(line) + len(newline) if entry and self._used.issuperset(self._masked.numbers(entry[1])) else 0


def _may_be_sources(line: str) -> bool:
    """Whether more of this line could make it one of a list of sources."""
    if re.match(rf"[ \t]*(?:[{MARKS}]|$)", line):
        return True
    start = line.lstrip(" \t#*_>-").lower()
    return any(word.startswith(start) for word in _SOURCES) or _SOURCES_LINE.fullmatch(line) is not None


def first_sentence_end(text: str, *, whole: bool) -> int | None:
    """Where the first sentence of masked `text` ends, with the markers and white space behind it; None while text to come may
    move that. With `whole`, nothing is to come."""
    end, settled = _line_end(text, whole)
    if not _BLOCK.match(text):
        end, settled = _prose_end(text[:end], settled)
    return _with_what_follows(text, end, whole) if settled else None


def _line_end(text: str, whole: bool) -> tuple[int, bool]:
    """The first line end that ends a sentence, and whether text to come leaves it there."""
    for newline in re.finditer("\n", text):
        verdict = _is_break(text, newline.start(), whole)
        if verdict is not False:
            return newline.start(), verdict is True
    return len(text), whole


def _is_break(text: str, newline: int, whole: bool) -> bool | None:
    """Not within a line that was merely wrapped. None while the next line is too short to tell."""
    in_block = _BLOCK.match(text) is not None
    if not in_block and _LINE_ENDS.search(text, max(0, newline - 20), newline):
        return True
    following = text[newline + 1 :]
    line = following.lstrip(" \t")
    if not line:
        return whole or None
    if line[0] == "\n" or _BLOCK.match(line) or (in_block and len(following) - len(line) < 2):
        return True
    return False if whole or len(line) >= _BLOCK_WIDTH or "\n" in line else None


def _prose_end(text: str, settled: bool) -> tuple[int, bool]:
    """The same for the end of a sentence by its full stop; `settled` says that `text` ends where its line does."""
    plain, places = _plain(text)
    end = next(sentence_ends(plain), 0)
    if end < len(plain):
        settled = settled or _WORD_COMPLETE.match(plain, end) is not None
        stop = places[end - 1] + 1
        end = stop + len(text[stop:]) - len(text[stop:].lstrip("*_"))
    else:
        end = len(text)
    marked = _MARKED_STOP.search(text)
    return (marked.end(), True) if marked and marked.end() <= end else (end, settled)


def _plain(text: str) -> tuple[str, list[int]]:
    """The words in one line, as the rules for the ends of sentences expect them, and the place in `text` of each character.

    Markers are left out, but where one is the subject: `It works. [2] shows why.`
    """
    left_out = {place for found in _NO_WORDS.finditer(text) for place in range(*found.span())}
    left_out.difference_update(place for found in _SUBJECT.finditer(text) for place in range(*found.span()))
    places = [place for place in range(len(text)) if place not in left_out]
    plain = "".join(text[place] for place in places).replace("\n", " ")
    return re.sub(f"[{MARKS}]", "X", re.sub(f"[{ALONE}]", "x", plain)), places


def _with_what_follows(text: str, end: int, whole: bool) -> int | None:
    """The sentence's end moved behind those markers after its full stop that are its own, and behind white space."""
    found = _MARKS_AFTER.match(text, end)
    if found:
        if not whole and _MORE_MARKS.fullmatch(text, found.end()):
            return None
        following = text[found.end() : found.end() + 1]
        begins_next = (following.islower() and following.isascii()) or re.search(f"[{MARKS}]", text[:end])
        if following in ("", "\n") or not found["space"] or found["stop"] or not begins_next:
            end = found.end("stop")
    white = len(text) - len(text[end:].lstrip())
    return white if whole or white < len(text) else None


def _is_ended(text: str) -> bool:
    """Whether a sentence with its markers has come to its full stop."""
    return re.search(rf"[{STOPS}][{re.escape(CLOSERS)}]*(?:[ \t]*(?:\[\d+\])+)?\s*$", text) is not None
