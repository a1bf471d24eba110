"""Text that knows, for every character, which verbatim characters it was read from."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple


class Edit(NamedTuple):
    """Put `text` in place of the characters `start:end`; `start < end`."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class Traced:
    """`text[i]` was read from the verbatim code points `starts[i]:ends[i]`; both lists never decrease."""

    text: str
    starts: list[int]
    ends: list[int]

    @classmethod
    def of(cls, verbatim: str) -> Traced:
        """Every character stands for itself."""
        return cls(verbatim, list(range(len(verbatim))), list(range(1, len(verbatim) + 1)))

    def edited(self, edits: Iterable[Edit]) -> Traced:
        """After `edits`, which are in order and do not overlap. Each new character stands for all that its edit replaced."""
        texts: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        done = 0
        for edit in edits:
            texts += (self.text[done : edit.start], edit.text)
            starts += self.starts[done : edit.start]
            ends += self.ends[done : edit.start]
            starts += [self.starts[edit.start]] * len(edit.text)
            ends += [self.ends[edit.end - 1]] * len(edit.text)
            done = edit.end
        if not done:
            return self
        texts.append(self.text[done:])
        return Traced("".join(texts), starts + self.starts[done:], ends + self.ends[done:])


def replacing(pattern: re.Pattern[str], replacement: str | Callable[[re.Match[str]], str]) -> Callable[[str], Iterator[Edit]]:
    """A step that puts `replacement` in place of each match."""

    def edits(text: str) -> Iterator[Edit]:
        for found in pattern.finditer(text):
            new = replacement if isinstance(replacement, str) else replacement(found)
            if new != found.group():
                yield Edit(found.start(), found.end(), new)

    return edits
