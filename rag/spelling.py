"""Which words are English, so that only slips of the pen are corrected and never a word that the papers happen not to use."""

from __future__ import annotations

from functools import lru_cache


def is_english(word: str) -> bool:
    """Whether a lower-case word is one of the 160,000 of pyspellchecker's English list."""
    return word in english_words()


@lru_cache(maxsize=1)
def english_words() -> frozenset[str]:
    """Read at the first word in question (0.15 s), not at import."""
    from spellchecker import SpellChecker

    return frozenset(SpellChecker(language="en").word_frequency.keys())
