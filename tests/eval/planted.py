"""Faults of a system, planted into the answers of a sound one."""

from __future__ import annotations

from collections.abc import Callable

from eval.runs import AnswerRow, CitationRow, EvidenceRow, SentenceRow

INVENTED = (
    "The authors also report that it was deployed in eleven hospitals across Norway and saved four million kroner a year [1]. "
)


def citations_shuffled(answer: AnswerRow) -> AnswerRow:
    """Every marker stands for another paper than it should: one that is shown and was not cited."""
    cited = {citation.paper.paper_id for citation in answer.citations}
    others = [one.paper for one in answer.papers if one.paper.paper_id not in cited]
    if answer.status != "answered" or len(others) < len(answer.citations):
        return answer
    swapped = tuple(
        CitationRow(marker=old.marker, paper=paper, quote=paper.abstract[:20], start=0, end=20)
        for old, paper in zip(answer.citations, others, strict=False)
    )
    papers = {one.marker: one.paper for one in swapped}
    return answer.model_copy(
        update={
            "citations": swapped,
            "sentences": tuple(
                row.model_copy(
                    update={
                        "evidence": tuple(
                            EvidenceRow(marker=marker, start=0, end=20, quote=papers[marker].abstract[:20])
                            for marker in row.markers
                        )
                    }
                )
                for row in answer.sentences
            ),
        }
    )


def sentence_invented(answer: AnswerRow) -> AnswerRow:
    """One sentence more in every answer, that no paper says, cited like the first."""
    if answer.status != "answered":
        return answer
    first = answer.citations[0]
    quote = EvidenceRow(marker=1, start=first.start, end=first.end, quote=first.quote)
    row = SentenceRow(text=INVENTED, markers=(1,), evidence=(quote,))
    return answer.model_copy(update={"sentences": (*answer.sentences, row), "text": f"{answer.text} {INVENTED}"})


def abstention_off(answer: AnswerRow) -> AnswerRow:
    """An answer from the best paper, whatever was asked."""
    if answer.status == "answered":
        return answer
    paper = answer.papers[0].paper
    end = paper.abstract.find(". ") + 1 or len(paper.abstract)
    quote = {"marker": 1, "start": 0, "end": end, "quote": paper.abstract[:end]}
    row = SentenceRow(text=f"{paper.abstract[: end - 1]} [1].", markers=(1,), evidence=(EvidenceRow.model_validate(quote),))
    citation = CitationRow.model_validate({**quote, "paper": paper})
    return answer.model_copy(update={"status": "answered", "sentences": (row,), "text": row.text, "citations": (citation,)})


FAULTS: dict[str, Callable[[AnswerRow], AnswerRow]] = {
    "citations point to the wrong papers": citations_shuffled,
    "claims that no paper shown bears out": sentence_invented,
    "unanswerable questions are answered": abstention_off,
}
"""By the name that the report must give them."""
