"""The library an evaluation asks: one of its own, made of files, or a copy of a library. Nobody's own library is touched."""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from eval.question_set import pid
from eval.runs import digest_of
from rag.build import Library, open_library
from rag.errors import InputError
from rag.ingest import Source, Step, files
from rag.readers import read, walk
from rag.settings import Settings
from rag.types import RawPaper


@dataclass(frozen=True, slots=True)
class Distractors:
    """`count` papers, drawn by `seed` from a file, that are put among the others, whose order is shuffled."""

    count: int
    file: Path
    seed: int = 0


def home_of(settings: Settings) -> Path:
    """Where runs, libraries and cached answers of evaluations are kept."""
    return settings.data / "eval"


def open_papers(
    settings: Settings, paths: Sequence[Path], distractors: Distractors | None, on_step: Callable[[Step], None]
) -> Library:
    """A library of the papers in `paths`; made the first time, later only opened. Raises InputError, UnreadableFile."""
    content = digest_of(
        [
            *(digest_of(file.path.read_bytes().hex()) for file in walk(paths)),
            [distractors.count, distractors.seed, digest_of(distractors.file.read_bytes().hex())] if distractors else None,
        ]
    )
    library = open_library(own(settings, home_of(settings) / "libraries" / content))
    try:
        sources = [shuffled(paths, distractors)] if distractors else list(files(paths))
        library.ingest(sources, on_step)
        if not library.catalogue.count():
            raise InputError(f"{', '.join(map(str, paths))}: no papers are in there.")
    except BaseException:
        library.close()
        raise
    return library


def shuffled(paths: Sequence[Path], distractors: Distractors) -> Source:
    """All papers with the distractors among them, in an order drawn by the seed."""
    own_papers = [one for file in walk(paths) for one in read(file.path) if isinstance(one, RawPaper)]
    known = {pid(one.abstract) for one in own_papers}
    others = [one for one in read(distractors.file) if isinstance(one, RawPaper) and pid(one.abstract) not in known]
    if len(others) < distractors.count:
        raise InputError(f"{distractors.file} holds {len(others)} other papers; --distractors asks for {distractors.count}.")
    drawing = random.Random(distractors.seed)
    papers = own_papers + drawing.sample(others, distractors.count)
    drawing.shuffle(papers)
    return Source("papers and distractors", lambda: iter(papers))


def open_copy(settings: Settings, into: Path) -> Library:
    """A copy of the library in the data folder: its papers and their vectors; the indexes are made anew. Raises InputError."""
    if settings.database_url:
        raise InputError("A library in FOOTNOTE_DATABASE_URL is not copied: name its papers' files with --papers.")
    original = settings.data / "catalogue.db"
    if not original.exists():
        raise InputError(f"{settings.data} holds no library: name papers with --papers, or a library with --data.")
    shutil.rmtree(into, ignore_errors=True)
    into.mkdir(parents=True)
    read_only = sqlite3.connect(f"{original.absolute().as_uri()}?mode=ro", uri=True)
    with closing(read_only) as source, closing(sqlite3.connect(into / "catalogue.db")) as copy:
        source.backup(copy)
    return open_library(own(settings, into))


def own(settings: Settings, data: Path) -> Settings:
    """The settings, but for a library of evaluation's own."""
    return settings.model_copy(update={"data": data, "database_url": "", "chroma_url": ""})
