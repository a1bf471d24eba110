"""Downloads for reference managers: papers as BibTeX, RIS or CSL-JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from fastapi.responses import Response

from rag.catalogue import Catalogue
from rag.export import export
from rag.journal import KeptAnswer
from rag.types import Paper, unique

Form = Literal["bib", "ris", "json"]
FORMS: dict[Form, tuple[str, str]] = {
    "bib": ("bib", "application/x-bibtex"),
    "ris": ("ris", "application/x-research-info-systems"),
    "json": ("csl-json", "application/vnd.citationstyles.csl+json"),
}
"""By the ending of the address: the export's name in `rag.export`, and its media type."""


def export_response(papers: Iterable[Paper], form: Form, name: str) -> Response:
    """A file to download, named `name`."""
    kind, media_type = FORMS[form]
    safe = "".join(sign if sign.isascii() and (sign.isalnum() or sign in "-_") else "-" for sign in name) or "papers"
    headers = {"Content-Disposition": f'attachment; filename="{safe}.{form}"'}
    return Response("".join(export(papers, kind)), media_type=f"{media_type}; charset=utf-8", headers=headers)


def cited_in(answers: Iterable[KeptAnswer], catalogue: Catalogue) -> list[Paper]:
    """Every paper these answers cite, once, by first citation; as it stands in the catalogue now, removed ones left out."""
    return catalogue.papers(unique([paper_id for answer in answers for paper_id in answer.cited]))


def described(form: Form) -> dict[int | str, dict[str, object]]:
    """How the OpenAPI document describes such a download."""
    return {200: {"description": "A file to download.", "content": {FORMS[form][1]: {"schema": {"type": "string"}}}}}
