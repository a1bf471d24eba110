"""The search page: what a block is, which heads belong to which abstract, paragraphs, rejects."""

from __future__ import annotations

import tracemalloc
from itertools import chain, repeat
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.errors import UnreadableFile
from rag.readers import read, read_stream, walk
from rag.readers.page_block import Kind, kind_of, names_of
from rag.readers.page_paragraph import continues
from rag.types import RawPaper, Rejected
from tests.readers.reading import Pieces, items, paper, papers

SEEDS = Path(__file__).parents[3] / "shared" / "seeds"

TIDES = "We study tides with a tide gauge. The gauge finds them twice a day."
KITES = "Kites fly in wind. This work measures the pull of forty kites and finds it grows with the square of the wind."
LONG_KITES = KITES + " The string matters less than one would think, for its weight is small beside the pull." * 3
LONG_TIDES = TIDES + " A second gauge agrees with the first at every hour of the day, in summer as in winter." * 3


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("论文检索", "header"),
        ("论文检索结果", "header"),
        ("Paper search", "header"),
        ("共 20 篇论文", "header"),
        ("Optimization · Non-Convex", "category"),
        ("Applications · Genetics, Cell Biology, etc", "category"),
        ("Social Aspects · Accountability, Transparency, and Interpretability", "category"),
        ("Kites · Everything About Kites", "category"),
        ("Optimization", "category"),
        ("optimization", "category"),
        ("Health / Medicine", "category"),
        ("Theory·Optimization", "category"),
        ("Theory: Game Theory", "category"),
        ("Reinforcement Learning and Planning", "category"),
        ("机器人学习", "category"),
        ("Wang", "authors"),
        ("周欣", "authors"),
        ("Ada Byron", "authors"),
        ("Ada Byron, 周欣, Wang 等", "authors"),
        ("Ada Byron, 周欣 et al.", "authors"),
        ("张三，李四、王五", "authors"),
        ("deqing wang, HUI LI, Jia (Kevin) Liu, Anthony Man-Cho So, Chris De Sa", "authors"),
        ("Bharath K. Sriperumbudur, Sammy Davis Jr.", "authors"),
        ("Ludwig van der Berg, Maria de la Cruz and Al Bin", "authors"),
        ("…, Ada B. ...", "authors"),
        ("浅层网络研究 中的风筝与潮汐之间的关系问题探讨", "prose"),
        ("Deep Ganguli", "authors"),
        ("Hei Law", "authors"),
        ("We prove convergence.", "prose"),
        ("Kites fly.", "prose"),
        ("Code: https://example.org/kites", "prose"),
        ("本文提出一种新的优化方法，用于训练大型语言模型。", "prose"),
        (TIDES, "prose"),
    ],
)
def test_a_block_is_known_by_what_it_says(text: str, kind: Kind) -> None:
    assert kind_of(text) == kind


def test_category_authors_and_abstract_make_a_paper() -> None:
    assert paper(f"论文检索\n\nPhysics · Sea\n\nAda Byron, Bo Li\n\n{TIDES}\n") == RawPaper(
        abstract=TIDES, where="line 3", authors=("Ada Byron", "Bo Li"), category="Physics · Sea"
    )


