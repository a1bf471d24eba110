"""A few stored papers in memory, and what new records do to them. Pure: the catalogue fills a shelf, and writes what changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

from rag.identity import Record, conflict, is_strong, merge, same_work


class Shelf:
    """Papers in order of arrival. `take` puts a record among them: as a new paper, or merged into the one it is."""

    def __init__(self, stored: Iterable[Record], owners: dict[str, str], taken: Iterable[str] = ()) -> None:
        """`stored` in order of arrival; `owners` says whose each name is; `taken` are ids in use by papers not on the shelf."""
        self.records = {record.paper.paper_id: record for record in stored}
        self.before = dict(self.records)
        self.owners = owners
        self.taken = set(taken) | set(self.records)
        self.redirects: dict[str, str] = {}
        self.added = self.merged = self.unchanged = 0
        self._by_fingerprint: dict[str, dict[str, None]] = defaultdict(dict)
        for record in self.records.values():
            self._note(record)

    @property
    def changed(self) -> list[Record]:
        """Every paper that is not as it was, in order of arrival."""
        return [record for paper_id, record in self.records.items() if self.before.get(paper_id) != record]

    def take(self, record: Record) -> None:
        """Adds or merges `record`. Papers that it shows to be one are joined: the oldest keeps its id."""
        group = self._same(record)
        if not group:
            self._add(record)
            return
        names = self._free(record.names, *group)
        merged = self.records[group[0]]
        for other in group[1:]:
            merged = merge(merged, self._withdraw(other, group[0]))
        merged = merge(merged, replace(record, names=names))
        if merged == self.records[group[0]]:
            self.unchanged += 1
            return
        self.merged += 1
        self.records[group[0]] = merged
        self._note(merged)

    def _same(self, record: Record) -> list[str]:
        """Ids of the papers that are the same work as `record`, oldest first: by id, else by abstract."""
        order = {paper_id: place for place, paper_id in enumerate(self.records)}
        by_id = {self.owners[name] for name in record.names if is_strong(name) and name in self.owners}
        by_text = {p for f in record.fingerprints for p in self._by_fingerprint[f] if same_work(self.records[p], record)}
        if not by_id and any(told := [paper_id for paper_id in by_text if self._tells_nothing_new(paper_id, record)]):
            by_text = set(told)
        group: list[str] = []
        for paper_id in [*sorted(by_id, key=order.__getitem__), *sorted(by_text, key=order.__getitem__)]:
            if paper_id not in group and not any(conflict(self.records[paper_id], self.records[other]) for other in group):
                group.append(paper_id)
        return sorted(group, key=order.__getitem__)

    def _tells_nothing_new(self, paper_id: str, record: Record) -> bool:
        kept = self.records[paper_id]
        return merge(kept, replace(record, names=self._free(record.names, paper_id))) == kept

    def _free(self, names: Iterable[str], *paper_ids: str) -> frozenset[str]:
        """The names that are nobody's, or belong to these papers: first come, first served."""
        return frozenset(name for name in names if self.owners.get(name) in {None, *paper_ids})

    def _add(self, record: Record) -> None:
        paper_id = record.paper.paper_id
        if paper_id in self.taken:  # by a paper that came with this abstract and has another now
            paper_id = uuid4().hex[:16]
        self.records[paper_id] = replace(record, paper=replace(record.paper, paper_id=paper_id), names=self._free(record.names))
        self.taken.add(paper_id)
        self.added += 1
        self._note(self.records[paper_id])

    def _withdraw(self, paper_id: str, heir: str) -> Record:
        record = self.records.pop(paper_id)
        if paper_id in self.before:
            self.redirects[paper_id] = heir
        else:
            self.added, self.merged = self.added - 1, self.merged + 1
        for fingerprint in record.fingerprints:
            del self._by_fingerprint[fingerprint][paper_id]
        return record

    def _note(self, record: Record) -> None:
        for name in record.names:
            self.owners[name] = record.paper.paper_id
        for fingerprint in record.fingerprints:
            self._by_fingerprint[fingerprint][record.paper.paper_id] = None
