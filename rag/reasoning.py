"""Takes a reasoning model's thinking out of its answer, in the three shapes in which servers let it through:

`<think>…</think>answer`; `<think>…` that is never closed; `…</think>answer`, where the chat template had already opened the tag.
"""

from __future__ import annotations

import re

OPENING = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)
CLOSING = re.compile(r"(?<!`)</think(?:ing)?>\s*", re.IGNORECASE)

ANSWER = re.compile(r"[\[【［]\s*\d|^\s*(?:NOT_IN_PAPERS|NEEDS_FULL_TEXT)")
THINKING_ALOUD = re.compile(
    r"\b(?:okay|alright|hmm+|wait|let me|let's|the (?:user|question)|i (?:need|should|will|must|think|have)|i'll"
    r"|we (?:need|should|must))\b|用户|我需要|我应该|我们需要|好的，|嗯，",
    re.IGNORECASE,
)
"""Words of somebody thinking that an answer from papers has no use for; where it has, it is shown at its end only."""
LONG_ENOUGH = 160
"""Characters of text that does not sound like thinking, after which it is believed to be none."""


def without_reasoning(text: str) -> str:
    """The answer in a whole reply, without leading white space; empty where the reply is nothing but thinking."""
    while opening := OPENING.match(text):
        closing = CLOSING.search(text, opening.end())
        text = text[closing.end() :] if closing else ""
    lone = CLOSING.search(text)
    if lone and not re.search(r"<think(?:ing)?>", text[: lone.start()], re.IGNORECASE):
        text = text[lone.end() :]
    return text.lstrip()


class ReasoningFilter:
    """The same, on a stream: `feed` gives what is surely answer, `finish` the rest.

    Whether a text is thinking whose opening tag was swallowed shows only at its closing tag. So text is held back until its first
    marker or status word, or until it is LONG_ENOUGH; to the end where it talks like somebody thinking; and `wary` holds back
    everything, for a model that is known to think so. After the release nothing is taken out any more.
    """

    def __init__(self, *, wary: bool) -> None:
        self._wary = wary
        self._held = ""
        self._released = False
        self.lone_closing_tag = False

    def feed(self, text: str) -> str:
        if self._released:
            return text
        self._held += text
        return self._release() if self._is_answer() else ""

    def finish(self) -> str:
        return "" if self._released else self._release()

    def _is_answer(self) -> bool:
        opening = OPENING.match(self._held)
        closing = CLOSING.search(self._held)
        if closing:
            self.lone_closing_tag |= opening is None
            rest = self._held[closing.end() :].lstrip()
            return bool(rest) and not rest.startswith("<")
        if opening or self._wary or THINKING_ALOUD.search(self._held):
            return False
        return len(self._held) >= LONG_ENOUGH or ANSWER.search(self._held) is not None

    def _release(self) -> str:
        self._released = True
        return without_reasoning(self._held)
