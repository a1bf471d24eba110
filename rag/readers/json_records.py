"""JSON in any of the shapes papers come in, and JSON Lines."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import chain, islice

import ijson  # type: ignore[import-untyped]  # it ships no types

from rag.readers.field_names import ABSTRACT, NESTED, plain_name
from rag.readers.named_fields import Record, has_abstract, papers_of
from rag.readers.source import LONGEST_LINE, Source
from rag.types import RawPaper, Rejected

Event = tuple[str, object]

LISTS = frozenset(("data", "documents", "entries", "hits", "items", "notes", "papers", "records", "result", "results", "works"))
"""What sources call their list of papers; under another name it is one if its first object has an abstract."""

DEEPEST = 6
"""Levels of objects around the list of papers (`message` / `items`, `resultList` / `result`, …)."""

ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|u[dD][89a-fA-F][0-9a-fA-F]{2}|.)", re.DOTALL
)
LONGEST_ESCAPE = 12
LOOKED_AT_LINES = 50


def read_jsonl(source: Source) -> Iterator[RawPaper | Rejected]:
    """One object a line; a line that is none is Rejected and the next one read."""
    return papers_of(source, _lines(source))


def read_json(source: Source) -> Iterator[RawPaper | Rejected]:
    """A list of objects wherever it is in the file, a single object, or one after the other.

    What follows a fault in the JSON cannot be told apart and is rejected as one.
    """
    return papers_of(source, _records(source))


def looks_like_json(text: str) -> bool:
    """A list of objects or an object, to judge by the first characters."""
    return bool(re.match(r"\s*(\[\s*(\{|\[|$)|\{\s*(\"|$))", text))


def looks_like_jsonl(text: str) -> bool:
    """Objects that end with their line: two at least, or one that is itself a paper rather than a list of them."""
    first, *more = [line for line in text.split("\n")[:LOOKED_AT_LINES] if line.strip()] or [""]
    if not first.lstrip().startswith("{"):
        return False
    objects = [record for line in (first, *more) if (record := _object(line)) is not None]
    return any(map(has_abstract, objects)) or (len(objects) > 1 and not re.match(r"\s*\{\s*$", first))


def _lines(source: Source) -> Iterator[Record | Rejected]:
    for number, line in enumerate(source.lines(), start=1):
        if not line.strip():
            continue
        record = _object(line)
        yield source.rejected(f"line {number}", "is no JSON object") if record is None else (f"line {number}", record)


def _object(line: str) -> Mapping[str, object] | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _records(source: Source) -> Iterator[Record | Rejected]:
    number = 0
    try:
        for value in _values(ijson.basic_parse(ijson.from_iter(_utf8(source)), use_float=True, multiple_values=True)):
            number += 1
            where = f"record {number}"
            yield (where, value) if isinstance(value, Mapping) else source.rejected(where, "is no JSON object")
    except ijson.JSONError as error:
        reason = str(error).split("\n")[0].strip()
        yield source.rejected(f"record {number + 1}", f"the JSON is cut or malformed from here on ({reason})")


def _values(events: Iterator[Event]) -> Iterator[object]:
    """The records: items of the outermost lists, or objects that hold no list of records."""
    for event in events:
        if event[0] == "start_array":
            yield from _items(events)
        elif event[0] == "start_map":
            yield from _object_or_its_lists(events, DEEPEST)
        else:
            yield event[1]


def _items(events: Iterator[Event]) -> Iterator[object]:
    for event in events:
        if event[0] == "end_array":
            return
        yield _built(event, events)


def _object_or_its_lists(events: Iterator[Event], deepest: int) -> Iterator[object]:
    """The papers in the lists and objects of an object, and the object itself if it is a paper or holds none."""
    fields: dict[str, object] = {}
    papers_inside = False
    for event, key in events:
        if event == "end_map":
            break
        name, inner = str(key), next(events)
        if inner[0] == "start_array":
            first, items = _peeked(_items(events))
            if isinstance(first, Mapping) and (name.lower() in LISTS or has_abstract(first)):
                papers_inside = True
                yield from items
            else:
                fields[name] = list(items)
        elif inner[0] == "start_map" and deepest and not _is_one_value(name):
            for value in _object_or_its_lists(events, deepest - 1):
                if isinstance(value, Mapping) and has_abstract(value):
                    papers_inside = True
                    yield {"id": name, **value}
                else:
                    fields[name] = value
        else:
            fields[name] = _built(inner, events)
    if not papers_inside or has_abstract(fields):
        yield fields


def _is_one_value(name: str) -> bool:
    """Whether an object under this name is part of a record, never a list of records or a record of its own."""
    plain = plain_name(name)
    return plain in NESTED or plain in ABSTRACT


def _peeked(items: Iterator[object]) -> tuple[object, Iterator[object]]:
    first = list(islice(items, 1))
    return (first[0] if first else None), chain(first, items)


def _built(event: Event, events: Iterator[Event]) -> object:
    """The whole value that begins with `event`."""
    builder = ijson.ObjectBuilder()
    builder.event(*event)
    depth = int(event[0].startswith("start"))
    while depth:
        event = next(events)
        depth += event[0].startswith("start") - event[0].startswith("end")
        builder.event(*event)
    value: object = builder.value
    return value


def _utf8(source: Source) -> Iterator[bytes]:
    """The file as the UTF-8 that ijson reads, lone surrogates escaped as U+FFFD (its parser would make them question marks).

    No piece is empty, for ijson takes that for the end. Raises JSONError in a text so long that ijson would take for ever.
    """
    held, unquoted = "", 0
    for chunk in chain(source.chunks(), [None]):
        text = held + (chunk or "")
        end = len(text) if chunk is None else _end_of_whole_escapes(text)
        last_quote = text.rfind('"', 0, end)
        unquoted = unquoted + end if last_quote < 0 else end - last_quote
        if unquoted > LONGEST_LINE:
            raise ijson.JSONError(f"a text of over {LONGEST_LINE:,} characters")
        if end:
            yield ESCAPE.sub(_storable_escape, text[:end]).encode()
        held = text[end:]


def _end_of_whole_escapes(text: str) -> int:
    """Up to where `text` can be looked at without cutting an escape, or a pair of them, in two."""
    near = max(len(text) - LONGEST_ESCAPE + 1, 0)
    if "\\" not in text[near:]:
        return len(text)
    starts = (match.start() for match in ESCAPE.finditer(text))
    return next((start for start in starts if start >= near), len(text) - text.endswith("\\"))


def _storable_escape(match: re.Match[str]) -> str:
    lone = len(match[0]) == len("\\ud800") and not match[1]
    return "\\ufffd" if lone else match[0]
