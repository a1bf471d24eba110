"""No test goes missing unseen in CI."""

from __future__ import annotations

import pytest

from tests.conftest import refuse_missing_package


def skipped(reason: str) -> pytest.TestReport:
    return pytest.TestReport("tests/x.py::test_x", ("x.py", 1, "test_x"), {}, "skipped", ("x.py", 1, reason), "call")


@pytest.mark.parametrize(
    ("ci", "reason", "outcome"),
    [
        ("true", "no Chromium: apt-get install chromium", "failed"),
        ("true", "needs ../shared/seeds", "skipped"),
        ("", "no Chromium: apt-get install chromium", "skipped"),
    ],
)
def test_only_in_ci_a_skip_for_want_of_a_debian_package_fails(
    monkeypatch: pytest.MonkeyPatch, ci: str, reason: str, outcome: str
) -> None:
    monkeypatch.setenv("CI", ci)
    report = skipped(reason)
    refuse_missing_package(report)
    assert report.outcome == outcome
