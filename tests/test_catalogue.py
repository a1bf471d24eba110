from __future__ import annotations

import multiprocessing
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlalchemy import Connection, event, func, select

from rag.catalogue import Catalogue, Change, NotEmbedded
from rag.catalogue_writing import add, lock, set_revision
from rag.database import Database, open_database, sentence_vectors, sqlite_url, whole_vectors
from rag.errors import InputError, NotFound
from rag.filters import Names
from rag.identity import read_record
from rag.ingest import embed_papers
from rag.passages import prepare, text_hash
from rag.types import Filters, Paper, RawPaper
from tests.shelf_of_papers import HashEmbedder, commit, raw_paper

FULL = raw_paper(
    "trees",
    title="On Trees",
    authors=("Alex Saad-Falcon", "Zhang, Wei", "周欣", "Alex Saad-Falcon"),
    authors_truncated=True,
    category="Theory · Optimization",
    venue="ICML",
    year=2024,
    url="https://example.org/trees",
    doi="10.1000/Trees",
    keywords=("trees", "graphs"),
    external_ids=("arxiv:2401.00001v2", "id:T7"),
)


@pytest.fixture
def catalogue(database: Database) -> Catalogue:
    return Catalogue(database)


def ids(catalogue: Catalogue, filters: Filters | None = None) -> list[str]:
    """In order of arrival."""
    return [paper.paper_id for paper in catalogue.list(filters=filters, limit=10_000)]


def topics(catalogue: Catalogue, paper_ids: list[str]) -> list[str]:
    return [paper.abstract.split()[2] for paper in catalogue.papers(paper_ids)]


def embedded(catalogue: Catalogue, papers: list[RawPaper], *embedders: HashEmbedder) -> dict[str, dict[str, np.ndarray]]:
    plan = catalogue.plan([read_record(paper) for paper in papers], [embedder.model for embedder in embedders])
    return {embedder.model: embed_papers(embedder, plan[embedder.model]) for embedder in embedders}


def test_an_empty_catalogue_is_at_revision_zero(catalogue: Catalogue) -> None:
    assert (catalogue.revision(), catalogue.count(), catalogue.changes(0, 10), ids(catalogue)) == (0, 0, [], [])
    assert catalogue.whole_vectors("hash")[0] == []


def test_every_field_comes_back_as_given(catalogue: Catalogue) -> None:
    commit(catalogue, FULL)
    (paper,) = catalogue.list()
    assert paper == Paper(
        paper_id=paper.paper_id,
        abstract=FULL.abstract,
        title="On Trees",
        authors=FULL.authors,
        authors_truncated=True,
        category="Theory · Optimization",
        venue="ICML",
        year=2024,
        url="https://example.org/trees",
        doi="10.1000/trees",
        keywords=("trees", "graphs"),
    )


@settings(max_examples=20, deadline=None)
@given(st.text(min_size=1).filter(str.strip), st.lists(st.text(), max_size=3).map(tuple))
def test_any_text_is_kept_verbatim(tmp_path_factory: pytest.TempPathFactory, abstract: str, authors: tuple[str, ...]) -> None:
    database = open_database(sqlite_url(tmp_path_factory.mktemp("any") / "footnote.db"))
    catalogue = Catalogue(database)
    commit(catalogue, RawPaper(abstract=abstract, where="", authors=authors))
    (paper,) = catalogue.list()
    assert paper.abstract == abstract.replace("\x00", "\ufffd")
    assert paper.authors == tuple(author.replace("\x00", "\ufffd") for author in authors)
    database.close()


def test_nul_and_lone_surrogates_do_not_stop_a_commit(catalogue: Catalogue) -> None:
    commit(catalogue, raw_paper("a\x00b\ud800", title="\x00T", external_ids=("id:\x00",)))
    assert catalogue.count() == 1


def test_names_longer_than_an_index_takes_are_kept_and_found(catalogue: Catalogue) -> None:
    long = "".join(chr(0x4E00 + number) for number in range(5000))
    commit(catalogue, raw_paper("a", authors=(long,), venue=long, category=long, url=long, external_ids=(f"id:{long}",)))
    (paper,) = catalogue.list(filters=Filters(authors=(long,), venues=(long,), categories=(long,)))
    assert (paper.authors, paper.venue, paper.category) == ((long,), long, long)


