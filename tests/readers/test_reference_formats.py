"""arXiv Atom, PubMed XML, NBIB, BibTeX and RIS: the fields of each, faults, hostile XML."""

from __future__ import annotations

import contextlib
import tracemalloc
from collections.abc import Iterator
from itertools import chain, repeat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.errors import UnreadableFile
from rag.readers import read_stream
from rag.types import RawPaper, Rejected
from tests.readers.reading import Pieces, items, paper

ATOM = """<?xml version="1.0" encoding="UTF-8"?>
<feed xmlns="http://www.w3.org/2005/Atom" xmlns:arxiv="http://arxiv.org/schemas/atom">
  <link href="http://arxiv.org/api/query?search_query=kites" rel="self" type="application/atom+xml"/>
  <title type="html">ArXiv Query: kites</title>
  <entry>
    <id>http://arxiv.org/abs/2401.00001v2</id>
    <updated>2025-03-02T18:00:00Z</updated>
    <published>2024-01-01T18:00:00Z</published>
    <title>Kites
  in the wind</title>
    <summary>  Kites &lt; birds,
in $x &amp; y$.
</summary>
    <author><name>Ada Byron</name><arxiv:affiliation>Kite Lab</arxiv:affiliation></author>
    <author><name>Bo Li</name></author>
    <arxiv:doi>10.1000/KITE</arxiv:doi>
    <arxiv:journal_ref>Kite Lett. 7</arxiv:journal_ref>
    <arxiv:primary_category term="cs.LG"/>
    <category term="cs.LG"/>
    <category term="stat.ML"/>
  </entry>
  <entry><id>http://arxiv.org/api/errors#bad_id</id><title>Error</title><summary>bad id</summary></entry>
  <entry><id>http://arxiv.org/abs/hep-th/9901001v1</id><title>Tides</title></entry>
</feed>
"""
PUBMED = """<?xml version="1.0" ?>
<!DOCTYPE PubmedArticleSet PUBLIC "-//NLM//DTD PubMedArticle//EN" "https://dtd.nlm.nih.gov/ncbi/pubmed/out/pubmed.dtd">
<PubmedArticleSet>
<PubmedArticle>
  <MedlineCitation Status="MEDLINE"><PMID Version="1">123</PMID>
    <Article>
      <Journal><JournalIssue><PubDate><MedlineDate>2024 Jan-Feb</MedlineDate></PubDate></JournalIssue>
        <Title>Kite letters</Title><ISOAbbreviation>Kite Lett</ISOAbbreviation></Journal>
      <ArticleTitle>Kites <i>in</i> the wind.</ArticleTitle>
      <ELocationID EIdType="pii">x</ELocationID><ELocationID EIdType="doi">10.1000/KITE</ELocationID>
      <Abstract>
        <AbstractText Label="BACKGROUND">Kites need CO<sub>2</sub>.</AbstractText>
        <AbstractText Label="RESULTS">They fly.</AbstractText>
        <AbstractText>No label here.</AbstractText>
        <CopyrightInformation>Ours.</CopyrightInformation>
      </Abstract>
      <AuthorList CompleteYN="N">
        <Author ValidYN="Y"><LastName>Byron</LastName><ForeName>Ada K</ForeName><Suffix>Jr</Suffix></Author>
        <Author ValidYN="N"><LastName>Bryon</LastName></Author>
        <Author><CollectiveName>Kite Group</CollectiveName></Author>
      </AuthorList>
    </Article>
    <MeshHeadingList><MeshHeading><DescriptorName>Wind</DescriptorName></MeshHeading></MeshHeadingList>
    <KeywordList><Keyword>kites</Keyword></KeywordList>
  </MedlineCitation>
  <PubmedData>
    <ArticleIdList><ArticleId IdType="pubmed">123</ArticleId></ArticleIdList>
    <ReferenceList><Reference><ArticleIdList><ArticleId IdType="doi">10.1000/other</ArticleId></ArticleIdList></Reference>
    </ReferenceList>
  </PubmedData>
</PubmedArticle>
<PubmedArticle><MedlineCitation><PMID>124</PMID><Article><ArticleTitle>Nothing.</ArticleTitle></Article></MedlineCitation></PubmedArticle>
<PubmedArticle><MedlineCitation><PMID>125</PMID><Article><Abstract><AbstractText>Tides fall.</AbstractText></Abstract></Article>
</MedlineCitation></PubmedArticle>
</PubmedArticleSet>
"""
NBIB = """
PMID- 123
OWN - NLM
DP  - 2024 Jan 5
TI  - Kites in
      the wind.
LID - 10.1000/KITE [doi]
AB  - BACKGROUND: Kites need wind - always. RESULTS: They
      fly.
FAU - Byron, Ada K
AU  - Byron AK
FAU - Li, Bo
AU  - Li B
TA  - Kite Lett
JT  - Kite letters
MH  - *Wind
OT  - kites

PMID- 124
TI  - Nothing.

PMID- 125
AB  - Tides fall.
"""
BIBTEX = r"""% Encoding: UTF-8
@comment{nothing}
@string{kl = "Kite Letters"}

@article{byron2024kites,
  title    = {{Kites} in M{\"u}nchen \& {NASA}},
  author   = {M{\"u}ller, Ada and {Kite and Sons} and Bo Li and others},
  journal  = kl,
  year     = 2024,
  month    = jan,
  doi      = {https://doi.org/10.1000/KITE\_1},
  keywords = {kites, wind},
  abstract = {Kites \emph{fly} in {wind} at 5\% of $x_{i}$.

    They do.},
}

@misc{broken,
  title = {Never {closed},
  abstract = {x}

@inproceedings{li2023, title="Tides", booktitle=unknownmacro, date={2023-05}, eprint={2401.00001}, archiveprefix={arXiv},
  abstract={{Tides fall.}}}
@book{none, title={No abstract}}
"""
RIS = """TY  - JOUR
AU  - Byron, Ada
AU  - Li, Bo
TI  - Kites in the wind
T2  - Kite Letters
PY  - 2024/01/05/
AB  - Kites fly in wind.
They do so
KW  - kites
KW  - wind
DO  - 10.1000/KITE
UR  - https://example.org/kites
ER  -

TY  - CONF
A1  - Xu, Cy
T1  - Tides
N2  - Tides fall.
Y1  - 2023
JO  - Sea
TY  - JOUR
TI  - Nothing
ER  -
"""

