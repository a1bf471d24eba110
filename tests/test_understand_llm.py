from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping

from rag.filters import Names
from rag.protocols import Delta
from rag.types import Filters, Turn, Usage
from rag.understand import understand
from rag.understand_llm import LLMUnderstanding

HISTORY = (Turn("user", "What is FedLPA?"), Turn("assistant", "A method [1].", paper_ids=("p-fedlpa",)))


class StalledLLM:
    """Takes the question and says nothing."""

    model = "stalled"

    def stream(self, system: str, user: str, *, max_tokens: int = 0) -> AsyncGenerator[Delta, None]:
        raise AssertionError("a reading is asked for whole")

    async def complete(
        self, system: str, user: str, *, json_schema: Mapping[str, object] | None = None, max_tokens: int = 0
    ) -> tuple[str, Usage]:
        await asyncio.sleep(30)
        raise AssertionError("nobody waits that long")


async def test_a_stalled_llm_is_not_waited_for_twice() -> None:
    start = time.monotonic()
    read = await LLMUnderstanding(StalledLLM(), patience=0.1).understand("它有多快？", HISTORY, Filters(), Names())
    assert read == understand("它有多快？", HISTORY, Filters(), Names())
    assert time.monotonic() - start < 5