def test_a_commit_that_changes_nothing_raises_no_revision(catalogue: Catalogue) -> None:
    assert commit(catalogue, FULL).revision == 1
    again = commit(catalogue, FULL, FULL)
    assert (again.revision, again.added, again.merged, again.unchanged) == (1, 0, 0, 2)
    assert catalogue.revision() == 1


def test_arrivals_count_what_was_removed_too(catalogue: Catalogue) -> None:
    assert catalogue.arrivals() == 0
    commit(catalogue, raw_paper("trees"), raw_paper("nets"))
    catalogue.remove(ids(catalogue)[:1])
    commit(catalogue, raw_paper("rings"))
    assert (catalogue.arrivals(), catalogue.count()) == (3, 2)


def test_the_category_is_kept_when_the_paper_comes_again_without(catalogue: Catalogue) -> None:
    commit(catalogue, raw_paper("trees", category="Theory"))
    commit(catalogue, raw_paper("trees", venue="ICML"))
    (paper,) = catalogue.list()
    assert (paper.category, paper.venue) == ("Theory", "ICML")
    assert ids(catalogue, Filters(categories=("theory",), venues=("icml",))) == [paper.paper_id]


def test_a_new_version_keeps_the_id_and_drops_the_old_vectors(catalogue: Catalogue) -> None:
    embedder = HashEmbedder()
    old, new = (raw_paper(topic, external_ids=(f"arxiv:2401.00001v{v}",), version=v) for topic, v in (("trees", 1), ("nets", 2)))
    for paper in (old, new):
        catalogue.commit([read_record(paper)], embedded(catalogue, [paper], embedder))
    (found,) = catalogue.indexed(ids(catalogue), embedder.model)
    assert found.paper.abstract == new.abstract
    assert text_hash(found) == text_hash(prepare(found.paper))
    with catalogue.database.reading() as connection:
        assert [connection.scalar(select(func.count()).select_from(table)) for table in (whole_vectors, sentence_vectors)] == [
            1,
            1,
        ]
    assert catalogue.count() == 1
    catalogue.commit([read_record(old)], {embedder.model: {}})
    assert catalogue.revision() == 2


def test_vectors_come_back_as_unit_float32_in_the_order_asked(catalogue: Catalogue) -> None:
    embedder, papers = HashEmbedder(), [raw_paper(topic) for topic in ("trees", "nets", "rings")]
    given = embedded(catalogue, papers, embedder)
    catalogue.commit([read_record(paper) for paper in papers], given)
    wanted = ids(catalogue)[::-1]
    found = catalogue.indexed([*wanted, "unknown0"], embedder.model)
    assert [paper.paper.paper_id for paper in found] == wanted
    for paper in found:
        assert paper.vectors is not None
        assert paper.vectors.dtype == np.float32
        assert paper.vectors.shape == (1 + len(paper.sentences), embedder.dimension)
        assert np.allclose(np.linalg.norm(paper.vectors, axis=1), 1, atol=1e-6)
        assert np.allclose(paper.vectors, given[embedder.model][text_hash(paper)], atol=1e-3)


def test_vectors_alone_are_those_that_come_with_the_texts(catalogue: Catalogue) -> None:
    embedder, papers = HashEmbedder(), [raw_paper(topic) for topic in ("trees", "nets", "rings")]
    catalogue.commit([read_record(paper) for paper in papers], embedded(catalogue, papers, embedder))
    block = catalogue.vectors([*ids(catalogue), "unknown0"], embedder.model)
    assert sorted(block.paper_ids) == sorted(ids(catalogue))
    for paper_id, rows in zip(block.paper_ids, np.split(block.vectors, block.starts[1:]), strict=True):
        (paper,) = catalogue.indexed([paper_id], embedder.model)
        assert paper.vectors is not None
        assert np.array_equal(rows, paper.vectors)
    assert catalogue.vectors(ids(catalogue), "another model").paper_ids == ()


