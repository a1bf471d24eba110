"""Chat and embedding models behind any OpenAI-compatible server: the one file that talks through the openai client.

The client reads `OPENAI_*` variables by itself; it is told everything here, so that no key meant for one server reaches another.
Importing it takes most of a second: import this file where a model is configured, and only there.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import os
import re
import time
import weakref
from collections.abc import AsyncGenerator, Awaitable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import openai
from openai.types.chat import ChatCompletionChunk

from rag.errors import LLMUnavailable, SettingsError
from rag.openai_faults import (
    WHILE_INGESTING,
    WHILE_SOMEBODY_WAITS,
    Endpoint,
    Patience,
    error_of,
    explain,
    fault_of,
    pause_before_retry,
)
from rag.openai_wire import MAX_TOKENS, TEMPERATURE, Ask, Chunk, json_in, parameter_not_taken, read_chunk
from rag.protocols import Delta
from rag.reasoning import ReasoningFilter
from rag.types import Usage, Vectors

OPENAI = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent where no key was given: the client refuses an empty one, servers without keys ignore it."""

USAGE_SECONDS = 2.0
"""How long to wait for the token counts once the answer is complete."""

EMBED_SECONDS = 60.0
BATCH_TEXTS = 256
BATCH_CHARACTERS = 200_000
"""Some 60,000 tokens; OpenAI takes 300,000 a request."""
SHORTEST = 200
"""Characters to which a text too long for the model is shortened at most."""

T = TypeVar("T")


def credentials(base_url: str, api_key: str, environment: Mapping[str, str]) -> tuple[str, str] | None:
    """Base URL and key to use; None where no model is configured. `OPENAI_API_KEY` goes only where it belongs."""
    if base_url or api_key:
        return base_url or OPENAI, api_key
    key = environment.get("OPENAI_API_KEY", "")
    return (environment.get("OPENAI_BASE_URL") or OPENAI, key) if key else None


def read_endpoint(setting: str, model: str, base_url: str, api_key: str) -> Endpoint:
    """Checks what was configured. Raises SettingsError."""
    found = credentials(base_url, api_key, os.environ)
    if found is None:
        raise SettingsError(f"{setting}_API_KEY is not set, nor is OPENAI_API_KEY; one is needed for {OPENAI}.")
    if not re.match(r"https?://[^/\s]", found[0]):
        raise SettingsError(f"{setting}_BASE_URL must start with http:// or https://, for example http://localhost:11434/v1.")
    return Endpoint(setting, model, found[0].rstrip("/"), found[1] or NO_KEY)


def forget_environment(client: openai.AsyncOpenAI | openai.OpenAI) -> None:
    """Drops what the client read from `OPENAI_ORG_ID`, `OPENAI_PROJECT_ID`, `OPENAI_ADMIN_KEY` and `OPENAI_CUSTOM_HEADERS`."""
    client.organization = client.project = client.admin_api_key = None
    client._custom_headers = {}


class Deadline:
    """Time for a whole answer, in seconds. Half of it may pass in silence: before the first token or between two."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def remaining(self) -> float:
        return self._end - time.monotonic()

    async def wait(self, awaited: Awaitable[T], at_most: float = math.inf) -> T:
        """Raises TimeoutError."""
        async with asyncio.timeout(max(0.0, min(self.remaining(), self.seconds / 2, at_most))):
            return await awaited


@dataclass(frozen=True, slots=True)
class Connected:
    """An event loop's client, and the generator that closes it."""

    client: openai.AsyncOpenAI
    until_closed: AsyncGenerator[None, None]


