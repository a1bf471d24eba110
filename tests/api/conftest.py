"""A fake library, and a client of the service over it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from pydantic import SecretStr

from api.app import create_app
from api.security import read_keys
from rag.settings import Settings
from tests.api.fakes import FakeLibrary, fake_library

HERE = "http://127.0.0.1:8000"
MakeApp = Callable[..., FastAPI]
Ask = Callable[..., TestClient]


@pytest.fixture
def library(tmp_path: Path) -> Iterator[FakeLibrary]:
    made = fake_library(tmp_path)
    yield made
    made.catalogue.database.close()


@pytest.fixture
def make_app(library: FakeLibrary) -> MakeApp:
    """The service with other settings: keys as plain strings."""

    def make(host: str = "127.0.0.1", api_keys: str = "", admin_keys: str = "", **given: object) -> FastAPI:
        settings = Settings(api_keys=SecretStr(api_keys), admin_keys=SecretStr(admin_keys), **given)  # type: ignore[arg-type]
        return create_app(library, settings, read_keys(settings, host))

    return make


@pytest.fixture
def client(make_app: MakeApp) -> Iterator[TestClient]:
    """A client of the service on a loopback without keys."""
    with TestClient(make_app(), base_url=HERE) as made:
        yield made
