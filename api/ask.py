"""`POST /api/v1/ask`: one question, one answer, as JSON or as it comes."""

from __future__ import annotations

from collections.abc import AsyncGenerator

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from api.answering import Ask, closing, whole
from api.context import OWN, Asker, The
from api.errors import noted, problem
from api.leaving import unless_client_leaves
from api.schemas import AnswerOut, AskIn
from api.sse import MEDIA_TYPE, EventStream, begun, event, wants_stream, with_pings
from rag.types import Answer, AnswerDone, AnswerEvent, PapersFound, SentenceReady
from rag.wire import answer_to_json, citation_to_json, filters_to_json, scored_to_json, sentence_to_json

router = APIRouter(tags=["ask"], prefix=OWN)

STREAMED = {
    "description": "The answer; with `Accept: text/event-stream` as events `papers` (PapersEvent), `sentence` (SentenceEvent) "
    "for each sentence once its citations are checked, `answer` (AnswerOut), or `error` (Problem).",
    "content": {MEDIA_TYPE: {"schema": {"type": "string"}}},
}


@router.post("/ask", response_model=AnswerOut, responses={200: STREAMED})
async def ask(body: AskIn, request: Request, the: The, caller: Asker) -> Response:
    """Answers a question from the papers, every sentence with its footnotes."""
    history = [turn.value() for turn in body.history]

    async def keep(answer: Answer) -> None:
        await the.threads.run(lambda: the.library.journal.keep(caller.owner, answer))

    question = Ask(body.question, history, body.filters.value(), body.top_k)
    return await answer_response(request, the.answering.stream(question, keep))


async def answer_response(request: Request, events: AsyncGenerator[AnswerEvent, None]) -> Response:
    """The answer as JSON, or as events when `Accept` asks for them."""
    if wants_stream(request):
        return EventStream(with_pings(written(await begun(request, events))))
    return JSONResponse(answer_to_json(await unless_client_leaves(request, whole(events))))


async def written(events: AsyncGenerator[AnswerEvent, None]) -> AsyncGenerator[bytes, None]:
    """The events as bytes. A failure on the way becomes an `error` event, the last."""
    async with closing(events):
        try:
            async for one in events:
                yield write_event(one)
        except Exception as error:
            yield event("error", problem(noted(error)))


def write_event(one: AnswerEvent) -> bytes:
    """One event as the schemas `PapersEvent`, `SentenceEvent` and `AnswerOut` say."""
    match one:
        case PapersFound():
            data = {
                "answer_id": one.answer_id,
                "status": one.status,
                "standalone_question": one.standalone_question,
                "filters": filters_to_json(one.filters),
                "papers": [scored_to_json(scored) for scored in one.papers],
            }
            return event("papers", data)
        case SentenceReady():
            cited = [citation_to_json(citation) for citation in one.new_citations]
            return event("sentence", {"sentence": sentence_to_json(one.sentence), "new_citations": cited})
        case AnswerDone():
            return event("answer", answer_to_json(one.answer))
