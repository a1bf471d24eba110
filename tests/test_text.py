import re
import time
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.text import clean, split_sentences

CLEANED = [
    (
        r"Erd\H{o}s, Ren\'e, na\"ive, \c{c}a, stra\ss e, {\'e}t\'{e}, G{\"o}del, \v{S}",
        "Erdős, René, naïve, ça, straße, été, Gödel, Š",
    ),
    (r"\textbf{First}, we \emph{see} {\em this} at \url{http://a.b/c}", "First, we see this at http://a.b/c"),
    (r"in $\mathcal{O}(n^2)$ time", "in O(n^2) time"),
    (r"a rate of $\mathcal{O}(ST^{-\frac{1}{2}})$", "a rate of O(ST^(-1/2))"),
    (r"$O(\frac{N^2 \log T}{\Delta_k})$ and $n\log n$", "O((N^2 log T)/Δ_k) and n log n"),
    (r"$\alpha=0.01$, $160\times$, 62.95\%, \lambda_{N-1}", "α=0.01, 160×, 62.95%, λ_(N-1)"),
    (r"$\widetilde{O}(\varepsilon^{-2})$ \modelname \mathcalO(n)", "~O(ε^-2) modelname O(n)"),
    (r"as shown \cite{a,b} by {B}ayes, Fig.~2", "as shown by Bayes, Fig. 2"),
    ("\textbf{It} is 2\times, a \frac{1}{2}, {–} so", "It is 2×, a 1/2, – so"),
    ("the sets {a, b} and x_i_j and a*b*c", "the sets {a, b} and x_i_j and a*b*c"),
    ("costs $5 million and $10, or $5-$10", "costs $5 million and $10, or $5-$10"),
    ("an open { brace and a closing } one", "an open { brace and a closing } one"),
    ("H<sub>2</sub>O, 10<sup>5</sup>, <jats:italic>p</jats:italic> &lt; 0.05 &amp;amp; <b>so</b>", "H2O, 10^5, p < 0.05 & so"),
    ("<p>One.</p><p>Two.</p>", "One. Two."),
    ("those <70 and 43% aged> 80, P<b and x>c", "those <70 and 43% aged> 80, P<b and x>c"),
    (
        "*follow-the-regularized-leader*, **bold**, **M**odular, `code`, _under_",
        "follow-the-regularized-leader, bold, Modular, code, under",
    ),
    ("eﬃcient ﬁlters, Ｔｅｘｔ, ℝ and 𝒪, 5 µm, 10⁻⁵, CO₂, e\u0301", "efficient filters, Text, R and O, 5 μm, 10^-5, CO2, é"),
    ("algo-\nrithms, Karush-\n  Kuhn, 5-\n6, soft\u00ad\nhyphen", "algorithms, Karush-Kuhn, 5- 6, softhyphen"),
    (
        "learn- ing origi- nal Un- supervised, pre- and post-training, real- world, in- and out",
        "learning original Unsupervised, pre- and post-training, real- world, in- and out",
    ),
    ("a\x00b\u200bc\u202ed\ufeff\u00ade\x85\u00a0 \t\r\n f ", "abcde f"),
    ("donâ\x80\x99t Ã©", "don’t Ã©"),
]


@pytest.mark.parametrize(("verbatim", "expected"), CLEANED)
def test_markup_becomes_readable_text(verbatim: str, expected: str) -> None:
    assert clean(verbatim).text == expected


SPLIT = [
    "Zhang et al. propose X, i.e. a rule, e.g. Newton's. | It works.",
    "See the work of Zhang et al. | We extend it.",
    "It takes $O(n^3)$. | Then 0.5 s, p = 0. 05, v1.5 and GPT-4.1 on .NET at http://a.b/c.d are used.",
    "By J. Smith and J.-P. K. Jones in the U.S. Senate. | The U.S. | We go on.",
    "Cats (resp. Dogs) vs. Birds, cf. Fig. 3 and No. 5 w.r.t. Eq. 2, etc. | However, p53 is one. | p53 is. | mRNA too.",
    "Cats, etc. | Indeed, Dr. May took 5 ms. | So it is.",
    "It reaches 70%. | 15 patients took part! | Is it so? | “Yes.” | (It is.) | α-synuclein is.",
    "1. First item. | 2. Second item.",
    "a test . | the results follow .",
    "So we wait... and see. | Done.",
    "本文提出一种方法。| 它有效！| 是吗？",
    "It was shown.[1, 2] | We agree.",
]


@pytest.mark.parametrize("marked", SPLIT)
def test_sentences_end_where_a_reader_would_end_them(marked: str) -> None:
    expected = [piece.strip() for piece in marked.split("|")]
    verbatim = marked.replace(" | ", " ").replace("| ", "")
    assert [verbatim[s.start : s.end] for s in split_sentences(verbatim)] == expected


@pytest.mark.parametrize(
    ("verbatim", "expected"),
    [
        ("across spaces.Specifically, we do (so).We end", ["across spaces.", "Specifically, we do (so).", "We end"]),
        ("a trial.METHODS: We did", ["a trial.", "METHODS: We did"]),
        ("We use DiaBiz.Kom and torch.nn.Linear layers", ["We use DiaBiz.Kom and torch.nn.Linear layers"]),
        ("Background: it is\nso\nMETHODS: We did", ["Background: it is so", "METHODS: We did"]),
        ("<title>METHODS</title>\n<p>We did.</p><p>It is</p>", ["METHODS We did.", "It is"]),
        ("A heading of some length in words\n\nThe text", ["A heading of some length in words", "The text"]),
        (" \n ", []),
        ("...", ["..."]),
    ],
)
def test_glued_labelled_and_marked_up_sentences_are_told_apart(verbatim: str, expected: list[str]) -> None:
    assert [sentence.text for sentence in split_sentences(verbatim)] == expected


