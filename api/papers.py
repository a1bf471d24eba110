"""Papers: searched, listed, read, exported, removed."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, get_args

from fastapi import APIRouter, Query, Request
from fastapi.responses import JSONResponse, Response

from api.context import OWN, Admin, Asker, Context, The
from api.export import Form, described, export_response
from api.leaving import unless_client_leaves
from api.schemas import Name, PaperOut, PapersPage, PapersQuery, SearchOut, SearchQuery
from rag.errors import InputError, NotFound
from rag.types import Paper, ScoredPaper
from rag.wire import paper_to_json, scored_to_json

router = APIRouter(tags=["papers"], prefix=OWN)

NO_CURSOR = "The cursor is not one that was given here; start without one."


@router.get("/search", response_model=SearchOut)
async def search(asked: Annotated[SearchQuery, Query()], request: Request, the: The, caller: Asker) -> Response:
    """The papers closest to a question, best first, without an answer."""
    work = the.threads.run(lambda: the.library.retriever.find(asked.question, top_k=asked.top_k, filters=asked.filters()))
    found = await unless_client_leaves(request, work)
    papers = [scored_to_json(ScoredPaper(one.paper, one.score)) for one in found]
    return JSONResponse({"question": asked.question, "papers": papers})


@router.get("/papers", response_model=PapersPage)
async def list_papers(asked: Annotated[PapersQuery, Query()], the: The, caller: Asker) -> Response:
    """All papers that pass the filters, in the order they came."""
    after = read_cursor(asked.cursor) if asked.cursor else None
    more, filters, catalogue = asked.limit + 1, asked.filters(), the.library.catalogue
    try:
        found = await the.threads.run(lambda: catalogue.list(after=after, limit=more, filters=filters))
    except NotFound as error:
        raise InputError(NO_CURSOR) from error
    shown = found[: asked.limit]
    cursor = write_cursor(shown[-1].paper_id) if len(found) > len(shown) else None
    return JSONResponse({"papers": [paper_to_json(paper) for paper in shown], "cursor": cursor})


def write_cursor(paper_id: str) -> str:
    """A cursor means nothing to a client: what it holds may change."""
    return base64.urlsafe_b64encode(paper_id.encode()).decode()


def read_cursor(cursor: str) -> str:
    """The paper to continue after. Raises InputError."""
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise InputError(NO_CURSOR) from error


def _add_export(form: Form) -> None:
    @router.get(f"/papers/{{paper_id:path}}.{form}", name=f"export_paper_{form}", responses=described(form))
    async def export_paper(paper_id: Name, the: The, caller: Asker) -> Response:
        """A paper for a reference manager."""
        paper = await find(the, paper_id)
        return export_response([paper], form, paper.paper_id)


for _form in get_args(Form):
    _add_export(_form)


@router.get("/papers/{paper_id:path}", response_model=PaperOut)
async def read_paper(paper_id: Name, the: The, caller: Asker) -> Response:
    """A paper by its id, an id it had before, or any name of it: DOI, arXiv id, PMID, its id in the file it came from."""
    return JSONResponse(paper_to_json(await find(the, paper_id)))


@router.delete("/papers/{paper_id:path}", status_code=204)
async def remove_paper(paper_id: Name, the: The, caller: Admin) -> None:
    """Removes a paper. Answers that cite it are kept, and stale from now on."""

    def remove() -> None:
        catalogue = the.library.catalogue
        catalogue.remove([catalogue.resolve(paper_id)])

    await the.threads.run(remove)


async def find(the: Context, name: str) -> Paper:
    """The paper known as `name`. Raises NotFound."""

    def look() -> Paper:
        catalogue = the.library.catalogue
        found = catalogue.papers([catalogue.resolve(name)])
        if not found:
            raise NotFound(f"The paper {name!r} has just been removed.")
        return found[0]

    return await the.threads.run(look)
