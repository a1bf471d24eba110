"""OpenAI's chat API over the same engine, so that any chat front end can sit on it."""

from __future__ import annotations

import time
import uuid
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from api.answering import Ask, closing
from api.chat_text import Annotation, ChatText, notice_text, read_turn
from api.context import Asker, Context, The
from api.errors import ApiError, noted, openai_error
from api.leaving import unless_client_leaves
from api.openai_schemas import ANSWERS, CHAT, ChatIn, ChatMessage, ChatOut, ModelOut, ModelsOut
from api.schemas import QUESTION_LIMIT
from api.sse import EventStream, begun, message, with_pings
from rag.types import Answer, AnswerDone, AnswerEvent, Citation, PapersFound, SentenceReady, Usage

router = APIRouter(tags=["openai"], prefix="/v1")

DONE = b"data: [DONE]\n\n"
TOP_N = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """Some more of a chat message; the last has a finish reason and the usage."""

    text: str = ""
    annotations: Sequence[Annotation] = ()
    finish: str | None = None
    usage: Usage = Usage()


@dataclass
class Reply:
    """A completion on its way out: what all its chunks have in common."""

    model: str
    id: str = field(default_factory=lambda: f"chatcmpl-{uuid.uuid4().hex}")
    created: int = field(default_factory=lambda: int(time.time()))


@router.get("/models")
async def list_models(caller: Asker) -> ModelsOut:
    """What can be asked for as `model`."""
    return ModelsOut(object="list", data=[model_out(ANSWERS), model_out(CHAT)])


@router.get("/models/{model}")
async def read_model(model: str, caller: Asker) -> ModelOut:
    """One of them."""
    return model_out(check_model(model))


def model_out(name: str) -> ModelOut:
    """A model as OpenAI lists it."""
    return ModelOut(id=name, object="model", created=0, owned_by="footnote")


def check_model(name: str) -> str:
    """Raises ApiError 404 for a model that is neither of ours."""
    if name not in (ANSWERS, CHAT):
        raise ApiError(404, "model_not_found", f"There is no such model; there are {ANSWERS} and {CHAT}.", param="model")
    return name


@router.post("/chat/completions", response_model=ChatOut)
async def chat_completions(body: ChatIn, request: Request, the: The, caller: Asker) -> Response:
    """Answers the last user message; the messages before it are its history."""
    check_model(body.model)
    if body.n not in (None, 1):
        raise ApiError(400, "unsupported", "One answer at a time: n must be 1.", param="n")
    reply = Reply(body.model)
    if body.model == CHAT:
        pieces = the.work.run(pass_through(the, body.messages))
    else:
        pieces = cited_pieces(the, caller.owner, reply, body.messages, page_address(request))
    if not body.stream:
        return JSONResponse(await unless_client_leaves(request, completion(reply, pieces)))
    usage = bool(body.stream_options and body.stream_options.include_usage)
    return EventStream(with_pings(chunks(reply, await begun(request, pieces), usage)))


def page_address(request: Request) -> str:
    """This server's address as the client knows it."""
    return str(request.base_url).rstrip("/")


async def cited_pieces(
    the: Context, owner: str, reply: Reply, messages: Sequence[ChatMessage], page: str
) -> AsyncGenerator[Piece, None]:
    """An answer from the papers, its markers as links; the first piece is empty and comes when the papers are found."""

    async def keep(answer: Answer) -> None:
        await the.threads.run(lambda: the.library.journal.keep(owner, answer))

    async with aclosing(the.answering.stream(read_messages(messages), keep)) as events:
        async for piece in written(events, reply, ChatText(page)):
            yield piece


async def written(events: AsyncGenerator[AnswerEvent, None], reply: Reply, text: ChatText) -> AsyncGenerator[Piece, None]:
    """The events as pieces of a chat message."""
    citations: dict[int, Citation] = {}
    async for event in events:
        match event:
            case PapersFound():
                reply.id = f"chatcmpl-{event.answer_id}"
                yield Piece()
            case SentenceReady():
                citations |= {citation.marker: citation for citation in event.new_citations}
                yield Piece(*text.sentence(event.sentence, citations))
            case AnswerDone():
                yield Piece(notice_text(event.answer.notice), finish="stop", usage=event.answer.usage)


def read_messages(messages: Sequence[ChatMessage]) -> Ask:
    """The last user message as the question, what came before as its history. Raises ApiError 400."""
    said = [one for one in messages if is_speech(one)]
    while said and said[-1].role != "user":
        said.pop()
    if not said:
        raise ApiError(400, "no_question", "There must be a user message with some text.", param="messages")
    question = said.pop().text
    if len(question) > QUESTION_LIMIT:
        detail = f"A question may have {QUESTION_LIMIT:,} characters; this one has {len(question):,}."
        raise ApiError(400, "context_length_exceeded", detail, param="messages")
    history = [read_turn("user" if one.role == "user" else "assistant", one.text) for one in said]
    return Ask(question, history, top_n=TOP_N)