CASES = {
    "arxiv-atom": (
        ATOM,
        RawPaper(
            "Kites < birds,\nin $x & y$.",
            "record 1",
            title="Kites in the wind",
            authors=("Ada Byron", "Bo Li"),
            category="cs.LG",
            venue="Kite Lett. 7",
            year=2024,
            url="https://arxiv.org/abs/2401.00001",
            doi="10.1000/kite",
            keywords=("cs.LG", "stat.ML"),
            external_ids=("doi:10.1000/kite", "arxiv:2401.00001"),
            version=2,
        ),
        [("record 2", "has no arXiv id"), ("record 3", "no abstract")],
    ),
    "pubmed-xml": (
        PUBMED,
        RawPaper(
            "BACKGROUND: Kites need CO2.\nRESULTS: They fly.\nNo label here.",
            "record 1",
            title="Kites in the wind.",
            authors=("Ada K Byron Jr", "Kite Group"),
            authors_truncated=True,
            venue="Kite letters",
            year=2024,
            url="https://pubmed.ncbi.nlm.nih.gov/123",
            doi="10.1000/kite",
            keywords=("kites", "Wind"),
            external_ids=("doi:10.1000/kite", "pmid:123"),
        ),
        [("record 2", "no abstract")],
    ),
    "nbib": (
        NBIB,
        RawPaper(
            "BACKGROUND: Kites need wind - always. RESULTS: They fly.",
            "line 2",
            title="Kites in the wind.",
            authors=("Byron, Ada K", "Li, Bo"),
            venue="Kite letters",
            year=2024,
            url="https://pubmed.ncbi.nlm.nih.gov/123",
            doi="10.1000/kite",
            keywords=("kites", "Wind"),
            external_ids=("doi:10.1000/kite", "pmid:123"),
        ),
        [("line 19", "no abstract")],
    ),
    "bibtex": (
        BIBTEX,
        RawPaper(
            "Kites \\emph{fly} in {wind} at 5\\% of $x_{i}$.\n\nThey do.",
            "line 5",
            title="Kites in München & NASA",
            authors=("Müller, Ada", "Kite and Sons", "Bo Li"),
            authors_truncated=True,
            venue="Kite Letters",
            year=2024,
            url="https://doi.org/10.1000/KITE_1",
            doi="10.1000/kite_1",
            keywords=("kites", "wind"),
            external_ids=("doi:10.1000/kite_1", "id:byron2024kites"),
        ),
        [("line 18", "is no BibTeX entry; are its braces and quotes closed?"), ("line 24", "no abstract")],
    ),
    "ris": (
        RIS,
        RawPaper(
            "Kites fly in wind. They do so",
            "line 1",
            title="Kites in the wind",
            authors=("Byron, Ada", "Li, Bo"),
            venue="Kite Letters",
            year=2024,
            url="https://example.org/kites",
            doi="10.1000/kite",
            keywords=("kites", "wind"),
            external_ids=("doi:10.1000/kite",),
        ),
        [("line 21", "no abstract")],
    ),
}
FORMATS = pytest.mark.parametrize("format", CASES)


