"""The catalogue: every paper as given, its reading, its vectors, and a revision number that grows with each change. The truth."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sqlalchemy import Connection, Row, Select, and_, delete, func, insert, or_, select, update

from rag.database import Database, aliases, facets, fingerprints, papers, redirects, sentence_vectors, state, whole_vectors
from rag.errors import FootnoteError, InputError, NotFound
from rag.filters import Names as FilterNames
from rag.identity import Record, area_key, author_key, is_strong, match_key, readings, surname_key
from rag.shelf import Shelf
from rag.types import Commit, Filters, IndexedPaper, Paper, Sentence, Vectors

Embedded = Mapping[str, Mapping[str, Vectors]]
"""model → text hash → vectors of shape (1 + sentences or 1, dimension), unit length; row 0 is title and abstract as one."""

AT_ONCE = 1000
"""How many values one statement is given in an IN list."""

MOST_IDS = 30_000
"""How many ids a filter may name: the smallest number of values that every database takes in one statement is 32,766."""

PAPER = (
    papers.c.paper_id,
    papers.c.abstract,
    papers.c.title,
    papers.c.authors,
    papers.c.authors_truncated,
    papers.c.category,
    papers.c.venue,
    papers.c.year,
    papers.c.url,
    papers.c.doi,
    papers.c.keywords,
)
LIVE = papers.c.deleted.is_(False)


@dataclass(frozen=True, slots=True)
class Change:
    """A paper that is not as it was before `revision`."""

    paper_id: str
    revision: int
    deleted: bool


@dataclass(frozen=True, slots=True)
class Names:
    """Every author, venue, category and year of the live papers, spelled as given, with how many papers have it."""

    authors: Mapping[str, int]
    venues: Mapping[str, int]
    categories: Mapping[str, int]
    years: Mapping[int, int]


class NotEmbedded(FootnoteError):
    """The commit would leave a paper without vectors: someone else changed it since it was planned. Plan again."""


class Catalogue:
    """All papers. Every method raises CatalogueUnavailable when the database does not answer."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def revision(self) -> int:
        """The number of changes so far."""
        with self.database.reading() as connection:
            return int(connection.execute(select(state.c.revision)).scalar_one())

    def count(self, model: str | None = None) -> int:
        """How many papers there are; with `model`, how many have vectors of it."""
        query = select(func.count()).select_from(papers).where(LIVE)
        if model is not None:
            vectors = and_(whole_vectors.c.text_hash == papers.c.text_hash, whole_vectors.c.model == model)
            query = query.where(select(1).where(vectors).exists())
        with self.database.reading() as connection:
            return int(connection.execute(query).scalar_one())

    def plan(self, records: Sequence[Record], models: Sequence[str]) -> dict[str, dict[str, IndexedPaper]]:
        """What `commit` must be given vectors of: by model and text hash, the papers as the records will leave them."""
        with self.database.reading() as connection:
            changed = {record.text_hash: record.indexed for record in load_shelf(connection, records).changed}
            wanting = {}
            for model in models:
                stored = stored_hashes(connection, model, list(changed))
                wanting[model] = {key: paper for key, paper in changed.items() if key not in stored}
            return wanting

    def commit(self, records: Sequence[Record], embedded: Embedded | None = None) -> Commit:
        """Adds or merges papers, all or none. Each changed paper must have vectors of every model in `embedded`, there or
        stored already, else NotEmbedded is raised. When nothing changes, nothing is written and the revision stays."""
        embedded = embedded or {}
        with self.database.writing() as connection:
            revision = lock(connection)
            shelf = load_shelf(connection, records)
            if shelf.changed:
                revision += 1
                write_vectors(connection, shelf.changed, embedded)
                write_shelf(connection, shelf, revision)
            return Commit(revision, shelf.added, shelf.merged, shelf.unchanged)

    def remove(self, paper_ids: Sequence[str]) -> Commit:
        """Removes papers with their texts, vectors and other names; ids of no live paper are passed over."""
        with self.database.writing() as connection:
            revision = lock(connection)
            gone = [
                row.paper_id for row in rows_of(connection, select(papers.c.paper_id).where(LIVE), papers.c.paper_id, paper_ids)
            ]
            if gone:
                revision += 1
                bury(connection, gone, revision)
                for batch in batches(gone):
                    connection.execute(delete(redirects).where(redirects.c.paper_id.in_(batch)))
                drop_unused_vectors(connection)
                set_revision(connection, revision)
            return Commit(revision, removed=len(gone))

    def changes(self, after: int, limit: int) -> list[Change]:
        """Papers changed after revision `after`, ordered by (revision, paper_id): `limit` of them and the rest of the last one's
        revision, so that its revision is where to resume."""
        columns = select(papers.c.paper_id, papers.c.revision, papers.c.deleted).where(papers.c.revision > after)
        in_order = columns.order_by(papers.c.revision, papers.c.paper_id)
        with self.database.reading() as connection:
            last = connection.scalar(
                select(func.max(papers.c.revision)).where(
                    papers.c.revision.in_(
                        select(papers.c.revision).where(papers.c.revision > after).order_by(papers.c.revision).limit(limit)
                    )
                )
            )
            if last is None:
                return []
            return [Change(*row) for row in connection.execute(in_order.where(papers.c.revision <= last))]

    def changed_since(self, paper_ids: Sequence[str], revision: int) -> set[str]:
        """Those of the papers that have changed, gone or become another one after `revision`."""
        columns = select(papers.c.paper_id).where(papers.c.revision > revision)
        with self.database.reading() as connection:
            return {row.paper_id for row in rows_of(connection, columns, papers.c.paper_id, paper_ids)}

    def papers(self, paper_ids: Sequence[str]) -> list[Paper]:
        """In the order asked; unknown and removed ones are left out."""
        with self.database.reading() as connection:
            rows = rows_of(connection, select(*PAPER).where(LIVE), papers.c.paper_id, paper_ids)
            found = {row.paper_id: read_paper(row) for row in rows}
        return [found[paper_id] for paper_id in paper_ids if paper_id in found]

    def indexed(self, paper_ids: Sequence[str], model: str) -> list[IndexedPaper]:
        """With texts and vectors of `model` (None where there are none), in the order asked; unknown ones are left out."""
        with self.database.reading() as connection:
            rows = rows_of(connection, with_vectors(model).where(LIVE), papers.c.paper_id, paper_ids)
            found = {row.paper_id: read_indexed(row) for row in rows}
        return [found[paper_id] for paper_id in paper_ids if paper_id in found]

    def whole_vectors(self, model: str) -> tuple[list[str], Vectors]:
        """Ids of all papers with vectors of `model`, in order of arrival, and row 0 of each: shape (papers, dimension)."""
        query = (
            select(papers.c.paper_id, whole_vectors.c.vector)
            .join(whole_vectors, and_(whole_vectors.c.text_hash == papers.c.text_hash, whole_vectors.c.model == model))
            .where(LIVE)
            .order_by(papers.c.arrival)
        )
        paper_ids: list[str] = []
        parts: list[Vectors] = []
        with self.database.reading() as connection:
            for rows in connection.execution_options(stream_results=True).execute(query).partitions(4096):
                paper_ids += [row[0] for row in rows]
                parts.append(read_vectors(b"".join([row[1] for row in rows]), len(rows)))
        return paper_ids, np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)

    def matching(self, filters: Filters) -> list[str]:
        """Ids of all papers that pass, in order of arrival. Names match without case and accents; a category also as the area of
        `area · topic`, an author also by surname. A paper without a year passes no year filter."""
        with self.database.reading() as connection:
            return list(connection.scalars(filtered(connection, select(papers.c.paper_id), filters).order_by(papers.c.arrival)))

    def resolve(self, name: str) -> str:
        """The id of the paper known as `name`: its id, an id it had before a merge, a DOI, arXiv id or other external id, bare or
        as a link, or its id in the file it came from. Raises NotFound."""
        name = name.strip()
        with self.database.reading() as connection:
            heir = connection.scalar(select(redirects.c.paper_id).where(redirects.c.old_id == name))
            known = connection.scalar(select(papers.c.paper_id).where(LIVE, papers.c.paper_id == (heir or name)))
            if known:
                return str(known)
            for alias in [*readings(name), name, f"id:{name}"]:
                known = connection.scalar(select(aliases.c.paper_id).where(aliases.c.alias == alias))
                if known:
                    return str(known)
        raise NotFound(f"No paper is known as {name!r}; `footnote papers list` shows all there are.")

    def list(self, *, after: str | None = None, limit: int = 100, filters: Filters | None = None) -> list[Paper]:
        """Up to `limit` papers in order of arrival, those after the paper `after` (also when it has been removed since).
        Raises NotFound when there never was such a paper."""
        with self.database.reading() as connection:
            query = filtered(connection, select(*PAPER), filters or Filters())
            if after is not None:
                place = connection.scalar(select(papers.c.arrival).where(papers.c.paper_id == after))
                if place is None:
                    raise NotFound(f"No paper {after!r} to continue after; start from the beginning.")
                query = query.where(papers.c.arrival > place)
            return [read_paper(row) for row in connection.execute(query.order_by(papers.c.arrival).limit(limit))]

    def missing(self, model: str, limit: int) -> dict[str, IndexedPaper]:
        """Papers without vectors of `model`, by text hash: the first `limit` to arrive."""
        query = with_vectors(model).where(LIVE, whole_vectors.c.vector.is_(None)).order_by(papers.c.arrival).limit(limit)
        with self.database.reading() as connection:
            return {row.text_hash: read_indexed(row) for row in connection.execute(query)}

    def add_vectors(self, model: str, vectors: Mapping[str, Vectors]) -> Commit:
        """Gives papers that are there already vectors of `model`, by text hash; they count as changed."""
        with self.database.writing() as connection:
            revision = lock(connection)
            hashes = select(papers.c.text_hash).where(LIVE)
            wanted = {row.text_hash for row in rows_of(connection, hashes, papers.c.text_hash, list(vectors))}
            wanted -= stored_hashes(connection, model, list(wanted))
            if wanted:
                revision += 1
                insert_vectors(connection, model, {key: vectors[key] for key in wanted})
                for batch in batches(sorted(wanted)):
                    connection.execute(update(papers).where(LIVE, papers.c.text_hash.in_(batch)).values(revision=revision))
                set_revision(connection, revision)
            return Commit(revision, merged=len(wanted))

    def filter_names(self) -> FilterNames:
        """What the words of a question may mean as filters: every venue and category, and whether papers have years."""
        with self.database.reading() as connection:
            venues = tuple(connection.scalars(select(papers.c.venue).where(LIVE, papers.c.venue.is_not(None)).distinct()))
            areas = tuple(connection.scalars(select(papers.c.category).where(LIVE, papers.c.category.is_not(None)).distinct()))
            dated = connection.execute(select(papers.c.paper_id).where(LIVE, papers.c.year.is_not(None)).limit(1)).first()
        return FilterNames(venues=venues, categories=areas, has_years=dated is not None)

    def names(self) -> Names:
        """All names that filters can match. Reads every paper: keep the result for as long as the revision stands."""
        with self.database.reading() as connection:
            columns = select(papers.c.authors, papers.c.venue, papers.c.category, papers.c.year)
            rows = connection.execute(columns.where(LIVE).order_by(papers.c.arrival)).all()
        return Names(
            authors=Counter(author for row in rows for author in dict.fromkeys(json.loads(row.authors))),
            venues=Counter(row.venue for row in rows if row.venue),
            categories=Counter(row.category for row in rows if row.category),
            years=Counter(row.year for row in rows if row.year),
        )


