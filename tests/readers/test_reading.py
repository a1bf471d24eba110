"""What holds for every format: files and streams, gz, encodings, damage, limits, folders."""

from __future__ import annotations

import gzip
import io
import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.errors import UnreadableFile
from rag.readers import FORMATS, SourceFile, read, read_stream, walk
from rag.readers.source import LONGEST_LINE, decoded, encoding_of, split_lines
from rag.types import RawPaper, Rejected
from tests.readers.reading import Pieces, items, paper

ABSTRACT = "We ask whether Müller’s — naïve — kite flies. It does."
PAGE = f"论文检索\n\nTheory · Kites\n\nAda Byron, Bø Li\n\n{ABSTRACT}\n"
LATIN_PAGE = f"Paper search\n\nTheory · Kites\n\nAda Byron, Bø Li\n\n{ABSTRACT}\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030"])
def test_the_encoding_is_told_by_the_content(encoding: str) -> None:
    assert paper(PAGE.encode(encoding)).abstract == ABSTRACT


def test_what_is_no_utf8_is_read_as_windows_1252() -> None:
    assert paper(LATIN_PAGE.encode("cp1252")).abstract == ABSTRACT


def test_a_stray_byte_in_utf8_spoils_that_byte_alone() -> None:
    assert paper(PAGE.encode().replace(b"kite f", b"kite\xff f")).abstract == ABSTRACT.replace("kite", "kite\ufffd")


@settings(deadline=None)
@given(text=st.text(st.characters(exclude_categories=["Cs"])), sizes=st.integers(1, 9))
def test_utf8_is_never_read_as_anything_else(text: str, sizes: int) -> None:
    data = text.encode()
    assert encoding_of(data) in ("utf-8", "utf-8-sig")
    # A first piece that ends inside a character is still told to be UTF-8.
    assert "".join(decoded(data[i : i + sizes] for i in range(0, len(data), sizes))) == text.removeprefix("\ufeff")


@settings(deadline=None)
@given(text=st.text("ab\n", max_size=60), cut=st.integers(0, 60))
def test_lines_do_not_depend_on_where_the_text_is_cut(text: str, cut: int) -> None:
    assert list(split_lines([text[:cut], text[cut:]])) == text.removesuffix("\n").split("\n") if text else True


