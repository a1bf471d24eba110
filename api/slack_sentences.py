"""What the bot says that is no answer, in one table: requests, thanks, refusals, failures."""

from __future__ import annotations

from api.errors import ApiError
from api.slack_text import safe_cut
from rag.errors import Busy, InputError, LLMRefused, LLMUnavailable, NotFound, Unavailable

LONGEST = 900
"""Characters of a sentence that an error brings itself."""

WORKING = "is reading the papers…"
WANTED = "What would you like to know? Mention me with a question, or write `bib` for the papers cited in this thread."
BIB = "BibTeX of the papers cited in this thread"
NO_BIB = "Nothing was cited in this thread yet."
THANKS = {"up": "Thank you, noted as helpful.", "down": "Thank you, noted as not helpful."}
ASKED = "*Asked:* {question}"
NOT_HERE = "I was not allowed to answer in this channel. Write to me directly, or ask whoever runs Footnote to add it."
FULL = "Too many questions are waiting already. Ask again in a minute."
SLOWLY = "That was many questions in one minute. I answer here again in a minute."
RESTARTING = "I am being restarted and could not finish this answer. Ask again in a moment."
REFUSED = "Slack would not show the whole answer ({code}). It begins: "
REST = "The answer goes on."
NEAREST = "*Nearest papers*"
REFUSED_REST = "Slack would not show the rest of the answer ({code})."
SHORTENED = "_The answer was too long for Slack and was shortened here._"
UNSHOWN = "There is an answer, but Slack will not show it here. Ask whoever runs Footnote."
BROKEN = "Something broke here, and was logged. Ask again; if it happens again, tell whoever runs Footnote."

SENTENCES: dict[type[BaseException], str] = {
    LLMUnavailable: "The language model does not answer at the moment. Ask again in a minute.",
    LLMRefused: "The language model refused this question. If it does so again, tell whoever runs Footnote.",
    Unavailable: "The library cannot be reached at the moment. Ask again in a minute.",
    Busy: "Another question of this thread is still being answered. Ask again when it is done.",
    NotFound: "That is no longer there.",
    TimeoutError: "It took too long. Ask again, perhaps a narrower question.",
    ApiError: FULL,
}
"""What is said for an error, nearest class first; an InputError says itself what to do."""


def waiting(ahead: int) -> str:
    """A status, after the bot's name."""
    return f"answers {counted(ahead)} before this one…"


def patience(ahead: int) -> str:
    """For the one who asked by a command."""
    return f"Your question is taken; I answer {counted(ahead)} before it."


def counted(questions: int) -> str:
    """`1 other question`, `2 other questions`."""
    return f"{questions} other question{'' if questions == 1 else 's'}"


def sentence_of(error: BaseException) -> str:
    """What a person in Slack reads of an error; nothing of what it holds but for an InputError's own words."""
    if isinstance(error, InputError):
        return safe_cut(str(error), LONGEST)
    return next((SENTENCES[known] for known in type(error).__mro__ if known in SENTENCES), BROKEN)