def lock(connection: Connection) -> int:
    """Makes this writer the only one until it ends; the revision it starts from."""
    return int(connection.execute(select(state.c.revision).with_for_update()).scalar_one())


def set_revision(connection: Connection, revision: int) -> None:
    connection.execute(update(state).values(revision=revision))


def load_shelf(connection: Connection, records: Sequence[Record]) -> Shelf:
    """The stored papers that these records may be, and what the records do to them."""
    names = rows_of(connection, select(aliases), aliases.c.alias, [name for record in records for name in record.names])
    owners = {row.alias: row.paper_id for row in names}
    prints = [fingerprint for record in records for fingerprint in record.fingerprints]
    shared = rows_of(connection, select(fingerprints.c.paper_id), fingerprints.c.fingerprint, prints)
    paper_ids = {owner for name, owner in owners.items() if is_strong(name)} | {row.paper_id for row in shared}
    proposed = [record.paper.paper_id for record in records]
    taken = rows_of(connection, select(papers.c.paper_id).where(LIVE), papers.c.paper_id, proposed)
    renamed = rows_of(connection, select(redirects.c.old_id), redirects.c.old_id, proposed)
    shelf = Shelf(stored_records(connection, paper_ids), owners, [row[0] for row in [*taken, *renamed]])
    for record in records:
        shelf.take(record)
    return shelf


