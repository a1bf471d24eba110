"""Who may import whom, and where each third party lives: two tables and a walk over the imports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

MAY_IMPORT = {
    "rag": {"rag"},
    "api": {"api", "rag"},
    "eval": {"eval", "rag"},
    "footnote": {"rag"},  # it finds their command lines by name when asked for them
}

HOMES = {
    "openai": {"rag/openai_api.py"},
    "chromadb": {"rag/index/chroma.py", "eval/bench_embedding.py"},  # whose own embedding the benchmark runs against
    "tantivy": {"rag/index/keyword.py"},
    "sqlalchemy": {
        "rag/database.py",
        "rag/catalogue.py",
        "rag/catalogue_rows.py",
        "rag/catalogue_writing.py",
        "rag/journal.py",
    },
    "slack_sdk": {"api/slack.py", "api/slack_web.py"},
    "slack_bolt": {"api/slack.py"},
    "llama_index": {"rag/query_engine.py", "rag/retrieve.py", "rag/embedding.py"},
    "onnxruntime": {"rag/embedding.py", "rag/encoder_graph.py"},
    "tokenizers": {"rag/embedding.py", "rag/encoder_graph.py"},
}

SOURCES = [ROOT / "footnote.py", *(path for room in ("rag", "api", "eval") for path in sorted((ROOT / room).rglob("*.py")))]


def imports(path: Path) -> Iterator[str]:
    """The modules a file imports, wherever in it the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield "." * node.level + (node.module or "")


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way_and_third_parties_stay_at_home(path: Path) -> None:
    here = path.relative_to(ROOT).as_posix()
    allowed = MAY_IMPORT[here.split("/")[0].removesuffix(".py")]
    for module in imports(path):
        top = module.split(".")[0]
        assert top, f"{here}: say {module} in full"
        assert top not in MAY_IMPORT or top in allowed, f"{here} may not import {module}"
        assert here in HOMES.get(top, {here}), f"{here}: {top} is used in {', '.join(HOMES[top])} only"
