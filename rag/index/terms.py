"""How texts are spelled for the keyword index, and what of a question names something."""

from __future__ import annotations

import re
import unicodedata

# Words that ask rather than name; Tantivy's English list holds only articles, prepositions and the like.
# fmt: off
ASKING = frozenset({
    "what", "which", "who", "whom", "whose", "how", "why", "when", "where", "does", "do", "did", "done", "can",
    "could", "would", "should", "has", "have", "had", "about", "any", "anyone", "some", "i", "me", "my", "we",
    "our", "us", "you", "your", "he", "she", "him", "her", "his", "hers", "them", "its", "am", "been",
    "being", "were", "from", "than", "also", "so", "very", "more", "most", "paper", "papers", "tell", "show", "shows",
    "find", "please", "there", "is", "are", "don", "doesn", "didn", "isn", "aren", "wasn", "weren", "wouldn", "couldn",
    "shouldn", "mustn", "hasn", "haven", "hadn",
})
# fmt: on
WORD = re.compile(r"[^\W_]+")
_SHORTENED = re.compile(r"['’](?:s|t|re|ve|ll|d|m)\b")
COMPOUND = re.compile(r"(?<![^\W_])[^\W_]++(?:[-‐-―−./'’_][^\W_]++)+")
"""Tried only where a word begins, and no letter given back: else a word of 4,000 letters takes a third of a second."""
_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af]+")
_GREEK = {
    letter: unicodedata.name(chr(letter)).split()[-1].lower()
    for letter in (*range(0x391, 0x3AA), *range(0x3B1, 0x3CA))
    if unicodedata.name(chr(letter), "").startswith("GREEK") and len(unicodedata.name(chr(letter)).split()) == 4
}


def spell(text: str) -> str:
    """`text` as it is indexed: compounds also in one word (`LU-KV LUKV`), Greek letters by name, Chinese in pairs of signs."""
    text = _SHORTENED.sub("", normal(text).translate(_GREEK))
    text = COMPOUND.sub(lambda found: f"{found[0]} {''.join(filter(str.isalnum, found[0]))}", text)
    return _CJK.sub(lambda found: f" {_pairs(found[0])} ", text)


def normal(text: str) -> str:
    """Composed and compatible characters, without lone surrogates (which no index takes)."""
    return unicodedata.normalize("NFKC", text).encode("utf-8", "replace").decode("utf-8")


def _pairs(run: str) -> str:
    return " ".join(run[i : i + 2] for i in range(max(1, len(run) - 1)))


def asked(question: str) -> str:
    """`question` as indexed texts are spelled, without the words that only ask; `He` inside a sentence is a name."""

    def kept(found: re.Match[str]) -> str:
        named = found[0][0].isupper() and found.start() > 0
        return found[0] if named or found[0].lower() not in ASKING else ""

    return WORD.sub(kept, spell(question))