def stored_records(connection: Connection, paper_ids: Iterable[str]) -> list[Record]:
    """In order of arrival."""
    wanted = sorted(paper_ids)
    names: dict[str, set[str]] = {paper_id: set() for paper_id in wanted}
    prints: dict[str, set[str]] = {paper_id: set() for paper_id in wanted}
    for row in rows_of(connection, select(aliases), aliases.c.paper_id, wanted):
        names[row.paper_id].add(row.alias)
    for row in rows_of(connection, select(fingerprints), fingerprints.c.paper_id, wanted):
        prints[row.paper_id].add(row.fingerprint)
    columns = select(*PAPER, papers.c.arrival, papers.c.text, papers.c.sentences, papers.c.version).where(LIVE)
    rows = sorted(rows_of(connection, columns, papers.c.paper_id, wanted), key=lambda row: row.arrival)
    return [
        Record(
            paper=read_paper(row),
            text=row.text,
            sentences=read_sentences(row.sentences),
            names=frozenset(names[row.paper_id]),
            fingerprints=frozenset(prints[row.paper_id]),
            version=row.version,
        )
        for row in rows
    ]


def write_shelf(connection: Connection, shelf: Shelf, revision: int) -> None:
    """What the records did: papers that went into others first, then changed papers, then new ones."""
    changed = [record for record in shelf.changed if record.paper.paper_id in shelf.before]
    new = [record for record in shelf.changed if record.paper.paper_id not in shelf.before]
    if shelf.redirects:
        bury(connection, list(shelf.redirects), revision)
        for old_id, paper_id in shelf.redirects.items():
            connection.execute(update(redirects).where(redirects.c.paper_id == old_id).values(paper_id=paper_id))
        connection.execute(insert(redirects), [{"old_id": old, "paper_id": heir} for old, heir in shelf.redirects.items()])
    if changed:
        rewrite(connection, changed, revision)
    if new:
        add(connection, new, revision)
    if shelf.redirects or changed:
        drop_unused_vectors(connection)
    set_revision(connection, revision)