def test_whole_vectors_are_row_zero_of_every_live_paper(catalogue: Catalogue) -> None:
    embedder, papers = HashEmbedder(), [raw_paper(topic) for topic in ("trees", "nets", "rings")]
    catalogue.commit([read_record(paper) for paper in papers], embedded(catalogue, papers, embedder))
    catalogue.remove(ids(catalogue)[:1])
    paper_ids, vectors = catalogue.whole_vectors(embedder.model)
    assert sorted(paper_ids) == sorted(ids(catalogue))
    assert vectors.dtype == np.float32
    for row, paper in zip(vectors, catalogue.indexed(paper_ids, embedder.model), strict=True):
        assert paper.vectors is not None
        assert np.allclose(row, paper.vectors[0], atol=1e-6)


def test_a_model_may_have_whole_vectors_only(catalogue: Catalogue) -> None:
    main, other = HashEmbedder("main"), HashEmbedder("other", dimension=4)
    plan = catalogue.plan([read_record(FULL)], ["main", "other"])
    vectors = {"main": embed_papers(main, plan["main"]), "other": embed_papers(other, plan["other"], rows=1)}
    catalogue.commit([read_record(FULL)], vectors)
    (found,) = catalogue.indexed(ids(catalogue), "other")
    assert found.vectors is not None
    assert found.vectors.shape == (1, 4)
    (unknown,) = catalogue.indexed(ids(catalogue), "none")
    assert unknown.vectors is None


def test_a_commit_without_the_vectors_it_needs_writes_nothing(catalogue: Catalogue) -> None:
    with pytest.raises(NotEmbedded):
        catalogue.commit([read_record(FULL)], {"hash": {}})
    assert (catalogue.revision(), catalogue.count()) == (0, 0)


def test_the_plan_wants_vectors_of_changed_texts_only(catalogue: Catalogue) -> None:
    embedder = HashEmbedder()
    catalogue.commit([read_record(FULL)], embedded(catalogue, [FULL], embedder))
    more = [FULL, raw_paper("trees", keywords=("new",), external_ids=("id:8",)), raw_paper("nets")]
    wanted = catalogue.plan([read_record(paper) for paper in more], [embedder.model])[embedder.model]
    assert [paper.paper.abstract for paper in wanted.values()] == [more[2].abstract]


def test_papers_without_vectors_of_a_model_can_be_given_some_later(catalogue: Catalogue) -> None:
    embedder = HashEmbedder()
    commit(catalogue, *[raw_paper(topic) for topic in ("trees", "nets", "rings")])
    first = catalogue.missing(embedder.model, 2)
    assert len(first) == 2
    given = catalogue.add_vectors(embedder.model, embed_papers(embedder, first))
    assert given.revision == 2
    assert {change.paper_id for change in catalogue.changes(1, 10)} == {paper.paper.paper_id for paper in first.values()}
    assert catalogue.changed_since(ids(catalogue), 1) == set()
    rest = catalogue.missing(embedder.model, 10)
    assert len(rest) == 1
    assert catalogue.add_vectors(embedder.model, embed_papers(embedder, first)).revision == 2


def test_changes_are_ordered_and_a_page_never_splits_a_revision(catalogue: Catalogue) -> None:
    commit(catalogue, *[raw_paper(f"a{i}") for i in range(3)])
    commit(catalogue, *[raw_paper(f"b{i}") for i in range(3)])
    commit(catalogue, raw_paper("c"))
    for limit in (1, 2, 3, 4, 100):
        seen: list[Change] = []
        while page := catalogue.changes(seen[-1].revision if seen else 0, limit):
            assert min(limit, 7 - len(seen)) <= len(page) <= limit + 2
            seen += page
        assert [change.paper_id for change in seen] == [c.paper_id for c in sorted(seen, key=lambda c: (c.revision, c.paper_id))]
        assert len(seen) == len({change.paper_id for change in seen}) == 7


