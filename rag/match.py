"""How well a paper's own words meet a question's: what abstaining and extracting are decided by."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rag.index.terms import COMPOUND
from rag.scripts import set_apart
from rag.types import Retrieved, surname
from rag.word_vectors import WordVectors

Weigh = Callable[[str], Mapping[str, float]]
"""The content terms of a text, each with its inverse document frequency: `KeywordIndex.weights`."""

NAME = re.compile(r"(?<![^\W_])[^\W_]*[A-Z0-9][^\W_]*(?:[-./'’][^\W_]+)*")
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")

ROLE, BESIDE = 0.1, 0.1
"""What a sentence's role and its best neighbour count for: recall of the dev questions' points .84 and .65, else .82 and .47."""

CONTRIBUTION = re.compile(
    r"\bwe (?:\w+ly |also |first |then |thus )?(?:propose|introduce|present|develop|show|prove|establish|demonstrate|find|provide"
    r"|derive|design|study|analy[sz]e|identify|characteri[sz]e|reveal|obtain|construct|formulate|argue|release|apply|extend|validate)"
    r"|\bour (?:method|approach|framework|results?|analysis|algorithm|experiments?|theory|findings?|work|model|key|main)\b"
    r"|\bthis (?:paper|work) (?:proposes|introduces|presents|shows|studies|investigates|develops|provides|establishes)\b"
    r"|\bin this (?:paper|work)\b|\bexperiments?\b"
    r"|\bresults? (?:show|demonstrate)|\bachieves?\b|\boutperforms?\b",
    re.IGNORECASE,
)
BACKGROUND = re.compile(
    r"^(?:however|recent(?:ly)?|in recent|while|although|despite|existing|current|traditional|most|previous|prior)\b"
    r"|\b(?:existing|prior|previous) (?:methods|works?|approaches|studies)|\bremains? (?:a challenge|challenging|unclear|an open)"
    r"|\bsuffers? from\b|\b(?:has|have) attracted\b",
    re.IGNORECASE,
)

UNRELATED, SYNONYM = 0.35, 0.85
"""Cosines of two single words from which they are taken to have something to do with each other, and to mean the same."""

UNSEEN = "zqxjkvbw"
"""A word that stands in no paper."""

RARE = 0.6
"""Share of the weight of an unseen word: 3 of 99 papers, some 50 of 50,000."""

LONGEST_BREAK = 20
"""Characters between two sentences that are looked through."""

SENTENCE_START = re.compile(r"(?:^|[.?!:]\s+)\W*$")


@dataclass(frozen=True, slots=True)
class Match:
    """One retrieved paper held against the question. Coverages are shares in [0, 1] of the question's terms, each weighed by its
    inverse document frequency: `coverage` by the whole paper (title, authors and category included), `sentence_coverage[i]` by
    sentence i, of the terms in `asked`, which are those that are not the paper's own names. `missing` are the asked terms it
    does not hold, `missing_names` the names; `is_named` tells whether the question names it (by its method, say)."""

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
        """For each sentence: its cosine to the question and half its coverage; a little more for a sentence that tells what the
        paper does and for one beside a good one, a little less for one that tells what others do."""
        own = [
            cosine + 0.5 * share + ROLE * role(sentence.text)
            for cosine, share, sentence in zip(
                self.found.sentence_scores, self.sentence_coverage, self.found.found.sentences, strict=True
            )
        ]
        beside = zip([0.0, *own[:-1]], [*own[1:], 0.0], strict=True)
        return tuple(score + BESIDE * max(near) for score, near in zip(own, beside, strict=True))


def role(sentence: str) -> int:
    """1 for a sentence that says what its paper does or finds, -1 for one about what others do, else 0."""
    return bool(CONTRIBUTION.search(sentence)) - bool(BACKGROUND.search(sentence))


def match(question: str, found: Retrieved, weigh: Weigh) -> Match:
    """Holds one paper against the question."""
    every = weigh(question)
    compounds = compounds_in(question, weigh)
    weights = {term: weight for term, weight in every.items() if term not in compounds}

    def terms_of(text: str) -> set[str]:
        held = set(weigh(text))
        return held.union(*(parts for joined, parts in compounds.items() if joined in held))

    held = terms_of(searched_text(found))
    names = names_in(question)
    name_terms = {name: set(weigh(name)) for name in names}
    authors = set(weigh(" ".join(found.paper.authors)))
    own = {term for terms in name_terms.values() for term in terms if term in held} | authors
    asked = {term: weight for term, weight in weights.items() if term not in own} or weights
    return Match(
        found=found,
        coverage=share(weights, held),
        sentence_coverage=tuple(share(asked, terms_of(sentence.text)) for sentence in found.found.sentences),
        asked=asked,
        missing=tuple(term for term in asked if term not in held),
        names=names,
        missing_names=tuple(name for name in names if not name_terms[name] <= held),
        is_named=any(is_rare(terms, every, weigh) and terms <= held for terms in name_terms.values()),
    )


def compounds_in(question: str, weigh: Weigh) -> dict[str, set[str]]:
    """The terms of compounds in one word and in parts: `speed-up` is `speedup`, and `speed` (`up` is a stop word). Only the parts
    are weighed, since a compound is but one thing asked for; a paper that writes it in one word holds them too."""
    found: dict[str, set[str]] = {}
    for compound in COMPOUND.findall(question):
        for joined in weigh("".join(filter(str.isalnum, compound))):
            if parts := set(weigh(" ".join(WORD.findall(compound)))) - {joined}:
                found[joined] = parts
    return found


def places_named(question: str, papers: Sequence[Retrieved], weigh: Weigh) -> list[int]:
    """Places of the papers that the question names by a rare name (`XRPO`, `LookWhere`), in the order of its names: for each
    name the first paper that holds it."""
    return list(dict.fromkeys(holding[0] for holding in places_holding(question, papers, weigh)))


def places_holding(question: str, papers: Sequence[Retrieved], weigh: Weigh) -> list[list[int]]:
    """For each rare name of the question that a paper holds, the places of all that do; first those that write it alike, for
    `PLANET` is another thing than a planet."""
    weights, found = weigh(question), []
    for name in names_in(question):
        terms = set(weigh(name))
        if terms and is_rare(terms, weights, weigh):
            places = [place for place, paper in enumerate(papers) if terms <= set(weigh(searched_text(paper)))]
            found.append(sorted(places, key=lambda place: name not in searched_text(papers[place])))
    return [places for places in found if places]


def is_rare(terms: set[str], weights: Mapping[str, float], weigh: Weigh) -> bool:
    """Whether one of these terms stands in so few papers that it names one: its weight is near that of a word in none."""
    (unseen,) = weigh(UNSEEN).values()
    return any(weights.get(term, 0.0) >= RARE * unseen for term in terms)


def meaning_coverage(question: str, matched: Match, weigh: Weigh, vectors: WordVectors) -> float:
    """As coverage of the asked terms, but a term the paper lacks counts as far as the paper's nearest word means the same:
    0 below a cosine of UNRELATED, 1 from SYNONYM on. In [0, 1]."""
    total = sum(matched.asked.values())
    if not matched.missing or not total:
        return 1.0
    spelled = {term: word for word in WORD.findall(question.casefold()) for term in weigh(word)}
    words = sorted({word for word in WORD.findall(matched.found.found.text.casefold()) if weigh(word)})
    if not words:
        return 0.0
    known = vectors.of(words)
    sought = vectors.of([spelled.get(term, term) for term in matched.missing])
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
    spaced = set_apart(question)
    for word in NAME.finditer(spaced):
        text = word.group()
        plain = text[0].isupper() and text[1:].islower()
        opens = SENTENCE_START.search(spaced, max(0, word.start() - LONGEST_BREAK), word.start()) is not None
        if len(text) > 1 and not (plain and opens) and not text.startswith(("I'", "I’")):
            found.append(text)
    return tuple(dict.fromkeys(found))


def places_by_author(question: str, papers: Sequence[Retrieved]) -> list[int]:
    """Places of the papers by an author whom the question names in full; failing these, by a surname with a capital."""
    asked = folded(question)
    full = [place for place, found in enumerate(papers) if any(stands_in(author, asked) for author in found.paper.authors)]
    surnames = {folded(name) for name in names_in(question)}
    return full or [p for p, found in enumerate(papers) if any(folded(surname(a)) in surnames for a in found.paper.authors)]


def stands_in(author: str, asked: str) -> bool:
    """Whether a name of several words (or a Chinese one) stands in a folded question."""
    name = folded(author)
    return bool(name) and (
        (" " in name and re.search(rf"\b{re.escape(name)}\b", asked) is not None) or (not name.isascii() and name in asked)
    )


def folded(text: str) -> str:
    """Without case and accents: `Szepesvári` and `szepesvari` are one."""
    return "".join(char for char in unicodedata.normalize("NFKD", text.casefold()) if not unicodedata.combining(char))
