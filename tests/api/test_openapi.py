"""The OpenAPI document: as committed, true to what is sent, and no request made from it breaks the service."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from pydantic import SecretStr

from api.app import create_app, routed_app
from api.openapi import FILE, text_of
from api.security import read_keys
from rag.settings import Settings
from tests.api.fakes import FakeLLM, fake_library, served

KEY = "a-key-for-all"
CONFIG = schemathesis.Config.from_dict(
    {
        "request-timeout": 60,  # the usual 10 s pass on a machine that does much else
        "generation": {"allow-extra-parameters": False},
        "checks": {
            "positive_data_acceptance": {"expected-statuses": ["2xx", "404"]},
            "negative_data_rejection": {"expected-statuses": ["400", "401", "404", "405", "413", "422"]},
        },
        "operations": [
            {  # a chat without a user message
                "include-path": "/v1/chat/completions",
                "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "400", "404"]}},
            },
            {  # such an address may also be a paper's other name, which can be deleted
                "include-path-regex": r"\}\.(bib|ris|json)$",
                "checks": {"allow_header_conformance": {"enabled": False}},
            },
            {  # a cursor may be any text, most of which lead nowhere
                "include-name": ["GET /api/v1/papers", "GET /api/v1/conversations"],
                "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "422"]}},
            },
            {  # a file may be any bytes, most of which are no papers
                "include-name": "POST /api/v1/papers",
                "checks": {"positive_data_acceptance": {"expected-statuses": ["2xx", "422"]}},
            },
        ],
    }
)
document = schemathesis.openapi.from_dict(json.loads(FILE.read_text()), config=CONFIG)


def test_the_committed_document_is_what_the_routes_say() -> None:
    assert FILE.read_text() == text_of(routed_app()), "run `python -m api.openapi` and look at the difference"


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    library = fake_library(Path(tmp_path_factory.mktemp("library")))
    library.llm = FakeLLM()
    given = Settings(admin_keys=SecretStr(KEY), api_keys=SecretStr(KEY), rate_limit=0)
    with served(create_app(library, given, read_keys(given, "127.0.0.1"))) as address:
        yield address


@document.parametrize()
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_no_request_made_from_the_document_breaks_the_service(case: schemathesis.Case[Any], url: str) -> None:
    case.call_and_validate(base_url=url, headers={"Authorization": f"Bearer {KEY}"})