def test_what_changed_since_an_answer_is_told(catalogue: Catalogue) -> None:
    commit(catalogue, raw_paper("a"), raw_paper("b"), raw_paper("c"))
    a, b, c = ids(catalogue)
    commit(catalogue, raw_paper("a", venue="ICML"))
    catalogue.remove([b])
    assert catalogue.changed_since([a, b, c], 1) == {a, b}
    assert catalogue.changed_since([a, b, c], 2) == {b}
    assert catalogue.changed_since([], 0) == set()


def test_a_removed_paper_is_gone_but_its_removal_is_a_change(catalogue: Catalogue) -> None:
    commit(catalogue, FULL, raw_paper("nets"))
    gone = catalogue.resolve("10.1000/trees")
    removed = catalogue.remove([gone, gone, "unknown0"])
    assert (removed.revision, removed.removed) == (2, 1)
    assert catalogue.count() == 1
    assert catalogue.changes(1, 10) == [Change(gone, 2, deleted=True)]
    assert catalogue.papers([gone]) == []
    assert ids(catalogue, Filters(authors=("Saad-Falcon",))) == []
    for name in (gone, "10.1000/trees", "T7"):
        with pytest.raises(NotFound):
            catalogue.resolve(name)
    assert catalogue.remove([gone]).revision == 2


def test_vectors_go_with_the_last_paper_that_uses_them(catalogue: Catalogue) -> None:
    embedder = HashEmbedder()
    twins = [raw_paper("trees", external_ids=(f"doi:10.1000/{number}",)) for number in (1, 2)]
    catalogue.commit([read_record(paper) for paper in twins], embedded(catalogue, twins, embedder))
    first, second = ids(catalogue)
    catalogue.remove([first])
    (left,) = catalogue.indexed([second], embedder.model)
    assert left.vectors is not None
    catalogue.remove([second])
    with pytest.raises(NotEmbedded):
        catalogue.commit([read_record(twins[0])], {embedder.model: {}})


def test_a_removed_paper_that_comes_again_gets_its_id_again(catalogue: Catalogue) -> None:
    commit(catalogue, FULL)
    (paper_id,) = ids(catalogue)
    catalogue.remove([paper_id])
    again = commit(catalogue, FULL)
    assert (again.revision, again.added) == (3, 1)
    assert ids(catalogue) == [paper_id]
    assert catalogue.changes(0, 10) == [Change(paper_id, 3, deleted=False)]
    assert catalogue.resolve("T7") == paper_id


def test_two_papers_that_turn_out_to_be_one_leave_a_redirect(catalogue: Catalogue) -> None:
    commit(catalogue, raw_paper("trees", external_ids=("doi:10.1000/1",), year=2020))
    commit(catalogue, raw_paper("nets", external_ids=("arxiv:2401.00001", "id:N"), venue="ICML"))
    older, younger = ids(catalogue)
    joined = commit(catalogue, raw_paper("trees", external_ids=("doi:10.1000/1", "arxiv:2401.00001")))
    assert (joined.added, joined.merged) == (0, 1)
    assert ids(catalogue) == [older]
    assert {catalogue.resolve(name) for name in (older, younger, "10.1000/1", "arXiv:2401.00001v3", "N")} == {older}
    assert Change(younger, 3, deleted=True) in catalogue.changes(2, 10)
    assert ids(catalogue, Filters(paper_ids=(younger,), venues=("ICML",), year_min=2020)) == [older]
    assert catalogue.changed_since([younger, older], 2) == {younger, older}


def test_redirects_lead_to_the_end_of_a_chain_and_go_with_their_paper(catalogue: Catalogue) -> None:
    for topic, name in (("a", "doi:10.1000/1"), ("b", "arxiv:2401.00001"), ("c", "pmid:1")):
        commit(catalogue, raw_paper(topic, external_ids=(name,)))
    first, second, third = ids(catalogue)
    commit(catalogue, raw_paper("b", external_ids=("arxiv:2401.00001", "pmid:1")))
    assert catalogue.resolve(third) == second
    commit(catalogue, raw_paper("a", external_ids=("doi:10.1000/1", "pmid:1")))
    assert catalogue.resolve(third) == catalogue.resolve(second) == first
    catalogue.remove([first])
    with pytest.raises(NotFound):
        catalogue.resolve(third)


