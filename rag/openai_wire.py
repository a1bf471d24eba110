"""What goes to and comes from a chat model's server: the request, less what the server does not take, and the stream's events.

Written after OpenAI's chat completions as Azure, vLLM, llama.cpp, Ollama, DeepSeek and OpenRouter speak them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rag.openai_faults import APIFault, fault_of
from rag.types import Usage

TEMPERATURE = 0.2
"""Low, since answers restate papers; not 0, at which some models that think repeat themselves for ever."""
MAX_TOKENS = 2048
THINKING_ROOM = 4
"""How much longer an answer may be for a model that counts its thinking."""

Request = dict[str, Any]  # the client's keyword arguments, which it types as unions of dozens of classes


@dataclass(frozen=True, slots=True)
class Ask:
    """What is asked of a chat model."""

    system: str
    user: str
    max_tokens: int
    json_schema: Mapping[str, object] | None = None
    temperature: float = TEMPERATURE

    def request(self, model: str, not_taken: frozenset[str]) -> Request:
        """The client's arguments, leaving out what the server does not take."""
        said = (("system", self.system), ("user", self.user))
        messages = [{"role": role, "content": text} for role, text in said if text]
        request: Request = {"model": model, "messages": messages, "stream": True}
        optional: Request = {
            "temperature": self.temperature,
            "stream_options": {"include_usage": True},
            "max_tokens": self.max_tokens,
        }
        if "max_tokens" in not_taken:
            optional["max_completion_tokens"] = THINKING_ROOM * self.max_tokens
        if self.json_schema is not None:
            schema = {"name": "answer", "schema": dict(self.json_schema), "strict": True}
            plain = "json_schema" in not_taken
            optional["response_format"] = {"type": "json_object"} if plain else {"type": "json_schema", "json_schema": schema}
        return request | {name: value for name, value in optional.items() if name not in not_taken}


@dataclass(frozen=True, slots=True)
class Chunk:
    """What one event of a chat stream says."""

    text: str = ""
    thought: bool = False
    finish: str | None = None
    usage: Usage | None = None


def parameter_not_taken(error: APIFault, request: Request) -> str | None:
    """The parameter without which the request may pass; None where leaving one out will not help.

    Models that think refuse `max_tokens` and any temperature but their own; older servers refuse `stream_options` or a schema;
    some count `max_tokens` into the context and refuse for that.
    """
    fault = fault_of(error)
    if fault not in ("request", "overflow"):
        return None
    if fault == "overflow":
        return next((name for name in ("max_completion_tokens", "max_tokens") if name in request), None)
    for name in ("max_completion_tokens", "max_tokens", "temperature", "stream_options"):
        if name in request and (error.param == name or re.search(rf"\b{name}\b", error.message)):
            return name
    if "response_format" in request:
        return "response_format" if request["response_format"]["type"] == "json_object" else "json_schema"
    return None


def read_chunk(event: Any) -> Chunk:  # the client builds its class from whatever the server sent, unchecked
    """Azure's first event has no choices, the last one has only the usage, and content may be null or a list of parts."""
    counts = getattr(event, "usage", None)
    usage = Usage(counts.prompt_tokens or 0, counts.completion_tokens or 0) if counts else None
    choices = getattr(event, "choices", None)
    if not choices:
        return Chunk(usage=usage)
    delta = choices[0].delta
    thought = getattr(delta, "reasoning_content", None) or getattr(delta, "reasoning", None)
    return Chunk(content_text(getattr(delta, "content", None)), bool(thought), choices[0].finish_reason, usage)


def content_text(content: object) -> str:
    """The text of a message's content; of a list of parts, the parts of type text."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict) and part.get("type") == "text")


def json_in(text: str) -> str | None:
    """The first JSON object that stands whole in `text`, fences and words around it left away."""
    for start in (match.start() for match in re.finditer("{", text)):
        try:
            _, end = json.JSONDecoder().raw_decode(text, start)
        except ValueError:
            continue
        return text[start:end]
    return None
