from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.identity import Record, author_key, canonical, conflict, match_key, merge, read_record, readings
from rag.shelf import Shelf
from rag.types import Paper, RawPaper

LONG = "We show that {} of every kind can be had at once, and prove it by a construction that is short, plain and needs no luck. "


def raw(topic: str = "peace", **given: object) -> RawPaper:
    return RawPaper(abstract=LONG.format(topic), where="line 1", **given)  # type: ignore[arg-type]  # fields by name


def shelve(*papers: RawPaper, onto: Shelf | None = None) -> Shelf:
    """A shelf with these papers taken, on top of those of another."""
    stored = list(onto.records.values()) if onto else []
    shelf = Shelf(stored, dict(onto.owners) if onto else {})
    for paper in papers:
        shelf.take(read_record(paper))
    return shelf


def only(shelf: Shelf) -> Paper:
    (record,) = shelf.records.values()
    return record.paper


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        ("doi:10.1000/ABC.1", "doi:10.1000/abc.1"),
        ("https://doi.org/10.1000/abc.1", "doi:10.1000/abc.1"),
        ("http://dx.doi.org/10.1000/abc(2).1", "doi:10.1000/abc(2).1"),
        ("10.1000/abc.1", "doi:10.1000/abc.1"),
        ("DOI: 10.1000/abc.1", "doi:10.1000/abc.1"),
        ("arXiv:2401.00001v3", "arxiv:2401.00001"),
        ("2401.00001", "arxiv:2401.00001"),
        ("https://arxiv.org/abs/2401.00001v1", "arxiv:2401.00001"),
        ("https://arxiv.org/pdf/2401.00001v2.pdf", "arxiv:2401.00001"),
        ("arxiv:math.GT/0309136", "arxiv:math.gt/0309136"),
        ("hep-th/9901001v2", "arxiv:hep-th/9901001"),
        ("10.48550/arXiv.2401.00001", "arxiv:2401.00001"),
        ("https://doi.org/10.48550/ARXIV.2401.00001", "arxiv:2401.00001"),
        ("pmid:12345678", "pmid:12345678"),
        ("https://pubmed.ncbi.nlm.nih.gov/12345678/", "pmid:12345678"),
        ("openreview:aBcD_12-x", "openreview:aBcD_12-x"),
        ("https://openreview.net/forum?id=aBcD_12-x", "openreview:aBcD_12-x"),
        ("id:7", "id:7"),
        ("id:10.1000/abc", "id:10.1000/abc"),
        ("s2:649def34f8be52c8b66281af98ae884c09aef38b", "s2:649def34f8be52c8b66281af98ae884c09aef38b"),
        ("doi:", None),
        ("id: ", None),
        ("", None),
    ],
)
def test_an_id_has_one_form_however_it_is_written(written: str, kept: str | None) -> None:
    assert canonical(written) == kept


def test_a_bare_number_is_no_strong_id() -> None:
    assert list(readings("12345678")) == []


@pytest.mark.parametrize(
    ("first", "second", "works"),
    [
        ("On Sums I", "On Sums II", 2),
        ("On Sums, Part 1", "On Sums, Part 2", 2),
        ("On Sums II: Bounds", "On Sums III: Bounds", 2),
        ("On Sums", "On Sums II", 2),
        ("On Sums.", "on sums", 1),
        ("On Sums of 2 and 3", "On Sums", 1),
        (None, "On Sums", 1),
    ],
)
def test_parts_of_a_series_stay_apart_though_they_share_an_abstract(first: str | None, second: str, works: int) -> None:
    papers = [raw(title=first), raw(title=second)]
    shelf = shelve(*papers)
    assert len(shelf.records) == works
    assert shelve(*papers, onto=shelf).unchanged == 2


def test_the_same_abstract_is_the_same_work_whatever_its_spaces_case_and_punctuation() -> None:
    changed = replace(raw(), abstract=LONG.format("PEACE").replace(", ", " -- ").upper())
    shelf = shelve(raw(category="Ethics"), changed)
    assert (shelf.added, shelf.unchanged) == (1, 1)
    assert only(shelf).abstract == LONG.format("peace")