@pytest.mark.parametrize(
    "name",
    [
        "10.1000/trees",
        "doi:10.1000/TREES",
        "https://doi.org/10.1000/Trees",
        "2401.00001",
        "arXiv:2401.00001v9",
        "https://arxiv.org/abs/2401.00001",
        "T7",
        "id:T7",
        "  T7 ",
    ],
)
def test_a_paper_is_known_by_each_of_its_names(catalogue: Catalogue, name: str) -> None:
    commit(catalogue, FULL)
    assert catalogue.resolve(name) == ids(catalogue)[0]


@pytest.mark.parametrize("name", ["", "nothing", "10.1000/other", "' OR 1=1 --", "\x00", "t7"])
def test_an_unknown_name_is_not_found(catalogue: Catalogue, name: str) -> None:
    commit(catalogue, FULL)
    with pytest.raises(NotFound):
        catalogue.resolve(name)


@pytest.mark.parametrize(
    ("filters", "found"),
    [
        (Filters(), ["a", "b", "c"]),
        (Filters(year_min=2021), ["b"]),
        (Filters(year_max=2020), ["a"]),
        (Filters(year_min=2020, year_max=2021), ["a", "b"]),
        (Filters(year_min=-(10**30)), ["a", "b"]),
        (Filters(year_min=10**30), []),
        (Filters(venues=("icml",)), ["a", "b"]),
        (Filters(venues=("\x00",)), []),
        (Filters(venues=("NeurIPS", "iclr")), []),
        (Filters(categories=("optimization",)), ["a", "b"]),
        (Filters(categories=("OPTIMIZATION · non-convex",)), ["b"]),
        (Filters(categories=("Non-Convex",)), []),
        (Filters(categories=("opt",)), []),
        (Filters(authors=("erdos",)), ["a"]),
        (Filters(authors=("Paul Erdős",)), ["a"]),
        (Filters(authors=("wei zhang",)), ["b", "c"]),
        (Filters(authors=("ZHANG",)), ["b", "c"]),
        (Filters(authors=("zhang", "erdos")), ["a", "b", "c"]),
        (Filters(authors=("Paul",)), []),
        (Filters(authors=("周欣",)), ["c"]),
        (Filters(authors=("zhang",), venues=("ICML",), year_min=2000), ["b"]),
    ],
)
def test_filters_find_exactly_what_passes(catalogue: Catalogue, filters: Filters, found: list[str]) -> None:
    commit(
        catalogue,
        raw_paper("a", authors=("Paul Erdős",), year=2020, venue="ICML", category="Optimization"),
        raw_paper("b", authors=("Zhang, Wei",), year=2021, venue="icml", category="Optimization · Non-Convex"),
        raw_paper("c", authors=("Wei Zhang", "周欣"), category="Theory · Optimization"),
    )
    assert topics(catalogue, ids(catalogue, filters)) == found
    assert sorted(topics(catalogue, catalogue.matching(filters))) == sorted(found)


def test_many_ids_can_be_asked_for(catalogue: Catalogue) -> None:
    commit(catalogue, raw_paper("a"), raw_paper("b"))
    many = [f"unknown{i}" for i in range(20_000)]
    wanted = ids(catalogue)
    assert ids(catalogue, Filters(paper_ids=(*many, *wanted))) == wanted
    assert [paper.paper_id for paper in catalogue.papers([*many, *wanted])] == wanted
    assert sorted(catalogue.matching(Filters(paper_ids=(*many, *wanted)))) == sorted(wanted)
    with pytest.raises(InputError, match="at most"):
        catalogue.matching(Filters(paper_ids=(*many, *many)))


def test_paging_gives_each_paper_once_whatever_is_removed_meanwhile(catalogue: Catalogue) -> None:
    commit(catalogue, *[raw_paper(f"t{i}") for i in range(7)])
    everything = ids(catalogue)
    first = catalogue.list(limit=3)
    catalogue.remove([first[-1].paper_id])
    commit(catalogue, raw_paper("t7"))
    rest = catalogue.list(after=first[-1].paper_id, limit=100)
    assert [paper.paper_id for paper in (*first, *rest)] == [*everything, ids(catalogue)[-1]]
    with pytest.raises(NotFound):
        catalogue.list(after="unknown0")


