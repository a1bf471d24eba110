"""The JSON every door gives: plain values ready for `json.dumps`, keys as the README's reference lists them.

`JsonObject` is the one place where untyped values are let out; nothing reads them back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict

from rag.types import (
    Answer,
    AnswerSentence,
    Citation,
    Evidence,
    Filters,
    IngestReport,
    Paper,
    Rejected,
    ScoredPaper,
)

JsonObject = dict[str, object]

LINE_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x85\u2028\u2029"}


def paper_to_json(paper: Paper) -> JsonObject:
    """A paper with every key present; what is not known is null, an empty list of authors is `[]`."""
    return {
        "paper_id": paper.paper_id,
        "title": paper.title,
        "abstract": paper.abstract,
        "authors": list(paper.authors),
        "authors_truncated": paper.authors_truncated,
        "category": paper.category,
        "venue": paper.venue,
        "year": paper.year,
        "url": paper.url,
        "doi": paper.doi,
        "cite_as": paper.cite_as,
    }


def answer_to_json(answer: Answer) -> JsonObject:
    """The Answer object. Offsets count code points of `paper.abstract`; scores lie in [0, 1]."""
    return {
        "answer_id": answer.answer_id,
        "question": answer.question,
        "standalone_question": answer.standalone_question,
        "status": answer.status,
        "text": answer.text,
        "sentences": [sentence_to_json(sentence) for sentence in answer.sentences],
        "citations": [citation_to_json(citation) for citation in answer.citations],
        "papers": [scored_to_json(scored) for scored in answer.papers],
        "generator": answer.generator,
        "prompt_version": answer.prompt_version,
        "verifier": answer.verifier,
        "filters": filters_to_json(answer.filters),
        "revision": answer.revision,
        "usage": asdict(answer.usage),
        "timings_ms": dict(answer.timings_ms),
        "notice": answer.notice,
        "invalid_markers": answer.invalid_markers,
    }


def sentence_to_json(sentence: AnswerSentence) -> JsonObject:
    """One checked sentence; also the payload of a streamed `sentence` event."""
    return {
        "text": sentence.text,
        "markers": list(sentence.markers),
        "basis": sentence.basis,
        "evidence": [evidence_to_json(evidence) for evidence in sentence.evidence],
        "support": sentence.support,
        "reason": sentence.reason,
        "score": unit(sentence.score),
    }


def evidence_to_json(evidence: Evidence) -> JsonObject:
    """The words a sentence rests on."""
    return {
        "marker": evidence.marker,
        "start": evidence.start,
        "end": evidence.end,
        "quote": evidence.quote,
        "score": unit(evidence.score),
    }


def citation_to_json(citation: Citation) -> JsonObject:
    """What a marker stands for."""
    return {
        "marker": citation.marker,
        "paper": paper_to_json(citation.paper),
        "quote": citation.quote,
        "start": citation.start,
        "end": citation.end,
    }


def scored_to_json(scored: ScoredPaper) -> JsonObject:
    """A retrieved paper with its fused score."""
    return {"paper": paper_to_json(scored.paper), "score": unit(scored.score)}


def filters_to_json(filters: Filters) -> JsonObject:
    """Only the filters that are set."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(filters).items()
        if value not in (None, ())
    }


def rejected_to_json(rejected: Rejected) -> JsonObject:
    """`{source, where, reason}`."""
    return dict(asdict(rejected))


def report_to_json(report: IngestReport) -> JsonObject:
    """What an ingest did; `seconds` by stage."""
    return {
        "added": report.added,
        "merged": report.merged,
        "unchanged": report.unchanged,
        "skipped": [rejected_to_json(one) for one in report.skipped],
        "rejected": [rejected_to_json(one) for one in report.rejected],
        "revision": report.revision,
        "indexed": report.indexed,
        "seconds": {stage: round(seconds, 3) for stage, seconds in report.seconds.items()},
    }


def unit(score: float) -> float:
    """`score` held to [0, 1] (cosines of equal vectors come out as 1.0000001), six decimals."""
    return round(min(max(float(score), 0.0), 1.0), 6)


def to_line(value: Mapping[str, object]) -> str:
    """One line of JSON in plain UTF-8: readable (no `\\u` escapes) but for what some reader takes for the end of a line."""
    text = json.dumps(value, ensure_ascii=False).translate(LINE_ENDS)
    return text.encode("utf-8", "replace").decode("utf-8")
