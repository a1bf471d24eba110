"""Author names as sources write them: lists, objects, `A; B`, `A and B`, `A, B`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

QUOTED = re.compile(r"'((?:[^'\\]|\\.|(?<=\w)'(?=\w))*)'|\"((?:[^\"\\]|\\.)*)\"")
TRUNCATED = re.compile(r"[,，;；]?\s*(?:(?:\band\s+)?\b(?:et\s+al\.?|others)|等人?|…|\.\.\.)\s*$", re.IGNORECASE)
INITIALS = r"(?:[A-ZÀ-Þ]\.?[\s-]?){1,4}"
FAMILY = r"[A-ZÀ-Þ][\w'’-]+(?:\s[A-ZÀ-Þ][\w'’-]+)?"
WITH_INITIALS = re.compile(rf"{FAMILY},\s?{INITIALS}(?=$|[\s,&])")
WHOLE = ("name", "fullname", "displayname", "rawauthorname", "authorname", "literal", "author", "value", "raw")
GIVEN = ("given", "givenname", "givennames", "first", "firstname", "forename", "forenames")
FAMILIES = ("family", "familyname", "last", "lastname", "surname")


def people(value: object) -> tuple[tuple[str, ...], bool]:
    """Names in order, repeats kept, as given; and whether the list says that there are more (`et al.`, `and others`, 等)."""
    if isinstance(value, str):
        return _from_text(value)
    if not isinstance(value, Sequence):
        return _from_text(person(value))
    if len(value) == 1 and isinstance(value[0], str):
        return _from_text(value[0])
    names = [name for name in map(person, value) if name]
    if not names:
        return (), False
    last = TRUNCATED.sub("", names[-1]).strip()
    return tuple(names[:-1] + ([last] if last else [])), last != names[-1]


def person(value: object) -> str:
    """One name: a text, an object with the usual names, or arXiv's `[family, given, suffix, …]`; "" if there is none."""
    for _ in range(3):
        if isinstance(value, Mapping):
            fields = {re.sub(r"\W|_", "", str(key)).lower(): part for key, part in value.items()}
            name = _in_parts(fields)
            if name:
                return name
            value = next((fields[key] for key in WHOLE if fields.get(key)), "")
    if isinstance(value, Sequence) and not isinstance(value, str):
        parts = [part.strip() for part in value[:3] if isinstance(part, str)]
        return " ".join(part for part in [*parts[1:2], *parts[:1], *parts[2:]] if part)
    return " ".join(value.split()) if isinstance(value, str) else ""


def split_names(text: str) -> list[str]:
    """The names in one text. A comma parts names only where it cannot part a family name from a first name."""
    if text.startswith("[") and text.endswith("]"):
        return [single or double for single, double in QUOTED.findall(text)]
    for mark in (r"[;；]", r"\|", r"[、，]"):
        if re.search(mark, text):
            return re.split(mark, text)
    if re.search(r"\sand\s", text):
        return _joined_by_and(text)
    if "," not in text:
        return text.split("\n")
    if not WITH_INITIALS.sub("", text).strip(" ,&"):
        return WITH_INITIALS.findall(text)
    parts = text.split(",")
    return parts if _are_whole_names(parts) else [text]


def _from_text(text: str) -> tuple[tuple[str, ...], bool]:
    flat = text.strip()
    whole = TRUNCATED.sub("", flat)
    names = (" ".join(name.split()).strip(",; ") for name in split_names(whole))
    return tuple(name for name in names if name), whole != flat


def _joined_by_and(text: str) -> list[str]:
    """BibTeX's `Byron, Ada and Li, Bo`, or `Ada Byron, Bo Li, and Cy Xu`."""
    pieces = [piece.strip(" ,") for piece in re.split(r"\s+and\s+", text)]
    parts = [*pieces[0].split(","), pieces[-1]]
    whole_names = all(len(part.split()) > 1 for part in parts) or ", and " in text
    return parts if len(pieces) == 2 and whole_names and "," not in pieces[1] else pieces


def _are_whole_names(parts: list[str]) -> bool:
    """`Ada Byron, Bo Li, Wang` is three names, `van der Berg, Jan` one."""
    several_words = [len(part.split()) > 1 for part in parts]
    return all(several_words) or (len(parts) > 2 and sum(several_words) * 2 > len(parts))


def _in_parts(fields: Mapping[str, object]) -> str:
    family = next((part for key in FAMILIES if isinstance(part := fields.get(key), str)), "")
    given = next((part for key in GIVEN if isinstance(part := fields.get(key), str)), "")
    middle = fields.get("middle") or ()
    between = (
        [middle]
        if isinstance(middle, str)
        else [part for part in middle if isinstance(part, str)]
        if isinstance(middle, Sequence)
        else []
    )
    suffix = fields.get("suffix")
    parts = [given, *between, family, suffix if isinstance(suffix, str) else ""]
    return " ".join(" ".join(parts).split()) if family else ""
