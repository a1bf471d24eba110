"""Papers and answers that are hard to show."""

from __future__ import annotations

from rag.types import AnswerSentence, Citation, Evidence, Paper, RawPaper, Support

HOSTILE = '<script>window.hacked = 1</script><img src=x onerror="window.hacked = 1">'
MATHS = "𝒳 is a space. A bound of $O(\\sqrt{n})$ holds for $n < 10$, and it costs $5 to $9. It is tight."

HARD = (
    RawPaper(
        abstract=f"{HOSTILE} is shown as it is.",
        where="1",
        title=f"On {HOSTILE}",
        authors=(HOSTILE,),
        venue=HOSTILE,
        category=HOSTILE,
        year=2020,
        url="javascript:window.hacked=1",
        external_ids=("id:hostile",),
    ),
    RawPaper(
        abstract=MATHS,
        where="2",
        title="A bound of $\\sqrt{n}$",
        authors=("Grün, Ada",),
        year=2021,
        doi="10.5555/bound",
        external_ids=("doi:10.5555/bound",),
    ),
)


def cited(text: str, paper: Paper, quote: str, *, marker: int = 1, support: Support = "ok") -> tuple[AnswerSentence, Citation]:
    """A sentence that rests on `quote`, with its citation."""
    start = paper.abstract.index(quote)
    end = start + len(quote)
    evidence = (Evidence(marker, start, end, quote, 0.8),)
    sentence = AnswerSentence(text, (marker,), "abstract", evidence, support, f"said the {support} check", 0.8)
    return sentence, Citation(marker, paper, quote, start, end)


def change(*pairs: tuple[AnswerSentence, Citation], **more: object) -> dict[str, object]:
    """What `FakeEngine.change` takes to give these sentences."""
    sentences = tuple(sentence for sentence, _ in pairs)
    citations = tuple({citation.marker: citation for _, citation in pairs}.values())
    return {"sentences": sentences, "citations": citations, "text": "".join(one.text for one in sentences), **more}
