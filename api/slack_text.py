"""Text made safe for Slack, text split within Slack's limits, and Slack's own text read.

What a model or an abstract says may hold `<!channel>`, `<@U…>`, links and half a code fence. Nothing of that may act: signs are
escaped, addresses are shown as code (which Slack does not make a link of), Markdown links fall apart into their visible parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from urllib.parse import quote, urldefrag, urlsplit

from rag.types import Paper, cut

ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
JOINER = "\u2060"
"""Word joiner: invisible, and enough to keep `](` and `@here` from meaning anything."""

LINE_END = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
FENCE = re.compile(r"^\s*(?:`{3,}+|~{3,}+)\s*([\w+-]{0,30})[^`]*$")
CODE = re.compile(r"(?<!`)(`{1,3})(?!`)([^`\n]{1,300})\1(?!`)")
SHOUT = re.compile(r"@(?=channel|here|everyone)", re.IGNORECASE)
MADE_LINK = re.compile(r"\](?=[(:])")
ADDRESS = re.compile(
    r"(?<![a-z0-9+.-])[a-z0-9+.-]*://[^\s`]+"
    r"|(?:www\.|mailto:|tel:)[^\s`]+"
    r"|(?<![\w.+-])[\w.+-]+@[\w-]+\.[\w.-]+"
    r"|(?<![\w.-])(?:[a-z0-9-]+\.)+(?:[a-z]{2,}/[^\s`]*|(?:com|org|net|edu|gov|io|ai|dev|app|co|me|info|ly|cn|de|uk|eu|fr|jp)\b)"
    r"|://[^\s`]+",
    re.IGNORECASE,
)
AFTER_ADDRESS = ".,;:!?)]}\"'”’*_~|>"
LONGEST_ADDRESS = 300

TOKEN = re.compile(r"`[^`\n]*`|&(?:amp|lt|gt);|\s+|[^\s`&。！？]{1,100}|.", re.DOTALL)
SENTENCE_END = re.compile(r"[.!?][\])”\"'’]*\s+$|[。！？]\s*$")
REOPENED = "```"


def safe_markdown(text: str) -> str:
    """Markdown for a `markdown` block: formatting, inline code and fences stay, all fences are closed, nothing acts."""
    lines: list[str] = []
    in_fence = False
    for line in clean(text).split("\n"):
        fence = FENCE.match(line)
        if fence and not (in_fence and fence[1]):
            lines.append("```" if in_fence else f"```{fence[1]}")
            in_fence = not in_fence
        else:
            lines.append(line.replace("`", "'").translate(ESCAPES) if in_fence else safe_prose(line))
    return "\n".join([*lines, "```"] if in_fence else lines)


def settled(sentences: Sequence[str], most: int) -> str:
    """Safe Markdown of as many whole sentences as can be shown before the rest is known: none of them opens code that is not
    closed yet. At most `most` bytes of UTF-8."""
    for count in range(len(sentences), 0, -1):
        text = "".join(sentences[:count])
        if len(text) <= most and not is_open(text) and size(made := safe_markdown(text)) <= most:
            return made
    return ""


def is_open(text: str) -> bool:
    """Whether a fence, or in its last line a code span, may still be waiting for its end."""
    fences = [fence for line in clean(text).split("\n") if (fence := FENCE.match(line))]
    in_fence = False
    for fence in fences:
        in_fence = not in_fence or bool(fence[1])
    return in_fence or text.rpartition("\n")[2].count("`") % 2 == 1


def size(text: str) -> int:
    """Bytes of UTF-8, of which Slack lets a message that streams have so many."""
    return len(text.encode())


def safe_line(text: str) -> str:
    """One line of mrkdwn, for sections and for a message's `text`: no code but addresses, nothing acts."""
    return without_links(" ".join(clean(text).split()).replace("`", "'"))


