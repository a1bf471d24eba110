"""`POST /api/v1/papers`: files in any reader's format, or a JSON array, into the library."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import BinaryIO, cast

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response
from starlette.datastructures import UploadFile

from api.context import OWN, Admin, The
from api.errors import ApiError, FieldError, Rejections
from api.schemas import IngestReportOut
from rag.ingest import Source
from rag.readers import read_stream
from rag.types import IngestReport
from rag.wire import report_to_json

router = APIRouter(tags=["papers"], prefix=OWN)

LIMIT = 100 * 2**20
"""Bytes of an upload; larger files go in by `footnote ingest`."""

IN_MEMORY = 2**20
"""Bytes of an upload kept in memory; more goes to a temporary file."""

BODY: dict[str, object] = {
    "requestBody": {
        "required": True,
        "description": "One or more files as a form, or a file itself as the body; a JSON array of papers is such a file.",
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "properties": {"file": {"type": "array", "minItems": 1, "items": {"type": "string", "format": "binary"}}},
                    "required": ["file"],
                }
            },
            "application/json": {
                "schema": {
                    "type": "array",
                    "minItems": 1,
                    "items": {"type": "object", "description": "Fields by their usual names; only an abstract is needed."},
                    "example": [{"title": "…", "abstract": "…", "authors": ["Doe, Jo"], "year": 2024, "doi": "10.1000/1"}],
                }
            },
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        },
    }
}


@router.post("/papers", response_model=IngestReportOut, openapi_extra=BODY)
async def add_papers(request: Request, the: The, caller: Admin) -> Response:
    """Adds papers. What could not be taken is listed with its reason; when nothing could, the status is 422."""
    async with uploaded(request) as files:
        report = await the.uploads.run(lambda: the.library.ingest([source(name, stream) for name, stream in files]))
    if not report.added + report.merged + report.unchanged:
        raise nothing_taken(report)
    return JSONResponse(report_to_json(report))


def source(name: str, stream: BinaryIO) -> Source:
    """An upload as the ingest reads it."""
    return Source(name, partial(read_stream, stream, name))


@asynccontextmanager
async def uploaded(request: Request) -> AsyncGenerator[Sequence[tuple[str, BinaryIO]], None]:
    """The files of a form, or the body as one file. Raises ApiError when a form holds no file."""
    if request.headers.get("content-type", "").startswith("multipart/form-data"):
        async with request.form(max_files=100) as form:
            files = [value for _, value in form.multi_items() if isinstance(value, UploadFile)]
            if not files:
                raise ApiError(422, "no_file", "The form holds no file; send it as a part named `file`.")
            yield [(one.filename or "upload", one.file) for one in files]
        return
    with tempfile.SpooledTemporaryFile(IN_MEMORY) as spooled:
        async for chunk in request.stream():
            spooled.write(chunk)
        spooled.seek(0)
        yield [("upload", cast(BinaryIO, spooled))]


def nothing_taken(report: IngestReport) -> Rejections:
    """Why an upload was for nothing."""
    refused = [FieldError(f"{one.source} {one.where}".strip(), one.reason) for one in [*report.rejected, *report.skipped]]
    return Rejections("No paper could be read from this upload.", refused)
