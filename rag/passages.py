"""What of a paper is embedded: the whole, then each sentence."""

from __future__ import annotations

import hashlib
import json

from rag.text import clean, split_sentences
from rag.types import IndexedPaper, Paper

SCHEMA = 1
"""Raised when cleaning, splitting or the choice of texts changes, so that stored vectors are made again."""


def prepare(paper: Paper) -> IndexedPaper:
    """`paper` with its cleaned abstract and sentences, not yet embedded (`vectors` is None)."""
    return IndexedPaper(paper, clean(paper.abstract).text, split_sentences(paper.abstract))


def texts_to_embed(indexed: IndexedPaper) -> list[str]:
    """One text for each row of `IndexedPaper.vectors`: title and abstract first, then every sentence."""
    title = clean(indexed.paper.title or "").text
    whole = f"{title}\n{indexed.text}" if title else indexed.text
    return [whole, *(sentence.text for sentence in indexed.sentences)]


def text_hash(indexed: IndexedPaper) -> str:
    """SHA-256 (hex) of what is embedded and of SCHEMA: equal hashes may share vectors of the same model."""
    content = json.dumps([SCHEMA, *texts_to_embed(indexed)], ensure_ascii=True)
    return hashlib.sha256(content.encode("ascii")).hexdigest()
