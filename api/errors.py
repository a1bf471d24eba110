"""Every error an HTTP client can meet: one table of statuses, two shapes.

The own API speaks RFC 9457 (`application/problem+json`), everything under `/v1` OpenAI's error object.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.routing import Match
from starlette.types import Scope

from rag.errors import Busy, FootnoteError, InputError, LLMRefused, LLMUnavailable, NotFound, SettingsError, Unavailable

log = logging.getLogger("footnote.http")

STATUS: dict[type[Exception], tuple[int, str]] = {
    InputError: (422, "invalid_input"),
    NotFound: (404, "not_found"),
    Busy: (409, "busy"),
    LLMUnavailable: (503, "llm_unavailable"),
    LLMRefused: (502, "llm_refused"),
    SettingsError: (503, "not_configured"),
    Unavailable: (503, "unavailable"),
    FootnoteError: (500, "failed"),
    TimeoutError: (504, "deadline_exceeded"),
}
"""Looked up along the error's classes, nearest first; what is not here is a fault of ours, 500."""

SENTENCES: dict[int | str, str] = {
    404: "There is nothing at this address; /docs lists what there is.",
    405: "This address does not take this method.",
    "There was an error parsing the body": "The body cannot be read: send JSON, not compressed and not nested hundreds deep.",
}
"""What is said in place of the framework's own words, by status or by those words."""

RETRY_AFTER = 5.0
"""Seconds asked for with a 503 that names none itself."""


class ApiError(Exception):
    """An error only HTTP knows: who may ask, how often, how much. `retry_after` in seconds."""

    def __init__(
        self, status: int, code: str, detail: str, *, retry_after: float | None = None, param: str | None = None
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.code = code
        self.retry_after = retry_after
        self.param = param


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field that was refused: where it stands (`body.filters.year_min`) and why."""

    field: str
    message: str


class Rejections(ApiError):
    """An upload of which nothing could be taken: each record's or file's reason."""

    def __init__(self, detail: str, fields: Sequence[FieldError]) -> None:
        super().__init__(422, "nothing_taken", detail)
        self.fields = fields


@dataclass(frozen=True, slots=True)
class Trouble:
    """What went wrong, before it takes either shape."""

    status: int
    code: str
    detail: str
    retry_after: float | None = None
    param: str | None = None
    fields: Sequence[FieldError] = ()
    headers: Mapping[str, str] = field(default_factory=dict)


def noted(error: Exception) -> Trouble:
    """`trouble_of`, and for what is no client's fault a line in the log, which tells more than the client is told."""
    trouble = trouble_of(error)
    if trouble.status == 500:
        log.error("unforeseen error", exc_info=error)
    elif trouble.status > 500 and not isinstance(error, ApiError):
        log.warning("%s", error or type(error).__name__)
    return trouble


def trouble_of(error: BaseException) -> Trouble:
    """The status, code and sentence for an error. Never repeats what the client sent, nor anything from a traceback."""
    match error:
        case Rejections():
            return Trouble(error.status, error.code, str(error), fields=error.fields)
        case ApiError():
            return Trouble(error.status, error.code, str(error), error.retry_after, error.param)
        case RequestValidationError():
            return _of_validation(error)
        case HTTPException():
            return _of_http(error)
    for known in type(error).__mro__:
        if known in STATUS:
            status, code = STATUS[known]
            retry_after = getattr(error, "retry_after", None) or (RETRY_AFTER if status == 503 else None)
            told = error.told if isinstance(error, FootnoteError) else "It took too long; try again."
            return Trouble(status, code, told, retry_after)
    return Trouble(500, "internal_error", "Something broke here; the log has it under this request's id.")


def _of_validation(error: RequestValidationError) -> Trouble:
    problems = error.errors()
    if problems and problems[0]["type"] == "json_invalid":
        return Trouble(400, "invalid_json", f"The body is not JSON: {problems[0]['ctx']['error']}.")
    fields = [FieldError(".".join(str(part) for part in one["loc"]), str(one["msg"])) for one in problems]
    detail = "; ".join(f"{one.field}: {one.message}" for one in fields[:3])
    return Trouble(422, "invalid_request", detail, param=fields[0].field.removeprefix("body.") if fields else None, fields=fields)


def _of_http(error: HTTPException) -> Trouble:
    code = HTTPStatus(error.status_code).name.lower()
    detail = SENTENCES.get(error.status_code) or SENTENCES.get(error.detail) or error.detail
    return Trouble(error.status_code, code, detail, headers=dict(error.headers or {}))


def is_openai(path: str) -> bool:
    """Whether a path belongs to the OpenAI-compatible API."""
    return path == "/v1" or path.startswith("/v1/")


def problem(trouble: Trouble) -> dict[str, object]:
    """The RFC 9457 object; `code` is for programs, `errors` lists refused fields."""
    body: dict[str, object] = {
        "type": "about:blank",
        "title": HTTPStatus(trouble.status).phrase,
        "status": trouble.status,
        "detail": trouble.detail,
        "code": trouble.code,
    }
    if trouble.fields:
        body["errors"] = [{"field": one.field, "message": one.message} for one in trouble.fields]
    return body


def openai_error(trouble: Trouble) -> dict[str, object]:
    """OpenAI's error object, as its clients read it."""
    kinds = {401: "authentication_error", 403: "permission_error", 404: "not_found_error", 429: "rate_limit_error"}
    kind = kinds.get(trouble.status, "invalid_request_error" if trouble.status < 500 else "server_error")
    return {"error": {"message": trouble.detail, "type": kind, "param": trouble.param, "code": trouble.code}}


def error_response(path: str, trouble: Trouble) -> JSONResponse:
    """The response in the shape that `path` speaks."""
    headers = dict(trouble.headers)
    if trouble.retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(trouble.retry_after)))
    if trouble.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if is_openai(path):
        return JSONResponse(openai_error(trouble), trouble.status, headers)
    return JSONResponse(problem(trouble), trouble.status, headers, media_type="application/problem+json")


def methods_at(app: FastAPI, scope: Scope) -> list[str]:
    """The methods a path takes through any of its routes; Starlette names only those of the first."""
    bare = {key: value for key, value in scope.items() if key != "fastapi"}
    return [
        method
        for method in ("GET", "HEAD", "POST", "DELETE")
        if any(route.matches({**bare, "method": method})[0] is Match.FULL for route in app.routes)
    ]


def install(app: FastAPI) -> None:
    """Answers every error a handler raises. What nobody foresaw reaches `RequestContext`, which logs it."""

    async def respond(request: Request, error: Exception) -> JSONResponse:
        trouble = noted(error)
        if trouble.status == 405:
            trouble = replace(trouble, headers={"Allow": ", ".join(methods_at(app, request.scope))})
        return error_response(request.scope["path"], trouble)

    for known in (ApiError, FootnoteError, TimeoutError, RequestValidationError, HTTPException):
        app.add_exception_handler(known, respond)
