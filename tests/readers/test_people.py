"""Author names in every form sources write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rag.readers.people import people

BOTH = ("Ada Byron", "Bo Li")


@pytest.mark.parametrize(
    ("value", "names"),
    [
        (["Ada Byron", "Bo Li"], BOTH),
        ([{"name": "Ada Byron"}, {"authorId": None, "name": "Bo Li"}], BOTH),
        ([{"author": {"display_name": "Ada Byron"}}, {"raw_author_name": "Bo Li"}], BOTH),
        ([{"given": "Ada", "family": "Byron"}, {"firstName": "Bo", "lastName": "Li"}], BOTH),
        ([{"first": "Ada", "middle": ["K.", "L."], "last": "Byron", "suffix": "Jr"}], ("Ada K. L. Byron Jr",)),
        ([["Byron", "Ada", ""], ["Li", "Bo", "Jr", "Kite Lab"]], ("Ada Byron", "Bo Li Jr")),
        (["Ada Byron; Bo Li"], BOTH),
        ({"name": "Ada Byron"}, ("Ada Byron",)),
        ("Ada Byron;Bo Li; ", BOTH),
        ("Byron, Ada; Li, Bo", ("Byron, Ada", "Li, Bo")),
        ("Byron, Ada and Li, Bo", ("Byron, Ada", "Li, Bo")),
        ("Ada Byron and Bo Li", BOTH),
        ("Ada Byron\n and Bo Li", BOTH),
        ("Ada Byron, Bo Li and Cy Xu", (*BOTH, "Cy Xu")),
        ("Ada Byron, Bo Li, and Cy Xu", (*BOTH, "Cy Xu")),
        ("Ada Byron, Wang, and Cy Xu", ("Ada Byron", "Wang", "Cy Xu")),
        ("Ada Byron,\nBo Li", BOTH),
        ("Ada Byron\nBo Li", BOTH),
        ("de la Cruz, Maria and Cy Xu", ("de la Cruz, Maria", "Cy Xu")),
        ("Ada Byron, Bo Li", BOTH),
        ("Ada Byron, Wang, Bo Li", ("Ada Byron", "Wang", "Bo Li")),
        ("Wang, Ada Byron, Bo Li", ("Wang", "Ada Byron", "Bo Li")),
        ("Smith, John A., Jr.", ("Smith, John A., Jr.",)),
        ("Byron, Ada", ("Byron, Ada",)),
        ("van der Berg, Jan", ("van der Berg, Jan",)),
        ("Byron A, Li BC", ("Byron A", "Li BC")),
        ("Byron, A. K., Li, B., & Xu, C.", ("Byron, A. K.", "Li, B.", "Xu, C.")),
        ("Perlis, A. J. Samelson,K.", ("Perlis, A. J.", "Samelson,K.")),
        ("Ada Byron | Bo Li", BOTH),
        ("张三、李四", ("张三", "李四")),
        ("['Ada Byron', \"Bo O'Li\"]", ("Ada Byron", "Bo O'Li")),
        ("Ada Byron", ("Ada Byron",)),
        ("周欣", ("周欣",)),
        (["Ada Byron", "Ada Byron"], ("Ada Byron", "Ada Byron")),
        ("", ()),
        ([], ()),
        (None, ()),
        ([None, 7, {}], ()),
    ],
)
def test_names_are_told_apart(value: object, names: tuple[str, ...]) -> None:
    assert people(value) == (names, False)


@pytest.mark.parametrize(
    "value",
    [
        "Ada Byron, Bo Li, et al.",
        "Ada Byron and Bo Li and others",
        "Ada Byron, Bo Li 等",
        "Ada Byron; Bo Li; ...",
        ["Ada Byron", "Bo Li", "et al."],
    ],
)
def test_a_list_that_says_there_are_more_is_truncated(value: object) -> None:
    assert people(value) == (BOTH, True)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("abAB .,;&'\"[]{}and", max_size=40),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["name", "author", "last", "middle", "value"]), inner)
    ),
)


@settings(deadline=None)
@given(value=VALUES)
def test_any_value_gives_names_without_white_space_around_them(value: object) -> None:
    names, _ = people(value)
    assert all(name and name == " ".join(name.split()) for name in names)