def test_markup_between_sentences_goes_to_the_sentence_it_marks() -> None:
    verbatim = r"\textbf{One is.} \textbf{Two} is."
    assert [verbatim[s.start : s.end] for s in split_sentences(verbatim)] == [r"\textbf{One is.}", r"\textbf{Two} is."]


def test_a_span_is_the_verbatim_source_of_the_cleaned_words() -> None:
    verbatim = r"We show that $\mathcal{O}(n^2)$ is \emph{optimal} for Erd\H{o}s graphs."
    cleaned = clean(verbatim)
    start = cleaned.text.index("O(n^2) is optimal")
    assert verbatim[slice(*cleaned.span(start, start + len("O(n^2) is optimal")))] == r"O}(n^2)$ is \emph{optimal"
    start = cleaned.text.index("Erdős")
    assert verbatim[slice(*cleaned.span(start, start + 5))] == r"Erd\H{o}s"


@pytest.mark.parametrize(("start", "end"), [(0, 0), (2, 1), (-1, 2), (0, 4)])
def test_a_span_outside_the_text_is_refused(start: int, end: int) -> None:
    with pytest.raises(ValueError, match="no such span"):
        clean("abc").span(start, end)


PIECES = [
    *"$ { } \\ < > * ** _ ` ` & ; ^ ~ - . ! ? 。 a b We The 1 0.5 \n \n\n \r\n é ﬁ ² \x00 \u200b \u0301 \ud800".split(" "),
    r"\frac{", r"\textbf{x}", r"\cite{", r"\'e", r"\alpha", r"$x_{i}$", "<p>", "</p>", "<b>", "&lt;", "&#0;", "et al.",
    " ", ". We",
    "x-\ny", "METHODS:",
]  # fmt: skip
HOSTILE = st.one_of(st.text(max_size=80), st.lists(st.sampled_from(PIECES), max_size=40).map("".join))


@given(HOSTILE)
def test_every_cleaned_character_maps_into_the_verbatim_text(verbatim: str) -> None:
    cleaned = clean(verbatim)
    assert len(cleaned.text) == len(cleaned.starts) == len(cleaned.ends)
    assert list(cleaned.starts) == sorted(cleaned.starts)
    assert list(cleaned.ends) == sorted(cleaned.ends)
    for index, character in enumerate(cleaned.text):
        start, end = cleaned.span(index, index + 1)
        assert 0 <= start < end <= len(verbatim)
        source = verbatim[start:end]
        if len(source) == 1 and source.isascii() and source.isalnum():
            assert character == source


@given(HOSTILE)
def test_cleaned_text_holds_nothing_invisible_and_single_spaces(verbatim: str) -> None:
    text = clean(verbatim).text
    assert text == " ".join(text.split())
    assert not [
        character
        for character in text
        if unicodedata.category(character) in ("Cc", "Cs") or character in "\u200b\u202e\ufeff\u00ad"
    ]


@given(HOSTILE)
def test_sentences_cover_all_but_white_space_and_never_overlap(verbatim: str) -> None:
    sentences = split_sentences(verbatim)
    done = 0
    for sentence in sentences:
        assert sentence.text.strip() == sentence.text != ""
        assert done <= sentence.start < sentence.end
        assert not verbatim[done : sentence.start].strip()
        done = sentence.end
    assert not verbatim[done:].strip() or not clean(verbatim).text


@given(HOSTILE)
def test_sentences_joined_are_the_cleaned_text(verbatim: str) -> None:
    joined = "".join(sentence.text for sentence in split_sentences(verbatim))
    assert joined.replace(" ", "") == clean(verbatim).text.replace(" ", "")


@pytest.mark.parametrize(
    "unit",
    [
        *"$ { < } * ` _ \\ & . ~ ( ^ 。 \u0301".split(),
        ". ",
        "$x",
        "{a}",
        "<p ",
        r"\frac{",
        r"\cite{",
        "*a ",
        "A. ",
        "-\n",
        "!\u2029",
        "METHODS:\n",
    ],
)
def test_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (100_000 // len(unit))
    began = time.process_time()
    split_sentences(text)
    assert time.process_time() - began < 4


SEEDS = Path(__file__).parents[2] / "shared" / "seeds"


@pytest.mark.skipif(not SEEDS.is_dir(), reason="needs ../shared/seeds")
def test_abstracts_of_the_seeds_split_into_whole_sentences() -> None:
    abstracts = [
        block for path in SEEDS.glob("*.txt") for block in path.read_text(encoding="utf8").split("\n\n") if len(block) > 250
    ]
    texts = [sentence.text for abstract in abstracts for sentence in split_sentences(abstract)]
    assert len(abstracts) == 100
    assert [text for text in texts if text.rstrip('"”)')[-1] not in ".!?" and "://" not in text] == []
    assert [text for text in texts if text[0].islower() and not text.startswith("b1 ")] == []
    assert [text for text in texts if len(text) < 25 or len(text) > 600] == []
    assert [text for text in texts if re.search(r"[a-z)]\.\s?[A-Z][a-z]", text)] == []