def is_speech(message: ChatMessage) -> bool:
    """Whether a person or the model said it, and said something."""
    return message.role in ("user", "assistant") and bool(message.text.strip())


async def pass_through(the: Context, messages: Sequence[ChatMessage]) -> AsyncGenerator[Piece, None]:
    """The LLM's own words, without retrieval: for titles and tags that front ends ask for. Raises ApiError 400 without an LLM."""
    llm = await the.threads.run(lambda: the.library.llm)
    if llm is None:
        detail = f"{CHAT} passes the chat to an LLM and none is configured: set FOOTNOTE_LLM_MODEL, or ask {ANSWERS}."
        raise ApiError(400, "no_llm_configured", detail, param="model")
    system = "\n\n".join(one.text for one in messages if one.role in ("system", "developer"))
    said = [one for one in messages if one.role not in ("system", "developer") and one.text]
    user = said[0].text if len(said) == 1 else "\n\n".join(f"{one.role.capitalize()}: {one.text}" for one in said)
    usage, cut, answers = Usage(), False, False
    stream = llm.stream(system, user)
    async with closing(stream):
        async for delta in stream:
            if not answers:
                yield Piece()
            usage, cut, answers = delta.usage or usage, delta.cut or cut, True
            yield Piece(delta.text)
    the.metrics.tokens(usage.prompt_tokens, usage.completion_tokens)
    yield Piece(finish="length" if cut else "stop", usage=usage)


async def completion(reply: Reply, pieces: AsyncGenerator[Piece, None]) -> dict[str, object]:
    """The whole completion, as `ChatOut` describes it."""
    async with aclosing(pieces):
        parts = [piece async for piece in pieces]
    said = {
        "role": "assistant",
        "content": "".join(piece.text for piece in parts),
        "refusal": None,
        "annotations": [annotation_out(note) for piece in parts for note in piece.annotations],
    }
    choice = {"index": 0, "message": said, "finish_reason": parts[-1].finish, "logprobs": None}
    head = {"id": reply.id, "object": "chat.completion", "created": reply.created, "model": reply.model}
    return {**head, "choices": [choice], "usage": usage_out(parts[-1].usage)}


async def chunks(reply: Reply, pieces: AsyncGenerator[Piece, None], with_usage: bool) -> AsyncGenerator[bytes, None]:
    """Chunks as OpenAI streams them: the role first, the finish reason last, the usage after it if asked for, `[DONE]`."""
    async with closing(pieces):
        try:
            first = True
            async for piece in pieces:
                if first or piece.text:
                    yield message(chunk(reply, [choice_of(piece, first)], with_usage))
                    first = False
                if piece.finish:
                    yield message(chunk(reply, [{"index": 0, "delta": {}, "finish_reason": piece.finish}], with_usage))
                    if with_usage:
                        yield message({**chunk(reply, [], with_usage), "usage": usage_out(piece.usage)})
            yield DONE
        except Exception as error:
            yield message(openai_error(noted(error)))


def choice_of(piece: Piece, first: bool) -> dict[str, object]:
    """A chunk's choice with some more text; the first chunk names the role."""
    delta: dict[str, object] = {"role": "assistant"} if first else {}
    delta["content"] = piece.text
    if piece.annotations:
        delta["annotations"] = [annotation_out(note) for note in piece.annotations]
    return {"index": 0, "delta": delta, "finish_reason": None}


def chunk(reply: Reply, choices: list[dict[str, object]], with_usage: bool) -> dict[str, object]:
    """A chunk; where usage was asked for every chunk says so, with null until the last."""
    head = {"id": reply.id, "object": "chat.completion.chunk", "created": reply.created, "model": reply.model}
    return {**head, "choices": choices, **({"usage": None} if with_usage else {})}


def annotation_out(note: Annotation) -> dict[str, object]:
    """A footnote as OpenAI annotates it."""
    paper = note.citation.paper
    place = {"start_index": note.start, "end_index": note.end, "title": paper.title or paper.cite_as, "url": note.url}
    return {"type": "url_citation", "url_citation": {**place, "paper_id": paper.paper_id, "quote": note.citation.quote}}


def usage_out(usage: Usage) -> dict[str, int]:
    """Tokens, with their sum."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.completion_tokens,
        "total_tokens": usage.prompt_tokens + usage.completion_tokens,
    }
