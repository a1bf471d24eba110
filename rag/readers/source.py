"""One opened file: unzipped if it is gz, its first bytes looked at, decoded, cut into lines. Nothing here seeks."""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import BinaryIO

from rag.errors import UnreadableFile
from rag.types import Rejected

HEAD = 1 << 16
"""Bytes looked at to tell formats and encodings apart."""

LONGEST_LINE = 1 << 22
"""Characters; a longer line is handed on in pieces, so that no file can fill the memory."""

DAMAGE = (EOFError, OSError, zlib.error)
"""What reading a cut or damaged file raises (`gzip.BadGzipFile` is an `OSError`)."""

PACKED = {
    b"PK\x03\x04": "a zip archive",
    b"BZh": "packed with bzip2",
    b"\xfd7zXZ\x00": "packed with xz",
    b"\x28\xb5\x2f\xfd": "packed with zstd",
    b"%PDF": "a PDF",
}


class Source:
    """A named stream of bytes, its first `HEAD` bytes at hand. What is damaged further on is raised by the reading methods."""

    def __init__(self, stream: BinaryIO, name: str) -> None:
        """Raises UnreadableFile when the file is empty, packed in a way other than gz, or damaged from its first byte."""
        self.name = name
        self._stream = stream
        self._ahead, self._damage = _first_bytes(stream)
        if self._ahead.startswith(b"\x1f\x8b"):
            packed = io.BufferedReader(_Chained(self._ahead, stream))
            self._stream = gzip.GzipFile(fileobj=packed)  # type: ignore[assignment]  # reads as any BinaryIO does
            self._ahead, self._damage = _first_bytes(self._stream)
        self.head = self._ahead
        if not self.head.strip(b" \t\r\n\0\xef\xbb\xbf"):
            raise UnreadableFile(f"{name}: {self.damage or 'is empty'}")
        for magic, what in PACKED.items():
            if self.head.startswith(magic):
                raise UnreadableFile(f"{name}: is {what}; take the papers out of it first (only gz is unpacked here)")

    @property
    def damage(self) -> str | None:
        """Why not even the head could be read whole, None if it could."""
        return f"is damaged and cannot be unpacked ({self._damage}); fetch or pack it again" if self._damage else None

    def read(self, size: int = HEAD) -> bytes:
        """At most `size` bytes, b"" at the end. Raises DAMAGE where the file is cut or damaged."""
        if size < 0:
            return b"".join(iter(self.read, b""))
        if self._ahead:
            given, self._ahead = self._ahead[:size], self._ahead[size:]
            return given
        if self._damage is not None:
            raise self._damage
        return _read_some(self._stream, size)

    def beginning(self) -> str:
        """The text of the head, as `chunks` would give it."""
        return "".join(_one_line_end(decoded([self.head])))

    def chunks(self) -> Iterator[str]:
        """The text in pieces, line ends as `\\n`."""
        return _one_line_end(decoded(iter(self.read, b"")))

    def lines(self) -> Iterator[str]:
        """The text line by line, without line ends."""
        return split_lines(self.chunks())

    def rejected(self, where: str, reason: str) -> Rejected:
        """A Rejected that names this file, its reason in one line."""
        return Rejected(self.name, where, " ".join(reason.split()))


def split_lines(chunks: Iterable[str]) -> Iterator[str]:
    """Lines of a text that comes in pieces; one of more than LONGEST_LINE characters is itself cut into pieces."""
    parts: list[str] = []
    held = 0
    for chunk in chunks:
        *whole, rest = chunk.split("\n")
        for line in whole:
            yield "".join([*parts, line])
            parts, held = [], 0
        parts.append(rest)
        held += len(rest)
        if held > LONGEST_LINE:
            yield "".join(parts)
            parts, held = [], 0
    if held:
        yield "".join(parts)


def decoded(chunks: Iterable[bytes]) -> Iterator[str]:
    """Text of `chunks`; the encoding is told from the first chunk that is not plain ASCII."""
    decoder: codecs.IncrementalDecoder | None = None
    for chunk in chunks:
        if decoder is None and not chunk.isascii():
            decoder = codecs.getincrementaldecoder(encoding_of(chunk))("replace")
        yield decoder.decode(chunk) if decoder else chunk.decode("ascii")
    if decoder:
        yield decoder.decode(b"", True)


def encoding_of(sample: bytes) -> str:
    """UTF-8, UTF-16 or UTF-32 with their marks, GB 18030 (a page saved by a Chinese Windows), else Windows-1252.

    A sample with more whole UTF-8 sequences than stray bytes is UTF-8 with faults, never mojibake.
    """
    for mark, name in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF32_LE, "utf-32"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if sample.startswith(mark):
            return name
    if _decodes(sample, "utf-8"):
        return "utf-8"
    whole = len(re.findall(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}", sample))
    stray = sample.decode("utf-8", "replace").count("\ufffd")
    if whole > stray:
        return "utf-8"
    runs = [len(run) % 2 for run in re.findall(rb"[\x80-\xff]+", sample)]
    mostly_pairs = sum(runs) * 2 < len(runs)
    return "gb18030" if mostly_pairs and _decodes(sample, "gb18030") else "cp1252"


def _one_line_end(chunks: Iterable[str]) -> Iterator[str]:
    newlines = io.IncrementalNewlineDecoder(decoder=None, translate=True)
    for text in chunks:
        yield newlines.decode(text)
    yield newlines.decode("", True)


def _decodes(sample: bytes, encoding: str) -> bool:
    try:
        codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return False
    return True


def _read_some(stream: BinaryIO, size: int) -> bytes:
    """One read. `read1` where there is one: `read` of a gz that is cut loses what it had unpacked before the cut."""
    read_one = getattr(stream, "read1", stream.read)
    return bytes(read_one(size) or b"")


def _first_bytes(stream: BinaryIO) -> tuple[bytes, Exception | None]:
    """Up to HEAD bytes, and the damage that was met on the way."""
    head = bytearray()
    try:
        while len(head) < HEAD and (more := _read_some(stream, HEAD - len(head))):
            head += more
    except DAMAGE as damage:
        return bytes(head), damage
    return bytes(head), None


class _Chained(io.RawIOBase):
    """Bytes already read, then the stream they came from."""

    def __init__(self, ahead: bytes, stream: BinaryIO) -> None:
        self._ahead = ahead
        self._stream = stream

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]  # typeshed's buffer protocol
        size = len(buffer)
        if self._ahead:
            given, self._ahead = self._ahead[:size], self._ahead[size:]
        else:
            given = _read_some(self._stream, size)
        buffer[: len(given)] = given
        return len(given)
