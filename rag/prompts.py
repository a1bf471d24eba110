"""What is said to an LLM: the texts under `prompts/`, filled with papers, conversation and question.

Whatever comes from people or papers stands between tags that it cannot close.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template

from rag.filters import Names
from rag.markers import in_round_brackets, without_markers
from rag.types import Drafted, Paper, Retrieved, Turn, cut

FOLDER = Path(__file__).parent.parent / "prompts"

PAPERS_LENGTH = 24_000
"""Characters of abstracts in a prompt, some 6,000 tokens: eight abstracts of ordinary length are half of that."""
CONVERSATION_LENGTH = 4_000
"""Characters of the conversation at most; it has what the papers leave of their length, and its oldest turns go first."""
NAMES_LENGTH = 4_000

TAGS = ("papers", "paper", "conversation", "turn", "question", "in_full", "sentences", "sentence", "venues", "categories")
_LIKE_A_TAG = re.compile(rf"<(?=\s*/?\s*(?:{'|'.join(TAGS)})\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Prompt:
    """A pair of texts; `version` is its name and the first 8 hex digits of their SHA-256, so it changes whenever they do."""

    version: str
    system: str
    user: Template

    def filled(self, **values: str) -> tuple[str, str]:
        """System and user message. Raises KeyError for a value the text asks for and did not get."""
        return self.system, re.sub(r"\n{3,}", "\n\n", self.user.substitute(values)).strip()


@cache
def load_prompt(name: str, folder: Path = FOLDER) -> Prompt:
    """The texts `<name>/system.md` and `<name>/user.md`."""
    system, user = ((folder / name / f"{part}.md").read_text(encoding="utf8") for part in ("system", "user"))
    digest = hashlib.sha256(f"{system}\0{user}".encode()).hexdigest()
    return Prompt(f"{name}@{digest[:8]}", system.strip(), Template(user))


def answer_prompt(question: str, standalone: str, papers: Sequence[Retrieved], history: Sequence[Turn]) -> tuple[str, str]:
    """`question` as asked, which tells the language, and `standalone` where the two differ."""
    sources = papers_block([(place, found.paper, found.found.text) for place, found in enumerate(papers, start=1)])
    room = PAPERS_LENGTH - len(sources)
    return load_prompt("answer").filled(
        papers=sources,
        conversation=conversation_block(history, min(room, CONVERSATION_LENGTH)),
        question=question_block(question, standalone),
    )


def standalone_prompt(question: str, history: Sequence[Turn], names: Names) -> tuple[str, str]:
    """Asks for an object of STANDALONE_SCHEMA."""
    return load_prompt("standalone").filled(
        venues=inert(cut("; ".join(names.venues), NAMES_LENGTH)),
        categories=inert(cut("; ".join(names.categories), NAMES_LENGTH)),
        conversation=conversation_block(history, CONVERSATION_LENGTH),
        question=question_block(question, question),
    )


def verify_prompt(sentences: Sequence[Drafted], papers: Sequence[Retrieved]) -> tuple[str, str]:
    """Asks for an object of VERIFY_SCHEMA on sentences whose markers are places (from 1) in `papers`; shows the cited ones."""
    cited = sorted({place for sentence in sentences for place in sentence.markers})
    return load_prompt("verify").filled(
        papers=papers_block([(place, papers[place - 1].paper, papers[place - 1].found.text) for place in cited]),
        sentences="\n".join(["<sentences>", *map(sentence_block, range(1, len(sentences) + 1), sentences), "</sentences>"]),
    )


def papers_block(papers: Sequence[tuple[int, Paper, str]]) -> str:
    """Numbered papers with their fields and cleaned abstracts, the longest cut where all are too long together."""
    longest = common_length([len(text) for _, _, text in papers], PAPERS_LENGTH)
    blocks = (paper_block(number, paper, cut(text, longest)) for number, paper, text in papers)
    return "\n".join(["<papers>", *blocks, "</papers>"])


def paper_block(number: int, paper: Paper, abstract: str) -> str:
    """Markers of the abstract's own stand in round brackets, lest they are taken for ours."""
    authors = ", ".join(paper.authors) + (" et al." if paper.authors_truncated else "")
    fields = {
        "Title": paper.title,
        "Authors": cut(authors, 500),
        "Year": paper.year,
        "Venue": paper.venue,
        "Category": paper.category,
        "Abstract": in_round_brackets(abstract),
    }
    lines = (f"{name}: {inert(str(value))}" for name, value in fields.items() if value)
    return "\n".join([f'<paper number="{number}">', *lines, "</paper>"])


def sentence_block(number: int, sentence: Drafted) -> str:
    """The sentence's words, and apart from them the papers it cites."""
    cited = " ".join(map(str, sentence.markers))
    return f'<sentence number="{number}" cites="{cited}">{inert(without_markers(sentence.text).strip())}</sentence>'


def conversation_block(history: Sequence[Turn], room: int) -> str:
    """The last turns that fit into `room` characters, without the markers of their papers; nothing where none does."""
    kept: list[str] = []
    for turn in reversed(history):
        said = f'<turn role="{turn.role}">{inert(without_markers(turn.content).strip())}</turn>'
        room -= len(said) + 1
        if room < 0:
            break
        kept.insert(0, said)
    return "\n".join(["<conversation>", *kept, "</conversation>"]) if kept else ""


def question_block(question: str, standalone: str) -> str:
    """The question as asked, and its full sense where that was worked out."""
    asked = f"<question>{inert(question)}</question>"
    return asked if standalone in ("", question) else f"{asked}\n<in_full>{inert(standalone)}</in_full>"


def inert(text: str) -> str:
    """`text` with nothing in it that reads as one of our tags."""
    return _LIKE_A_TAG.sub("‹", text)


def common_length(lengths: Iterable[int], room: int) -> int:
    """The largest length to which texts must be cut to fit into `room` together, so that short ones stay whole."""
    remaining = sorted(lengths)
    longest = remaining[-1] if remaining else 0
    while remaining and remaining[0] <= room // len(remaining):
        room -= remaining.pop(0)
    return room // len(remaining) if remaining else longest


def _object(properties: dict[str, object]) -> dict[str, object]:
    """A JSON schema as strict servers want it: every field required, no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


_STRINGS = {"type": "array", "items": {"type": "string"}}
_YEAR = {"type": ["integer", "null"]}

STANDALONE_SCHEMA = _object(
    {
        "question": {"type": "string"},
        "topic": {"type": "string"},
        "year_min": _YEAR,
        "year_max": _YEAR,
        "venues": _STRINGS,
        "categories": _STRINGS,
        "authors": _STRINGS,
        "asks_for": {"type": "string", "enum": ["explain", "list", "count", "authors", "year", "venue", "link"]},
        "other_papers": {"type": "boolean"},
    }
)

VERIFY_SCHEMA = _object(
    {
        "verdicts": {
            "type": "array",
            "items": _object(
                {
                    "sentence": {"type": "integer"},
                    "verdict": {"type": "string", "enum": ["supported", "partly", "contradicted", "not_stated"]},
                    "paper": {"type": ["integer", "null"]},
                    "quote": {"type": "string"},
                    "reason": {"type": "string"},
                }
            ),
        }
    }
)
