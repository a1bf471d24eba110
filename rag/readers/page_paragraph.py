"""Whether a paragraph of a search page goes on with the abstract above it or is a new paper's abstract."""

from __future__ import annotations

import re

SHORT = 250
"""Characters; a paragraph shorter than this is no abstract by itself when another stands right above or below it."""

USUAL_LIMIT = 2_000
"""Characters; about what arXiv (1,920) and most conferences allow for an abstract."""

LEANS_ON = re.compile(
    r"""(
      however|moreover|furthermore|additionally|in\ addition|specifically|finally|first(ly)?|second(ly)?|third(ly)?|then|thus
    | hence|therefore|consequently|as\ a\ result|notably|in\ particular|in\ contrast|for\ (example|instance)|also|here|meanwhile
    | overall|nevertheless|nonetheless|beyond|accordingly|together|unlike|instead|as\ such|to\ \w+|based\ on|by\ (\w+ly\ )?\w+ing
    | building\ on|using|leveraging|(motivated|inspired|guided|driven)\ by|towards?\ this|in\ (one|both|each|all|that|these|such)
    | under|our|experiment(s|al)|extensive|empirical(ly)?|theoretical(ly)?|results?|numerical|simulations?|these|those|such|it
    | they|this\ (?!(paper|work|study|article|survey|thesis)\b)|(the|a)\ (code|resulting|proposed|key|core|goal|main|central)
    | background|methods?|conclusions?|objectives?|existing|code|compared
    | we\ (also|further|then|first|next|finally|show|prove|validate|evaluate|additionally|complement|conclude|demonstrate)
    )\b
    | 此外|然而|最后|首先|其次|因此|实验|为此|同时""",
    re.IGNORECASE | re.VERBOSE,
)
"""How a paragraph begins that leans on something said before it."""

FINISHED = re.compile(r"[.!?。！？][\"'”’)*]*$")
OWN_WORDS = re.compile(r"\b(we|our|us|this (paper|work|study|article|survey|thesis)|here)\b|本文|我们", re.IGNORECASE)
RESULTS = re.compile(
    r"\b(experiment|outperform|demonstrat|state-of-the-art|benchmark|empirical|code|github|result|simulation|improve)",
    re.IGNORECASE,
)
COINED = re.compile(r"\b\w*[A-Z]\w*[A-Z]\w*")
SPELLED_OUT = re.compile(r"\((\w*[A-Z]\w*[A-Z]\w*)")


def continues(abstract: str, paragraph: str) -> bool:
    """Whether `paragraph` goes on with `abstract` rather than being that of a paper with neither category nor authors.

    Such papers are rare, so it takes signs: more text than abstracts have, an acronym spelled out a second time, or results told
    already and nothing in the paragraph that leans on them.
    """
    if LEANS_ON.match(paragraph) or paragraph[0].islower() or not FINISHED.search(abstract[-20:]):
        return True
    if min(len(abstract), len(paragraph)) < SHORT:
        return True
    spelled_out = set(SPELLED_OUT.findall(paragraph))
    if len(abstract) + len(paragraph) > USUAL_LIMIT or spelled_out & set(SPELLED_OUT.findall(abstract)):
        return False
    if (set(COINED.findall(paragraph)) - spelled_out) & set(COINED.findall(abstract)):
        return True
    return not RESULTS.search(abstract[-300:]) and not (OWN_WORDS.search(abstract) and OWN_WORDS.search(paragraph[:150]))
