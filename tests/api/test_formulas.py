"""Formulas as MathML: readable, in their places, and never anything but MathML."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st

from api.formulas import ATTRIBUTES, ELEMENTS, LONGEST, MOST, formulas_of, to_mathml

NAMESPACE = "{http://www.w3.org/1998/Math/MathML}"
TEX = st.lists(
    st.sampled_from(
        [*r"x 1 { } ^ _ & \\ \frac \sqrt \left( \right) \text{ \begin{matrix} \end{matrix} \sum < > [ ]".split(), " "]
    )
    | st.text(max_size=3),
    max_size=12,
).map("".join)


def words(mathml: str | None) -> str:
    """What a reader sees."""
    assert mathml is not None
    return "".join(ElementTree.fromstring(mathml).itertext())


@pytest.mark.parametrize(
    ("tex", "seen"),
    [
        (r"\mathcal{O}(n \log n)", "𝒪(nlogn)"),
        (r"x \leq \frac{1}{2}", "x≤12"),
        (r"\mathbb{R}^d", "ℝd"),
        (r"78.5\%", "78.5%"),
        (r"a < b", "a<b"),
        (r"\text{if <b>it</b> & so}", "if\xa0<b>it</b>\xa0&\xa0so"),
    ],
)
def test_a_formula_reads_as_it_is_meant(tex: str, seen: str) -> None:
    assert words(to_mathml(tex)) == seen


@pytest.mark.parametrize(
    "tex",
    [
        r"\href{javascript:alert(1)}{x}",
        r"\style{color:red}{x}",
        r"\class{big}{x}",
        r"\color{red}{x}",
        r"\hspace{9999cm}x",
        r"\text{<script>alert(1)</script><img src=x onerror=alert(1)>}",
    ],
)
def test_no_link_style_or_foreign_element_gets_in(tex: str) -> None:
    root = ElementTree.fromstring(to_mathml(tex) or "<math/>")
    for element in root.iter():
        assert element.tag.removeprefix(NAMESPACE) in ELEMENTS
        assert set(element.attrib) <= ATTRIBUTES
        assert "9999cm" not in element.attrib.values()


@pytest.mark.parametrize(
    "tex",
    [r"\frac{", r"x_1_2", r"\newcommand{\a}{xx}\a", r"\def\a{xx}\a", "x" * (LONGEST + 1), "{" * 990, "a\x01b"],
)
def test_what_cannot_be_read_is_left_alone(tex: str) -> None:
    assert to_mathml(tex) is None


@given(TEX)
def test_any_tex_gives_mathml_or_nothing(tex: str) -> None:
    mathml = to_mathml(tex)
    if mathml is not None:
        root = ElementTree.fromstring(mathml)
        assert root.tag == f"{NAMESPACE}math"
        assert {element.tag.removeprefix(NAMESPACE) for element in root.iter()} <= ELEMENTS


def test_places_count_code_points_and_include_the_dollars() -> None:
    text = "𝒳 costs $n^2$ and then $$m$$."
    ((first, second),) = formulas_of([text])
    assert (text[first.start : first.end], text[second.start : second.end]) == ("$n^2$", "$$m$$")
    assert 'display="inline"' in first.mathml and 'display="block"' in second.mathml


def test_money_is_no_formula() -> None:
    assert formulas_of(["between $5 and $10"]) == [[]]


def test_a_request_renders_no_more_than_so_much() -> None:
    one = "$" + "x" * 498 + "$ "
    rendered = formulas_of([one * 20] * 4)
    assert [len(found) for found in rendered] == [20, 20, 0, 0]
    assert MOST == 20_000


def test_the_service_answers_text_by_text(client: TestClient) -> None:
    response = client.post("/api/v1/formulas", json={"texts": ["no formula", "Moss grows on $n^2$ stones."]})
    assert response.status_code == 200
    first, (second,) = response.json()["texts"]
    assert first == []
    assert (second["start"], second["end"]) == (14, 19)
    assert words(second["mathml"]) == "n2"
