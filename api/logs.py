"""One JSON object a line on stderr. Question text is in it only when `FOOTNOTE_LOG_QUESTIONS` says so."""

from __future__ import annotations

import json
import logging
import sys
from contextvars import ContextVar
from datetime import UTC, datetime

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The id of the request being handled; follows it into tasks and threads."""

EXTRA = "fields"
"""`logger.info("…", extra={EXTRA: {...}})` adds keys to the line."""


class JsonLines(logging.Formatter):
    """`{"time", "level", "logger", "message", "request_id"?, …extra fields, "traceback"?}`, time in UTC."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if current := request_id.get():
            line["request_id"] = current
        line.update(getattr(record, EXTRA, {}))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False, default=str)


def log_as_json() -> None:
    """Sends every logger's lines, uvicorn's too, through `JsonLines`. Called by `footnote serve`, never on import."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(handlers=[handler], level=logging.INFO, force=True)
    for name in ("httpx", "httpx2", "httpcore", "openai", "chromadb"):
        logging.getLogger(name).setLevel(logging.WARNING)
