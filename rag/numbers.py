"""The numbers a text states, so that a sentence's can be looked for in the abstract it cites.

Digits inside a name (COVID-19, IL-6, GPT-4, ResNet-50, T^(3/4)) are no statement. `2.7x`, `2.7×` and `2.7` are one number, so are
`1,000`, `1000` and `one thousand`, `62.95%` and `62.95 percent`, `70%` and `0.7`, `2.6 billion` and `26 亿`, `three times` and
`三倍`. Chinese numerals are numbers before a measure word or after 百分之; alone they are parts of words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

_UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen"
    " nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_WORDS = {
    **{word: value for value, word in enumerate(_UNITS)},
    **{word: 10 * value for value, word in enumerate(_TENS, start=2)},
    "dozen": 12,
    "twofold": 2,
    "threefold": 3,
    "fourfold": 4,
    "fivefold": 5,
    "tenfold": 10,
}
_SCALES = {"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9, "bn": 10**9}
_SPELLED_SCALES = {"hundred": 100, "thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}

_LIST_NUMBER = re.compile(r"^\s*[0-9]{1,2}[.)](?=\s)|\([0-9]{1,2}\)")
_CHUNK = re.compile(r"[^\s()\[\]{}<>=≤≥≈~,;:!?\"“”‘’|\u3000-\u9fff\uff00-\uffef]+(?:,[0-9]{3}(?![0-9])[^\s()\[\]{},;:]*)*")
"""Characters that belong together: a word, a number with its unit, a range."""
_STATES = re.compile(r"[-−–+±$€£¥/.]*[0-9](?![Dd]\b)")
_FIGURE = re.compile(r"[0-9]{1,30}(?:,[0-9]{3})*(?:\.[0-9]{1,30})?|\.[0-9]{1,30}")
_SCALE = re.compile(rf"\s?(?:(?P<sign>{'|'.join(_SCALES)})|(?P<word>(?i:{'|'.join(_SPELLED_SCALES)})))\b")
_CHINESE_SCALE = re.compile(r"\s?([百千]?[万亿]|千)")
_CHINESE = re.compile(
    r"(?<![第数几多两一二三四五六七八九十百千万亿点])(?:百分之(?P<share>[一二三四五六七八九十百]{1,6})(?![点百分])"
    r"|(?P<count>[一二两三四五六七八九十][一二两三四五六七八九十百千万亿]{0,11})(?P<over>[多余])?[大类]?(?:[个种倍项类组次层步轮名位家篇例条款台套张年天周]|小时|分钟))"
)
"""`百分之三`, `三十二个`, `五十多种`, `六大类`; not `第三个`, `几十个`, `十分`, `三维`."""
_PERCENT = re.compile(r"\s?(?:%|per ?cent\b|pp\b)", re.IGNORECASE)
_SPELLED = re.compile(
    rf"(?<![\w-])(?P<tens>{'|'.join(_TENS)})[- ](?P<unit>{'|'.join(_UNITS[1:10])})(?!\w)"
    rf"|(?<!\w)(?P<word>{'|'.join(_WORDS)})(?!\w)",
    re.IGNORECASE,
)
_HEDGE = re.compile(
    r"(?:about|around|roughly|nearly|almost|approximately|approx\.|some|over|more than|less than|under|close to|circa|ca\.|up to"
    r"|at least|at most|[~≈<>≥≤约近超]|超过|不到|最多|至多|至少|高达)\s?$",
    re.IGNORECASE,
)
_PASSED_OVER = (
    "x fold times percent per cent of the a an its their this these those other different new all only such more most out in to"
    " for with by is are was were as at on from than vs versus"
).split()
_COUNTED = re.compile(
    rf"[\s%×-]*(?:(?:{'|'.join(_PASSED_OVER)})\b[\s%×-]*){{0,4}}"
    rf"(?!(?:and|or|{'|'.join(_PASSED_OVER)})\b)(?P<word>[^\W\d_]{{2,}})",
    re.IGNORECASE,
)
_STEM = 6
"""Letters that make two words of what is counted the same: `datasets`, `dataset`."""


@dataclass(frozen=True, slots=True)
class Number:
    """A stated number. `values` are its readings (70% may stand as 70 or as 0.7); `hedged` numbers may be rounded; `counts` is
    the beginning of the word that follows (`3 datasets`), if one does."""

    written: str
    values: frozenset[Decimal]
    hedged: bool = False
    counts: str = ""

    @property
    def is_year(self) -> bool:
        """Whether it may be one."""
        return len(self.written) == 4 and any(1800 <= value < 2100 for value in self.values)


def stated_numbers(text: str) -> Iterator[Number]:
    """The numbers a cleaned sentence states, figures first; `one`, `一个`, `两个`, list numbers and digits in names are none."""
    return (number for number in _numbers(text) if number.written.lower() != "one" or len(number.values) > 1)


def _numbers(text: str) -> Iterator[Number]:
    text = _LIST_NUMBER.sub(lambda found: " " * len(found[0]), text)
    for chunk in _CHUNK.finditer(text):
        if _STATES.match(chunk.group()):
            yield from _figures(text, chunk.start(), chunk.end())
    yield from (_spelled(text, found) for found in _SPELLED.finditer(text))
    yield from _chinese(text)


def _figures(text: str, start: int, end: int) -> Iterator[Number]:
    for figure in _FIGURE.finditer(text, start, end):
        before = text[start : figure.start()]
        if re.search(r"[^\W\d_]|\^|_", before):
            return
        hedged = bool(_HEDGE.search(text[max(0, start - 14) : start] + before))
        yield Number(figure.group(), _values(_value(figure), text, figure.end()), hedged, _what_follows(text, figure.end()))


def _value(figure: re.Match[str]) -> Decimal:
    return Decimal(figure.group().replace(",", ""))


def _spelled(text: str, found: re.Match[str]) -> Number:
    parts = [found[name].lower() for name in ("tens", "unit", "word") if found[name]]
    value = Decimal(sum(_WORDS[part] for part in parts))
    return Number(found.group(), _values(value, text, found.end()), counts=_what_follows(text, found.end()))


def _chinese(text: str) -> Iterator[Number]:
    """`一个` and `两个` are said of anything, and are passed over."""
    for found in _CHINESE.finditer(text):
        value = chinese_value(found["share"] or found["count"])
        if found["share"]:
            yield Number(found.group(), frozenset({value.normalize(), (value / 100).normalize()}))
        elif value > 2:
            yield Number(found["count"], frozenset({value.normalize()}), hedged=bool(found["over"]))


def chinese_value(numeral: str) -> Decimal:
    """What a Chinese numeral counts: 32 for 三十二, 120,000,000 for 一亿二千万."""
    whole = part = digit = 0
    for char in numeral.replace("两", "二"):
        value = int(unicodedata.numeric(char))
        if value < 10:
            digit = value
        elif value < 10**4:
            part, digit = part + (digit or 1) * value, 0
        else:
            whole, part, digit = whole + (part + digit or 1) * value, 0, 0
    return Decimal(whole + part + digit)


def _values(value: Decimal, text: str, end: int) -> frozenset[Decimal]:
    if scale := _CHINESE_SCALE.match(text, end):
        return frozenset({(value * chinese_value(scale[1])).normalize()})
    values = {value}
    if scale := _SCALE.match(text, end):
        values.add(value * (_SCALES[scale["sign"]] if scale["sign"] else _SPELLED_SCALES[scale["word"].lower()]))
    if _PERCENT.match(text, end):
        values.add(value / 100)
    elif 0 < value < 1:
        values.add(value * 100)
    return frozenset(one.normalize() for one in values)


def _what_follows(text: str, end: int) -> str:
    found = _COUNTED.match(text, end)
    return found["word"].lower()[:_STEM] if found else ""


def held_values(text: str) -> frozenset[Decimal]:
    """Every value a cleaned text holds, digits inside names and number words included."""
    figures = (_values(_value(figure), text, figure.end()) for figure in _FIGURE.finditer(text))
    spelled = (_spelled(text, found).values for found in _SPELLED.finditer(text))
    return frozenset().union(*figures, *spelled, *(number.values for number in _chinese(text)))


def missing_numbers(sentence: str, held: frozenset[Decimal]) -> tuple[str, ...]:
    """The numbers of a cleaned sentence, as written, that are none of the `held` values; a hedged one may be rounded."""
    return tuple(dict.fromkeys(number.written for number in stated_numbers(sentence) if not _is_held(number, held)))


def _is_held(number: Number, held: frozenset[Decimal]) -> bool:
    return bool(number.values & held) or (number.hedged and any(_rounds_to(value, number) for value in held))


def _rounds_to(value: Decimal, number: Number) -> bool:
    """Within 5 % of the hedged number: `about 63%` for 62.95%, `nearly 3 times` for 2.9."""
    return any(abs(value - stated) <= abs(stated) / 20 for stated in number.values)


def swapped_numbers(sentence: str, text: str) -> Iterator[tuple[str, str]]:
    """Numbers of a cleaned sentence that the text has for something else, each with what the text has in its place: 80 and 60
    for `80% of the widely used` where the text says `60% of the widely used`.

    On pubmedqa_conclusion this finds 18 of 58 numbers exchanged for others of the same abstract, with no false alarm in 490.
    """
    counted: dict[str, list[Number]] = {}
    for number in _numbers(text):
        if not number.is_year:
            counted.setdefault(number.counts, []).append(number)
    for number in stated_numbers(sentence):
        others = counted.get(number.counts, []) if number.counts and not number.is_year and not number.hedged else []
        if others and not any(number.values & other.values for other in others):
            yield number.written, others[0].written
