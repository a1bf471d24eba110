"""A few stored papers in memory, and what new records do to them. Pure: the catalogue fills a shelf, and writes what changed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from uuid import uuid4

from rag.identity import Record, conflict, is_strong, merge


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
        found = self._by_id(record) or self._by_text(record)[:1]
        if not found:
            self._add(record)
            return
        kept, before = found[0], self.records[found[0]]
        for other in found[1:]:
            kept = self._join(kept, other)
        self._put(merge(self.records[kept], replace(record, names=self._free(record.names, kept))))
        while self.records[kept] != before and (others := self._by_text(self.records[kept])):
            kept = self._join(kept, others[0])
        if self.records[kept] == before:
            self.unchanged += 1
        else:
            self.merged += 1

    def _by_id(self, record: Record) -> list[str]:
        """Papers that have one of its strong ids, oldest first; of those that contradict each other only the oldest."""
        owners = {self.owners[name] for name in record.names if is_strong(name) and name in self.owners}
        group: list[str] = []
        for paper_id in self._oldest_first(owners):
            if not any(conflict(self.records[paper_id], self.records[other]) for other in group):
                group.append(paper_id)
        return group

    def _by_text(self, record: Record) -> list[str]:
        """Other papers that share an abstract with `record` and contradict none of its ids; first those it adds nothing to."""
        sharing = {paper_id for fingerprint in record.fingerprints for paper_id in self._by_fingerprint[fingerprint]}
        others = [paper_id for paper_id in self._oldest_first(sharing) if self.records[paper_id] is not record]
        same = [paper_id for paper_id in others if not conflict(self.records[paper_id], record)]
        return sorted(same, key=lambda paper_id: not self._tells_nothing_new(paper_id, record))

    def _oldest_first(self, paper_ids: set[str]) -> list[str]:
        if len(paper_ids) < 2:
            return list(paper_ids)
        return [paper_id for paper_id in self.records if paper_id in paper_ids]

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

    def _join(self, *paper_ids: str) -> str:
        """Makes two papers one under the id of the older, which it returns."""
        older, younger = self._oldest_first(set(paper_ids))
        record = self.records.pop(younger)
        if younger in self.before:
            self.redirects[younger] = older
        else:
            self.added, self.merged = self.added - 1, self.merged + 1
        for fingerprint in record.fingerprints:
            del self._by_fingerprint[fingerprint][younger]
        self._put(merge(self.records[older], record))
        return older

    def _put(self, record: Record) -> None:
        self.records[record.paper.paper_id] = record
        self._note(record)

    def _note(self, record: Record) -> None:
        for name in record.names:
            self.owners[name] = record.paper.paper_id
        for fingerprint in record.fingerprints:
            self._by_fingerprint[fingerprint][record.paper.paper_id] = None
