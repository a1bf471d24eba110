"""For those who run the service: is it alive, is it ready, what does it do."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import PlainTextResponse, Response
from prometheus_client import CONTENT_TYPE_LATEST

from api.context import The
from api.errors import ApiError
from api.schemas import Health, Readiness

router = APIRouter(tags=["operations"])


@router.get("/healthz")
async def healthz() -> Health:
    """The process answers. Touches nothing, so that it is quick whatever else goes on."""
    return Health(status="ok")


@router.get("/readyz")
async def readyz(the: The) -> Readiness:
    """Whether questions can be answered now: the catalogue answers and the indexes are in step with it. Else 503."""
    if the.lifecycle.ending:
        raise ApiError(503, "ending", "The server is going down.")
    library = the.library
    waiting_for = await the.threads.run(library.not_ready)
    if waiting_for:
        raise ApiError(503, "not_ready", waiting_for, retry_after=1)
    papers, revision = await the.threads.run(lambda: (library.catalogue.count(), library.catalogue.revision()))
    return Readiness(status="ready", papers=papers, revision=revision)


@router.get("/metrics", response_class=PlainTextResponse)
async def metrics(the: The) -> Response:
    """Figures for Prometheus."""
    return Response(the.metrics.text(), media_type=CONTENT_TYPE_LATEST)
