"""Text made safe: for Slack, whatever an abstract or a model says."""

import re
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from api.slack_text import link, paper_url, read_question, safe_cut, safe_line, safe_markdown, split
from rag.types import Paper
from tests.slack.fake_slack import CODE, check_text

calmly = settings(deadline=None)  # the machine may be busy
NASTY = st.lists(
    st.sampled_from(
        "<!channel> <@U123> <#C1|x> <https://evil.com|here> https://evil.com/a?b=c&d www.evil.com me@evil.com evil.com evil.io/x "
        "[click](http://evil.com) ![x](http://a.b) [r]: http://e.f & &lt; &amp;lt; ` `` ``` ```py ~~~ `code` `https://a.b` @here "
        "\n \n\n * ** _ | # word 论文。 1http://x _http://y_ mailto:a@b.cc tel:12 1. - > $x_1$ [1] [1][2]. "
        "\r \x85 \u2028 \x00 \u202e ftp://z.z file:///etc".split(" ")
    )
    | st.text(max_size=8),
    max_size=30,
)
TEXTS = st.tuples(NASTY, st.sampled_from(["", " "])).map(lambda pair: pair[1].join(pair[0]))


@calmly
@given(TEXTS)
@example("a ` b https://evil.com")
@example("me@evil.com1http://x")
@example("`a`https://evil.com")
@example("```\n``x https://evil.com")
@example("```\nx\n~~~\nhttps://evil.com")
def test_no_mention_and_no_link_survives_in_markdown(text: str) -> None:
    check_text(safe_markdown(text))


@calmly
@given(TEXTS)
def test_no_mention_and_no_link_survives_in_a_line(text: str) -> None:
    made = safe_line(text)
    check_text(made)
    assert "\n" not in made


@calmly
@given(TEXTS, st.integers(1, 200))
def test_a_cut_line_fits_and_is_safe(text: str, limit: int) -> None:
    made = safe_cut(text, limit)
    assert len(made) <= limit
    check_text(made)


@calmly
@given(st.lists(TEXTS, max_size=8).map("\n".join), st.integers(200, 500))
def test_parts_fit_and_cut_no_fence_no_code_and_no_entity(text: str, limit: int) -> None:
    safe = safe_markdown(text)
    for part in split(safe, limit):
        assert 0 < len(part) <= max(limit, longest_code(safe) + 20)
        assert part.strip()
        check_text(part)


@calmly
@given(st.lists(TEXTS, max_size=8).map("\n".join), st.integers(200, 500))
def test_parts_put_together_say_the_same(text: str, limit: int) -> None:
    safe = safe_markdown(text)
    assert words("".join(split(safe, limit))) == words(safe)


def longest_code(text: str) -> int:
    return max((len(code) for code in CODE.findall(text) if not code.startswith("```")), default=0)


def words(text: str) -> str:
    """The text without fences and white space."""
    return re.sub(r"\s+", "", re.sub(r"```[\w+-]*$", "", text, flags=re.MULTILINE).replace("```", ""))


def test_fourteen_thousand_characters_are_cut_between_sentences() -> None:
    text = "".join(f"Sentence {n} says what it says about the matter [{n % 8 + 1}]. " for n in range(260))
    parts = split(text, 9_000)
    assert len(parts) == 2
    assert all(re.search(r"\[\d\]\.$", part) for part in parts)


def test_a_fence_that_must_be_cut_is_opened_again() -> None:
    parts = split(safe_markdown("```python\n" + "print(1)\n" * 100 + "```\nAfter."), 300)
    assert len(parts) > 2
    assert all(part.startswith("```") for part in parts[:-1])
    assert parts[-1].endswith("```\nAfter.")


@pytest.mark.parametrize(
    "piece", ["`", "a", "a.", "a@", "://", "```a", "` ", "<", "&", "~", "[", "www.", "-", ". ", "论。", "``` x"]
)
def test_no_text_takes_long(piece: str) -> None:
    text = piece * (14_000 // len(piece))
    started = time.process_time()
    split(safe_markdown(text + "`"), 3_000)
    safe_cut(text, 900)
    read_question(text)
    assert time.process_time() - started < 0.5


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Ping <!channel> now", "Ping &lt;!channel&gt; now"),
        ("Ask <@U1>", "Ask &lt;@U1&gt;"),
        ("Code at https://github.com/a/b.", "Code at `https://github.com/a/b`."),
        ("see [here](https://evil.com) now", "see [here]\u2060(`https://evil.com`) now"),
        ("a < b & c > d", "a &lt; b &amp; c &gt; d"),
        ("**bold** and `x < y`", "**bold** and `x &lt; y`"),
        ("Two [1][2]. Three [3].", "Two [1][2]. Three [3]."),
        ("et al. 2.5 vs. 3.0, e.g. ResNet-50.", "et al. 2.5 vs. 3.0, e.g. ResNet-50."),
        ("mail me@uni.edu, please", "mail `me@uni.edu`, please"),
        ("```\nx < 1", "```\nx &lt; 1\n```"),
    ],
)
def test_text_is_shown_as_it_was_said(text: str, shown: str) -> None:
    assert safe_markdown(text) == shown


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<@UBOT> What is SOAR?", "What is SOAR?"),
        ("<@UBOT>", ""),
        ("since 2024, only ICML: a &lt; b &amp;amp; c", "since 2024, only ICML: a < b &amp; c"),
        ("see <https://a.org/x|a.org> in <#C1|papers> <!here> <!subteam^S1|@team>", "see a.org in #papers @team"),
        ("is <https://a.org/x> cited by <@U2|jo>", "is https://a.org/x cited by jo"),
        ("mail <mailto:a@b.cc|a@b.cc> <#C2>", "mail a@b.cc"),
    ],
)
def test_what_a_person_typed_is_read(text: str, read: str) -> None:
    assert read_question(text) == read


@calmly
@given(st.text())
def test_any_text_can_be_read(text: str) -> None:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert read_question(escaped) == " ".join(text.split())


@calmly
@given(st.text(max_size=30) | st.sampled_from(["javascript:alert(1)", "http://[", "https://a.b/x|y>z <!channel>"]), TEXTS)
def test_a_footnotes_link_cannot_be_broken_out_of(url: str, name: str) -> None:
    check_text(link(Paper("p" * 8, "abstract", title=name or None, url=url)))


def test_a_footnote_links_to_the_papers_page_or_its_doi() -> None:
    assert paper_url(Paper("p" * 8, "a", url="https://a.b/c?d=1&e=2")) == "https://a.b/c?d=1&amp;e=2"
    assert paper_url(Paper("p" * 8, "a", doi="10.1/x<y>")) == "https://doi.org/10.1/x%3Cy%3E"
    assert paper_url(Paper("p" * 8, "a", url="javascript:alert(1)")) is None
