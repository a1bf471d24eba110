"""Reading a question by rules: follow-ups, filters in words, kinds of answers."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.counting import NOT_BY_TOPIC
from rag.filters import Names, read_filters
from rag.follow_up import is_follow_up
from rag.intent import Intent, intent_of
from rag.pointing import means_several
from rag.small_talk import small_talk
from rag.types import Filters, Turn
from rag.understand import NOT_LISTED, understand

NAMES = Names(
    venues=("ICML", "NeurIPS", "ICLR 2021"),
    categories=("Optimization · Non-Convex", "Theory", "Theory · Game Theory", "Social Aspects · Games", "Games · Theory"),
)
HISTORY = (
    Turn("user", "Is there a faster algorithm for Gromov-Wasserstein?"),
    Turn("assistant", "Yes, LoBCD-GW updates a block of the coupling [1].", ("lobcd-paper",)),
)


@pytest.mark.parametrize(
    ("question", "filters", "rest"),
    [
        ("What is new in GNNs since 2021?", Filters(year_min=2021), "What is new in GNNs?"),
        ("GNNs after 2021", Filters(year_min=2022), "GNNs"),
        ("Which GNNs before 2019 scale?", Filters(year_max=2018), "Which GNNs scale?"),
        ("GNNs from 2020 on", Filters(year_min=2020), "GNNs"),
        ("papers from 2023 on GNNs", Filters(year_min=2023, year_max=2023), "papers on GNNs"),
        ("GNNs until 2019", Filters(year_max=2019), "GNNs"),
        ("GNNs between 2018 and 2020", Filters(year_min=2018, year_max=2020), "GNNs"),
        ("GNNs, 2018-2020", Filters(year_min=2018, year_max=2020), "GNNs,"),
        ("Which papers from 2020 are on GNNs?", Filters(year_min=2020, year_max=2020), "Which papers are on GNNs?"),
        ("since 2024, only ICML: what helps exploration?", Filters(year_min=2024, venues=("ICML",)), "what helps exploration?"),
        ("What was published at neurips on bandits?", Filters(venues=("NeurIPS",)), "What was on bandits?"),
        ("rates in the Theory category", Filters(categories=("Theory",)), "rates"),
        ("rates in the Optimization area", Filters(categories=("Optimization",)), "rates"),
        ("Which papers are in Social Aspects?", Filters(categories=("Social Aspects",)), "Which papers are?"),
        ("List the papers in the category Game Theory", Filters(categories=("Theory · Game Theory",)), "List the papers"),
        ("2021年以来的图神经网络有哪些？", Filters(year_min=2021), "的图神经网络有哪些？"),
        ("2019 年之前的工作", Filters(year_max=2018), "的工作"),
    ],
)
def test_filters_are_read_from_the_words(question: str, filters: Filters, rest: str) -> None:
    assert read_filters(question, NAMES) == (filters, rest)


@pytest.mark.parametrize(
    "question",
    [
        "What changed as of January 21, 2026?",
        "Does ICML matter for theory?",
        "How are 2048 tokens handled in theory?",
        "Theory of bandits",
        "Which papers are not at ICML?",
        "How many papers are there except at ICML?",
        "有几篇不是2024年的论文",
        "Papers not published in 2023",
        "Which papers aren't in the Theory category?",
    ],
)
def test_a_year_or_name_that_only_stands_there_sets_no_filter(question: str) -> None:
    assert read_filters(question, NAMES) == (Filters(), question)


@given(st.text(max_size=200))
def test_any_text_can_be_read(question: str) -> None:
    understood = understand(question, HISTORY, Filters(), NAMES)
    assert understood.standalone.startswith(understood.question)


def test_filters_given_beside_the_question_win() -> None:
    understood = understand("GNNs since 2021", (), Filters(year_min=2015, venues=("ICML",)), NAMES)
    assert understood.filters == Filters(year_min=2015, venues=("ICML",))


def test_years_asked_of_a_shelf_without_years_are_told_not_applied() -> None:
    understood = understand("GNNs since 2021", (), Filters(), Names(has_years=False))
    assert understood.filters == Filters()
    assert understood.notice is not None and "has a year" in understood.notice


@pytest.mark.parametrize(
    ("question", "follows"),
    [
        ("who wrote it?", True),
        ("And which of the two matrices is the fragile one?", True),
        ("what about actor-critic then?", True),
        ("How would I check that in a real model?", True),
        ("Are there any other position papers besides that one?", True),
        ("它需要训练吗？", True),
        ("Is that published at ICML?", True),
        ("Where were the experiments run?", True),
        ("Who wrote the paper on decentralised optimisation?", False),
        ("Who wrote KnapSpec?", False),
        ("Which optimizer converges on non-smooth convex problems in a decentralized network?", False),
        ("What speedup does Mind Dreamer have over DreamerV3 on continuous control tasks?", False),
    ],
)
def test_follow_ups_are_told_from_new_questions(question: str, follows: bool) -> None:
    assert is_follow_up(question) is follows


def test_a_follow_up_carries_the_last_exchange_and_no_markers() -> None:
    understood = understand("who wrote it?", HISTORY, Filters(), NAMES)
    assert "LoBCD-GW" in understood.search_text and "[1]" not in understood.standalone
    assert understood.standalone.startswith("who wrote it?")


def test_a_new_question_carries_nothing() -> None:
    question = "What speedup does Mind Dreamer have over DreamerV3 on continuous control tasks?"
    assert understand(question, HISTORY, Filters(), NAMES).search_text == question


def test_asked_for_others_the_papers_cited_are_left_out() -> None:
    assert understand("any other papers besides that one?", HISTORY, Filters(), NAMES).exclude == ("lobcd-paper",)
    assert understand("who wrote it?", HISTORY, Filters(), NAMES).exclude == ()


@pytest.mark.parametrize(
    ("question", "intent"),
    [
        ("who wrote it?", "authors"),
        ("Who are the authors of the XRPO paper?", "authors"),
        ("这篇论文的作者是谁？", "authors"),
        ("Which year was SOAR published?", "year"),
        ("Where was SOAR presented?", "venue"),
        ("Which category is SOAR in?", "category"),
        ("give me the link", "link"),
        ("What is the link between depth and width?", "explain"),
        ("How many authors does the SOAR paper have?", "authors"),
        ("and who made it?", "authors"),
        ("Who introduced the notion of flatness?", "explain"),
        ("How many papers are there on bandits?", "count"),
        ("list the position papers please", "list"),
        ("Which papers release new benchmarks?", "list"),
        ("Do we have anything on speech recognition?", "list"),
        ("Who else works on bilevel optimisation?", "list"),
        ("Which abstracts report results on GSM8K?", "list"),
        ("papers since 2023", "list"),
        ("everything on diffusion please", "list"),
        ("What's there on graph representations?", "list"),
        ("Any work that goes beyond first-order methods?", "list"),
        ("Does anyone deal with survival data? List them.", "list"),
        ("What did the authors of KnapSpec find about attention?", "explain"),
        ("the authors of KnapSpec?", "authors"),
        ("Which ReID datasets is ReasonAug evaluated on?", "explain"),
        ("How does LU-KV solve the budget allocation?", "explain"),
        ("Whose results depend on the authors' assumption of convexity?", "explain"),
    ],
)
def test_the_kind_of_answer_is_read_from_the_words(question: str, intent: Intent) -> None:
    assert intent_of(question) == intent


LISTED = (
    Turn("user", "Which papers are on video generation?"),
    Turn(
        "assistant",
        "- Gao et al.: LeMiCa caches steps [1].\n- Li et al.: Self-speculation helps [2].\n- Hu et al.: A survey [3].\n",
        ("a", "b", "c"),
    ),
)
ASKED = (Turn("user", "How much speed-up does LeMiCa give?"), Turn("assistant", "LeMiCa is 2.9 times as fast [1].", ("lemica",)))
"""A list, and an answer on one paper."""


@pytest.mark.parametrize(
    ("question", "paper"),
    [
        ("what about the third paper?", "c"),
        ("the second one", "b"),
        ("Does the 2nd need training?", "b"),
        ("the last one", "c"),
        ("who wrote the last of them?", "c"),
        ("and the former?", "a"),
        ("What does the latter show?", "b"),
        ("tell me more about paper 2", "b"),
        ("What does [3] say?", "c"),
        ("那第二篇呢？", "b"),
        ("最后一篇的作者是谁？", "c"),
        ("第3篇需要训练吗？", "c"),
    ],
)
def test_an_ordinal_means_a_paper_of_the_last_answer_that_had_so_many(question: str, paper: str) -> None:
    assert understand(question, LISTED, Filters(), NAMES).filters.paper_ids == (paper,)
    meanwhile = (*LISTED, Turn("user", "what about the third one?"), Turn("assistant", "It is a survey [1].", ("c",)))
    assert understand(question, meanwhile, Filters(), NAMES).filters.paper_ids == (paper,)


@pytest.mark.parametrize(
    ("question", "papers"),
    [
        ("compare the first and the third", ("a", "c")),
        ("who wrote the first two?", ("a", "b")),
        ("How do the last two differ?", ("b", "c")),
        ("前两篇的作者是谁？", ("a", "b")),
        ("who wrote them?", ("a", "b", "c")),
    ],
)
def test_several_papers_of_a_list_can_be_meant(question: str, papers: tuple[str, ...]) -> None:
    assert understand(question, LISTED, Filters(), NAMES).filters.paper_ids == papers
    assert means_several(question)


@pytest.mark.parametrize(
    "question",
    [
        "Which is the first paper to show this?",
        "Who is the first author of XRPO?",
        "What is the second moment of the noise?",
        "Does the last layer matter?",
        "Do the first and last layers of XRPO matter?",
        "What does the fifth one show?",
        "Which is the first paper on bandits?",
    ],
)
def test_other_ordinals_and_papers_that_were_not_listed_narrow_nothing(question: str) -> None:
    assert understand(question, LISTED, Filters(), NAMES).filters.paper_ids == ()
    assert understand(question, (), Filters(), NAMES).filters == Filters()


@pytest.mark.parametrize(
    "question", ["the fifth one?", "who wrote the fifth one?", "第五篇呢？", "the tenth one?", "第十篇呢？", "[12]?"]
)
def test_a_place_that_no_answer_has_is_told(question: str) -> None:
    assert understand(question, LISTED, Filters(), NAMES).notice == NOT_LISTED
    assert understand(question, (), Filters(), NAMES).notice == NOT_LISTED
    assert understand("the second one?", LISTED, Filters(), NAMES).notice is None


def test_what_was_said_of_the_paper_pointed_at_is_carried_along_and_nothing_of_others() -> None:
    read = understand("Does the second one need training?", LISTED, Filters(), NAMES)
    assert "Self-speculation helps" in read.search_text and "LeMiCa" not in read.search_text
    assert read.question == "Does the second one need training?"


def test_a_question_that_only_points_asks_what_was_asked_before() -> None:
    history = (*LISTED, Turn("user", "who wrote the first one?"), Turn("assistant", "Gao wrote it [1].", ("a",)))
    for question in ("and the second one?", "what about the second?", "那第二篇呢？"):
        read = understand(question, history, Filters(), NAMES)
        assert (read.intent, read.filters.paper_ids) == ("authors", ("b",))
        assert "first" not in read.question and "the the" not in read.question
    two = (*LISTED, Turn("user", "who wrote the first two?"), Turn("assistant", "Gao and Li [1][2].", ("a", "b")))
    assert understand("and the last one?", two, Filters(), NAMES).question == "who wrote the last?"


@pytest.mark.parametrize(
    ("question", "papers", "intent"),
    [
        ("who wrote it?", ("lemica",), "authors"),
        ("and who are its authors?", ("lemica",), "authors"),
        ("and the authors?", ("lemica",), "authors"),
        ("in which year", ("lemica",), "year"),
        ("When was it published?", ("lemica",), "year"),
        ("where was it published?", ("lemica",), "venue"),
        ("它的作者是谁？", ("lemica",), "authors"),
        ("这篇论文是谁写的？", ("lemica",), "authors"),
        ("哪一年发表的？", ("lemica",), "year"),
        ("Who wrote the paper on Gromov-Wasserstein distances?", (), "authors"),
        ("KnapSpec的作者是谁？", (), "authors"),
        ("Who wrote KnapSpec?", (), "authors"),
    ],
)
def test_a_field_asked_of_nothing_else_is_the_last_paper_s(question: str, papers: tuple[str, ...], intent: Intent) -> None:
    read = understand(question, ASKED, Filters(), NAMES)
    assert (read.filters.paper_ids, read.intent) == (papers, intent)


@pytest.mark.parametrize("question", ["Who is the first author?", "第一作者是谁？"])
def test_a_first_author_is_of_the_paper_spoken_of(question: str) -> None:
    read = understand(question, LISTED, Filters(), NAMES)
    assert (read.filters.paper_ids, read.intent) == (("a",), "authors")


def test_a_field_asked_of_several_is_asked_of_all() -> None:
    assert understand("who wrote them?", LISTED, Filters(), NAMES).filters.paper_ids == ("a", "b", "c")
    assert understand("who wrote it?", LISTED, Filters(), NAMES).filters.paper_ids == ("a",)


@pytest.mark.parametrize(
    ("question", "complete"),
    [
        ("And what about KnapSpec?", "How much speed-up does KnapSpec give?"),
        ("and KnapSpec?", "How much speed-up does KnapSpec give?"),
        ("What about the KnapSpec method then?", "How much speed-up does KnapSpec give?"),
        ("那KnapSpec呢？", "How much speed-up does KnapSpec give?"),
        ("KnapSpec", "How much speed-up does KnapSpec give?"),
        ("does KnapSpec?", "How much speed-up does KnapSpec give?"),
        ("那KnapSpec呢", "How much speed-up does KnapSpec give?"),
        ("How about KnapSpec and SOAR?", "How much speed-up does KnapSpec and SOAR give?"),
    ],
)
def test_a_name_alone_is_asked_what_was_asked_before_and_is_looked_for_by_itself(question: str, complete: str) -> None:
    read = understand(question, ASKED, Filters(), NAMES)
    assert (read.question, read.standalone, read.search_text) == (complete, complete, complete)
    assert read.exclude == () and read.filters == Filters()


def test_names_alone_one_after_the_other_ask_the_first_question() -> None:
    history = (*ASKED, Turn("user", "And KnapSpec?"), Turn("assistant", "KnapSpec reaches 1.47 times [1].", ("knapspec",)))
    assert understand("and SOAR?", history, Filters(), NAMES).question == "How much speed-up does SOAR give?"
    it = (*ASKED, Turn("user", "does it need training?"), Turn("assistant", "No [1].", ("lemica",)))
    assert understand("and SOAR?", it, Filters(), NAMES).question == "does SOAR need training?"


def test_a_name_among_chinese_words_is_replaced() -> None:
    history = (Turn("user", "LeMiCa的加速比是多少？"), Turn("assistant", "2.9 [1].", ("lemica",)))
    assert understand("那SOAR呢？", history, Filters(), NAMES).question == "SOAR的加速比是多少？"


@pytest.mark.parametrize("question", ["what about memory usage?", "And why does KnapSpec work?", "what about training it?"])
def test_an_aspect_or_a_whole_question_is_not_a_name_alone(question: str) -> None:
    assert understand(question, ASKED, Filters(), NAMES).question == question


def test_a_named_question_after_another_carries_nothing_of_it() -> None:
    for question in (
        "Hi, what is SOAR?",
        "OK thanks! Is SOAR fast?",
        "What is SOAR?",
        "And what does SOAR do?",
        "Is SOAR training-free?",
        "SOAR是什么？",
    ):
        assert "LeMiCa" not in understand(question, ASKED, Filters(), NAMES).search_text, question


def test_a_question_about_it_is_not_the_question_before() -> None:
    assert understand("what is it about?", LISTED, Filters(), NAMES).question == "what is it about?"
    assert understand("Great. And who made it?", ASKED, Filters(), NAMES).filters.paper_ids == ("lemica",)
    assert understand("还有别的吗？", LISTED, Filters(), NAMES).question == LISTED[0].content


@pytest.mark.parametrize(
    ("before", "question", "complete"),
    [
        ("Which papers are on video generation?", "and on speech recognition?", "Which papers are on speech recognition?"),
        (
            "Which papers deal with federated learning?",
            "What about image inpainting?",
            "Which papers deal with image inpainting?",
        ),
        ("Do we have anything on bandits?", "And LoRA?", "Do we have anything on LoRA?"),
        ("Which methods need no training?", "and on GRPO", "Which papers are on GRPO?"),
        ("哪些论文研究扩散模型？", "那语音识别呢？", "哪些论文研究语音识别？"),
        ("How much faster is it?", "what about memory usage?", "what about memory usage?"),
        ("Which papers are on bandits?", "And which of them is best?", "And which of them is best?"),
        ("Which papers are on bandits?", "what about their regret?", "what about their regret?"),
    ],
)
def test_a_topic_alone_is_another_topic_to_list_papers_on(before: str, question: str, complete: str) -> None:
    history = (Turn("user", before), Turn("assistant", "- A [1].\n- B [2].", ("a", "b")))
    read = understand(question, history, Filters(), NAMES)
    assert read.question == complete
    assert complete == question or read.search_text == complete


def test_others_are_others_of_the_last_topic() -> None:
    compared = (Turn("user", "compare the first and the second"), Turn("assistant", "A [1]. B [2].", ("a", "b")))
    history = (*LISTED, *compared, Turn("user", "who wrote the first?"), Turn("assistant", "Gao [1].", ("a",)))
    for question in ("any others?", "还有其他相关论文吗？"):
        read = understand(question, history, Filters(), NAMES)
        assert (read.question, read.exclude) == ("Which papers are on video generation?", ("a", "b", "c"))


def test_other_papers_asked_for_without_saying_on_what_are_those_on_the_same() -> None:
    read = understand("any others?", LISTED, Filters(), NAMES)
    assert (read.question, read.exclude) == ("Which papers are on video generation?", ("a", "b", "c"))


def test_another_year_or_venue_alone_is_another_filter() -> None:
    history = (Turn("user", "How many papers are there from 2024?"), Turn("assistant", "3 [1].", ("a",)))
    read = understand("and from 2023?", history, Filters(), NAMES)
    assert (read.counts, read.filters) == (True, Filters(year_min=2023, year_max=2023))
    at_icml = (Turn("user", "Which papers at ICML are on bandits?"), Turn("assistant", "A [1].", ("a",)))
    assert understand("and at NeurIPS?", at_icml, Filters(), NAMES).filters == Filters(venues=("NeurIPS",))


def test_an_unanswered_question_in_between_is_not_what_it_means() -> None:
    history = (*ASKED, Turn("user", "best pizza?"), Turn("assistant", "Not in these papers. The nearest are: Hu et al."))
    read = understand("does it need training?", history, Filters(), NAMES)
    assert "LeMiCa" in read.search_text and "pizza" not in read.search_text


@pytest.mark.parametrize(
    "piece",
    ["and ", "are there ", "how many papers are there ", "the first ", "thanks ", "what about X ", "who ", "那呢", "[1]"],
)
def test_long_questions_take_no_time(piece: str) -> None:
    question = piece * (8000 // len(piece)) + "x"
    history = tuple(turn for _ in range(20) for turn in (Turn("user", question), Turn("assistant", question, ("a", "b"))))
    start = time.perf_counter()
    understand(question, history, Filters(), NAMES)
    understand(f"how many papers {question}", history, Filters(), NAMES)
    understand("and KnapSpec?", history, Filters(), NAMES)
    assert time.perf_counter() - start < 2


def test_tens_of_thousands_of_venues_take_no_time() -> None:
    names = Names(venues=tuple(f"Journal of Things {number}" for number in range(30_000)), categories=())
    start = time.process_time()
    read = understand("papers in journal of things 77 on otters", (), Filters(), names)
    assert read.filters.venues == ("Journal of Things 77",)
    assert time.process_time() - start < 1  # on the event loop; a pattern made of each takes 3 s


@given(st.lists(st.sampled_from(["And KnapSpec?", "the second one?", "others?", "who wrote it?"]), max_size=300))
def test_long_runs_of_follow_ups_can_be_read(questions: list[str]) -> None:
    history = tuple(turn for one in questions for turn in (Turn("user", one), Turn("assistant", "x [1].", ("a",))))
    assert understand("and SOAR?", history, Filters(), NAMES).question


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("thanks", "thanks"),
        ("Thank you so much!", "thanks"),
        ("Great, thanks for your help :)", "thanks"),
        ("谢谢！", "thanks"),
        ("好的，谢谢你", "thanks"),
        ("hello", "greeting"),
        ("Hi there!", "greeting"),
        ("你好", "greeting"),
        ("help", "greeting"),
        ("ok", "nod"),
        ("That's very helpful.", "nod"),
        ("thanks, and what about KnapSpec?", None),
        ("hello world programs", None),
        ("Does it help?", None),
        ("why?", None),
        ("好的算法有哪些？", None),
        ("谢谢，它的作者是谁？", None),
        ("thank " * 5000, None),
    ],
)
def test_words_that_ask_nothing_are_told_apart(words: str, kind: str | None) -> None:
    assert small_talk(words) == kind
    assert (understand(words, ASKED, Filters(), NAMES).search_text == "") is (kind is not None)


@pytest.mark.parametrize(
    ("question", "filters"),
    [
        ("How many papers are there?", Filters()),
        ("how many papers do we have", Filters()),
        ("How many papers are in the library?", Filters()),
        ("How many papers are there from 2024?", Filters(year_min=2024, year_max=2024)),
        ("How many papers were published in 2023?", Filters(year_min=2023, year_max=2023)),
        ("How many papers since 2020 do we have?", Filters(year_min=2020)),
        ("How many papers are there at ICML?", Filters(venues=("ICML",))),
        ("How many ICML papers are there?", Filters(venues=("ICML",))),
        ("How many papers are from ICML?", Filters(venues=("ICML",))),
        ("how many papers from 2023 or later are there", Filters(year_min=2023)),
        ("How many papers are there in Theory?", Filters(categories=("Theory",))),
        ("How many papers are there in Game Theory?", Filters(categories=("Theory · Game Theory",))),
        ("How many papers are in the Optimization category?", Filters(categories=("Optimization",))),
        ("How many papers by Ziniu Li are there since 2021?", Filters(year_min=2021, authors=("Ziniu Li",))),
        ("how many papers has Ziniu Li written?", Filters(authors=("Ziniu Li",))),
        ("一共有多少篇论文？", Filters()),
        ("2024年的论文有几篇？", Filters(year_min=2024, year_max=2024)),
    ],
)
def test_what_is_asked_of_a_number_of_papers_becomes_a_filter(question: str, filters: Filters) -> None:
    read = understand(question, (), Filters(), NAMES)
    assert (read.intent, read.counts, read.filters) == ("count", True, filters)


@pytest.mark.parametrize(
    ("question", "filters"),
    [
        ("Which papers are in Social Aspects?", Filters(categories=("Social Aspects",))),
        ("List all papers from 2024", Filters(year_min=2024, year_max=2024)),
        ("show me the ICML papers since 2020", Filters(year_min=2020, venues=("ICML",))),
        ("papers in the category Game Theory", Filters(categories=("Theory · Game Theory",))),
        ("papers since 2023", Filters(year_min=2023)),
        ("which papers are from ICML?", Filters(venues=("ICML",))),
        ("list ICML papers", Filters(venues=("ICML",))),
        ("2021年以来有哪些论文？", Filters(year_min=2021)),
    ],
)
def test_a_list_of_all_that_pass_a_filter_is_no_search(question: str, filters: Filters) -> None:
    read = understand(question, (), Filters(), NAMES)
    assert (read.intent, read.counts, read.filters) == ("list", True, filters)
    assert not understand("List all papers on bandits since 2020", (), Filters(), NAMES).counts
    assert not understand("List all papers", (), Filters(), NAMES).counts


def test_a_count_may_go_on_with_another_filter() -> None:
    history = (Turn("user", "How many papers are in Theory?"), Turn("assistant", "3 [1].", ("a",)))
    read = understand("and how many in Game Theory?", history, Filters(), NAMES)
    assert (read.counts, read.filters) == (True, Filters(categories=("Theory · Game Theory",)))
    assert intent_of("How many in-context examples are used?") == "explain"


def test_a_count_by_topic_is_said_to_be_none() -> None:
    read = understand("How many papers are there on diffusion?", (), Filters(), NAMES)
    assert not read.counts and read.notice == NOT_BY_TOPIC


@pytest.mark.parametrize("by", ["they", "topic", "each author", "Smith and Jones", "the same author", "him", "authors from MIT"])
def test_a_count_is_exact_only_for_somebody_named(by: str) -> None:
    read = understand(f"How many papers by {by}?", (), Filters(), NAMES)
    assert not read.counts and not read.filters


def test_a_count_by_one_or_another_counts_both() -> None:
    read = understand("How many papers by Smith or Jones?", (), Filters(), NAMES)
    assert (read.counts, read.filters) == (True, Filters(authors=("Smith", "Jones")))
    assert understand("How many papers by He Kaiming?", (), Filters(), NAMES).filters == Filters(authors=("He Kaiming",))


def test_years_named_backwards_are_the_same_years() -> None:
    assert read_filters("rates from 2024 to 2020", NAMES)[0] == Filters(year_min=2020, year_max=2024)


def test_a_count_of_years_that_no_paper_has_keeps_them() -> None:
    read = understand("How many papers are there from 2024?", (), Filters(), Names(has_years=False))
    assert read.counts and read.filters == Filters(year_min=2024, year_max=2024)


@pytest.mark.parametrize(
    ("question", "place"), [("who wrote the tenth one?", 10), ("who wrote [12]?", 12), ("第12篇的作者是谁？", 12)]
)
def test_papers_far_down_a_long_list_can_be_meant(question: str, place: int) -> None:
    listed = (Turn("user", "papers on bandits"), Turn("assistant", "A list.", tuple(f"p{n}" for n in range(1, 13))))
    assert understand(question, listed, Filters(), NAMES).filters.paper_ids == (f"p{place}",)
