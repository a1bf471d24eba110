"""The text of a paper-search page: per paper an optional `Area · Topic` line, an optional line of authors, the abstract.

Blocks are separated by blank lines and are told apart by what they say, never by their place alone: an area may be missing,
so may the authors, and an abstract may have several paragraphs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

from rag.readers.page_block import CATEGORY_DOT, LONGEST_BLOCK, Block, blocks, names_of
from rag.readers.page_paragraph import continues
from rag.readers.source import DAMAGE, Source
from rag.types import RawPaper, Rejected, cut

PAGE_TITLE = re.compile(r"论文|文献|检索|搜索|search", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Heads:
    """What stands above an abstract."""

    category: Block | None = None
    authors: Block | None = None


def read_search_page(source: Source) -> Iterator[RawPaper | Rejected]:
    """Papers of the page, in order; a category or authors without an abstract below them is Rejected."""
    heads: list[Block] = []
    paper: RawPaper | None = None
    try:
        for block in blocks(enumerate(source.lines(), start=1)):
            kind = block.kind
            if kind == "prose" and paper and (is_endless(paper) or continues(paper.abstract, block.text)):
                paper = paper if is_endless(paper) else replace(paper, abstract=f"{paper.abstract}\n\n{block.text}")
                continue
            if paper and kind != "header":
                yield paper
                paper = None
            if kind == "prose":
                lost, above = assign(heads)
                yield from (without_abstract(source, group) for group in lost)
                paper, heads = paper_of(above, block), []
            elif kind != "header":
                heads.append(block)
    except DAMAGE:
        if paper:
            yield paper
        raise
    if paper:
        yield paper
    yield from (without_abstract(source, group) for group in by_paper(heads))


def is_endless(paper: RawPaper) -> bool:
    """Whether it will be rejected for its length anyway, whatever paragraphs follow."""
    return len(paper.abstract) > LONGEST_BLOCK


def looks_like_search_page(text: str) -> bool:
    """Told from the beginning of a file: the page's header, or most paragraphs with a category or names right above them."""
    found = list(blocks(enumerate(text.split("\n"), start=1)))
    kinds = [block.kind for block in found]
    if "prose" not in kinds:
        return False
    if kinds[0] == "header" and PAGE_TITLE.search(found[0].text):
        return True
    headed = sum(kind == "prose" and any(map(is_plain_head, found[max(i - 2, 0) : i])) for i, kind in enumerate(kinds))
    return kinds[0] != "prose" and headed * 2 >= kinds.count("prose")


def is_plain_head(block: Block) -> bool:
    """Nothing but a search page has this above a paragraph: `Area · Topic`, or a list of at least two whole names."""
    kind = block.kind
    if kind == "category":
        return bool(CATEGORY_DOT.search(block.text))
    names, _ = names_of(block.text)
    return kind == "authors" and len(names) > 1 and all(" " in name or not name.isascii() for name in names[:2])


def assign(heads: list[Block]) -> tuple[list[list[Block]], Heads]:
    """The heads of the abstract below them, and the heads above those, by paper, which have lost their abstract.

    A lone unknown word is the authors (`Wang`); above a list of authors, a lone unknown word is the category.
    """
    rest, above = list(heads), list[Block]()
    while rest and len(above) < 2 and goes_with(rest[-1], above):
        above.insert(0, rest.pop())
    category = next((block for block in above if block.kind == "category"), None)
    others = [block for block in above if block is not category]
    if len(others) == 2:
        category = others.pop(0)
    return by_paper(rest), Heads(category, others[0] if others else None)


def goes_with(block: Block, above: list[Block]) -> bool:
    """Whether `block` is a second head of the same paper: of another kind, or a single name that may be an unknown category."""
    if all(other.kind != block.kind for other in above):
        return True
    return block.kind == "authors" and len(names_of(block.text)[0]) == 1


def by_paper(heads: list[Block]) -> list[list[Block]]:
    """Heads without abstracts, one list a paper: a category begins one, so does a second list of authors."""
    found: list[list[Block]] = []
    for block in heads:
        if not found or block.kind == "category" or found[-1][-1].kind == "authors":
            found.append([])
        found[-1].append(block)
    return found


def without_abstract(source: Source, heads: list[Block]) -> Rejected:
    """A paper of which only the heads are there."""
    shown = cut(" / ".join(block.text for block in heads), 80)
    return source.rejected(f"line {heads[0].line}", f"no abstract below “{shown}”")


def paper_of(heads: Heads, abstract: Block) -> RawPaper:
    names, truncated = names_of(heads.authors.text) if heads.authors else ((), False)
    first = min(block.line for block in (heads.category, heads.authors, abstract) if block)
    return RawPaper(
        abstract=abstract.text,
        where=f"line {first}",
        authors=names,
        authors_truncated=truncated,
        category=heads.category.text if heads.category else None,
    )
