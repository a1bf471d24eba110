"""Which words are English, so that only slips of the pen are corrected and never a word that the papers happen not to use."""

from __future__ import annotations

import re
from functools import lru_cache

PLAIN_WORD = re.compile(r"(?<![\w-])[^\W\d_][^\W\d_A-Z]+(?![\w-])")
"""Words without digits, inner capitals or hyphens: the others are names."""


def is_english(word: str) -> bool:
    """Whether a lower-case word is one of the 160,000 of pyspellchecker's English list."""
    return word in english_words()


def reads_as_english(text: str) -> bool:
    """Whether at least half of the plain words of a text are English; a text without any is."""
    words = [word.lower() for word in PLAIN_WORD.findall(text)]
    return 2 * sum(map(is_english, words)) >= len(words)


@lru_cache(maxsize=1)
def english_words() -> frozenset[str]:
    """Read at the first word in question (0.15 s), not at import."""
    from spellchecker import SpellChecker

    return frozenset(SpellChecker(language="en").word_frequency.keys())
