"""Writing to the catalogue's tables, inside the transaction of one writer at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from sqlalchemy import Connection, delete, insert, select, update

from rag.catalogue_rows import LIVE, PAPER, batches, facets_of, paper_row, read_paper, read_sentences, rows_of
from rag.database import aliases, facets, fingerprints, papers, redirects, sentence_vectors, state, whole_vectors
from rag.errors import FootnoteError
from rag.identity import Record, is_strong
from rag.shelf import Shelf
from rag.types import Vectors

Embedded = Mapping[str, Mapping[str, Vectors]]
"""model → text hash → vectors of shape (1 + sentences or 1, dimension), unit length; row 0 is title and abstract as one."""


class NotEmbedded(FootnoteError):
    """The commit would leave a paper without vectors: someone else changed it since it was planned. Plan again."""


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
    before = rows_of(connection, select(papers.c.text_hash), papers.c.paper_id, list(shelf.before))
    if shelf.redirects:
        bury(connection, list(shelf.redirects), revision)
        for old_id, paper_id in shelf.redirects.items():
            connection.execute(update(redirects).where(redirects.c.paper_id == old_id).values(paper_id=paper_id))
        connection.execute(insert(redirects), [{"old_id": old, "paper_id": heir} for old, heir in shelf.redirects.items()])
    if changed:
        rewrite(connection, changed, revision)
    if new:
        add(connection, new, revision)
    drop_unused_vectors(connection, [row.text_hash for row in before])
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


def remove(connection: Connection, paper_ids: Sequence[str], revision: int) -> None:
    """Removes live papers and all that leads to them."""
    hashes = [row.text_hash for row in rows_of(connection, select(papers.c.text_hash), papers.c.paper_id, paper_ids)]
    bury(connection, paper_ids, revision)
    for batch in batches(paper_ids):
        connection.execute(delete(redirects).where(redirects.c.paper_id.in_(batch)))
    drop_unused_vectors(connection, hashes)
    set_revision(connection, revision)


def bury(connection: Connection, paper_ids: Sequence[str], revision: int) -> None:
    """Leaves only tombstones of these papers."""
    forget_names(connection, paper_ids)
    empty = dict.fromkeys(("title", "venue", "category", "url", "doi", "year", "version"))
    texts = {"abstract": "", "text": "", "sentences": "[]", "authors": "[]", "keywords": "[]", "text_hash": ""}
    for batch in batches(paper_ids):
        grave = update(papers).where(papers.c.paper_id.in_(batch))
        connection.execute(grave.values(deleted=True, revision=revision, changed=revision, **texts, **empty))


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


def drop_unused_vectors(connection: Connection, hashes: Sequence[str]) -> None:
    """Of these text hashes, forgets the vectors of those that are no live paper's any more."""
    used = {row.text_hash for row in rows_of(connection, select(papers.c.text_hash).where(LIVE), papers.c.text_hash, hashes)}
    for batch in batches([key for key in hashes if key not in used]):
        for table in (whole_vectors, sentence_vectors):
            connection.execute(delete(table).where(table.c.text_hash.in_(batch)))
