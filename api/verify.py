"""`POST /api/v1/verify`: does a text of anybody's hold what it cites? By the verifier that answers go through."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import replace
from itertools import chain

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from api.context import OWN, Asker, Context, The
from api.leaving import unless_client_leaves
from api.schemas import VerifyClaimsIn, VerifyOut, VerifyTextIn
from rag.citations import MarkerFilter
from rag.markers import with_markers
from rag.protocols import Verifier
from rag.types import AnswerSentence, Drafted, IndexedPaper, Retrieved, unique
from rag.wire import paper_to_json, sentence_to_json

router = APIRouter(tags=["verify"], prefix=OWN)

PIECE = 200
"""Characters of a text that are read at a time."""


@router.post("/verify", response_model=VerifyOut)
async def verify(body: VerifyTextIn | VerifyClaimsIn, request: Request, the: The, caller: Asker) -> Response:
    """Support, best quote and reason for each sentence. A marker [n] in a text stands for the n-th of `paper_ids`."""
    await the.answering.engine.loaded()
    if isinstance(body, VerifyTextIn):
        names: Sequence[str] = body.paper_ids
        text = body.text
        sentences, invalid = await the.threads.run(lambda: read_sentences(text, len(names)))
    else:
        names = unique([name for claim in body.claims for name in claim.paper_ids])
        sentences, invalid = [claim_of(claim.text, claim.paper_ids, names) for claim in body.claims], 0
    papers = await find_papers(the, names)
    checked = the.work.run(checked_one_by_one(the.library.verifier, sentences, papers))
    found = {
        "verifier": the.library.verifier.name,
        "sentences": [sentence_to_json(one) for one in await unless_client_leaves(request, all_of(checked))],
        "papers": [paper_to_json(one.paper) for one in papers],
        "invalid_markers": invalid,
    }
    return JSONResponse(found)


def read_sentences(text: str, papers: int) -> tuple[list[Drafted], int]:
    """A text's sentences with their markers, and how many markers stood for no paper. Fed by and by, as the filter is made to be:
    it looks through all that it holds for each sentence."""
    reader = MarkerFilter(papers)
    pieces = (text[start : start + PIECE] for start in range(0, len(text), PIECE))
    sentences = [*chain.from_iterable(map(reader.feed, pieces)), *reader.finish()]
    return sentences, reader.removed


def claim_of(text: str, paper_ids: Sequence[str], names: Sequence[str]) -> Drafted:
    """A claim as a sentence that cites its papers, by their places in `names`."""
    markers = tuple(names.index(name) + 1 for name in unique(paper_ids))
    return Drafted(with_markers(text, markers), markers)


async def find_papers(the: Context, names: Sequence[str]) -> list[IndexedPaper]:
    """The papers by these names, in order. Raises NotFound for the first that is none."""

    def look() -> list[IndexedPaper]:
        catalogue = the.library.catalogue
        paper_ids = [catalogue.resolve(name) for name in names]
        found = {one.paper.paper_id: one for one in catalogue.indexed(paper_ids, the.library.embedder.model)}
        return [found[paper_id] for paper_id in paper_ids]

    return await the.threads.run(look)


async def checked_one_by_one(
    verifier: Verifier, sentences: Sequence[Drafted], papers: Sequence[IndexedPaper]
) -> AsyncGenerator[AnswerSentence, None]:
    """Each sentence against the papers it cites and no others: here nobody wants it cited anew."""
    for drafted in sentences:
        own = [Retrieved(papers[marker - 1], score=1.0, dense=0.0, keyword=0.0) for marker in drafted.markers]
        places = tuple(range(1, len(own) + 1))
        verdict = await verifier.verify(Drafted(with_markers(drafted.text, places), places), own)
        evidence = tuple(replace(one, marker=drafted.markers[one.marker - 1]) for one in verdict.evidence)
        yield AnswerSentence(drafted.text, drafted.markers, "abstract", evidence, verdict.support, verdict.reason, verdict.score)


async def all_of(sentences: AsyncGenerator[AnswerSentence, None]) -> list[AnswerSentence]:
    """All of them, once they are there."""
    async with aclosing(sentences):
        return [one async for one in sentences]
