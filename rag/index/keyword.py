"""The keyword index: BM25 over the fields of a paper, by Tantivy.

A question is never parsed: it is analysed into terms, and the query is built of those, so that any text is a valid question.
"""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path

import tantivy

from rag.errors import IndexDamaged, is_panic
from rag.index.terms import ASKING, WORD, asked, normal, spell
from rag.index.vocabulary import Vocabulary
from rag.spelling import is_english
from rag.types import IndexedPaper

SCHEMA_VERSION = 2
"""Raised when fields or analysis change: an index of another version is rebuilt."""

WEIGHTS = {"whole": 1.0, "title": 0.5, "authors": 1.0, "category": 0.5, "venue": 0.5, "keywords": 1.0}
"""What a BM25 score counts for, by field. `whole` is title and abstract in one, so that a paper without an abstract's words
in its title is not taken for a short one. Chosen on the dev halves of five collections, where nearby weights differ little."""

NAMES = ("authors", "venue")
"""Fields of names, which are neither stemmed nor stripped of stop words (the author An, the venue IT)."""

CORRECTED_WEIGHT = 0.7
"""What a term counts for that stands in for one that occurs nowhere."""

MAX_TERMS = 512
"""Terms of a question that are looked up; the first ones, since a longer text is no question."""

SET_LIMIT = 1000
"""Up to so many ids a restricted search asks the index for these alone; beyond, reading down the ranked list is faster."""

AT_ONCE = 64
"""Questions whose queries are kept, since each is searched by several times."""

TEXTS = 256
"""Texts whose weights are kept: a draft looks at the same few papers, sentence by sentence, up to six times."""

WRITER_MEMORY = 64_000_000


@lru_cache(maxsize=1)
def _prose() -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(r"[\p{L}\p{M}\p{N}]+"))
    builder = builder.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.ascii_fold())
    return builder.filter(tantivy.Filter.stopword("english")).filter(tantivy.Filter.stemmer("english")).build()


@lru_cache(maxsize=1)
def _words() -> tantivy.TextAnalyzer:
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.regex(r"[\p{L}\p{M}\p{N}]+"))
    return builder.filter(tantivy.Filter.lowercase()).filter(tantivy.Filter.ascii_fold()).build()


