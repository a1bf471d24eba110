"""New keys: random, shown once, kept as digests. And what else Compose must be told and nobody needs to know."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from pathlib import Path

from api.security import HASHED

USERS = "FOOTNOTE_API_KEYS"
ADMINS = "FOOTNOTE_ADMIN_KEYS"
POSTGRES = "POSTGRES_PASSWORD"


@dataclass(frozen=True, slots=True)
class NewKeys:
    """A key for asking, and one that may also change the papers."""

    user: str
    admin: str


def make_keys(file: Path) -> NewKeys:
    """Adds the digests of two new keys to those in an environment file (0600), whose other lines stay; gives Compose's database a
    password if it has none. Raises OSError."""
    made = NewKeys(f"fn-{secrets.token_urlsafe(24)}", f"fn-admin-{secrets.token_urlsafe(24)}")
    lines = file.read_text().splitlines() if file.exists() else []
    for name, key in ((USERS, made.user), (ADMINS, made.admin)):
        lines = with_value(lines, name, HASHED + hashlib.sha256(key.encode()).hexdigest())
    if not any(line.startswith(f"{POSTGRES}=") for line in lines):
        lines = with_value(lines, POSTGRES, secrets.token_urlsafe(24))
    file.touch(mode=0o600)
    file.chmod(0o600)
    file.write_text("\n".join(lines) + "\n")
    return made


def with_value(lines: list[str], name: str, value: str) -> list[str]:
    """The lines of an environment file with `value` added to the comma-separated ones of `name`."""
    at = next((place for place, line in enumerate(lines) if line.startswith(f"{name}=")), None)
    if at is None:
        return [*lines, f"{name}={value}"]
    before = lines[at].partition("=")[2].strip()
    return [*lines[:at], f"{name}={before},{value}" if before else f"{name}={value}", *lines[at + 1 :]]
