"""What `footnote doctor` tells of the doors that `rag` knows nothing of."""

from __future__ import annotations

from collections.abc import Iterator

from rag.doctor import Finding
from rag.settings import Settings


def examine(settings: Settings) -> Iterator[Finding]:
    """One finding a part, each as soon as it is known. Slack's client is loaded only where Slack is configured."""
    if not any(token.get_secret_value() for token in (settings.slack_bot_token, settings.slack_app_token)):
        yield Finding("Slack", "off", "no token is set", "to answer in Slack: see the README")
        return
    from api import slack_web

    yield from slack_web.examine(settings)
