"""Who may ask: keys, and the loopback that needs none.

Keys arrive as `Authorization: Bearer …`, are held as SHA-256 digests only and compared as bytes in constant time. A server on
loopback without keys serves whoever can reach it, provided `Host` and `Origin` name that loopback address: a web page
elsewhere cannot reach it by DNS rebinding or by a form.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Iterable
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from api.errors import ApiError, error_response, trouble_of
from api.limits import RateLimit
from rag.errors import SettingsError
from rag.settings import Settings

AUTHORITY = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9.-]+)(?::([0-9]{1,5}))?")
"""What `Host` may be: a name or an address, and a port."""

HASHED = "sha256:"
LOCAL_OWNER = "local"


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks. `owner` stands for the key (never the key itself) and owns what is asked; `admin` may change the papers."""

    owner: str
    admin: bool


@dataclass(frozen=True)
class Keys:
    """The digests of the keys that are accepted, and whether none is needed (`open`; clients that must send one send any)."""

    users: tuple[bytes, ...]
    admins: tuple[bytes, ...]
    open: bool

    def caller(self, headers: Headers) -> Caller:
        """Raises ApiError 401 for a missing or wrong key."""
        token = bearer(headers)
        digest = hashlib.sha256(token or b"").digest()
        if token and _known(digest, self.admins):
            return Caller(digest.hex()[:16], admin=True)
        if token and _known(digest, self.users):
            return Caller(digest.hex()[:16], admin=False)
        if self.open:
            return Caller(LOCAL_OWNER, admin=not self.admins)
        if token is None:
            raise ApiError(401, "invalid_api_key", "A key is needed: send it as `Authorization: Bearer <key>`.")
        raise ApiError(401, "invalid_api_key", "This key is not one of this server's keys.")


def _known(digest: bytes, keys: Iterable[bytes]) -> bool:
    found = False
    for key in keys:
        found |= hmac.compare_digest(digest, key)
    return found


def bearer(headers: Headers) -> bytes | None:
    """The token of the Authorization header, as the bytes that came; None without one."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    return token.strip().encode("latin-1") if scheme.lower() == "bearer" and token.strip() else None


def read_keys(settings: Settings, host: str) -> Keys:
    """Keys from the settings, each as itself or as `sha256:<64 hex digits>`, separated by commas or spaces.

    Raises SettingsError when `host` is not loopback and there is no key, or when a digest is malformed.
    """
    users = _digests("FOOTNOTE_API_KEYS", settings.api_keys.get_secret_value())
    admins = _digests("FOOTNOTE_ADMIN_KEYS", settings.admin_keys.get_secret_value())
    if not users and not admins and not is_loopback(host):
        raise SettingsError(
            f"{host} can be reached from other machines: set FOOTNOTE_API_KEYS (and FOOTNOTE_ADMIN_KEYS) first, "
            "or serve on 127.0.0.1."
        )
    return Keys(users, admins, open=not users and is_loopback(host))


def _digests(name: str, text: str) -> tuple[bytes, ...]:
    return tuple(_digest(name, entry) for entry in text.replace(",", " ").split())


def _digest(name: str, entry: str) -> bytes:
    if not entry.startswith(HASHED):
        return hashlib.sha256(entry.encode()).digest()
    try:
        digest = bytes.fromhex(entry.removeprefix(HASHED))
    except ValueError:
        digest = b""
    if len(digest) != 32:
        raise SettingsError(f"{name}: what follows {HASHED} must be 64 hex digits; `make keys` writes them.")
    return digest


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address: `localhost`, 127.0.0.0/8 or ::1."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def check_same_machine(headers: Headers, port: int | None, allowed_origins: Iterable[str]) -> None:
    """For a server without keys: `Host` must be this loopback address and `Origin`, if sent, the same.

    Raises ApiError 403.
    """
    hosts = headers.getlist("host")
    here = AUTHORITY.fullmatch(hosts[0]) if len(hosts) == 1 else None
    if here is None or not is_loopback(here[1].lower()) or (port is not None and int(here[2] or 80) != port):
        raise ApiError(403, "wrong_host", "Without keys this server answers only to its own loopback address as Host.")
    if not {f"http://{here[0]}", *allowed_origins}.issuperset(headers.getlist("origin")):
        raise ApiError(403, "wrong_origin", "Without keys this server answers only to pages it served itself.")


@dataclass
class Gate:
    """ASGI middleware before any body is read: same machine, key, rate. Leaves the `Caller` in `scope["state"]["caller"]`."""

    app: ASGIApp
    keys: Keys
    rate: RateLimit
    origins: tuple[str, ...] = ()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            try:
                self._admit(scope)
            except ApiError as error:
                await error_response(scope["path"], trouble_of(error))(scope, receive, send)
                return
        await self.app(scope, receive, send)

    def _admit(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if self.keys.open and not scope["path"].startswith("/slack/"):
            server = scope.get("server")
            check_same_machine(headers, server[1] if server else None, self.origins)
        if needs_key(scope["path"]):
            caller = self.keys.caller(headers)
            scope.setdefault("state", {})["caller"] = caller
            self.rate.spend(caller.owner)


def needs_key(path: str) -> bool:
    """All but the page, its assets, the API's description, health checks and Slack (which signs its own requests)."""
    return path.startswith(("/api/", "/v1/")) or path == "/metrics"
