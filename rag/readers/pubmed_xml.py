"""PubMed's XML, https://www.nlm.nih.gov/bsd/licensee/elements_descriptions.html"""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree.ElementTree import Element

from rag.readers.external_ids import address_of, all_ids, doi_of, pmid_of
from rag.readers.named_fields import year_in
from rag.readers.source import Source
from rag.readers.xml_records import one_line, records, text_at, texts_at
from rag.types import RawPaper, Rejected, unique

ARTICLES = frozenset(["PubmedArticle", "PubmedBookArticle", "MedlineCitation"])


def read_pubmed_xml(source: Source) -> Iterator[RawPaper | Rejected]:
    """A paper an article. The parts of a structured abstract keep their labels (`BACKGROUND: …`), one a line."""
    return records(source, ARTICLES, _paper)


def looks_like_pubmed_xml(text: str) -> bool:
    """XML with one of PubMed's elements near its beginning."""
    return text.lstrip().startswith("<") and bool(re.search(r"<(Pubmed(Book)?Article|MedlineCitation)(Set)?\b", text))


def _paper(record: Element, where: str) -> RawPaper | str:
    citation = next((found for tag in ("MedlineCitation", "BookDocument") if (found := record.find(tag)) is not None), record)
    article = next((found for found in [citation.find("Article")] if found is not None), citation)
    authors = article.find("AuthorList")
    doi = _doi(record, article)
    ids = all_ids(doi, [], [pmid_of(text_at(citation, "PMID"))], None)
    return RawPaper(
        abstract=_abstract(article) or _abstract(citation, "OtherAbstract"),
        where=where,
        title=text_at(article, "ArticleTitle") or text_at(article, "Book/BookTitle"),
        authors=tuple(name for author in article.iterfind("AuthorList/Author") if (name := _name(author))),
        authors_truncated=authors is not None and authors.get("CompleteYN") == "N",
        venue=text_at(article, "Journal/Title")
        or text_at(article, "Journal/ISOAbbreviation")
        or text_at(article, "Book/BookTitle"),
        year=year_in(
            text_at(article, f"{at}PubDate/{unit}")
            for at in ("Journal/JournalIssue/", "Book/")
            for unit in ("Year", "MedlineDate")
        )
        or year_in([text_at(article, "ArticleDate/Year")]),
        url=address_of(reversed(ids)),
        doi=doi,
        keywords=unique(
            [*texts_at(citation, "KeywordList/Keyword"), *texts_at(citation, "MeshHeadingList/MeshHeading/DescriptorName")]
        ),
        external_ids=ids,
    )


def _abstract(article: Element, tag: str = "Abstract") -> str:
    abstract = article.find(tag)
    parts = abstract.iterfind("AbstractText") if abstract is not None else ()
    return "\n".join(filter(None, map(_part, parts)))


def _part(part: Element) -> str:
    text = "".join(part.itertext()).strip()
    label = part.get("Label")
    return f"{label}: {text}" if label and text else text


def _name(author: Element) -> str | None:
    if author.get("ValidYN") == "N":
        return None
    parts = [text_at(author, tag) for tag in ("ForeName", "LastName", "Suffix")]
    return " ".join(filter(None, parts)) or one_line(author.find("CollectiveName"))


def _doi(record: Element, article: Element) -> str | None:
    given = texts_at(article, "ELocationID[@EIdType='doi']") + texts_at(
        record, "PubmedData/ArticleIdList/ArticleId[@IdType='doi']"
    )
    return next(filter(None, map(doi_of, given)), None)
