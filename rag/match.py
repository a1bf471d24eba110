"""How well a paper's own words meet a question's: what abstaining and extracting are decided by."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rag.protocols import Embedder
from rag.types import Paper, Retrieved

Weigh = Callable[[str], Mapping[str, float]]
"""The content terms of a text, each with its inverse document frequency: `KeywordIndex.weights`."""

NAME = re.compile(r"[^\W_]*[A-Z0-9][^\W_]*(?:[-./'’][^\W_]+)*")
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

UNRELATED, SYNONYM = 0.35, 0.85
"""Cosines of two single words from which they are taken to have something to do with each other, and to mean the same."""

SENTENCE_START = re.compile(r"(?:^|[.?!:]\s+)\W*$")


@dataclass(frozen=True, slots=True)
class Match:
    """One retrieved paper held against the question. Coverages are shares in [0, 1] of the question's terms, each weighed by its
    inverse document frequency: `coverage` by the whole paper (title, authors and category included), `sentence_coverage[i]` by
    sentence i, of the terms in `asked`, which are those that are not the paper's own names. `missing` are the asked terms it
    does not hold, `missing_names` the names; `is_named` tells whether the question names it (a method, an author)."""

    found: Retrieved
    coverage: float
    sentence_coverage: tuple[float, ...]
    asked: Mapping[str, float]
    missing: tuple[str, ...]
    names: tuple[str, ...]
    missing_names: tuple[str, ...]
    is_named: bool

    @property
    def sentence_scores(self) -> tuple[float, ...]:
        """For each sentence: its cosine to the question, and half its coverage on top."""
        return tuple(c + 0.5 * share for c, share in zip(self.found.sentence_scores, self.sentence_coverage, strict=True))


def match(question: str, found: Retrieved, weigh: Weigh) -> Match:
    """Holds one paper against the question."""
    weights = weigh(question)
    held = set(weigh(searched_text(found)))
    names = names_in(question)
    name_terms = {name: set(weigh(name)) for name in names}
    authors = set(weigh(" ".join(found.paper.authors)))
    own = {term for terms in name_terms.values() for term in terms if term in held} | authors
    asked = {term: weight for term, weight in weights.items() if term not in own} or weights
    return Match(
        found=found,
        coverage=share(weights, held),
        sentence_coverage=tuple(share(asked, set(weigh(sentence.text))) for sentence in found.found.sentences),
        asked=asked,
        missing=tuple(term for term in asked if term not in held),
        names=names,
        missing_names=tuple(name for name in names if not name_terms[name] <= held),
        is_named=any(name_terms[name] and name_terms[name] <= held for name in names)
        or bool(authors_named(question, found.paper)),
    )


def meaning_coverage(question: str, matched: Match, weigh: Weigh, embedder: Embedder) -> float:
    """As coverage of the asked terms, but a term the paper lacks counts as far as the paper's nearest word means the same:
    0 below a cosine of UNRELATED, 1 from SYNONYM on. In [0, 1]."""
    total = sum(matched.asked.values())
    if not matched.missing or not total:
        return 1.0
    spelled = {term: word for word in WORD.findall(question.casefold()) for term in weigh(word)}
    words = sorted({word for word in WORD.findall(matched.found.found.text.casefold()) if weigh(word)})
    if not words:
        return 0.0
    known = embedder.embed_texts(words)
    sought = embedder.embed_texts([spelled.get(term, term) for term in matched.missing])
    nearest = (known @ sought.T).max(axis=0)
    lost = sum(
        matched.asked[term] * (1 - min(1.0, max(0.0, (float(cosine) - UNRELATED) / (SYNONYM - UNRELATED))))
        for term, cosine in zip(matched.missing, nearest, strict=True)
    )
    return 1 - lost / total


def searched_text(found: Retrieved) -> str:
    """All the words a paper can be found by."""
    paper = found.paper
    return " ".join(filter(None, (paper.title, found.found.text, *paper.authors, paper.category, paper.venue, *paper.keywords)))


def share(weights: Mapping[str, float], held: set[str]) -> float:
    """How much of the weight is held; 0 of nothing."""
    total = sum(weights.values())
    return sum(weight for term, weight in weights.items() if term in held) / total if total else 0.0


def names_in(question: str) -> tuple[str, ...]:
    """Words with a capital or a digit in them (`XRPO`, `LLaMA-2-13B`, `Mamba`), but not a sentence's capitalised first word."""
    found = []
    for word in NAME.finditer(question):
        text = word.group()
        plain = text[0].isupper() and text[1:].islower()
        opens = SENTENCE_START.search(question[: word.start()]) is not None
        if len(text) > 1 and not (plain and opens) and not text.startswith(("I'", "I’")):
            found.append(text)
    return tuple(dict.fromkeys(found))


def authors_named(question: str, paper: Paper) -> tuple[str, ...]:
    """The authors of `paper` whom the question names: in full, or by a surname written with a capital (or the whole name, if one
    word) that is not the first word of a sentence."""
    folded = question.casefold()
    words = set(names_in(question))
    return tuple(
        author
        for author in paper.authors
        if (" " in author and re.search(rf"\b{re.escape(author.casefold())}\b", folded)) or author.split()[-1] in words
    )
