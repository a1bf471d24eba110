"""The OpenAPI document: what FastAPI makes of the routes, with our own forms of errors.

The document is committed (`api/openapi.json`, written by `python -m api.openapi`), so that a change of the API is seen in review;
a test compares the two.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from api.openai_schemas import OpenAIErrorOut
from api.schemas import PapersEvent, Problem, SentenceEvent

FILE = Path(__file__).with_name("openapi.json")
Responses = dict[int | str, dict[str, Any]]  # Any: FastAPI's own type
UNROUTED: tuple[type[BaseModel], ...] = (Problem, OpenAIErrorOut, PapersEvent, SentenceEvent)
"""Models that no route names as its response."""


def _errors(model: type[BaseModel], media_type: str) -> Responses:
    content = {media_type: {"schema": {"$ref": f"#/components/schemas/{model.__name__}"}}}
    return {
        "422": {"description": "What was sent cannot be used.", "content": content},
        "default": {"description": "Any error.", "content": content},
    }


OWN_ERRORS = _errors(Problem, "application/problem+json")
OPENAI_ERRORS = _errors(OpenAIErrorOut, "application/json")


def describe(app: FastAPI) -> None:
    """Makes `app.openapi()` give the document with all models."""

    def document() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = build(app)
        return app.openapi_schema

    app.openapi = document  # type: ignore[method-assign]  # FastAPI's documented way


def build(app: FastAPI) -> dict[str, Any]:
    """The document."""
    made = get_openapi(title=app.title, version=app.version, summary=app.summary, routes=app.routes)
    schemas = made["components"]["schemas"]
    _, more = models_json_schema([(model, "serialization") for model in UNROUTED], ref_template="#/components/schemas/{model}")
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    for operation in (one for path in made["paths"].values() for one in path.values()):
        if not operation.get("parameters") and "requestBody" not in operation:
            del operation["responses"]["422"]
    for name, schema in more["$defs"].items():
        schemas.setdefault(name, schema)
    made["components"]["schemas"] = dict(sorted(schemas.items()))
    return made


def text_of(app: FastAPI) -> str:
    """The document as it is committed."""
    return json.dumps(app.openapi(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def main() -> None:
    """Writes the document to its file."""
    from api.app import routed_app

    FILE.write_text(text_of(routed_app()), encoding="utf-8")


if __name__ == "__main__":
    main()