@FORMATS
def test_every_field_of_a_paper_is_read(format: str) -> None:
    text, expected, _ = CASES[format]
    assert items(text, format)[0] == expected


@FORMATS
def test_the_format_is_told_by_the_content(format: str) -> None:
    text, _, _ = CASES[format]
    assert items(text) == items(text, format)
    assert items(text.replace("\n", "\r\n")) == items(text, format)


@FORMATS
def test_records_that_are_no_papers_are_rejected_with_their_place(format: str) -> None:
    text, _, rejected = CASES[format]
    assert [(item.where, item.reason) for item in items(text) if isinstance(item, Rejected)] == rejected


@FORMATS
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_a_cut_file_gives_what_stands_before_the_cut(format: str, data: st.DataObject) -> None:
    text, expected, _ = CASES[format]
    cut = data.draw(st.integers(0, len(text)))
    try:
        found = items(text[:cut], format)
    except UnreadableFile:
        found = []
    assert all(isinstance(item, RawPaper | Rejected) for item in found)
    assert not found or found[0] == expected or len(found) == 1


@FORMATS
@settings(deadline=None, max_examples=40)
@given(data=st.data())
def test_a_spoilt_file_raises_nothing_but_unreadable_file(format: str, data: st.DataObject) -> None:
    text, _, _ = CASES[format]
    at = data.draw(st.integers(0, len(text)))
    size = data.draw(st.integers(0, 40))
    with contextlib.suppress(UnreadableFile):
        items(text[:at] + data.draw(st.text(max_size=8)) + text[at + size :], format)


def test_the_second_entry_of_bibtex_is_read_with_macros_and_ids() -> None:
    found = [item for item in items(BIBTEX) if isinstance(item, RawPaper)][1]
    assert (found.title, found.venue, found.year, found.abstract) == ("Tides", "unknownmacro", 2023, "Tides fall.")
    assert found.external_ids == ("arxiv:2401.00001", "id:li2023")


def test_ris_entries_without_an_end_and_with_older_tags_are_read() -> None:
    found = [item for item in items(RIS) if isinstance(item, RawPaper)][1]
    assert (found.title, found.authors, found.abstract) == ("Tides", ("Xu, Cy",), "Tides fall.")
    assert (found.venue, found.year, found.where) == ("Sea", 2023, "line 15")


def test_a_readme_that_quotes_bibtex_is_no_bibliography() -> None:
    with pytest.raises(UnreadableFile):
        items("# Kites\n\nCite us:\n\n```bibtex\n@article{k, title={Kites}, abstract={Kites fly.}}\n```\n")


def test_an_article_with_a_bibliography_at_its_end_is_no_bibliography() -> None:
    with pytest.raises(UnreadableFile):
        items("Kites fly, and this is how they do it.\n" * 100 + "@article{k, title={Kites}, abstract={Kites fly.}}\n")


