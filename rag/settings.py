"""Settings, read from the environment (prefix `FOOTNOTE_`). The README's table is the contract."""

from __future__ import annotations

import difflib
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pydantic import Field, SecretStr, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from rag.errors import SettingsError

PREFIX = "FOOTNOTE_"


def default_data_folder() -> Path:
    """`$XDG_DATA_HOME/footnote`, by the XDG base directory specification."""
    home = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(home) / "footnote"


class Settings(BaseSettings):
    """Everything a person may set. Parts receive values, never this object."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, extra="ignore", frozen=True)

    data: Path = Field(default_factory=default_data_folder)
    database_url: str = ""
    chroma_url: str = ""
    embedding: Literal["local", "openai"] = "local"
    embedding_model: str = "text-embedding-3-small"
    embedding_base_url: str = ""
    embedding_api_key: SecretStr = SecretStr("")
    llm_model: str = ""
    llm_base_url: str = ""
    llm_api_key: SecretStr = SecretStr("")
    llm_timeout: float = Field(default=120.0, gt=0)
    verify: Literal["local", "llm"] = "local"
    unsupported: Literal["flag", "drop"] = "flag"
    api_keys: SecretStr = SecretStr("")
    admin_keys: SecretStr = SecretStr("")
    rate_limit: int = Field(default=600, ge=0)
    max_concurrent: int = Field(default=64, ge=1)
    cors_origins: str = ""
    log_questions: bool = False
    slack_bot_token: SecretStr = SecretStr("")
    slack_app_token: SecretStr = SecretStr("")
    slack_signing_secret: SecretStr = SecretStr("")
    slack_api_url: str = "https://slack.com/api/"
    slack_channels: str = ""
    slack_stream: bool = False


def read_settings(environment: Mapping[str, str] | None = None, **given: object) -> Settings:
    """Settings from the environment, `given` (a command-line option) first.

    Raises SettingsError for a bad value or a name close to a real one; any other unknown `FOOTNOTE_*` name is only warned of.
    """
    check_names(os.environ if environment is None else environment)
    try:
        return Settings(**given)  # type: ignore[arg-type]  # pydantic checks the values
    except ValidationError as error:
        first = error.errors()[0]
        name = PREFIX + "_".join(str(part) for part in first["loc"]).upper()
        raise SettingsError(f"{name}: {first['msg']}. See the settings table in the README.") from error


def check_names(environment: Mapping[str, str]) -> None:
    """Refuses `FOOTNOTE_LLM_MODLE`, which pydantic-settings would ignore; warns of names that resemble none of ours."""
    known = [PREFIX + name.upper() for name in Settings.model_fields]
    for name in environment:
        if not name.upper().startswith(PREFIX) or name.upper() in known:
            continue
        close = difflib.get_close_matches(name.upper(), known, n=1, cutoff=0.85)
        if close:
            raise SettingsError(f"{name} is no setting; did you mean {close[0]}?")
        warnings.warn(f"{name} is no setting of Footnote and is ignored", stacklevel=2)