@pytest.mark.parametrize(
    ("heads", "category", "authors"),
    [
        (("Physics · Sea", "Ada Byron"), "Physics · Sea", ("Ada Byron",)),
        (("Optimization", "Wang"), "Optimization", ("Wang",)),
        (("Optimization",), "Optimization", ()),
        (("Physics · Sea",), "Physics · Sea", ()),
        (("Wang",), None, ("Wang",)),
        (("周欣",), None, ("周欣",)),
        (("Ada Byron, Ada Byron, Bo Li",), None, ("Ada Byron", "Ada Byron", "Bo Li")),
        (("Kitology", "Ada Byron, Bo Li"), "Kitology", ("Ada Byron", "Bo Li")),
        (("Ada Byron, Bo Li", "Theory · Kites"), "Theory · Kites", ("Ada Byron", "Bo Li")),
        ((), None, ()),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_any_of_the_heads_may_be_missing(
    heads: tuple[str, ...], category: str | None, authors: tuple[str, ...], line_end: str
) -> None:
    page = "\n\n".join(["论文检索", "Physics · Air", "Cy Twombly, Di Xu", LONG_KITES, *heads, LONG_TIDES]) + "\n"
    first, second = papers(page.replace("\n", line_end))
    assert (first.abstract, first.category, first.authors) == (LONG_KITES, "Physics · Air", ("Cy Twombly", "Di Xu"))
    assert (second.abstract, second.category, second.authors) == (LONG_TIDES, category, authors)


@pytest.mark.parametrize(
    ("line", "names", "truncated"),
    [
        ("Ada Byron, Bo Li 等", ("Ada Byron", "Bo Li"), True),
        ("Ada Byron, Bo Li等", ("Ada Byron", "Bo Li"), True),
        ("Ada Byron, 等", ("Ada Byron",), True),
        ("Ada Byron, Bo Li, et al.", ("Ada Byron", "Bo Li"), True),
        ("Ada Byron, Bo Li", ("Ada Byron", "Bo Li"), False),
        ("Bet Al", ("Bet Al",), False),
    ],
)
def test_a_trailing_et_al_marks_the_list_as_truncated(line: str, names: tuple[str, ...], truncated: bool) -> None:
    assert names_of(line) == (names, truncated)


def test_paragraphs_of_one_abstract_stay_together() -> None:
    page = (
        f"论文检索\n\nPhysics · Sea\n\nAda Byron\n\n{LONG_TIDES}\n\nMoreover, moons matter.\n\nPhysics · Air\n\nBo Li\n\n{KITES}"
    )
    first, second = papers(page)
    assert first.abstract == f"{LONG_TIDES}\n\nMoreover, moons matter."
    assert second.abstract == KITES


RESULTS = "Experiments show that it beats every other kite. "
GUSTS = "Gusts end flights. Here is a way to see them coming with a microphone, well before the line goes slack. "


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (LONG_TIDES, "Moons matter.", True),
        ("Tides fall.", GUSTS * 3, True),
        (LONG_TIDES + " " + RESULTS, "However, " + GUSTS * 3, True),
        (LONG_TIDES + " " + RESULTS, "gusts, as it happens, do too. " + GUSTS * 3, True),
        (LONG_TIDES + " " + RESULTS + "Namely:", GUSTS * 3, True),
        (LONG_TIDES + " TideNet does so. " + RESULTS, "Gauges with TideNet are cheap. " + GUSTS * 3, True),
        (LONG_TIDES + " " + RESULTS, GUSTS * 3, False),
        (LONG_TIDES, "Large kites (LKs) are here. " + GUSTS * 3, False),
        (LONG_TIDES + " We use large kites (LKs).", "Gauges of large kites (LKs) are cheap. LKs tire. " + GUSTS * 3, False),
        ("In summer the sea is calm. " * 40, GUSTS * 3, True),
        ("In summer the sea is calm. " * 70, GUSTS * 3, False),
    ],
)
def test_a_paragraph_goes_on_with_the_abstract_unless_it_reads_as_a_new_one(first: str, second: str, together: bool) -> None:
    assert continues(first.strip(), second.strip()) == together


def test_lines_of_one_paragraph_stay_lines() -> None:
    assert paper(f"论文检索\n\nAda Byron, Bo Li\n\n{TIDES}\nOne\nmore.").abstract == f"{TIDES}\nOne\nmore."


def test_heads_without_a_blank_line_below_them_are_still_heads() -> None:
    found = paper(f"论文检索\nPhysics · Sea\nAda Byron, Bo Li\n{TIDES}")
    assert (found.category, found.authors, found.abstract) == ("Physics · Sea", ("Ada Byron", "Bo Li"), TIDES)


def test_a_list_of_authors_broken_over_lines_is_one_list() -> None:
    assert paper(f"论文检索\n\nAda Byron, Bo Li,\nCy Twombly\n\n{TIDES}").authors == ("Ada Byron", "Bo Li", "Cy Twombly")


def test_a_paper_without_abstract_is_rejected_and_the_next_one_read() -> None:
    lost, found, last = items(f"论文检索\n\nPhysics · Sea\n\nAda Byron\n\nPhysics · Air\n\nBo Li\n\n{KITES}\n\nTheory\n\nCy Xu")
    assert isinstance(lost, Rejected)
    assert lost == Rejected("file", "line 3", "no abstract below “Physics · Sea / Ada Byron”")
    assert isinstance(found, RawPaper)
    assert (found.category, found.authors) == ("Physics · Air", ("Bo Li",))
    assert isinstance(last, Rejected)
    assert last.where == "line 13"


