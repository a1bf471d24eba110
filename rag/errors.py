"""Every error of ours, drawn as a tree. A class exists only where some caller acts differently on it.

FootnoteError                 anything we can explain: one line, saying what to do next
    SettingsError             a setting is wrong or missing
    InputError                what the person gave cannot be used (question, filter, file)
        UnreadableFile        a file is none of the accepted formats
    NotFound                  no such paper, conversation or answer
    Busy                      somebody else's answer to this conversation is being written; later it will work
    Unavailable               a part we need does not answer now; trying later may help
        CatalogueUnavailable  the database cannot be reached or is full
        IndexUnavailable      the dense index (Chroma) cannot be reached
            IndexDamaged      an index cannot be used as it is: it is rebuilt from the catalogue
        LLMUnavailable        the LLM cannot be reached, is overloaded or stalled  (carries retry_after)
    LLMRefused                the LLM's server will not do this request: key, quota, model name, context, content filter
"""

from __future__ import annotations


class FootnoteError(Exception):
    """Anything we can explain to a person in one line that says what to do next.

    `told` says the same to somebody who only asks questions: no address, no setting, nothing that another server said.
    """

    plain = ""
    """What `told` is where nothing else is given; of errors without it, the message itself."""

    def __init__(self, message: str = "", *, told: str = "") -> None:
        super().__init__(message)
        self.told = told or self.plain or message


class SettingsError(FootnoteError):
    """A setting is wrong or missing."""


class InputError(FootnoteError):
    """What the person gave cannot be used."""


class UnreadableFile(InputError):
    """A file is none of the accepted formats, or cannot be read."""


class NotFound(FootnoteError):
    """No such paper, conversation or answer."""


class Busy(FootnoteError):
    """Another answer to the same conversation is being written; ask again when it is done."""


class Unavailable(FootnoteError):
    """A part we need does not answer now; trying later may help."""


class CatalogueUnavailable(Unavailable):
    """The database cannot be reached, is locked for too long, or its disk is full."""

    plain = "The catalogue does not answer at the moment. Try again later."


class IndexUnavailable(Unavailable):
    """The dense index cannot be reached."""

    plain = "The index of the papers does not answer at the moment. Try again later."


class IndexDamaged(IndexUnavailable):
    """What an index holds cannot be used: broken on disk, or made by another model or version. A rebuild mends it."""


class LLMUnavailable(Unavailable):
    """The LLM cannot be reached, is overloaded or stalled. `retry_after` in seconds when its server named one."""

    plain = "The language model does not answer at the moment. Try again later."

    def __init__(self, message: str, retry_after: float | None = None, *, told: str = "") -> None:
        super().__init__(message, told=told)
        self.retry_after = retry_after


class LLMRefused(FootnoteError):
    """The LLM's server will not do this request; asking again the same way will not help."""

    plain = "The language model does not take this question. Tell whoever runs Footnote."


def is_panic(error: BaseException) -> bool:
    """Whether a Rust library gave up where it should have reported: pyo3's PanicException, which derives from BaseException."""
    return type(error).__name__ == "PanicException"