def test_the_category_given_only_once_is_kept_in_either_order() -> None:
    for papers in ([raw(category="Theory"), raw()], [raw(), raw(category="Theory")]):
        shelf = shelve(*papers)
        assert only(shelf).category == "Theory"


def test_the_same_abstract_is_the_same_work_through_its_markup() -> None:
    shelf = shelve(raw("$\\alpha$ of <i>peace</i>"), raw("α of peace"))
    assert (shelf.added, shelf.unchanged) == (1, 1)
    assert only(shelf).abstract == LONG.format("$\\alpha$ of <i>peace</i>")


def test_a_paper_read_by_older_rules_is_known_again_and_read_anew() -> None:
    now = read_record(raw("$\\alpha$ of peace"))
    verbatim = now.fingerprints - read_record(raw("α of peace")).fingerprints
    before = replace(now, text="how it was once read", sentences=(), fingerprints=verbatim)
    shelf = Shelf([before], {})
    shelf.take(now)
    assert list(shelf.records.values()) == [now]
    assert shelf.merged == 1


def test_a_record_that_adds_something_is_merged_and_one_that_does_not_is_unchanged() -> None:
    shelf = shelve(raw(), raw(category="Theory"), raw())
    assert (shelf.added, shelf.merged, shelf.unchanged) == (1, 1, 1)


def test_works_with_the_same_title_and_other_abstracts_stay_two() -> None:
    shelf = shelve(raw("peace", title="On X", authors=("A. One",)), raw("rain", title="On X", authors=("B. Two",)))
    assert len(shelf.records) == 2


def test_short_stock_abstracts_are_not_taken_for_one_work() -> None:
    stock = RawPaper(abstract="No abstract available.", where="")
    papers = [replace(stock, title="Editorial"), replace(stock, title="Erratum"), replace(stock, title="Editorial")]
    assert len(shelve(*papers).records) == 2


def test_one_id_makes_one_work_though_the_abstracts_differ() -> None:
    shelf = shelve(raw("peace", external_ids=("arxiv:2401.00001v1",)), raw("rain", external_ids=("arxiv:2401.00001v2",)))
    assert len(shelf.records) == 1


def test_two_dois_are_two_works_though_the_abstracts_are_the_same() -> None:
    papers = [raw(external_ids=("doi:10.1000/1",)), raw(external_ids=("doi:10.1000/2",))]
    shelf = shelve(*papers)
    assert len(shelf.records) == 2
    assert shelve(*papers, onto=shelf).unchanged == 2


def test_a_record_with_the_ids_of_two_contradicting_papers_goes_to_the_older() -> None:
    shelf = shelve(
        raw("peace", external_ids=("doi:10.1000/1", "arxiv:2401.00001")),
        raw("rain", external_ids=("doi:10.1000/2", "arxiv:2401.00002")),
    )
    both = shelve(raw("snow", external_ids=("doi:10.1000/1", "arxiv:2401.00002")), onto=shelf)
    assert [record.names for record in both.records.values()] == [record.names for record in shelf.records.values()]
    assert [record.paper.abstract for record in both.records.values()] == [LONG.format("snow"), LONG.format("rain")]


def test_ids_of_other_kinds_join_on_the_abstract() -> None:
    shelf = shelve(raw(external_ids=("doi:10.1000/1",)), raw(external_ids=("arxiv:2401.00001",)))
    (record,) = shelf.records.values()
    assert record.names == {"doi:10.1000/1", "arxiv:2401.00001"}


def test_the_numbers_files_give_their_records_never_join_works() -> None:
    shelf = shelve(raw("peace", external_ids=("id:1",)), raw("rain", external_ids=("id:1",)))
    first, second = shelf.records.values()
    assert first.names == {"id:1"}
    assert not second.names


def test_the_newest_version_gives_abstract_and_title_in_any_order() -> None:
    old = raw("peace", title="Draft", version=1, external_ids=("arxiv:2401.00001",))
    new = raw("rain", title="Final", version=2, external_ids=("arxiv:2401.00001",))
    for papers in ([old, new], [new, old]):
        paper = only(shelve(*papers))
        assert (paper.title, paper.abstract) == ("Final", new.abstract)


