import hashlib

import pytest
from pydantic import SecretStr
from starlette.datastructures import Headers

from api.errors import ApiError
from api.security import LOCAL_OWNER, Keys, bearer, check_same_machine, is_loopback, read_keys
from rag.errors import SettingsError
from rag.settings import Settings


def keys_of(users: str = "", admins: str = "", host: str = "127.0.0.1") -> Keys:
    return read_keys(Settings(api_keys=SecretStr(users), admin_keys=SecretStr(admins)), host)


def token(value: str) -> Headers:
    return Headers({"Authorization": f"Bearer {value}"})


def test_loopback_without_keys_lets_everybody_in_as_admin_whatever_key_they_send() -> None:
    keys = keys_of()
    for headers in (Headers({}), token("anything")):
        caller = keys.caller(headers)
        assert (caller.owner, caller.admin) == (LOCAL_OWNER, True)


def test_an_admin_key_alone_leaves_asking_open_on_loopback_but_not_changing() -> None:
    keys = keys_of(admins="boss")
    assert not keys.caller(Headers({})).admin
    assert not keys.caller(token("wrong")).admin
    assert keys.caller(token("boss")).admin


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "example.org", ""])
def test_another_bind_without_keys_is_refused_with_what_to_set(host: str) -> None:
    with pytest.raises(SettingsError, match="FOOTNOTE_API_KEYS"):
        keys_of(host=host)


def test_keys_are_asked_for_on_loopback_too_once_there_are_some() -> None:
    keys = keys_of(users="one, two")
    for headers in (Headers({}), token("three"), token("one, two"), token("ONE"), Headers({"Authorization": "Basic one"})):
        with pytest.raises(ApiError) as refused:
            keys.caller(headers)
        assert refused.value.status == 401
    first, second = keys.caller(token("one")), keys.caller(token("two"))
    assert first.owner != second.owner
    assert not first.admin


def test_an_owner_does_not_give_the_key_away() -> None:
    assert "secret" not in keys_of(users="secret").caller(token("secret")).owner


def test_an_admin_bind_elsewhere_needs_the_admin_key_for_everything() -> None:
    keys = keys_of(admins="boss", host="0.0.0.0")
    with pytest.raises(ApiError):
        keys.caller(Headers({}))
    assert keys.caller(token("boss")).admin


def test_a_key_may_be_set_as_its_digest_and_the_digest_is_no_key() -> None:
    digest = hashlib.sha256(b"one").hexdigest()
    keys = keys_of(users=f"sha256:{digest}")
    assert keys.caller(token("one")) == keys_of(users="one").caller(token("one"))
    with pytest.raises(ApiError):
        keys.caller(token(f"sha256:{digest}"))


@pytest.mark.parametrize("entry", ["sha256:", "sha256:abc", "sha256:" + "g" * 64, "sha256:" + "0" * 62])
def test_a_malformed_digest_is_a_settings_error(entry: str) -> None:
    with pytest.raises(SettingsError, match="64 hex digits"):
        keys_of(users=entry)


def test_keys_beyond_ascii_are_compared_as_the_bytes_that_came() -> None:
    keys = keys_of(users="clé-密")
    raw = Headers(raw=[(b"authorization", b"bearer " + "clé-密".encode())])
    assert keys.caller(raw).owner
    assert bearer(raw) == "clé-密".encode()


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("[::1]", True),
        ("localhost.evil.org", False),
    ],
)
def test_loopback_is_told_by_address_not_by_resemblance(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "localhost:8000", "LocalHost:8000", "[::1]:8000"])
def test_the_servers_own_address_as_host_passes(host: str) -> None:
    check_same_machine(Headers({"Host": host}), 8000, ())
    check_same_machine(Headers({"Host": host, "Origin": f"http://{host}"}), 8000, ())


@pytest.mark.parametrize(
    "host",
    [
        "evil.org:8000",
        "evil.org",
        "127.0.0.1:9000",
        "127.0.0.1",
        "",
        "127.0.0.1:8000@evil.org",
        "127.0.0.1:8000#evil.org",
        "[::1%25evil]:8000",
        "127.0.0.1.evil.org:8000",
        "x:y",
        "[::1",
    ],
)
def test_any_other_host_is_refused(host: str) -> None:
    with pytest.raises(ApiError) as refused:
        check_same_machine(Headers({"Host": host}), 8000, ())
    assert refused.value.status == 403


@pytest.mark.parametrize("name", ["host", "origin"])
def test_one_right_header_does_not_hide_a_wrong_one(name: str) -> None:
    right = {"host": b"127.0.0.1:8000", "origin": b"http://127.0.0.1:8000"}
    headers = [(key.encode(), value) for key, value in right.items()]
    check_same_machine(Headers(raw=headers), 8000, ())
    with pytest.raises(ApiError):
        check_same_machine(Headers(raw=[*headers, (name.encode(), b"http://evil.org")]), 8000, ())


@pytest.mark.parametrize("origin", ["http://evil.org", "null", "https://127.0.0.1:8000", "http://127.0.0.1:9000", ""])
def test_another_origin_is_refused_unless_it_is_allowed(origin: str) -> None:
    headers = Headers({"Host": "127.0.0.1:8000", "Origin": origin})
    with pytest.raises(ApiError):
        check_same_machine(headers, 8000, ())
    check_same_machine(headers, 8000, (origin,))
