import pytest
from hypothesis import given
from hypothesis import strategies as st

from rag.numbers import held_values, missing_numbers, stated_numbers, swapped_numbers


@pytest.mark.parametrize(
    ("sentence", "abstract"),
    [
        ("It is 2.7x faster.", "It is 2.7× faster."),
        ("It is 2.7 times faster.", "It is 2.7x faster."),
        ("It reaches 62.95%.", "It reaches 62.95 percent."),
        ("It reaches 70 percent.", "A share of 0.7 is reached."),
        ("A share of 0.7 is reached.", "It reaches 70%."),
        ("It has 1,000 papers.", "It has 1000 papers."),
        ("It has one thousand papers.", "It has 1,000 papers."),
        ("It has 10k papers and 1.5 million words.", "It has 10,000 papers and 1,500,000 words."),
        ("It has two data sets.", "It has 2 data sets."),
        ("Twenty-one patients took part.", "21 patients took part."),
        ("One finds it.", "Found."),
        ("About 63% agree, nearly 3 times as many.", "62.95% agree, 2.9 times as many."),
        ("GPT-4 and ResNet-50 on COVID-19, IL-6, p53, MD17, LLaMA-2-13B and 3D shapes, top-5, pass@1, O(n^2).", "Nothing."),
        ("1. The first of these: (2) it works.", "Nothing."),
        ("Ages 5-10 took part, n=32, p<0.05.", "From 5 to 10 years, n = 32, p < 0.05."),
        ("在70%的情况下快3倍。", "It is 3 times faster in 70% of cases."),
        ("It has 50 layers.", "ResNet-50 is used."),
        ("最多 26 亿个参数，共2万篇，超过 3.5千条。", "Up to 2.6 billion parameters, 20,000 papers and 3,500 entries."),
        ("快1.47倍，约 3 倍的数据。", "It is 1.47x faster, on 2.9 times the data."),
        ("减少了十七倍，三十二个样本，六大类，一千二百篇。", "17 times fewer, 32 samples, six classes, 1200 papers."),
        ("共五十多个模型，百分之三的错误，成功率为百分之百。", "Over 50 models, 3% of errors, a rate of 100%."),
        ("一个方法有两个分支、三维数据和七分之一的成本，第三个、几十个、十分好。", "Nothing."),
    ],
)
def test_a_number_is_found_however_it_is_written(sentence: str, abstract: str) -> None:
    assert missing_numbers(sentence, held_values(abstract)) == ()


@pytest.mark.parametrize(
    ("sentence", "abstract", "missing"),
    [
        ("It is 3.7x faster.", "It is 2.7x faster.", ("3.7",)),
        ("It is faster by a factor of 17.", "It is faster by a factor of 7.", ("17",)),
        ("At 0.1 it gains 6.74%.", "At 0.01 it gains 6.74%.", ("0.1",)),
        ("It has three sets.", "It has 30 sets.", ("three",)),
        ("63% agree.", "62.95% agree.", ("63",)),
        ("About 70% agree.", "62.95% agree.", ("70",)),
        ("It has 2 and 3 and 2.", "Nothing.", ("2", "3")),
        ("Published in 2021.", "Published in 2022.", ("2021",)),
        ("70% agree.", "7 of 100 agree.", ("70",)),
        ("最多 36 亿个参数。", "Up to 2.6 billion parameters and 36 layers.", ("36",)),
        ("快四倍，在九个数据集上，百分之五十的情况下。", "3x on six sets.", ("四", "九", "百分之五十")),
        ("二十七倍", "17 times", ("二十七",)),
    ],
)
def test_a_number_that_is_not_there_is_missed(sentence: str, abstract: str, missing: tuple[str, ...]) -> None:
    assert missing_numbers(sentence, held_values(abstract)) == missing


@pytest.mark.parametrize(
    ("sentence", "abstract", "swapped"),
    [
        ("80% of the widely used ones can.", "60% of widely used models can, with 80% accuracy.", [("80", "60")]),
        ("three synthetic datasets", "one synthetic and three real-world datasets", [("three", "one")]),
        ("It has 3 datasets and 2 models.", "3 datasets, 2 models, 5 of the models were left out.", []),
        ("In 2020 patients were seen.", "30 patients were seen, in 2020.", []),
        ("30 and 90 days", "90 days, 30 patients and 2006 and 7", []),
    ],
)
def test_a_number_that_counts_something_else_is_noticed(sentence: str, abstract: str, swapped: list[tuple[str, str]]) -> None:
    assert list(swapped_numbers(sentence, abstract)) == swapped


@given(
    st.text(max_size=200)
    | st.text("0123456789.,%- xkMeno\u0660²½１", max_size=60)
    | st.text("一二两三十百千万亿第几百分之点个倍多3 ", max_size=40)
)
def test_every_stated_number_is_held_by_its_own_text(text: str) -> None:
    assert missing_numbers(text, held_values(text)) == ()
    assert all(number.written in text for number in stated_numbers(text))
    assert list(swapped_numbers(text, text)) == []