class OpenAIChat:
    """A chat model; implements `rag.protocols.LLM`. Raises SettingsError for an address that is none."""

    def __init__(
        self, model: str, base_url: str = "", api_key: str = "", timeout: float = 120.0, temperature: float = TEMPERATURE
    ) -> None:
        self.endpoint = read_endpoint("FOOTNOTE_LLM", model, base_url, api_key)
        self._timeout = timeout
        self._temperature = temperature
        self._clients: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Connected] = weakref.WeakKeyDictionary()
        self._not_taken: frozenset[str] = frozenset()
        self._wary = False

    @property
    def model(self) -> str:
        return self.endpoint.model

    async def stream(self, system: str, user: str, *, max_tokens: int = MAX_TOKENS) -> AsyncGenerator[Delta, None]:
        """The answer as it comes, without its reasoning. Closing the generator closes the connection.

        Raises LLMUnavailable (after bounded retries, which end with the first token) and LLMRefused.
        """
        async with aclosing(self._answer(Ask(system, user, max_tokens, temperature=self._temperature))) as deltas:
            async for delta in deltas:
                yield delta

    async def complete(
        self, system: str, user: str, *, json_schema: Mapping[str, object] | None = None, max_tokens: int = MAX_TOKENS
    ) -> tuple[str, Usage]:
        """A whole short answer. With `json_schema`: the JSON in it, whatever fences or words stand around; the server is asked
        to keep to the schema if it can. Raises LLMUnavailable also where the answer was cut off or holds no JSON."""
        text, usage = "", Usage()
        async with aclosing(self._answer(Ask(system, user, max_tokens, json_schema, self._temperature))) as deltas:
            async for delta in deltas:
                text += delta.text
                usage = delta.usage or usage
                if delta.cut:
                    raise self.endpoint.unavailable(f"was cut off at {max_tokens} tokens before it had answered.")
        if json_schema is None:
            return text, usage
        found = json_in(text)
        if found is None:
            raise self.endpoint.unavailable("was asked for JSON and gave none.")
        return found, usage

    async def aclose(self) -> None:
        """Closes this event loop's connections now; when the loop ends they are closed anyway."""
        connected = self._clients.pop(asyncio.get_running_loop(), None)
        if connected is not None:
            await connected.until_closed.aclose()

    async def _answer(self, ask: Ask) -> AsyncGenerator[Delta, None]:
        reasoning = ReasoningFilter(wary=self._wary)
        usage, finish, empty = Usage(), None, True
        async with aclosing(self._chunks(ask)) as chunks:
            async for chunk in chunks:
                usage, finish = chunk.usage or usage, chunk.finish or finish
                if text := reasoning.feed(chunk.text):
                    empty = False
                    yield Delta(text)
        rest = reasoning.finish()
        self._wary |= reasoning.lone_closing_tag
        if empty and not rest.strip():
            why = f" within {ask.max_tokens} tokens" if finish == "length" else ""
            raise self.endpoint.unavailable(f"gave no answer{why}.")
        yield Delta(rest, usage, cut=finish == "length")

    async def _chunks(self, ask: Ask) -> AsyncGenerator[Chunk, None]:
        """The chunks of the first attempt that gets as far as a token; pauses between attempts count into the answer's time."""
        deadline = Deadline(self._timeout)
        for attempt in itertools.count(1):
            started = False
            try:
                async with aclosing(self._attempt(ask, deadline)) as chunks:
                    async for chunk in chunks:
                        started |= bool(chunk.text) or chunk.thought
                        yield chunk
                return
            except TimeoutError as error:
                raise self._too_slow(deadline) from error
            except ValueError as error:  # json's and pydantic's
                wrong = f"sent what is no chat completion. Is {self.endpoint.setting}_BASE_URL right?"
                raise self.endpoint.unavailable(wrong) from error
            except openai.APIError as error:
                pause = None if started else pause_before_retry(error, attempt, WHILE_SOMEBODY_WAITS)
                if pause is None or pause >= deadline.remaining():
                    raise explain(error, self.endpoint, started=started) from error
            await asyncio.sleep(pause)

    async def _attempt(self, ask: Ask, deadline: Deadline) -> AsyncGenerator[Chunk, None]:
        """One request and its answer. Raises TimeoutError, ValueError, openai.APIError, LLMRefused."""
        stream = await self._open(ask, deadline)
        try:
            finished = False
            while not finished:
                chunk = read_chunk(await deadline.wait(_next(stream)))
                if chunk.finish == "content_filter":
                    raise error_of("filter", self.endpoint)
                finished = chunk.finish is not None
                yield chunk
            yield Chunk(usage=await _usage(stream, deadline))
        finally:
            await stream.close()

    async def _open(self, ask: Ask, deadline: Deadline) -> openai.AsyncStream[ChatCompletionChunk]:
        """Sends the request, without whatever parameter the server says it does not take, and remembers that."""
        not_taken = self._not_taken
        while True:
            request = ask.request(self.model, not_taken)
            try:
                client = await self._client()
                opening: Any = client.chat.completions.create(**request)  # typed by its arguments, which are not
                return await deadline.wait(opening)
            except openai.APIStatusError as error:
                refused = parameter_not_taken(error, request)
                if refused is None:
                    raise
                not_taken |= {refused}
                if fault_of(error) == "request":
                    self._not_taken |= {refused}

    async def _client(self) -> openai.AsyncOpenAI:
        """This event loop's client: connections do not move between loops."""
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            here = self.endpoint
            client = openai.AsyncOpenAI(api_key=here.api_key, base_url=here.base_url, timeout=self._timeout, max_retries=0)
            forget_environment(client)
            connected = self._clients[loop] = Connected(client, _closing_at_the_end(client))
            await anext(connected.until_closed)
        return self._clients[loop].client

    def _too_slow(self, deadline: Deadline) -> LLMUnavailable:
        """Says which of the two limits was passed."""
        limit = f"{self.endpoint.setting}_TIMEOUT"
        if deadline.remaining() <= 0:
            passed = f"had not finished after {self._timeout:g} s, which is {limit}"
        else:
            passed = f"gave nothing for {self._timeout / 2:g} s, which is half of {limit}"
        return self.endpoint.unavailable(f"{passed}. Raise that, or use a faster model.", "took too long. Try again later.")