def safe_cut(text: str, limit: int) -> str:
    """`safe_line` in at most `limit` characters, which escaping may use up five times as fast; an ellipsis for what is cut."""
    most = limit
    while len(made := safe_line(cut(text, most))) > limit:
        most = min(most - 1, most * limit // len(made))
    return made


def safe_prose(line: str) -> str:
    """A line outside of fences. Code spans stay; a backtick without partner would undo the code around an address."""
    parts: list[str] = []
    at = 0
    for code in CODE.finditer(line):
        parts += [without_links(line[at : code.start()].replace("`", "'")), as_code(code[2])]
        at = code.end()
    return beside_each_other([*parts, without_links(line[at:].replace("`", "'"))])


def without_links(text: str) -> str:
    """Text without a backtick, escaped; addresses become code."""
    parts: list[str] = []
    at = 0
    for found in ADDRESS.finditer(text):
        address = found[0].rstrip(AFTER_ADDRESS)
        parts += [escaped(text[at : found.start()]), as_code(cut(address, LONGEST_ADDRESS))]
        at = found.start() + len(address)
    return beside_each_other([*parts, escaped(text[at:])])


def escaped(text: str) -> str:
    """Text in which neither a link nor an entity is left."""
    return MADE_LINK.sub("]" + JOINER, text).translate(ESCAPES)


def as_code(text: str) -> str:
    """A code span; nothing for white space, of which none can be made."""
    return f"`{text.strip().translate(ESCAPES)}`" if text.strip() else ""


def beside_each_other(parts: list[str]) -> str:
    """The parts, a space where a code span would otherwise touch another or a word, and so be none."""
    text = ""
    for part in filter(None, parts):
        sides = text[-1:] + part[0]
        touch = len(sides) == 2 and "`" in sides and all(side == "`" or side.isalnum() for side in sides)
        text += f" {part}" if touch else part
    return text


def clean(text: str) -> str:
    """Text without control characters and without words that call everybody."""
    return SHOUT.sub("@" + JOINER, UNSEEN.sub("", LINE_END.sub("\n", text)))


def split(text: str, limit: int) -> list[str]:
    """Safe Markdown in parts of at most `limit` characters (200 or more), cut between sentences where that can be. No code span
    and no entity is cut; a fence that must be is closed and opened again."""
    parts: list[str] = []
    current, open_fence = "", False
    for piece, in_fence in pieces(text, limit - 2 * len(REOPENED) - 2):
        if len(current) + len(piece) + len(REOPENED) + 1 > limit:
            parts.append(closed(current, open_fence))
            current = f"{REOPENED}\n" if open_fence else ""
        current += piece
        open_fence = in_fence
    return [part for part in [*parts, closed(current, open_fence)] if part.strip() and part != "```\n```"]


def closed(part: str, in_fence: bool) -> str:
    """A part as it is shown."""
    return part.rstrip() + ("\n```" if in_fence else "")


def pieces(text: str, most: int) -> Iterator[tuple[str, bool]]:
    """What may stand on either side of a cut, each of at most `most` characters, and whether a fence is open after it."""
    in_fence = False
    for line in text.splitlines(keepends=True):
        if line.startswith("```"):
            in_fence = not in_fence
            yield line, in_fence
        else:
            yield from ((piece, in_fence) for piece in sentences(line, most))


def sentences(line: str, most: int) -> Iterator[str]:
    """A line sentence by sentence; one that is too long, word by word."""
    piece = ""
    for token in TOKEN.findall(line):
        ended = SENTENCE_END.search(piece[-12:]) and not token.isspace()
        if piece and (ended or len(piece) + len(token) > most):
            yield piece
            piece = ""
        piece += token
    if piece:
        yield piece


def link(paper: Paper) -> str:
    """`<url|Zhang et al., 2024>` to the paper's own page; only the name where it has none."""
    name = safe_cut(paper.cite_as, 200)
    url = paper_url(paper)
    return f"<{url}|{name.replace('|', '¦').replace('`', '')}>" if url else name


def paper_url(paper: Paper) -> str | None:
    """The paper's page, from its URL or DOI, without what could end the link."""
    for url in (paper.url, paper.doi_url):
        if url and is_web_address(url):
            return quote(urldefrag(url).url, safe="/:?&=%@+,;~!$'()").replace("&", "&amp;")
    return None


def is_web_address(url: str) -> bool:
    """Whether it can be followed from a message."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc) and len(url) <= 2000


ENTITY = re.compile(r"<([^<>]*)>")


def read_question(text: str) -> str:
    """What a person typed, from Slack's text: mentions of people left out, links and channels by name, entities as signs."""
    words = ENTITY.sub(lambda found: f" {read_entity(found[1])} ", text)
    for entity, sign in (("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&")):
        words = words.replace(entity, sign)
    return " ".join(words.split())


def read_entity(inside: str) -> str:
    """`@U1` → nothing, `#C1|general` → `#general`, `https://a.b|a.b` → `a.b`."""
    address, _, label = inside.partition("|")
    if address.startswith("#"):
        return f"#{label}" if label else ""
    if address.startswith(("@", "!")):
        return label
    return label or address.removeprefix("mailto:")