def test_a_correction_replaces_and_the_old_text_coming_again_does_not() -> None:
    wrong, right = (raw(topic, external_ids=("doi:10.1000/1",)) for topic in ("peace", "rain"))
    shelf = shelve(wrong, right)
    assert only(shelf).abstract == right.abstract
    again = shelve(wrong, onto=shelf)
    assert again.unchanged == 1
    assert only(again).abstract == right.abstract


def test_an_abstract_cut_short_never_replaces_the_whole_one() -> None:
    whole = raw(external_ids=("doi:10.1000/1",))
    short = replace(whole, abstract=whole.abstract[:110] + " …")
    for papers in ([whole, short], [short, whole]):
        assert only(shelve(*papers)).abstract == whole.abstract


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [
        ((("A", "B"), False), (("A",), True), (("A", "B"), False)),
        ((("A", "B"), True), (("A",), False), (("A",), False)),
        ((("A",), True), (("A", "B"), True), (("A", "B"), True)),
        (((), False), (("A",), True), (("A",), True)),
    ],
)
def test_the_better_author_list_is_kept(
    first: tuple[tuple[str, ...], bool], second: tuple[tuple[str, ...], bool], kept: tuple[tuple[str, ...], bool]
) -> None:
    papers = [raw(authors=authors, authors_truncated=cut) for authors, cut in (first, second)]
    for order in (papers, papers[::-1]):
        paper = only(shelve(*order))
        assert (paper.authors, paper.authors_truncated) == kept


def test_an_author_named_twice_stays_named_twice() -> None:
    assert only(shelve(raw(authors=("A B", "C D", "A B")), raw())).authors == ("A B", "C D", "A B")


def test_two_papers_that_turn_out_to_be_one_keep_the_older_id() -> None:
    shelf = shelve(raw("peace", external_ids=("doi:10.1000/1",)), raw("rain", external_ids=("arxiv:2401.00001",), venue="V"))
    older, younger = shelf.records
    joined = shelve(raw("peace", external_ids=("doi:10.1000/1", "arxiv:2401.00001")), onto=shelf)
    assert list(joined.records) == [older]
    assert joined.redirects == {younger: older}
    assert only(joined).venue == "V"


def test_a_paper_found_by_id_and_one_found_by_abstract_are_joined() -> None:
    shelf = shelve(raw("peace", external_ids=("doi:10.1000/1",)), raw("rain", category="Theory"))
    joined = shelve(raw("rain", external_ids=("doi:10.1000/1",)), onto=shelf)
    assert only(joined).category == "Theory"
    assert only(joined).paper_id == next(iter(shelf.records))


def test_of_two_works_with_one_abstract_a_record_without_ids_is_the_one_that_knows_all_it_says() -> None:
    papers = [
        raw("peace", external_ids=("doi:10.1000/1",)),
        raw("rain", category="Theory"),
        raw("rain", external_ids=("doi:10.1000/2",)),
        raw("rain", external_ids=("doi:10.1000/1",)),
    ]
    once = shelve(*papers)
    assert [record.paper.category for record in once.records.values()] == [None, "Theory"]
    assert shelve(*papers, onto=once).unchanged == 4


def test_papers_joined_within_one_batch_are_counted_as_one() -> None:
    shelf = shelve(
        raw("peace", external_ids=("doi:10.1000/1",)),
        raw("rain", external_ids=("arxiv:2401.00001",)),
        raw("peace", external_ids=("doi:10.1000/1", "arxiv:2401.00001")),
    )
    assert (len(shelf.records), shelf.added, shelf.redirects) == (1, 1, {})


def test_an_id_in_use_is_never_given_to_another_paper() -> None:
    moved = shelve(raw("peace"), raw("peace", external_ids=("doi:10.1000/1",)), raw("peace", external_ids=("doi:10.1000/1",)))
    taken = only(moved).paper_id
    shelf = Shelf([], {}, taken=[taken])
    shelf.take(read_record(raw("peace")))
    assert only(shelf).paper_id != taken


