"""What language models write, as pieces for hypothesis to put together: every form of marker, and what looks like one."""

from __future__ import annotations

from hypothesis import strategies as st

PIECES = (
    *("A", "FedLPA works", "et al", "e.g", "i.e", "the", "The ", "Next one ", "3.5", "x", "中文", "方法", "2024", "(2024)"),
    *(" ", "  ", ".", ". ", "? ", "!", "…", ":", "。", "，", '"', "“", "”", "’", "\n", "\n\n", "\n  "),
    *(
        "[1]",
        "[2]",
        "[9]",
        "[1,2]",
        "[1-3]",
        "[[2]]",
        "【1】",
        "【1†source】",
        "［1］",
        "[1，2]",
        "([1])",
        "[0]",
        "[0, 1]",
        "[^1]",
        "[1]–[3]",
        "[1] to [2]",
        '"x [1]."',
    ),
    *("–", "-", " to ", " through ", "至"),
    *("[", "]", "(", ")", "【", "`", "```", "```py\n", "$", "$x[1]$", "$5", "$$", "\\", "\\(", "\\)", "\\[", "\\]"),
    *("[a](b)", "[1](http://x.y)", "http://a.b", "**", "*", "_", "#", "## ", "- ", "1. ", "> ", "|"),
    *("Sources:", "Sources", "References\n", "reference", "参考文献：", "来源", "\ue000", "\uf000"),
)

model_texts = st.lists(st.sampled_from(PIECES), max_size=25).map("".join)