def rewrite(connection: Connection, records: Sequence[Record], revision: int) -> None:
    paper_ids = [record.paper.paper_id for record in records]
    places = rows_of(connection, select(papers.c.paper_id, papers.c.arrival), papers.c.paper_id, paper_ids)
    arrivals = {row.paper_id: row.arrival for row in places}
    forget_names(connection, paper_ids)
    for record in records:
        row = paper_row(record, revision, arrivals[record.paper.paper_id])
        connection.execute(update(papers).where(papers.c.arrival == row["arrival"]).values(row))
    add_names(connection, records, [arrivals[paper_id] for paper_id in paper_ids])


def add(connection: Connection, records: Sequence[Record], revision: int) -> None:
    for batch in batches([record.paper.paper_id for record in records]):  # papers removed once that come again
        connection.execute(delete(papers).where(papers.c.paper_id.in_(batch)))
    first = connection.execute(select(state.c.arrivals)).scalar_one() + 1
    arrivals = list(range(first, first + len(records)))
    connection.execute(insert(papers), [paper_row(r, revision, place) for r, place in zip(records, arrivals, strict=True)])
    connection.execute(update(state).values(arrivals=arrivals[-1]))
    add_names(connection, records, arrivals)


def bury(connection: Connection, paper_ids: Sequence[str], revision: int) -> None:
    """Leaves only tombstones of these papers."""
    forget_names(connection, paper_ids)
    empty = dict.fromkeys(("title", "venue", "category", "url", "doi", "year", "version"))
    texts = {"abstract": "", "text": "", "sentences": "[]", "authors": "[]", "keywords": "[]", "text_hash": ""}
    for batch in batches(paper_ids):
        grave = update(papers).where(papers.c.paper_id.in_(batch))
        connection.execute(grave.values(deleted=True, revision=revision, **texts, **empty))