def test_ids_have_the_promised_form_and_do_not_depend_on_the_run() -> None:
    assert read_record(raw()).paper.paper_id == read_record(raw(category="x")).paper.paper_id
    assert set(read_record(raw()).paper.paper_id) <= set("0123456789abcdef")
    assert len(read_record(raw()).paper.paper_id) == 16


def test_fields_no_database_takes_are_mended_without_moving_a_character() -> None:
    paper = read_record(raw("a\x00b\ud800c", title=" T\x00 ", authors=("A\x00",), year=99999)).paper
    assert paper.abstract == LONG.format("a\ufffdb\ufffdc")
    assert (paper.title, paper.authors, paper.year) == ("T\ufffd", ("A\ufffd",), None)


def test_arxivs_own_doi_does_not_contradict_the_publishers() -> None:
    a, b = (read_record(raw(doi=doi)) for doi in ("10.48550/arXiv.2401.00001", "10.1000/1"))
    assert not conflict(a, b)
    assert a.paper.doi == "10.48550/arxiv.2401.00001"


def test_names_match_without_case_accents_and_order() -> None:
    assert match_key("  Erdős   PÁL ") == "erdos pal"
    assert author_key("Zhang, Wei") == author_key("wei  ZHANG")


TITLES = st.sampled_from([None, "On X", "On X I", "On X II", "Other"])
OPTIONAL = st.sampled_from([None, "one", "two"])
IDS = st.sampled_from(["doi:10.1000/1", "doi:10.1000/2", "arxiv:2401.00001", "arxiv:2401.00002", "pmid:1", "id:1", "id:2"])
AUTHORS = st.lists(st.sampled_from(["A One", "B Two", "周欣"]), max_size=3).map(tuple)
RAWS = st.builds(
    raw,
    st.sampled_from(["peace", "rain", "snow"]),
    title=TITLES,
    authors=AUTHORS,
    authors_truncated=st.booleans(),
    category=OPTIONAL,
    venue=OPTIONAL,
    year=st.sampled_from([None, 2020, 2021]),
    keywords=st.lists(st.sampled_from("xyz"), max_size=2).map(tuple),
    external_ids=st.lists(IDS, max_size=2).map(tuple),
    version=st.sampled_from([None, 1, 2]),
)
RECORDS = RAWS.map(read_record)


def filled(record: Record) -> set[str]:
    return {field.name for field in fields(Paper) if getattr(record.paper, field.name)} - {"authors_truncated"}


@settings(deadline=None)
@given(RECORDS, RECORDS)
def test_merging_loses_nothing_in_either_order(a: Record, b: Record) -> None:
    ab, ba = merge(a, b), merge(b, a)
    assert filled(ab) == filled(ba) == filled(a) | filled(b)
    assert (ab.names, ab.fingerprints, ab.version) == (ba.names, ba.fingerprints, ba.version)
    assert set(ab.paper.keywords) == set(a.paper.keywords) | set(b.paper.keywords)
    assert ab.paper.paper_id == a.paper.paper_id


@settings(deadline=None)
@given(RECORDS, RECORDS)
def test_merging_again_changes_nothing(a: Record, b: Record) -> None:
    once = merge(a, b)
    assert merge(a, a) == a
    assert merge(once, b) == once
    assert merge(once, a) == once


@settings(max_examples=300, deadline=None)
@given(st.lists(RAWS, max_size=6))
def test_taking_the_same_records_again_changes_nothing(papers: list[RawPaper]) -> None:
    once = shelve(*papers)
    again = shelve(*papers, onto=once)
    assert again.changed == []
    assert (again.added, again.merged, again.redirects) == (0, 0, {})


@settings(max_examples=100, deadline=None)
@given(st.lists(RAWS, max_size=6))
def test_every_name_has_one_owner_and_every_count_adds_up(papers: list[RawPaper]) -> None:
    shelf = shelve(*papers)
    owned = [name for record in shelf.records.values() for name in record.names]
    assert len(owned) == len(set(owned))
    assert {name for paper in papers for name in paper.external_ids} == set(owned)
    assert shelf.added == len(shelf.records)
    assert shelf.added + shelf.merged + shelf.unchanged == len(papers)
