"""The Compose file and the image: valid, locked down, and naming nothing that does not exist. (No engine is needed here; that the
processes work together is proven in tests/api/test_topology.py.)"""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import SecretStr

from rag.settings import PREFIX, Settings

ROOT = Path(__file__).parent.parent
COMPOSE = ROOT / "docker-compose.yml"
DOCKERFILE = (ROOT / "Dockerfile").read_text()
SERVICES: dict[str, dict[str, Any]] = yaml.safe_load(COMPOSE.read_text())["services"]  # Any: YAML
NETWORKS = yaml.safe_load(COMPOSE.read_text())["networks"]


def test_the_file_is_valid_by_the_compose_schema() -> None:
    command = [str(Path(sys.executable).with_name("check-jsonschema")), "--builtin-schema", "vendor.compose-spec", str(COMPOSE)]
    checked = subprocess.run(command, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("name", SERVICES)
def test_each_service_is_pinned_restarted_and_given_time_to_end(name: str) -> None:
    service = SERVICES[name]
    assert re.search(r":\d+\.\d+", service["image"])
    assert service["stop_grace_period"] == "30s"
    assert service["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", ["api", "slack", "chroma", "postgres"])
def test_what_runs_by_default_writes_only_to_its_volume_and_gains_no_rights(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert "no-new-privileges:true" in service["security_opt"]
    assert len(service["volumes"]) == 1


def test_only_the_api_is_published_and_the_databases_are_on_the_inner_network_alone() -> None:
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["api"]
    assert NETWORKS["back"]["internal"] is True
    for name in ("chroma", "postgres"):
        assert SERVICES[name]["networks"] == ["back"]
        assert "healthcheck" in SERVICES[name]
        assert SERVICES["api"]["depends_on"][name]["condition"] == "service_healthy"


def test_slack_and_the_local_llm_run_only_when_asked_for() -> None:
    profiles = {name: service.get("profiles") for name, service in SERVICES.items()}
    assert profiles == {"api": None, "slack": ["slack"], "chroma": None, "postgres": None, "ollama": ["local-llm"]}


def test_every_setting_named_exists() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    named = set(re.findall(rf"\b({PREFIX}[A-Z_]*[A-Z])\b", COMPOSE.read_text() + DOCKERFILE))
    assert named <= known
    for name in ("api", "slack"):
        assert {key for key in SERVICES[name]["environment"] if key.startswith(PREFIX)} <= known


def test_what_is_not_set_is_as_without_compose() -> None:
    for name, said in re.findall(rf"({PREFIX}\w+): \${{\1:-(.*)}}", COMPOSE.read_text()):
        default = Settings.model_fields[name.removeprefix(PREFIX).lower()].default
        plain = default.get_secret_value() if isinstance(default, SecretStr) else default
        assert type(plain)(yaml.safe_load(said) or plain) == plain, name


def test_the_image_runs_as_nobody_in_particular_and_tells_its_health() -> None:
    last = DOCKERFILE.split("\nFROM ")[-1]
    assert re.search(r"^USER \d{4,}$", last, re.MULTILINE)
    assert re.search(r"^HEALTHCHECK ", last, re.MULTILINE)
    assert all(re.match(r"python:\d+\.\d+\.\d+-slim-", line) for line in re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE))
    for copied in re.findall(r"^COPY (?!--)(.+) \S+$", DOCKERFILE, re.MULTILINE):
        assert all((ROOT / name).exists() for name in copied.split())