def _schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("paper_id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("words", tokenizer_name="words", index_option="basic")
    for field in WEIGHTS:
        builder.add_text_field(field, tokenizer_name="words" if field in NAMES else "prose", index_option="freq")
    return builder.build()


@contextmanager
def _explained() -> Iterator[None]:
    """Tantivy's faults, which are ValueErrors and panics, as ours."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, IndexDamaged) or not (isinstance(error, ValueError | OSError) or is_panic(error)):
            raise
        line = (str(error).splitlines() or [type(error).__name__])[0]
        raise IndexDamaged(f"The keyword index cannot be used ({line[:200]}): run `footnote reindex`.") from error


class TantivyIndex:
    """BM25 (k1 1.2, b 0.75) over each field, summed with `WEIGHTS`; English stemming; names by their ASCII letters.

    In `folder`, or in memory with None. Safe for many threads; one process may write while others search. Raises IndexDamaged
    when the files cannot be used.
    """

    def __init__(self, folder: Path | None) -> None:
        self._schema = _schema()
        with _explained():
            if folder is not None:
                folder.mkdir(parents=True, exist_ok=True)
            self._index = tantivy.Index(self._schema, path=None if folder is None else str(folder))
        self._index.register_tokenizer("prose", _prose())
        self._index.register_tokenizer("words", _words())
        self._writing = threading.Lock()
        self._vocabulary = (-1, Vocabulary([]))
        self._generation = 0
        self._queries = lru_cache(maxsize=AT_ONCE)(self._new_query)
        self._weights = lru_cache(maxsize=TEXTS)(self._new_weights)

    @_explained()
    def count(self) -> int:
        """How many papers it holds."""
        return self._index.searcher().num_docs

    @_explained()
    def refresh(self) -> None:
        """Sees what another process has committed."""
        self._index.reload()
        self._generation += 1

    def apply(self, upserts: Sequence[IndexedPaper], deletes: Sequence[str]) -> None:
        """One commit, idempotent: replaces what it held of these papers."""
        with self._commit() as writer:
            for paper_id in (*deletes, *(found.paper.paper_id for found in upserts)):
                writer.delete_documents_by_term("paper_id", paper_id)
            for found in upserts:
                writer.add_document(_document(found))

    def rebuild(self, papers: Iterable[IndexedPaper]) -> None:
        """Holds exactly these papers, after one commit."""
        with self._commit() as writer:
            writer.delete_all_documents()
            for found in papers:
                writer.add_document(_document(found))

    @_explained()
    def search(self, question: str, k: int, within: Collection[str] | None = None) -> list[tuple[str, float]]:
        """The best `k` papers with a score above zero as (paper_id, BM25), best first; only those `within`, if given."""
        query = self._query(question)
        if within is None:
            return self._top(query, k)
        if len(within) <= SET_LIMIT:
            return self._top(self._restricted(query, within), k)
        members = frozenset(within)
        reach = k + 2 * k * self.count() // len(members)
        while True:
            ranked = self._top(query, reach)
            found = [hit for hit in ranked if hit[0] in members]
            if len(found) >= k or len(ranked) < reach:
                return found[:k]
            reach *= 2

    @_explained()
    def scores(self, question: str, paper_ids: Sequence[str]) -> Mapping[str, float]:
        """The BM25 score of each of these papers (absent: 0), the same numbers `search` gives."""
        if not paper_ids:
            return {}
        return dict(self._top(self._restricted(self._query(question), paper_ids), len(paper_ids)))

    @_explained()
    def weights(self, text: str) -> Mapping[str, float]:
        """The content terms of `text` as indexed (stemmed, no stop words), in order, each with its inverse document frequency
        ln(1 + (N - n + 0.5) / (n + 0.5)) for n of N papers that hold it in title or abstract (Robertson and Sparck Jones, as
        Lucene and Tantivy have it); a term that occurs nowhere has the highest."""
        return self._weights(text, self._generation)

    def _new_weights(self, text: str, generation: int) -> Mapping[str, float]:
        """Good for this `generation` of papers."""
        searcher = self._index.searcher()
        papers = searcher.num_docs
        held = {term: min(papers, searcher.doc_freq("whole", term)) for term in _prose().analyze(asked(text))[:MAX_TERMS]}
        return {term: math.log(1 + (papers - n + 0.5) / (n + 0.5)) for term, n in held.items()}

    @_explained()
    def correct(self, question: str) -> str:
        """`question` with each word that occurs nowhere in the papers replaced by the nearest one that does, if there is one."""
        replaced = self._stand_ins(question)
        return WORD.sub(lambda found: replaced.get("".join(_words().analyze(found[0])), found[0]), question)

    @contextmanager
    def _commit(self) -> Iterator[tantivy.IndexWriter]:
        """A writer whose changes are there, all of them, after the block."""
        with self._writing, _explained():
            writer = self._index.writer(WRITER_MEMORY, 1)
            yield writer
            writer.commit()
            writer.wait_merging_threads()
        self.refresh()

    def _top(self, query: tantivy.Query, k: int) -> list[tuple[str, float]]:
        searcher = self._index.searcher()
        hits = searcher.search(query, max(1, k), count=False).hits if k > 0 else []
        found = [(str(searcher.doc(address)["paper_id"][0]), float(score)) for score, address in hits if score > 0]
        return sorted(found, key=lambda hit: (-hit[1], hit[0]))

    def _restricted(self, query: tantivy.Query, paper_ids: Iterable[str]) -> tantivy.Query:
        only = tantivy.Query.term_set_query(self._schema, "paper_id", list(paper_ids))
        silent = tantivy.Query.const_score_query(only, 0.0)
        return tantivy.Query.boolean_query([(tantivy.Occur.Must, silent), (tantivy.Occur.Should, query)])

    def _query(self, question: str) -> tantivy.Query:
        return self._queries(question, self._generation)

    def _new_query(self, question: str, generation: int) -> tantivy.Query:
        """Good as long as the papers stay as they are in this `generation`, for what stands in for a word may change."""
        stand_ins = asked(" ".join(self._stand_ins(question).values()))
        weighted = [*self._terms(asked(question), 1.0), *self._terms(stand_ins, CORRECTED_WEIGHT)]
        if not weighted:
            return tantivy.Query.empty_query()
        return tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in weighted])

    def _terms(self, text: str, weight: float) -> list[tantivy.Query]:
        """A term asked for twice counts twice."""
        prose, words = (Counter(analyzer.analyze(text)[:MAX_TERMS]) for analyzer in (_prose(), _words()))
        return [
            tantivy.Query.boost_query(
                tantivy.Query.term_query(self._schema, field, term, index_option="freq"), weight * times * field_weight
            )
            for field, field_weight in WEIGHTS.items()
            for term, times in (words if field in NAMES else prose).items()
        ]

    def _stand_ins(self, question: str) -> dict[str, str]:
        """For each word of `question` that is not English and that the papers lack in every inflection: the nearest."""
        words = dict.fromkeys(_words().analyze(normal(question))[:MAX_TERMS])
        return {word: near for word in words if self._is_unknown(word) and (near := self._nearest(word))}

    def _is_unknown(self, word: str) -> bool:
        if len(word) < 4 or not (word.isascii() and word.isalpha()) or word in ASKING:
            return False
        searcher = self._index.searcher()
        if searcher.doc_freq("words", word) or any(searcher.doc_freq("whole", stem) for stem in _prose().analyze(word)):
            return False
        return not is_english(word)

    def _nearest(self, word: str) -> str | None:
        """See Vocabulary.nearest; the words are read again after a commit."""
        generation, known = self._vocabulary
        if generation != self._generation:
            generation = self._generation
            known = Vocabulary(self._index.searcher().terms_with_prefix("words", ""))
            self._vocabulary = (generation, known)
        return known.nearest(word)


def _document(found: IndexedPaper) -> tantivy.Document:
    paper = found.paper
    fields = {
        "whole": [" ".join(filter(None, (paper.title, found.text)))],
        "title": [paper.title or ""],
        "authors": paper.authors,
        "category": [paper.category or ""],
        "venue": [paper.venue or ""],
        "keywords": paper.keywords,
    }
    document = tantivy.Document()
    document.add_text("paper_id", paper.paper_id)
    for field, texts in fields.items():
        for text in filter(None, map(spell, texts)):
            document.add_text(field, text)
            document.add_text("words", text)
    return document
