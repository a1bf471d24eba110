"""Exports are read back by the libraries that reference managers' users rely on."""

from __future__ import annotations

import json

import bibtexparser  # type: ignore[import-untyped]  # ships no types
import pytest
import rispy  # type: ignore[import-untyped]  # ships no types
from bibtexparser.bparser import BibTexParser  # type: ignore[import-untyped]  # ships no types
from hypothesis import given
from hypothesis import strategies as st

from rag.errors import InputError
from rag.export import export
from rag.types import Paper

SNOW = Paper(
    "p-0000001",
    "It costs 5% & $O(n^{2})$ in {most} cases.",
    title="On_snow #1",
    authors=("Ada Frost", "Melt, Bo", "周欣", "Smith and Sons"),
    authors_truncated=True,
    venue="Journal of R&D",
    year=2024,
    url="https://example.org/a_b?c={1}",
    doi="10.1000/x_(y)",
    keywords=("ice", "cold"),
)
BARE = Paper("p-0000002", "Only an abstract.")


def bibtex(*papers: Paper) -> list[dict[str, str]]:
    parser = BibTexParser(common_strings=True, ignore_nonstandard_types=False)
    entries: list[dict[str, str]] = bibtexparser.loads("".join(export(papers, "bib")), parser).entries
    return entries


def test_bibtex_escapes_what_tex_would_choke_on_and_keeps_maths() -> None:
    (entry,) = bibtex(SNOW)
    assert entry["abstract"] == r"It costs 5\% \& $O(n^{2})$ in \textbraceleft{}most\textbraceright{} cases."
    assert entry["title"] == r"{On\_snow \#1}"
    assert entry["howpublished"] == r"Journal of R\&D"


def test_bibtex_keeps_every_author_one_person_and_marks_a_cut_list() -> None:
    (entry,) = bibtex(SNOW)
    assert entry["author"] == "Ada Frost and Melt, Bo and {周欣} and {Smith and Sons} and others"


def test_bibtex_addresses_are_not_escaped() -> None:
    (entry,) = bibtex(SNOW)
    assert entry["doi"] == "10.1000/x_(y)"
    assert entry["url"] == "https://example.org/a_b?c=%7B1%7D"


def test_bibtex_keys_are_telling_and_unique() -> None:
    keys = [entry["ID"] for entry in bibtex(SNOW, SNOW, SNOW, BARE, Paper("p-0000003", "x", authors=("周欣",)))]
    assert keys == ["frost2024onsnow", "frost2024onsnow-2", "frost2024onsnow-3", "p-0000002", "p-0000003"]


@given(st.text(), st.text().filter(str.strip))
def test_no_text_can_break_out_of_its_bibtex_field(title: str, abstract: str) -> None:
    entries = bibtex(Paper("p-0000001", abstract, title=title), BARE)
    assert [entry["ID"] for entry in entries] == ["p-0000001", "p-0000002"]
    assert entries[1] == {
        "ENTRYTYPE": "misc",
        "ID": "p-0000002",
        "title": "{[Only an abstract.]}",
        "abstract": "Only an abstract.",
    }


def test_ris_is_read_back_with_every_author_in_order() -> None:
    snow, bare = rispy.loads("".join(export([SNOW, BARE], "ris")))
    assert snow["authors"] == ["Ada Frost", "Melt, Bo", "周欣", "Smith and Sons", "et al."]
    assert (snow["title"], snow["year"], snow["secondary_title"]) == ("On_snow #1", "2024", "Journal of R&D")
    assert (snow["doi"], snow["urls"], snow["keywords"]) == (SNOW.doi, [SNOW.url], ["ice", "cold"])
    assert bare == {
        "type_of_reference": "GEN",
        "id": "p-0000002",
        "title": "[Only an abstract.]",
        "abstract": "Only an abstract.",
    }


def test_a_line_break_in_an_abstract_does_not_break_ris() -> None:
    (entry,) = rispy.loads("".join(export([Paper("p-0000001", "One.\nER  - \nTwo.")], "ris")))
    assert entry["abstract"] == "One. ER - Two."


def test_csl_names_are_split_only_where_the_name_shows_how() -> None:
    (item, bare) = json.loads("".join(export([SNOW, BARE], "csl-json")))
    assert item["author"][:3] == [{"family": "Frost", "given": "Ada"}, {"family": "Melt", "given": "Bo"}, {"literal": "周欣"}]
    assert item["author"][-1] == {"literal": "et al."}
    assert item["issued"] == {"date-parts": [[2024]]}
    assert bare == {"id": "p-0000002", "type": "article", "title": "[Only an abstract.]", "abstract": "Only an abstract."}


def test_a_paper_without_a_title_goes_by_its_first_words_read_and_whole() -> None:
    paper = Paper(
        "p-0000001", r"We present **LeMiCa**, a $\gamma$-discounted, training-free and efficient acceleration framework for it."
    )
    title = "[We present LeMiCa, a γ-discounted, training-free and efficient…]"
    assert bibtex(paper)[0]["title"] == f"{{{title}}}"
    assert rispy.loads("".join(export([paper], "ris")))[0]["title"] == title
    assert json.loads("".join(export([paper], "csl-json")))[0]["title"] == title
    assert json.loads("".join(export([paper], "jsonl")))["title"] is None


def test_json_lines_hold_one_paper_a_line_with_its_keywords() -> None:
    lines = "".join(export([SNOW, BARE], "jsonl")).splitlines()
    assert [json.loads(line)["keywords"] for line in lines] == [["ice", "cold"], []]


@pytest.mark.parametrize(("form", "empty"), [("bib", ""), ("ris", ""), ("csl-json", "[]\n"), ("jsonl", "")])
def test_no_papers_give_a_valid_empty_file(form: str, empty: str) -> None:
    assert "".join(export([], form)) == empty


def test_an_unknown_format_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match="bib, ris, csl-json, jsonl"):
        export([SNOW], "endnote")
