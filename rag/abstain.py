"""What is said when the papers do not answer: which come nearest, or whose full text might; and to words that ask nothing."""

from __future__ import annotations

from collections.abc import Sequence

from rag.evidence import opening, quote
from rag.field_answers import known_by
from rag.intent import intent_of
from rag.markers import in_round_brackets
from rag.scripts import language_of
from rag.small_talk import small_talk
from rag.types import Drafted, Retrieved, Status, Verdict

NEAREST = 3

PHRASES = {
    "en": {
        "nothing": "Not in these papers.",
        "nearest": "The nearest are: ",
        "empty": "The library holds no papers that match.",
        "full_text": "The abstract of {} does not seem to say; its full text may",
        "there": "What comes nearest there: “{}”",
    },
    "zh": {
        "nothing": "这些论文中没有答案。",
        "nearest": "最接近的是：",
        "empty": "没有符合条件的论文。",
        "full_text": "{}的摘要似乎没有说明，全文或许有",
        "there": "其中最接近的是：“{}”",
    },
}

REPLIES = {
    "en": {
        "thanks": "You are welcome.",
        "greeting": "Hello. Ask a question about the papers.",
        "nod": "Ask a question about the papers.",
    },
    "zh": {"thanks": "不客气。", "greeting": "你好，请就这些论文提问。", "nod": "请就这些论文提问。"},
}
"""What is said to words that ask nothing."""


def abstention(
    status: Status, question: str, papers: Sequence[Retrieved], places: Sequence[int]
) -> list[tuple[Drafted, Verdict]]:
    """The sentences of an abstention with their verdicts. `places` (from 1) are the papers that `needs_full_text` names."""
    language = language_of(question)
    phrases = PHRASES[language]
    if status == "needs_full_text":
        return pointing_on(question, papers, places[0] if places else 1)
    if kind := small_talk(question):
        return [plain(REPLIES[language][kind])]
    if not papers:
        return [plain(f"{phrases['nothing']} {phrases['empty']}")]
    names = "; ".join(name_of(found) for found in papers[:NEAREST])
    return [plain(f"{phrases['nothing']} "), plain(f"{phrases['nearest']}{names}.")]


def pointing_on(question: str, papers: Sequence[Retrieved], place: int) -> list[tuple[Drafted, Verdict]]:
    """That the full text of the paper at `place` may tell, and what its abstract says that comes nearest."""
    phrases, found = PHRASES[language_of(question)], papers[place - 1]
    named = Verdict("ok", (opening(place, found.found),), "names the paper", 1.0)
    said = [(Drafted(f"{phrases['full_text'].format(name_of(found))} [{place}]. ", (place,), "metadata"), named)]
    if intent_of(question) == "explain" and found.sentence_scores:
        said.append(nearest_sentence(found, place, phrases["there"]))
    return said


def nearest_sentence(found: Retrieved, place: int, phrase: str) -> tuple[Drafted, Verdict]:
    """What the abstract says that comes nearest to the question: the reader may see in it what the rules did not."""
    nearest = found.sentence_scores.index(max(found.sentence_scores))
    said = phrase.format(in_round_brackets(found.found.sentences[nearest].text))
    evidence = quote(place, found.found, nearest, nearest + 1)
    return Drafted(f"{said} [{place}].", (place,)), Verdict("ok", (evidence,), "quoted", 1.0)


def plain(text: str) -> tuple[Drafted, Verdict]:
    """A sentence that claims nothing of any paper."""
    return Drafted(text, (), "metadata"), Verdict("ok", (), "says nothing about a paper", 1.0)


def name_of(found: Retrieved) -> str:
    """How a paper is named in a sentence: its authors, and its title or how its abstract begins."""
    return f"{found.paper.cite_as} ({known_by(found)})"