async def _closing_at_the_end(client: openai.AsyncOpenAI) -> AsyncGenerator[None, None]:
    """Closes the client when it is closed itself, which `asyncio.run` and uvicorn do with every generator that is still open when
    their event loop ends (`loop.shutdown_asyncgens`)."""
    async with client:
        yield


async def _next(stream: openai.AsyncStream[ChatCompletionChunk]) -> ChatCompletionChunk:
    """Raises openai.APIConnectionError where the stream ends: it was not finished."""
    try:
        return await anext(stream)
    except StopAsyncIteration:
        raise openai.APIConnectionError(request=stream.response.request) from None


async def _usage(stream: openai.AsyncStream[ChatCompletionChunk], deadline: Deadline) -> Usage | None:
    """The token counts that follow the end of the answer, if they come soon; the answer does not depend on them."""
    try:
        while True:
            chunk = read_chunk(await deadline.wait(_next(stream), at_most=USAGE_SECONDS))
            if chunk.usage:
                return chunk.usage
    except (TimeoutError, ValueError, openai.APIError):
        return None


class OpenAIEmbedder:
    """An embedding model; implements `rag.protocols.Embedder`, as far as its server repeats itself bit for bit."""

    def __init__(self, model: str, base_url: str = "", api_key: str = "") -> None:
        self.endpoint = read_endpoint("FOOTNOTE_EMBEDDING", model, base_url, api_key)
        self._dimension = 0
        self.tokens_used = 0
        self._client = openai.OpenAI(
            api_key=self.endpoint.api_key, base_url=self.endpoint.base_url, timeout=EMBED_SECONDS, max_retries=0
        )
        forget_environment(self._client)

    @property
    def model(self) -> str:
        """`openai:` and the model's own name, wherever it is served."""
        return f"openai:{self.endpoint.model}"

    @property
    def dimension(self) -> int:
        """Asks the server once."""
        return self._dimension or len(self.embed_question("dimension"))

    def embed_texts(self, texts: Sequence[str]) -> Vectors:
        """Shape (len(texts), dimension), unit rows. Raises LLMUnavailable, LLMRefused."""
        if not texts:
            return np.zeros((0, self.dimension), dtype=np.float32)
        return np.concatenate([self._embed(batch, WHILE_INGESTING) for batch in batches(texts)])

    def embed_question(self, question: str) -> Vectors:
        """Shape (dimension,)."""
        (batch,) = batches([question])
        vector: Vectors = self._embed(batch, WHILE_SOMEBODY_WAITS)[0]
        return vector

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _embed(self, texts: Sequence[str], patience: Patience) -> Vectors:
        """One batch; halved, then its texts shortened, until none is too long for the model."""
        try:
            return self._unit(self._request(texts, patience), len(texts))
        except openai.APIError as error:
            if fault_of(error) != "overflow" or (len(texts) == 1 and len(texts[0]) <= SHORTEST):
                raise explain(error, self.endpoint) from error
        if len(texts) == 1:
            return self._embed([texts[0][: len(texts[0]) // 2]], patience)
        middle = len(texts) // 2
        return np.concatenate([self._embed(texts[:middle], patience), self._embed(texts[middle:], patience)])

    def _request(self, texts: Sequence[str], patience: Patience) -> openai.types.CreateEmbeddingResponse:
        """Raises openai.APIError."""
        for attempt in itertools.count(1):
            try:
                return self._client.embeddings.create(model=self.endpoint.model, input=list(texts), encoding_format="float")
            except openai.APIError as error:
                pause = pause_before_retry(error, attempt, patience)
                if pause is None:
                    raise
            time.sleep(pause)
        raise AssertionError("itertools.count never ends")

    def _unit(self, response: openai.types.CreateEmbeddingResponse, count: int) -> Vectors:
        """The vectors in the order of the texts, at unit length. Raises LLMUnavailable unless each text has a proper one."""
        rows = [row.embedding for row in sorted(response.data or [], key=lambda row: row.index)]
        if len(rows) != count or len({self._dimension or len(rows[0]), *map(len, rows)}) != 1:
            raise self.endpoint.unavailable("did not give one vector of one length for each text.")
        vectors = np.array(rows, dtype=np.float32)
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        if not (np.isfinite(lengths) & (lengths > 0)).all():
            raise self.endpoint.unavailable("gave vectors without a length.")
        self._dimension = vectors.shape[1]
        self.tokens_used += response.usage.total_tokens if response.usage else 0
        unit: Vectors = vectors / lengths
        return unit


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """At most BATCH_TEXTS and about BATCH_CHARACTERS each. An empty text, which servers refuse, is sent as a full stop."""
    batch: list[str] = []
    size = 0
    for text in texts:
        if batch and (len(batch) == BATCH_TEXTS or size + len(text) > BATCH_CHARACTERS):
            yield batch
            batch, size = [], 0
        batch.append(text if text.strip() else ".")
        size += len(text)
    if batch:
        yield batch
