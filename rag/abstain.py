"""What is said when the papers do not answer: which come nearest, or whose full text might."""

from __future__ import annotations

from collections.abc import Sequence

from rag.types import Drafted, Evidence, Paper, Retrieved, Status, Verdict, cut

NEAREST = 3

PHRASES = {
    "en": (
        "Not in these papers.",
        "The nearest are: ",
        "The library holds no papers that match.",
        "The abstract of {} does not say; its full text may",
    ),
    "zh": ("这些论文中没有答案。", "最接近的是：", "没有符合条件的论文。", "{}的摘要没有说明，全文或许有"),
}


def language_of(question: str) -> str:
    """`zh` for a question with Chinese characters, else `en`."""
    return "zh" if any("\u4e00" <= char <= "\u9fff" for char in question) else "en"


def abstention(
    status: Status, question: str, papers: Sequence[Retrieved], places: Sequence[int]
) -> list[tuple[Drafted, Verdict]]:
    """The sentences of an abstention with their verdicts. `places` (from 1) are the papers that `needs_full_text` names."""
    nothing, nearest, empty, full_text = PHRASES[language_of(question)]
    if status == "needs_full_text":
        place = places[0] if places else 1
        paper = papers[place - 1].paper
        said = full_text.format(name_of(paper))
        return [(Drafted(f"{said} [{place}]. ", (place,), "metadata"), opening(papers[place - 1], place))]
    if not papers:
        return [plain(f"{nothing} {empty}")]
    named = "; ".join(name_of(found.paper) for found in papers[:NEAREST])
    return [plain(f"{nothing} "), plain(f"{nearest}{named}.")]


def plain(text: str) -> tuple[Drafted, Verdict]:
    """A sentence that claims nothing of any paper."""
    return Drafted(text, (), "metadata"), Verdict("ok", (), "says nothing about a paper", 1.0)


def opening(found: Retrieved, place: int) -> Verdict:
    """The first sentence of the abstract, as evidence for a sentence about the paper as a whole."""
    sentence = found.found.sentences[0]
    quote = found.paper.abstract[sentence.start : sentence.end]
    return Verdict("ok", (Evidence(place, sentence.start, sentence.end, quote, 1.0),), "names the paper", 1.0)


def name_of(paper: Paper) -> str:
    """How a paper is named in a sentence: its authors, and its title or the first words of its abstract."""
    return f"{paper.cite_as} (“{paper.title or cut(paper.abstract, 60)}”)"