def forget_names(connection: Connection, paper_ids: Sequence[str]) -> None:
    for batch in batches(paper_ids):
        connection.execute(delete(aliases).where(aliases.c.paper_id.in_(batch)))
        connection.execute(delete(fingerprints).where(fingerprints.c.paper_id.in_(batch)))
        places = select(papers.c.arrival).where(papers.c.paper_id.in_(batch))
        connection.execute(delete(facets).where(facets.c.arrival.in_(places)))


def add_names(connection: Connection, records: Sequence[Record], arrivals: Sequence[int]) -> None:
    names = [{"alias": name, "paper_id": r.paper.paper_id} for r in records for name in sorted(r.names)]
    prints = [{"fingerprint": f, "paper_id": r.paper.paper_id} for r in records for f in sorted(r.fingerprints)]
    kinds = [
        {"kind": kind, "key": key, "arrival": place}
        for record, place in zip(records, arrivals, strict=True)
        for kind, key in sorted(facets_of(record.paper))
    ]
    for table, rows in ((aliases, names), (fingerprints, prints), (facets, kinds)):
        if rows:
            connection.execute(insert(table), rows)


def facets_of(paper: Paper) -> set[tuple[str, str]]:
    found = {("author", author_key(author)) for author in paper.authors}
    found |= {("surname", surname_key(author)) for author in paper.authors}
    if paper.venue:
        found.add(("venue", match_key(paper.venue)))
    if paper.category:
        found |= {("category", match_key(paper.category)), ("area", area_key(paper.category))}
    return found


def filtered(connection: Connection, query: Select[Any], filters: Filters) -> Select[Any]:  # Any: whatever columns were asked for
    """`query` narrowed to live papers that pass. Raises InputError for more than MOST_IDS ids."""
    query = query.where(LIVE)
    if filters.year_min is not None:
        query = query.where(papers.c.year >= within(filters.year_min))
    if filters.year_max is not None:
        query = query.where(papers.c.year <= within(filters.year_max))
    if filters.venues:
        query = query.where(having({"venue": map(match_key, filters.venues)}))
    if filters.categories:
        keys = [match_key(category) for category in filters.categories]
        query = query.where(having({"category": keys, "area": keys}))
    if filters.authors:
        query = query.where(having({"author": map(author_key, filters.authors), "surname": map(match_key, filters.authors)}))
    if len(filters.paper_ids) > MOST_IDS:
        raise InputError(f"A filter takes at most {MOST_IDS:,} paper ids; ask in parts.")
    if filters.paper_ids:
        moved = rows_of(connection, select(redirects), redirects.c.old_id, filters.paper_ids)
        heirs = {row.old_id: row.paper_id for row in moved}
        query = query.where(papers.c.paper_id.in_([heirs.get(paper_id, paper_id) for paper_id in filters.paper_ids]))
    return query


def within(year: int) -> int:
    """`year`, or one as far beyond every paper's that a database can still compare."""
    return max(0, min(year, 9999))


def having(keys: Mapping[str, Iterable[str]]) -> Any:  # Any: an SQL condition
    """Papers with one of these keys of one of these kinds."""
    conditions = [and_(facets.c.kind == kind, facets.c.key.in_(list(values))) for kind, values in keys.items()]
    return papers.c.arrival.in_(select(facets.c.arrival).where(or_(*conditions)))


def write_vectors(connection: Connection, records: Sequence[Record], embedded: Embedded) -> None:
    """Raises NotEmbedded when vectors of a model are neither given nor stored."""
    hashes = list(dict.fromkeys(record.text_hash for record in records))
    for model, vectors in embedded.items():
        stored = stored_hashes(connection, model, hashes)
        needed = [key for key in hashes if key not in stored]
        if not all(key in vectors for key in needed):
            raise NotEmbedded("Papers were changed by someone else meanwhile; run the same command again.")
        insert_vectors(connection, model, {key: vectors[key] for key in needed})


