"""Which script and language a text is written in."""

from __future__ import annotations

import re

_SEAM = re.compile(r"(?<=[A-Za-z0-9])(?=[\u3040-\u9fff\uac00-\ud7af])|(?<=[\u3040-\u9fff\uac00-\ud7af])(?=[A-Za-z0-9])")


def set_apart(text: str) -> str:
    """`text` with a space between Latin letters or digits and the Chinese, Japanese or Korean beside them (`XRPO把`), which reads
    like one word else."""
    return _SEAM.sub(" ", text)


def is_latin(text: str) -> bool:
    """Whether at least three of four letters are Latin ones; a text without letters is."""
    letters = [char for char in text if char.isalpha()]
    latin = sum(char < "\u0250" or "\u1e00" <= char <= "\u1eff" for char in letters)
    return latin * 4 >= len(letters) * 3


def language_of(text: str) -> str:
    """`zh` for a text with Chinese characters, else `en`."""
    return "zh" if any("\u4e00" <= char <= "\u9fff" for char in text) else "en"
