"""With CI=true a test that skips for want of a Debian package fails: there `.ci/run` installs them all."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest


def refuse_missing_package(report: pytest.TestReport | pytest.CollectReport) -> None:
    """Turns a skip whose reason says `apt-get install …` into a failure."""
    if os.environ.get("CI") == "true" and report.skipped and "apt-get install" in str(report.longrepr):
        report.outcome = "failed"
        report.longrepr = f"skipped, though CI has every package: {report.longrepr}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    refuse_missing_package(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    refuse_missing_package(report)
    return report
