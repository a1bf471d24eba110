"""Words that ask nothing: thanks, greetings, nods. They get a short reply, and no papers are looked for."""

from __future__ import annotations

import re
from typing import Literal

Kind = Literal["thanks", "greeting", "nod"]

LONGEST = 80
"""Characters; what is longer asks something, however it begins."""

KINDS: dict[Kind, str] = {
    "thanks": (
        r"(?:many )?thank(?:s| you)(?: again| so much| very much| a lot| for (?:the|your|all the) (?:help|answers?))*|thx|cheers"
        r"|much appreciated|(?:非常|十分)?感谢(?:你|您)?|(?:多谢|谢谢)(?:你|您)?(?:了|啦|的帮助|的回答)?"
    ),
    "greeting": (
        r"(?:hello|hi|hey|greetings)(?: there| all| everyone| footnote)?|good (?:morning|afternoon|evening|day)|help|who are you"
        r"|what (?:can|do) you do|how are you|(?:你|您|大家)好|早上好|下午好|晚上好|嗨|你是谁|你能做什么"
    ),
    "nod": (
        r"ok(?:ay)?|great|nice|cool|perfect|good(?: job)?|fine|awesome|excellent|well done|got it|i see|understood|yes|no"
        r"|bye|goodbye|see you|(?:that|this)(?: s| is| was)?(?: very| really)? (?:helpful|helps|great|good|all|nice|interesting)"
        r"|好(?:的)?|行|明白了?|知道了|不错|太好了|再见|是的?|不是"
    ),
}
PATTERNS = {kind: re.compile(rf"(?:{words})(?: |$)") for kind, words in KINDS.items()}
WHOLE = re.compile(rf"(?:(?:{'|'.join(KINDS.values())})(?: |$))+")


def small_talk(question: str) -> Kind | None:
    """What a message is that asks nothing (`Great, thanks!` is thanks); None for a question."""
    words = " ".join(re.findall(r"\w+", question.lower()))
    if len(words) > LONGEST or not WHOLE.fullmatch(words):
        return None
    return next(kind for kind, pattern in PATTERNS.items() if pattern.search(words))