def test_pages_put_one_after_the_other_are_read_through() -> None:
    page = f"论文检索\n\nPhysics · Sea\n\nAda Byron\n\n{TIDES}\n\n"
    assert len(papers(page * 3)) == 3


def test_a_page_without_its_header_is_known_by_its_papers() -> None:
    assert paper(f"Physics · Sea\n\nAda Byron\n\n{TIDES}").category == "Physics · Sea"
    assert paper(f"Ada Byron, Bo Li\n\n{TIDES}").authors == ("Ada Byron", "Bo Li")


@pytest.mark.parametrize(
    "text",
    [
        f"# Kites\n\n{KITES}\n\n## Install\n\nType make. That is all there is to it.\n",
        f"Kites\n\n{KITES}\n\nInstall\n\nType make. That is all there is to it.\n",
        f"Papers\n\n{KITES}\n",
        f"{KITES}\n\n{TIDES}\n",
        f"Ada Byron, Bo Li\n\n{KITES}\n\nOne\n\n{TIDES}\n\nTwo\n\n{KITES}\n",
        "论文检索\n",
        "kite\nkites\n",
    ],
)
def test_another_plain_text_is_no_search_page(text: str) -> None:
    with pytest.raises(UnreadableFile, match="none of the formats"):
        items(text)


@pytest.mark.parametrize("end", ["\n", "\n\n"])
def test_an_endless_abstract_is_rejected_without_being_kept(end: str) -> None:
    line = f"Moreover, {'the same words again, ' * 100}as before.{end}".encode()
    pieces = chain(["论文检索\n\nAda Byron, Bo Li\n\n".encode()], repeat(line * 10, 400))
    tracemalloc.start()
    try:
        (lost,) = read_stream(Pieces(pieces), "upload")  # type: ignore[arg-type]  # a raw stream serves as a BinaryIO
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(lost, Rejected)
    assert "100,000" in lost.reason
    assert peak < 4_000_000


NAMES = st.lists(
    st.sampled_from(["Ada Byron", "Wang", "周欣", "Jia (Kevin) Liu", "deqing wang", "Ø. Ås"]), min_size=1, max_size=12
)
CATEGORIES = st.sampled_from([None, "Theory · Learning Theory", "Optimization", "Applications · Health / Medicine"])
RECORDS = st.lists(
    st.tuples(CATEGORIES, NAMES, st.booleans(), st.sampled_from([TIDES, KITES, LONG_TIDES, LONG_KITES])), min_size=1
)


@settings(deadline=None)
@given(records=RECORDS, blanks=st.sampled_from(["\n\n", "\n \n", "\n\n\n\n", "\r\n\r\n"]))
def test_whatever_papers_are_on_the_page_come_back_as_they_are(
    records: list[tuple[str | None, list[str], bool, str]], blanks: str
) -> None:
    page = ["论文检索"]
    for category, names, truncated, abstract in records:
        page += [category] if category else []
        page += [", ".join(names) + (" 等" if truncated else ""), abstract]
    found = [(p.category, list(p.authors), p.authors_truncated, p.abstract) for p in papers(blanks.join(page))]
    assert found == records


@pytest.mark.skipif(not SEEDS.is_dir(), reason="the five dumps are not at ../shared/seeds")
def test_the_seeds_are_read_as_known() -> None:
    found = [item for file in walk([SEEDS]) for item in read(file.path)]
    assert all(isinstance(item, RawPaper) for item in found)
    read_papers = [item for item in found if isinstance(item, RawPaper)]
    assert len(read_papers) == 100
    assert len({p.abstract for p in read_papers}) == 99
    assert sum(p.category is None for p in read_papers) == 8
    assert [p.category for p in read_papers if p.category and "·" not in p.category] == ["Optimization"]
    assert sum(p.authors_truncated for p in read_papers) == 6
    assert all(p.authors and not any("等" in name for name in p.authors) for p in read_papers)
    assert any("Wang" in p.authors for p in read_papers)
    assert any("周欣" in p.authors for p in read_papers)
    assert sum(len(set(p.authors)) < len(p.authors) for p in read_papers) == 1