def test_ris_of_looser_writers_is_read() -> None:
    found = paper("TY - JOUR\nAU - Byron, Ada\n\nAB - Kites fly.\n\nThey do.\nER -\n")
    assert (found.authors, found.abstract) == (("Byron, Ada",), "Kites fly. They do.")


def test_source_code_is_no_bibliography() -> None:
    with pytest.raises(UnreadableFile):
        items("@dataclass(frozen=True)\nclass Kite:\n    name: str\n")


def test_entities_are_refused_rather_than_followed() -> None:
    rest = "]><feed><id>arxiv.org</id><entry>&b;</entry></feed>"
    bomb = '<!DOCTYPE feed [<!ENTITY a "ha"><!ENTITY b "&a;&a;">' + rest
    outside = '<!DOCTYPE feed [<!ENTITY b SYSTEM "file:///etc/hostname">' + rest
    for text in (bomb, outside):
        (refused,) = items(text)
        assert isinstance(refused, Rejected)
        assert "entities" in refused.reason


def test_xml_in_another_encoding_is_read() -> None:
    assert items(ATOM.replace("UTF-8", "UTF-16").encode("utf-16")) == items(ATOM)
    assert items(ATOM.replace("UTF-8", "ISO-8859-1").replace("Byron", "Býron").encode("latin-1")) == items(
        ATOM.replace("Byron", "Býron")
    )


@pytest.mark.parametrize("encoding", ["no-such", "GB2312"])
def test_xml_in_an_encoding_that_cannot_be_read_is_rejected(encoding: str) -> None:
    (refused,) = items(ATOM.replace("UTF-8", encoding))
    assert isinstance(refused, Rejected)
    assert "encoding" in refused.reason


def entries_of(format: str, count: int) -> Iterator[bytes]:
    """A file of that many papers, each of some 20,000 characters, made as it is read."""
    abstract = "Kites fly. " * 1_800
    if format == "arxiv-atom":
        yield ATOM[: ATOM.index("<entry>")].encode()
        entry = "<entry><id>http://arxiv.org/abs/2401.00001</id><summary>{}</summary></entry>\n"
    else:
        entry = {"ris": "TY  - JOUR\nAB  - {}\nER  -\n", "nbib": "PMID- 1\nAB  - {}\n\n", "pubmed-xml": PUBMED_ENTRY}[format]
        yield b"<PubmedArticleSet>" if format == "pubmed-xml" else b""
    yield from (entry.format(abstract).encode() for _ in range(count))
    yield {"arxiv-atom": b"</feed>", "pubmed-xml": b"</PubmedArticleSet>"}.get(format, b"")


PUBMED_ENTRY = """<PubmedArticle><MedlineCitation><Article><Abstract><AbstractText>{}</AbstractText></Abstract></Article>
</MedlineCitation></PubmedArticle>
"""


@pytest.mark.parametrize("format", ["arxiv-atom", "pubmed-xml", "nbib", "ris"])
def test_memory_does_not_grow_with_the_number_of_entries(format: str) -> None:
    stream = Pieces(filter(None, entries_of(format, 400)))
    tracemalloc.start()
    try:
        count = sum(isinstance(item, RawPaper) for item in read_stream(stream, "upload", format))  # type: ignore[arg-type]  # as a BinaryIO
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 400
    assert peak < 2_500_000


@pytest.mark.parametrize(
    ("format", "opening"), [("ris", b"TY  - JOUR\nAB  - "), ("nbib", b"PMID- 1\nAB  - "), ("bibtex", b"@article{k, abstract={")]
)
def test_an_endless_entry_is_rejected_without_being_kept(format: str, opening: bytes) -> None:
    pieces = chain([opening], repeat(b"Kites fly in any wind.\n      " * 1_000, 300))
    tracemalloc.start()
    try:
        (lost,) = read_stream(Pieces(pieces), "upload", format)  # type: ignore[arg-type]  # as a BinaryIO
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert lost == Rejected("upload", "line 1", "the entry is over 250,000 characters")
    assert peak < 3_000_000
