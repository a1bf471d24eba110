"""What a browser gets: the page at `/` with its assets, and the API's description at `/docs`. Nothing comes from elsewhere."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import FileResponse, HTMLResponse, Response
from fastapi.staticfiles import StaticFiles

WEB = Path(__file__).parent / "web"
SWAGGER = Path(str(files("fastapi_offline"))) / "static"
"""Swagger UI, as an installed package carries it."""

DOCS = """<!doctype html>
<html lang="en">
<meta charset="utf-8"><title>Footnote: the HTTP API</title>
<link rel="stylesheet" href="/docs/assets/swagger-ui.css"><link rel="icon" href="data:,">
<div id="swagger-ui"></div>
<script src="/docs/assets/swagger-ui-bundle.js"></script><script src="/docs/start.js"></script>
</html>
"""
START = 'SwaggerUIBundle({url: "/openapi.json", dom_id: "#swagger-ui", deepLinking: true, tryItOutEnabled: true});\n'


def add_site(app: FastAPI) -> None:
    """Adds `/docs`, and the page when it is there."""

    @app.get("/docs", include_in_schema=False)
    async def docs() -> HTMLResponse:
        return HTMLResponse(DOCS)

    @app.get("/docs/start.js", include_in_schema=False)
    async def start() -> Response:
        return Response(START, media_type="text/javascript")

    app.mount("/docs/assets", StaticFiles(directory=SWAGGER))
    if (WEB / "index.html").is_file():

        @app.get("/", include_in_schema=False)
        async def page() -> FileResponse:
            return FileResponse(WEB / "index.html", headers={"Cache-Control": "no-cache"})

        app.mount("/static", StaticFiles(directory=WEB))
