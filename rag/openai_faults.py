"""What a fault of an OpenAI-compatible server means: whether asking again helps, and the sentence that says what to do.

The rules are OpenAI's error codes and what Azure, vLLM, llama.cpp and Ollama answer in the same cases. Nothing here imports
openai: its exceptions are read by their fields.
"""

from __future__ import annotations

import email.utils
import math
import random
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from rag.errors import LLMRefused, LLMUnavailable
from rag.types import cut

Fault = Literal["quota", "filter", "overflow", "key", "model", "request", "busy", "broken", "unreachable"]

OVERFLOW = re.compile(
    r"context.{0,20}(?:length|size|window)|too many (?:input )?tokens|(?:prompt|input) is too long"
    r"|maximum.{0,20}tokens|less than \d+ tokens"
)
FILTERED = re.compile(r"content_filter|content management policy|content_policy|responsibleaipolicy")

SENTENCES: Mapping[Fault, str] = {
    "quota": "The account behind the key of {here} has no quota left. Add credit, or set another key in {setting}_API_KEY.",
    "filter": "The content filter of {here} stopped this answer. Word the question differently.",
    "overflow": "The question and its papers are too long for {here}. Use a model with a longer context, or fewer papers.",
    "key": "{here} does not accept the key. Set {setting}_API_KEY to one that may use this model.",
    "model": "{here}: no such model or address. Check {setting}_MODEL and {setting}_BASE_URL (it usually ends in /v1).",
    "request": "{here} does not take this request{said}. Check {setting}_MODEL and {setting}_BASE_URL.",
    "busy": "{here} is overloaded or its rate limit is reached. Try again later.",
    "broken": "{here} failed{said}. Try again later.",
    "unreachable": "{here} cannot be reached. Is it running, and is {setting}_BASE_URL right?",
}
TOLD: Mapping[Fault, str] = {
    "quota": "{model} has no quota left. Tell whoever runs Footnote.",
    "filter": "The content filter of {model} stopped this answer. Word the question differently.",
    "overflow": "The question and its papers are too long for {model}. Ask more briefly, or with fewer papers.",
    "key": "{model} is not set up properly. Tell whoever runs Footnote.",
    "model": "{model} is not set up properly. Tell whoever runs Footnote.",
    "request": "{model} is not set up properly. Tell whoever runs Footnote.",
    "busy": "{model} is overloaded. Try again later.",
    "broken": "{model} failed. Try again later.",
    "unreachable": "{model} cannot be reached. Try again later.",
}
"""The same for those who ask questions."""
PASSING = frozenset({"busy", "broken", "unreachable"})
"""Faults that may be gone the next time."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How often to try, and the longest pause (seconds) between two tries; a server that asks for more is given up."""

    attempts: int
    longest_pause: float


WHILE_SOMEBODY_WAITS = Patience(3, 10.0)
WHILE_INGESTING = Patience(7, 60.0)
"""Rate limits are counted by the minute."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model on a server, and the settings it comes from: `setting` is `FOOTNOTE_LLM` or `FOOTNOTE_EMBEDDING`."""

    setting: str
    model: str
    base_url: str
    api_key: str = field(repr=False)

    def __str__(self) -> str:
        what = "the LLM" if self.setting.endswith("LLM") else "the embedding model"
        return f"{what} {self.model} at {re.sub(r'//[^/@]*@', '//', self.base_url)}"

    @property
    def kind(self) -> str:
        """What it is to those who ask questions."""
        return "the language model" if self.setting.endswith("LLM") else "the embedding model"

    def unavailable(self, what: str, told: str = "gave no answer.") -> LLMUnavailable:
        """An error that begins with the model's name; `told` is how it goes on for those who ask questions."""
        return LLMUnavailable(sentence(f"{self} {what}"), told=sentence(f"{self.kind} {told}"))


class APIFault(Protocol):
    """The fields of `openai.APIError` that are read here; `body` is None where the server was not reached."""

    message: str
    body: object | None
    code: str | None
    type: str | None
    param: str | None


def fault_of(error: APIFault) -> Fault:
    """Which of the faults above an exception of the openai client is."""
    status = _status(error)
    words = f"{error.code} {error.type} {error.message}".lower()
    if "insufficient_quota" in words or "billing" in words or status == 402:
        return "quota"
    if FILTERED.search(words):
        return "filter"
    if status in (None, 400, 413, 422) and OVERFLOW.search(words):
        return "overflow"
    if status is None:
        return "unreachable" if error.body is None else "broken"
    named: dict[int, Fault] = {
        401: "key",
        403: "key",
        404: "model",
        408: "broken",
        409: "broken",
        425: "busy",
        429: "busy",
        529: "busy",
    }
    return named.get(status, "request" if status < 500 else "broken")


def explain(error: APIFault, endpoint: Endpoint, *, started: bool = False) -> LLMUnavailable | LLMRefused:
    """The error to raise in place of the openai client's, saying what to do next; `started` where an answer had begun."""
    fault = fault_of(error)
    if started and fault == "unreachable":
        broke_off = "broke off in the middle of its answer. Ask again."
        return endpoint.unavailable(broke_off, broke_off)
    said = f" ({cut(' '.join(error.message.split()), 200)})" if error.message else ""
    return error_of(fault, endpoint, said, retry_after(error))


def error_of(fault: Fault, endpoint: Endpoint, said: str = "", pause: float | None = None) -> LLMUnavailable | LLMRefused:
    """A fault of the model there, in both wordings; `said` is what its server says itself, `pause` the seconds it asks for."""
    message = sentence(SENTENCES[fault].format(here=endpoint, setting=endpoint.setting, said=said))
    told = sentence(TOLD[fault].format(model=endpoint.kind))
    return LLMUnavailable(message, pause, told=told) if fault in PASSING else LLMRefused(message, told=told)


def sentence(text: str) -> str:
    """With a capital: the model's name stands at the beginning of some sentences, in the middle of others."""
    return text[:1].upper() + text[1:]


def pause_before_retry(error: APIFault, attempt: int, patience: Patience) -> float | None:
    """Seconds to wait after the failed `attempt` (from 1); None where another will not help, or not soon enough."""
    if fault_of(error) not in PASSING or attempt >= patience.attempts:
        return None
    asked = retry_after(error)
    if asked is None:
        return min(0.5 * 2.0 ** (attempt - 1), patience.longest_pause) * random.uniform(0.75, 1.25)
    return asked if asked <= patience.longest_pause else None


def retry_after(error: object) -> float | None:
    """Seconds the server asked to be left alone (RFC 9110 §10.2.3: seconds or a date); None where it named none."""
    headers = getattr(getattr(error, "response", None), "headers", {})
    value = str(headers.get("retry-after", ""))
    try:
        seconds = float(value)
    except ValueError:
        date = email.utils.parsedate_tz(value)
        seconds = email.utils.mktime_tz(date) - time.time() if date else math.nan
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _status(error: APIFault) -> int | None:
    """The HTTP status; for an error inside a stream, the number some servers give as its code."""
    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status
    return int(error.code) if error.code and re.fullmatch(r"[45]\d\d", error.code) else None