def test_what_filters_may_be_named_follows_the_revision(catalogue: Catalogue) -> None:
    assert catalogue.filter_names() == Names(venues=(), categories=(), has_years=False)
    commit(catalogue, FULL)
    assert catalogue.filter_names() == Names(venues=("ICML",), categories=("Theory · Optimization",), has_years=True)
    catalogue.remove(ids(catalogue))
    assert catalogue.filter_names() == Names(venues=(), categories=(), has_years=False)


def test_looking_papers_up_never_goes_through_all_of_them(tmp_path: Path) -> None:
    database = open_database(sqlite_url(tmp_path / "footnote.db"))
    catalogue = Catalogue(database)
    commit(catalogue, FULL)
    (paper_id,) = ids(catalogue)
    plans: list[str] = []

    def explain(connection: Connection, cursor: Any, statement: str, parameters: Any, *rest: object) -> None:
        if statement.startswith("SELECT"):
            plans.extend(row[3] for row in cursor.execute(f"EXPLAIN QUERY PLAN {statement}", parameters).fetchall())

    event.listen(database.engine, "before_cursor_execute", explain)
    catalogue.indexed([paper_id], "hash")
    catalogue.vectors([paper_id], "hash")
    catalogue.papers([paper_id])
    catalogue.resolve("10.1000/trees")
    catalogue.list(after=paper_id)
    catalogue.changes(0, 10)
    catalogue.changed_since([paper_id], 0)
    catalogue.plan([read_record(FULL)], ["hash"])
    database.close()
    assert plans
    assert [plan for plan in plans if plan.startswith("SCAN papers") or "(deleted=?)" in plan] == []


def add_papers(url: str, writer: int, commits: int) -> None:
    database = open_database(url)
    catalogue = Catalogue(database)
    for number in range(commits):
        commit(catalogue, raw_paper(f"w{writer}n{number}"), raw_paper(f"shared{number}", keywords=(f"w{writer}",)))
    database.close()


def test_four_processes_may_write_at_once(database_url: str, catalogue: Catalogue) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=add_papers, args=(database_url, writer, 10)) for writer in range(4)]
    for process in writers:
        process.start()
    for process in writers:
        process.join(120)
    assert [process.exitcode for process in writers] == [0] * 4
    abstracts = Counter(paper.abstract for paper in catalogue.list(limit=1000))
    assert len(abstracts) == 50
    assert set(abstracts.values()) == {1}
    assert catalogue.revision() == 40
    for paper in catalogue.list(limit=1000):
        if "shared" in paper.abstract:
            assert set(paper.keywords) == {"w0", "w1", "w2", "w3"}


def test_a_slow_writer_hides_no_revision(catalogue: Catalogue) -> None:
    """Whoever has read up to a revision never misses what a writer that began earlier commits later."""
    begun = threading.Event()

    def write_slowly() -> None:
        with catalogue.database.writing() as connection:
            revision = lock(connection) + 1
            begun.set()
            add(connection, [read_record(raw_paper("slow"))], revision)
            time.sleep(0.5)
            set_revision(connection, revision)

    writer = threading.Thread(target=write_slowly)
    writer.start()
    assert begun.wait(10)
    fast = commit(catalogue, raw_paper("fast"))
    seen = catalogue.changes(0, 100)
    writer.join()
    assert fast.revision == 2
    assert [change.revision for change in seen] == [1, 2]


def test_papers_of_another_process_are_seen_at_once(tmp_path: Path) -> None:
    url = sqlite_url(tmp_path / "footnote.db")
    mine, theirs = open_database(url), open_database(url)
    commit(Catalogue(theirs), FULL)
    assert Catalogue(mine).revision() == 1
    assert len(Catalogue(mine).list()) == 1
    mine.close()
    theirs.close()
