"""An answer as chat text, and chat text read back: footnotes become Markdown links that still know their paper.

A link leads to the paper's own page (its URL or DOI) or, where it has none, to this server's. Its fragment `#paper-<id>` tells
a later request which papers were cited, since a chat client sends nothing back but the text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urldefrag, urlsplit

from api.schemas import QUESTION_LIMIT
from rag.types import AnswerSentence, Citation, Paper, Role, Turn, unique

MARKER = re.compile(r"\[(\d+)\]")
LINK = re.compile(r"\[\[(\d+)\]\]\([^()\s]*#paper-([a-z0-9-]{8,40})(?: \"[^\"]*\")?\)")
DOUBT = re.compile(r" ?\*\(⚠ [^)]*\)\*")


@dataclass(frozen=True, slots=True)
class Annotation:
    """A footnote's place in the chat text, in code points, and what it stands for."""

    start: int
    end: int
    citation: Citation
    url: str


@dataclass
class ChatText:
    """Writes an answer's sentences as they come; `length` code points were written so far. `page` is this server's address."""

    page: str
    length: int = 0

    def sentence(self, sentence: AnswerSentence, citations: Mapping[int, Citation]) -> tuple[str, list[Annotation]]:
        """The sentence with its markers as links, a warning after one whose papers do not bear it out."""
        body = sentence.text.rstrip()
        space = sentence.text[len(body) :]
        parts: list[str] = []
        notes: list[Annotation] = []
        at = self.length
        last = 0
        for found in MARKER.finditer(body):
            citation = citations.get(int(found[1]))
            if citation is None or citation.marker not in sentence.markers:
                continue
            parts.append(body[last : found.start()])
            url = paper_link(citation.paper, self.page)
            link = f'[[{found[1]}]]({url} "{link_title(citation.paper)}")'
            start = at + sum(map(len, parts))
            notes.append(Annotation(start, start + len(link), citation, url))
            parts.append(link)
            last = found.end()
        parts.append(body[last:])
        if sentence.doubt:
            parts.append(f" *(⚠ {plain(sentence.doubt)})*")
        text = "".join(parts) + space
        self.length += len(text)
        return text, notes


def paper_link(paper: Paper, page: str) -> str:
    """Where a reader finds the paper: its URL, its DOI, or this server's page with the abstract open."""
    for url in (paper.url, paper.doi_url):
        if url and urlsplit(url).scheme in ("http", "https"):
            base = quote(urldefrag(url).url, safe="/:?&=%#@+,;~!$'*")
            return f"{base}#paper-{paper.paper_id}"
    return f"{page}/?paper={paper.paper_id}#paper-{paper.paper_id}"


def link_title(paper: Paper) -> str:
    """The link's tooltip, without what would end it."""
    name = f"{paper.cite_as}: {paper.title}" if paper.title and paper.authors else paper.cite_as
    return plain(name)


def plain(text: str) -> str:
    """Text that can stand inside a Markdown link title or emphasis without ending it."""
    return " ".join(re.sub(r"[\"\\()\[\]*<>`]", " ", text).split())


def read_turn(role: Role, content: str) -> Turn:
    """A chat message as the engine takes it: links back to markers, the cited papers remembered; of what a person said, as much
    as a question may have."""
    if role == "user":
        return Turn("user", content[:QUESTION_LIMIT])
    cited = unique([found[2] for found in LINK.finditer(content)])
    return Turn("assistant", DOUBT.sub("", LINK.sub(r"[\1]", content)), cited)


def notice_text(notice: str | None) -> str:
    """The notice under an answer."""
    return f"\n\n*{plain(notice)}*" if notice else ""