def insert_vectors(connection: Connection, model: str, vectors: Mapping[str, Vectors]) -> None:
    halves = {key: np.asarray(rows, np.float16) for key, rows in vectors.items()}
    whole = [{"model": model, "text_hash": key, "vector": rows[0].tobytes()} for key, rows in halves.items()]
    parts = [{"model": model, "text_hash": key, "vectors": rows[1:].tobytes()} for key, rows in halves.items() if len(rows) > 1]
    if whole:
        connection.execute(insert(whole_vectors), whole)
    if parts:
        connection.execute(insert(sentence_vectors), parts)


def stored_hashes(connection: Connection, model: str, hashes: Sequence[str]) -> set[str]:
    columns = select(whole_vectors.c.text_hash).where(whole_vectors.c.model == model)
    return {row.text_hash for row in rows_of(connection, columns, whole_vectors.c.text_hash, hashes)}


def drop_unused_vectors(connection: Connection) -> None:
    for table in (whole_vectors, sentence_vectors):
        connection.execute(delete(table).where(table.c.text_hash.not_in(select(papers.c.text_hash).where(LIVE))))


def with_vectors(model: str) -> Select[Any]:  # Any: see PAPER for the columns
    whole, parts = whole_vectors, sentence_vectors
    return (
        select(*PAPER, papers.c.text, papers.c.sentences, papers.c.text_hash, whole.c.vector, parts.c.vectors)
        .outerjoin(whole, and_(whole.c.text_hash == papers.c.text_hash, whole.c.model == model))
        .outerjoin(parts, and_(parts.c.text_hash == papers.c.text_hash, parts.c.model == model))
    )


def paper_row(record: Record, revision: int, arrival: int) -> dict[str, object]:
    paper = record.paper
    return {
        "arrival": arrival,
        "paper_id": paper.paper_id,
        "revision": revision,
        "deleted": False,
        "version": record.version,
        "text_hash": record.text_hash,
        "year": paper.year,
        "authors_truncated": paper.authors_truncated,
        "venue": paper.venue,
        "category": paper.category,
        "title": paper.title,
        "authors": json.dumps(paper.authors, ensure_ascii=False),
        "url": paper.url,
        "doi": paper.doi,
        "keywords": json.dumps(paper.keywords, ensure_ascii=False),
        "abstract": paper.abstract,
        "text": record.text,
        "sentences": json.dumps([(s.start, s.end, s.text) for s in record.sentences], ensure_ascii=False),
    }


def read_paper(row: Row[Any]) -> Paper:  # Any: see PAPER for the columns
    return Paper(
        paper_id=row.paper_id,
        abstract=row.abstract,
        title=row.title,
        authors=tuple(json.loads(row.authors)),
        authors_truncated=row.authors_truncated,
        category=row.category,
        venue=row.venue,
        year=row.year,
        url=row.url,
        doi=row.doi,
        keywords=tuple(json.loads(row.keywords)),
    )


def read_sentences(stored: str) -> tuple[Sentence, ...]:
    return tuple(Sentence(start, end, text) for start, end, text in json.loads(stored))


def read_indexed(row: Row[Any]) -> IndexedPaper:  # Any: see with_vectors for the columns
    sentences = read_sentences(row.sentences)
    blob = row.vector and row.vector + (row.vectors or b"")
    vectors = read_vectors(blob, len(blob) // len(row.vector)) if blob else None
    return IndexedPaper(read_paper(row), row.text, sentences, vectors)


def read_vectors(blob: bytes, rows: int) -> Vectors:
    """Shape (rows, dimension), unit length again after the rounding to float16."""
    halves: NDArray[np.float16] = np.frombuffer(blob, np.float16).reshape(rows, -1)
    vectors = halves.astype(np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    vectors /= np.maximum(lengths, np.float32(1e-12))[:, None]
    return vectors


def rows_of(connection: Connection, query: Select[Any], column: Any, values: Sequence[str]) -> list[Row[Any]]:
    """All rows of `query` whose `column` has one of `values`, however many those are. (Any: SQLAlchemy's types of columns.)"""
    return [row for batch in batches(values) for row in connection.execute(query.where(column.in_(batch)))]


def batches(values: Sequence[str]) -> Iterator[Sequence[str]]:
    distinct = list(dict.fromkeys(values))
    return (distinct[start : start + AT_ONCE] for start in range(0, len(distinct), AT_ONCE))
