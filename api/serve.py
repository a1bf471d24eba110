"""`footnote serve`: the service on a socket, in one process or in several over a shared index."""

from __future__ import annotations

import gc
import socket
import sys
import tempfile
from functools import partial
from os import environ

import typer
import uvicorn
from fastapi import FastAPI
from uvicorn.supervisors import Multiprocess

from api.connections import ImpatientProtocol
from api.logs import log_as_json
from api.metrics import SHARED
from api.security import read_keys
from rag.build import open_library
from rag.errors import SettingsError
from rag.settings import Settings

GRACE_SECONDS = 25
"""Uvicorn ends what still runs so long after SIGTERM; answers were told to end at 20 s, Compose kills at 30 s."""

KEEP_ALIVE_SECONDS = 75
"""Longer than the 60 s for which proxies keep a connection, so that it is never they who find it closed."""

SWITCH_SECONDS = 0.001
"""How long a computing thread may keep Python's lock when the event loop wants it: the usual 5 ms add up, thread by thread, to a
late health check while many questions are embedded."""


def serve(settings: Settings, host: str, port: int, workers: int) -> None:
    """Serves until SIGTERM or Ctrl-C. Raises SettingsError for settings that cannot be served, OSError for an address taken."""
    read_keys(settings, host)
    check_workers(settings, workers)
    with listen(host, port) as listener:
        config = uvicorn.Config(
            partial(open_service, settings, host, listener.getsockname()[1]),
            factory=True,
            http=ImpatientProtocol,
            workers=workers,
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_graceful_shutdown=GRACE_SECONDS,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
        )
        if workers == 1:
            uvicorn.Server(config).run([listener])
        else:
            with tempfile.TemporaryDirectory() as figures:
                environ[SHARED] = figures
                Multiprocess(config, sockets=[listener]).run()


def check_workers(settings: Settings, workers: int) -> None:
    """Raises SettingsError for several workers over indexes that only one process can hold."""
    if workers > 1 and not settings.chroma_url:
        raise SettingsError(
            "The embedded index belongs to one process: serve with one worker, or run a Chroma server (`chroma run`) "
            "and set FOOTNOTE_CHROMA_URL."
        )


def listen(host: str, port: int) -> socket.socket:
    """A socket bound to the address. Raises OSError that names it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host.strip("[]"), port), family=family, backlog=2048)
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}; choose another with --port", f"{host}:{port}") from error


def open_service(settings: Settings, host: str, port: int) -> FastAPI:
    """The service over the library of the settings, which it closes at its end. Called in each worker process.

    Once loaded, all there is (two hundred thousand objects, which stay) is taken out of the garbage collector's sight: looking
    through them takes a sixth of a second in which not even health is told.
    """
    from api.app import create_app

    log_as_json()
    sys.setswitchinterval(SWITCH_SECONDS)
    library = open_library(settings)
    library.indexes.follow()
    name = f"[{host}]" if ":" in host else host
    typer.echo(f"Footnote serves http://{name}:{port} (API: /docs, chat front ends: /v1); Ctrl-C ends it.", err=True)
    return create_app(library, settings, read_keys(settings, host), loaded=gc.freeze, close=library.close)
