"""The catalogue: every paper as given, its reading, its vectors, and a revision number that grows with each change. The truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sqlalchemy import Connection, Select, and_, func, or_, select, update

from rag.catalogue_rows import (
    LIVE,
    PAPER,
    batches,
    papers_with_vectors,
    read_block,
    read_indexed,
    read_paper,
    read_vectors,
    rows_among,
    rows_of,
    vectors_alone,
    with_vectors,
)
from rag.catalogue_writing import (
    Embedded,
    NotEmbedded,
    insert_vectors,
    load_shelf,
    lock,
    remove,
    set_revision,
    stored_hashes,
    write_shelf,
    write_vectors,
)
from rag.database import Database, aliases, facets, papers, redirects, state, whole_vectors
from rag.errors import InputError, NotFound
from rag.filters import Names
from rag.identity import Record, author_key, match_key, readings
from rag.types import Commit, Filters, IndexedPaper, Paper, VectorBlock, Vectors

__all__ = ["Catalogue", "Change", "Embedded", "NotEmbedded"]

MOST_IDS = 30_000
"""How many ids a filter may name: the smallest number of values that every database takes in one statement is 32,766."""


@dataclass(frozen=True, slots=True)
class Change:
    """A paper that is not as it was before `revision`."""

    paper_id: str
    revision: int
    deleted: bool


class Catalogue:
    """All papers. Every method raises CatalogueUnavailable when the database does not answer."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self._filter_names: tuple[int, Names] | None = None

    def revision(self) -> int:
        """The number of changes so far."""
        with self.database.reading() as connection:
            return int(connection.execute(select(state.c.revision)).scalar_one())

    def arrivals(self) -> int:
        """How many papers ever came, those removed since too: read from one row, where counting takes 4 ms for 50,000."""
        with self.database.reading() as connection:
            return int(connection.execute(select(state.c.arrivals)).scalar_one())

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
            live = rows_of(connection, select(papers.c.paper_id).where(LIVE), papers.c.paper_id, paper_ids)
            if live:
                revision += 1
                remove(connection, [row.paper_id for row in live], revision)
            return Commit(revision, removed=len(live))

    def changes(self, after: int, limit: int) -> list[Change]:
        """Papers changed after revision `after`, ordered by (revision, paper_id): `limit` of them and the rest of the last one's
        revision, so that its revision is where to resume."""
        later = papers.c.revision > after
        query = select(papers.c.paper_id, papers.c.revision, papers.c.deleted).where(later)
        with self.database.reading() as connection:
            in_order = select(papers.c.revision).where(later).order_by(papers.c.revision)
            last = connection.scalar(in_order.offset(limit - 1).limit(1))
            if last is not None:
                query = query.where(papers.c.revision <= last)
            return [Change(*row) for row in connection.execute(query.order_by(papers.c.revision, papers.c.paper_id))]

    def changed_since(self, paper_ids: Sequence[str], revision: int) -> set[str]:
        """Those of the papers that have changed, gone or become another one after `revision`; new vectors are no change here."""
        columns = select(papers.c.paper_id).where(papers.c.changed > revision)
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
            rows = rows_among(connection, papers_with_vectors(model), paper_ids)
            found = {row.paper_id: read_indexed(row) for row in rows}
        return [found[paper_id] for paper_id in paper_ids if paper_id in found]

    def vectors(self, paper_ids: Sequence[str], model: str) -> VectorBlock:
        """The vectors of `model` alone, without the texts, which take thrice as long to read. In no particular order; unknown
        papers and those without vectors are left out."""
        with self.database.reading() as connection:
            return read_block(rows_among(connection, vectors_alone(model), paper_ids))

    def whole_vectors(self, model: str) -> tuple[list[str], Vectors]:
        """Ids of all papers with vectors of `model`, and row 0 of each: shape (papers, dimension). Ordered by text hash, which is
        how they lie on the disk."""
        query = (
            select(papers.c.paper_id, whole_vectors.c.vector)
            .join(whole_vectors, whole_vectors.c.text_hash == papers.c.text_hash)
            .where(LIVE, whole_vectors.c.model == model)
            .order_by(whole_vectors.c.text_hash)
        )
        paper_ids: list[str] = []
        parts: list[Vectors] = []
        with self.database.reading() as connection:
            for rows in connection.execution_options(stream_results=True).execute(query).partitions(4096):
                paper_ids += [row[0] for row in rows]
                parts.append(read_vectors(b"".join([row[1] for row in rows]), len(rows)))
        return paper_ids, np.concatenate(parts) if parts else np.zeros((0, 0), np.float32)

    def matching(self, filters: Filters) -> list[str]:
        """Ids of all papers that pass, in no particular order. Names match without case and accents; a category also as the area
        of `area · topic`, an author also by surname. A paper without a year passes no year filter."""
        with self.database.reading() as connection:
            passing = filtered(connection, select(papers.c.paper_id), filters).subquery()
            joined = connection.scalar(select(func.aggregate_strings(passing.c.paper_id, " ")))  # one row: five times as fast
        return joined.split(" ") if joined else []

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
        """Up to `limit` papers without vectors of `model`, by text hash."""
        query = with_vectors(model).where(LIVE, whole_vectors.c.vector.is_(None)).order_by(papers.c.text_hash).limit(limit)
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

    def filter_names(self) -> Names:
        """What the words of a question may mean as filters: every venue and category, and whether papers have years. Read once
        a revision."""
        revision = self.revision()
        if self._filter_names is None or self._filter_names[0] != revision:
            self._filter_names = revision, self._read_filter_names()
        return self._filter_names[1]

    def _read_filter_names(self) -> Names:
        with self.database.reading() as connection:
            venues = tuple(connection.scalars(select(papers.c.venue).where(LIVE, papers.c.venue.is_not(None)).distinct()))
            areas = tuple(connection.scalars(select(papers.c.category).where(LIVE, papers.c.category.is_not(None)).distinct()))
            dated = connection.execute(select(papers.c.paper_id).where(LIVE, papers.c.year.is_not(None)).limit(1)).first()
        return Names(venues=venues, categories=areas, has_years=dated is not None)


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