def test_a_line_without_end_is_handed_on_in_pieces() -> None:
    pieces = list(split_lines("x" * 65_536 for _ in range(3 * LONGEST_LINE // 65_536)))
    assert sum(map(len, pieces)) == 3 * LONGEST_LINE
    assert max(map(len, pieces)) <= LONGEST_LINE + 65_536


def test_gz_is_unpacked_whatever_the_name(tmp_path: Path) -> None:
    path = tmp_path / "page.txt"
    path.write_bytes(gzip.compress(PAGE.encode()))
    assert [item.abstract for item in read(path) if isinstance(item, RawPaper)] == [ABSTRACT]


def test_a_gz_of_several_members_is_read_through() -> None:
    whole = gzip.compress(PAGE.encode()) + gzip.compress(b"\n" + PAGE.encode())
    assert len(items(whole)) == 2


@pytest.mark.parametrize("packed", [False, True])
def test_a_stream_that_cannot_seek_is_read(packed: bool) -> None:
    data = gzip.compress(PAGE.encode()) if packed else PAGE.encode()
    stream = Pieces(data[i : i + 3] for i in range(0, len(data), 3))
    found = list(read_stream(stream, "upload"))  # type: ignore[arg-type]  # a raw stream serves as a BinaryIO
    assert [item.abstract for item in found if isinstance(item, RawPaper)] == [ABSTRACT]


def test_a_cut_gz_gives_the_papers_before_the_cut_and_one_reject() -> None:
    page = PAGE + "".join(f"\nTheory · T{n}\n\nAda Byron\n\nWe count to {n * 7919}. It is far.\n" for n in range(20_000))
    packed = gzip.compress(page.encode())
    half = packed[: len(packed) // 2]
    *before, last = items(half)
    assert len(before) == zlib.decompressobj(31).decompress(half).count(b".\n\n")
    assert all(isinstance(item, RawPaper) for item in before)
    assert isinstance(last, Rejected)
    assert last.where == f"record {len(before) + 1}"
    assert "cut or damaged" in last.reason


@pytest.mark.parametrize(
    ("format", "pieces"),
    [
        ("search-page", [f"{PAGE}\n".encode()] * 3),
        ("jsonl", [b'{"title": "T", "abstract": "Kites fly."}\n'] * 3),
        ("json", [b"[", *[b'{"title": "T", "abstract": "Kites fly."},'] * 3]),
        ("csv", [b"title,abstract\n", *[b"T,Kites fly.\n"] * 3]),
        ("ris", [b"TY  - JOUR\nAB  - Kites fly.\nER  -\n"] * 3 + [b"TY  - JOUR\n"]),
        ("nbib", [b"PMID- 1\nAB  - Kites fly.\n\n"] * 3 + [b"PMID- 2\n"]),
    ],
)
@pytest.mark.parametrize("filling", [0, 100_000])
def test_papers_before_damage_are_given_however_few_they_are(format: str, pieces: list[bytes], filling: int) -> None:
    def stream() -> Iterator[bytes]:
        yield from pieces
        yield b" " * filling
        raise OSError("the disk is on fire")

    *found, last = read_stream(Pieces(stream()), "upload", format)  # type: ignore[arg-type]  # a raw stream serves as a BinaryIO
    assert len(found) == 3
    assert all(isinstance(item, RawPaper) for item in found)
    assert last == Rejected("upload", "record 4", "the file is cut or damaged from here on (the disk is on fire)")


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b" \r\n\n", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (gzip.compress(b"", mtime=0), "empty"),
        (b"\x1f\x8b\x08\x00broken", "damaged"),
        (gzip.compress(PAGE.encode(), mtime=0)[:12], "damaged"),
        (b"PK\x03\x04 and so on", "zip"),
        (b"%PDF-1.7 and so on", "PDF"),
        (b"\x00\x01\x02\x03" * 50, "none of the formats"),
        (b"Hello, world.", "none of the formats"),
    ],
)
def test_a_file_that_cannot_be_read_says_why(content: bytes, says: str) -> None:
    with pytest.raises(UnreadableFile, match=says) as error:
        items(content)
    assert "\n" not in str(error.value)
    assert str(error.value).startswith("file: ")


def test_a_missing_file_a_folder_and_a_wrong_format_are_told(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match="No such file"):
        next(read(tmp_path / "none.txt"))
    with pytest.raises(UnreadableFile, match="directory"):
        next(read(tmp_path))
    with pytest.raises(UnreadableFile, match="search-page"):
        items(PAGE, "searchpage")


@pytest.mark.parametrize("format", FORMATS)
def test_a_format_given_by_hand_that_fits_no_record_is_told(format: str) -> None:
    with pytest.raises(UnreadableFile):
        items(b"\x00", format)


@settings(deadline=None)
@given(data=st.binary(max_size=300), format=st.sampled_from(FORMATS))
def test_no_bytes_raise_anything_but_unreadable_file(data: bytes, format: str) -> None:
    try:
        found = items(data, format)
    except UnreadableFile:
        return
    assert all(isinstance(item, RawPaper) or "\n" not in item.reason for item in found)


def test_nul_and_lone_surrogates_become_replacement_characters() -> None:
    assert paper(PAGE.replace("kite", "ki\0te")).abstract == ABSTRACT.replace("kite", "ki\ufffdte")


def test_an_abstract_is_taken_up_to_the_limit_and_never_cut() -> None:
    sentence = "The kite flies as high as the string lets it. "
    fits = (sentence * 2_500)[:100_000].replace(" \n", "")
    fits = fits[:-1] + "."
    taken, refused = items(f"论文检索\n\nAda Byron, Bo Li\n\n{fits}\n\nAda Byron, Bo Li\n\n{fits}x\n")
    assert isinstance(taken, RawPaper)
    assert len(taken.abstract) == 100_000
    assert refused == Rejected("file", "line 7", "the abstract is over 100,000 characters")


def test_a_walk_names_files_given_and_finds_the_rest_in_order(tmp_path: Path) -> None:
    for name in ("b.txt", "a/z.txt", "a/.hidden", ".git/x", "c/d/e.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "a" / "loop").symlink_to(tmp_path, target_is_directory=True)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    missing = tmp_path / "missing.txt"
    assert list(walk([tmp_path / "b.txt", tmp_path, missing])) == [
        SourceFile(tmp_path / "b.txt", named=True),
        SourceFile(tmp_path / "b.txt", named=False),
        SourceFile(tmp_path / "a" / "z.txt", named=False),
        SourceFile(tmp_path / "c" / "d" / "e.json", named=False),
        SourceFile(missing, named=True),
    ]


def test_a_folder_that_cannot_be_entered_is_told_not_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "z.txt").write_text("x")
    scan = os.scandir

    def scandir(path: str) -> object:
        if Path(path).name == "closed":
            raise PermissionError(13, "Permission denied", path)
        return scan(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert [file.path.name for file in walk([tmp_path])] == ["z.txt", "closed"]


def test_the_stream_is_left_open() -> None:
    stream = io.BytesIO(PAGE.encode())
    list(read_stream(stream, "upload"))
    assert not stream.closed
