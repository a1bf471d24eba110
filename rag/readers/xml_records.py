"""Records out of an XML file as it streams by. Entities and external references are refused (billion laughs, XXE)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO, cast
from xml.etree.ElementTree import Element, ParseError

from defusedxml import DefusedXmlException
from defusedxml.ElementTree import iterparse

from rag.readers.source import Source
from rag.types import RawPaper, Rejected

Read = Callable[[Element, str], RawPaper | str]
"""The paper of a record at `record N`, or why it cannot be taken."""


def records(source: Source, names: frozenset[str], read: Read) -> Iterator[RawPaper | Rejected]:
    """What `read` makes of each element called one of `names` (without namespace). The rest after a fault is one Rejected."""
    number = 0
    try:
        for element in _elements(source, names):
            number += 1
            paper = read(element, f"record {number}")
            yield source.rejected(f"record {number}", paper) if isinstance(paper, str) else paper
    except DefusedXmlException as error:
        yield source.rejected(
            f"record {number + 1}", f"the XML defines entities, which are not followed ({type(error).__name__})"
        )
    except (ParseError, LookupError, ValueError) as error:  # the latter two: an encoding that expat does not know
        yield source.rejected(f"record {number + 1}", f"the XML is cut or malformed from here on ({error})")


def text_at(element: Element, path: str) -> str | None:
    """All text below the first element at `path` as one line; None if there is none."""
    return one_line(element.find(path))


def texts_at(element: Element, path: str) -> list[str]:
    """The texts, each as one line, of the elements at `path` that have any."""
    return [text for found in element.iterfind(path) if (text := one_line(found))]


def one_line(element: Element | None) -> str | None:
    """All text below an element, without the mark-up, in one line."""
    return (" ".join("".join(element.itertext()).split()) or None) if element is not None else None


def _elements(source: Source, names: frozenset[str]) -> Iterator[Element]:
    """The elements called one of `names`, each forgotten once it has been looked at, as is whatever stands around them."""
    open_elements: list[Element] = []
    inside = 0
    for event, element in iterparse(cast(BinaryIO, source), events=("start", "end")):
        is_record = element.tag.rpartition("}")[2] in names
        if event == "start":
            open_elements.append(element)
            inside += is_record
            continue
        open_elements.pop()
        inside -= is_record
        if is_record and not inside:
            yield element
        if not inside:
            element.clear()
            if open_elements:
                open_elements[-1].clear()
