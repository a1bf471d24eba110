"""What sources call the parts of a paper, most telling name first. Names are compared without case and punctuation."""

from __future__ import annotations

import re


def plain_name(name: object) -> str:
    """`publicationdate` of `Publication Date` and `publication_date`."""
    return re.sub(r"[\W_]", "", str(name)).lower()


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


ABSTRACT = _names("abstract abstracttext abstractnote paperabstract abstractinvertedindex notesabstract ab 摘要")
TEXT = _names("summary text")
"""May be an abstract too, beside a title or the like."""

TITLE = _names("title documenttitle articletitle papertitle primarytitle displayname ti 题名 标题")
AUTHORS = _names(
    """authorsparsed authors author authorships authornames authorlist authorstring authorfullnames firstauthors creators creator
    au 作者"""
)
VENUE = _names(
    """venue publicationvenue conference journal journalname journaltitle booktitle containertitle publicationtitle sourcetitle
    proceeding proceedings hostvenue primarylocation journalref journalinfo secondarytitle alternatetitle3
    venueid so 期刊 会议 来源"""
)
YEAR = _names(
    """year publicationyear pubyear publishedyear yearpublished conferenceyear py versions published publicationdate publisheddate
    publishtime datepublished pubdate date issued created submitted updated updatedate venue pdate cdate 年份 发表时间"""
)
LINK = _names(
    """url urls link links site urlabs paperurl landingpageurl entryid openreview pdf pdfurl urlpdf pdflink
    pdflinks doi id 链接"""
)
DOI = _names("doi digitalobjectidentifier di")
KEYWORDS = _names("keywords authorkeywords keyword indexterms tags manualtags tasks de 关键词")
CATEGORY = _names(
    """category primarycategory primaryarea area categories subjectareas subjectarea primarytopic fieldsofstudy s2fieldsofstudy
    topic subject 分类 领域"""
)
OWN_ID = _names("id paperid docid documentid uid corduid corpusid key")
ARXIV = _names("arxiv arxivid eprint")
PMID = _names("pmid pubmed pubmedid")
OPENREVIEW = _names("forum openreviewid")

NESTED = frozenset(_names("content metadata paper attributes externalids ids"))
"""Objects inside a record whose fields are the record's own (OpenReview, BEIR, Hugging Face, Semantic Scholar, OpenAlex)."""

CARRIES_TEXT = _names("value name displayname title text term label keyword category source url")
"""Where an object that stands for one text has it (`{"name": "ICML"}`)."""

BESIDE_TEXT = frozenset((*TITLE, *AUTHORS, *DOI, *KEYWORDS, *CATEGORY, *VENUE, *YEAR))
