"""Short ways for the readers' tests to read a text or bytes."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator

from rag.readers import read_stream
from rag.types import RawPaper, Rejected


def items(content: str | bytes, format: str = "auto") -> list[RawPaper | Rejected]:
    """Everything read from `content`."""
    data = content.encode() if isinstance(content, str) else content
    return list(read_stream(io.BytesIO(data), "file", format))


def papers(content: str | bytes, format: str = "auto") -> list[RawPaper]:
    """The papers in `content`, none of which may be rejected."""
    found = items(content, format)
    assert not [item for item in found if isinstance(item, Rejected)]
    return [item for item in found if isinstance(item, RawPaper)]


def paper(content: str | bytes, format: str = "auto") -> RawPaper:
    """The only paper in `content`."""
    (found,) = papers(content, format)
    return found


class Pieces(io.RawIOBase):
    """A stream that cannot seek and gives one piece a read, as an upload does."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces: Iterator[bytes] = iter(pieces)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        piece = self._rest or next(self._pieces, b"")
        given, self._rest = (piece[:size], piece[size:]) if size >= 0 else (piece, b"")
        return given
