"""Papers: searched, listed, read, exported, removed."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, get_args

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import JSONResponse, Response

from api.context import OWN, Admin, Asker, Context, The
from api.export import Form, described, export_response
from api.leaving import unless_client_leaves
from api.schemas import Name, PageSize, PaperOut, PapersPage, Question, SearchOut, TopK, Year
from rag.errors import NotFound
from rag.types import Filters, Paper, ScoredPaper
from rag.wire import paper_to_json, scored_to_json

router = APIRouter(tags=["papers"], prefix=OWN)

Names = Annotated[list[Name], Query(max_length=100)]


def filters_in_query(
    year_min: Year | None = None,
    year_max: Year | None = None,
    venue: Names = [],  # noqa: B006  # FastAPI copies it
    category: Names = [],  # noqa: B006
    author: Names = [],  # noqa: B006
) -> Filters:
    """Filters as query parameters; a name may be given several times."""
    return Filters(year_min, year_max, tuple(venue), tuple(category), tuple(author))


InQuery = Annotated[Filters, Depends(filters_in_query)]


@router.get("/search", response_model=SearchOut)
async def search(
    question: Annotated[Question, Query()], request: Request, the: The, caller: Asker, filters: InQuery, top_k: TopK = 10
) -> Response:
    """The papers closest to a question, best first, without an answer."""
    retriever = the.library.retriever
    work = the.threads.run(lambda: retriever.find(question, top_k=top_k, filters=filters))
    found = await unless_client_leaves(request, work)
    papers = [scored_to_json(ScoredPaper(one.paper, one.score)) for one in found]
    return JSONResponse({"question": question, "papers": papers})


@router.get("/papers", response_model=PapersPage)
async def list_papers(
    the: The, caller: Asker, filters: InQuery, cursor: Annotated[Name | None, Query()] = None, limit: PageSize = 100
) -> Response:
    """All papers that pass the filters, in the order they came."""
    after = read_cursor(cursor) if cursor else None
    found = await the.threads.run(lambda: the.library.catalogue.list(after=after, limit=limit + 1, filters=filters))
    more = write_cursor(found[limit - 1].paper_id) if len(found) > limit else None
    return JSONResponse({"papers": [paper_to_json(paper) for paper in found[:limit]], "cursor": more})


def write_cursor(paper_id: str) -> str:
    """A cursor means nothing to a client: what it holds may change."""
    return base64.urlsafe_b64encode(paper_id.encode()).decode()


def read_cursor(cursor: str) -> str:
    """The paper to continue after. Raises NotFound."""
    try:
        return base64.b64decode(cursor, altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError) as error:
        raise NotFound("This cursor leads nowhere; start without one.") from error


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
