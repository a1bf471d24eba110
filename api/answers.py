"""Answers, fetched again by id; their citations exported; what people thought of them."""

from __future__ import annotations

from typing import cast, get_args

from fastapi import APIRouter
from fastapi.responses import JSONResponse, Response

from api.context import OWN, Asker, The
from api.export import Form, cited_in, described, export_response
from api.schemas import FeedbackIn, FeedbackOut, KeptAnswerOut, Name
from rag.catalogue import Catalogue
from rag.journal import KeptAnswer
from rag.wire import JsonObject, paper_to_json

router = APIRouter(tags=["answers"], prefix=OWN)


def _add_export(form: Form) -> None:
    @router.get(f"/answers/{{answer_id}}.{form}", name=f"export_answer_{form}", responses=described(form))
    async def export_answer(answer_id: Name, the: The, caller: Asker) -> Response:
        """The papers an answer cites, for a reference manager."""
        kept = await the.threads.run(lambda: the.library.journal.answer(caller.owner, answer_id))
        papers = await the.threads.run(lambda: cited_in([kept], the.library.catalogue))
        return export_response(papers, form, f"answer-{answer_id}")


for _form in get_args(Form):
    _add_export(_form)


@router.get("/answers/{answer_id}", response_model=KeptAnswerOut)
async def read_answer(answer_id: Name, the: The, caller: Asker) -> Response:
    """An answer as it was given, and whether the papers it cites are still as they were."""

    def look() -> tuple[KeptAnswer, bool]:
        kept = the.library.journal.answer(caller.owner, answer_id)
        return kept, is_stale(kept, the.library.catalogue)

    kept, stale = await the.threads.run(look)
    told = {"created": kept.created.isoformat(), "conversation_id": kept.conversation_id, "stale": stale}
    return JSONResponse({**kept.answer, **told})


def is_stale(kept: KeptAnswer, catalogue: Catalogue) -> bool:
    """Whether a cited paper reads otherwise now, or has gone. Told by the papers as they were cited: a revision also grows when
    papers only get new vectors, and an answer may see a paper before the indexes have reached its revision."""
    citations = cast(list[dict[str, JsonObject]], kept.answer["citations"])
    now = {paper.paper_id: paper_to_json(paper) for paper in catalogue.papers(kept.cited)}
    return any(now.get(str(one["paper"]["paper_id"])) != one["paper"] for one in citations)


@router.post("/feedback")
async def give_feedback(body: FeedbackIn, the: The, caller: Asker) -> FeedbackOut:
    """Keeps what somebody thought of an answer."""
    journal = the.library.journal
    kept = await the.threads.run(lambda: journal.rate(caller.owner, body.answer_id, body.verdict, body.comment))
    return FeedbackOut(answer_id=kept.answer_id, verdict=kept.verdict, comment=kept.comment)
