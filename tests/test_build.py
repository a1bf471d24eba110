"""A library put together from settings: what is opened, what is loaded, and that it is left to others."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from rag.build import Library, make_llm, open_library
from rag.errors import CatalogueUnavailable, SettingsError
from rag.ingest import Source
from rag.settings import Settings
from rag.types import RawPaper, Rejected
from tests.index.papers import about, first_sentence

ROOT = Path(__file__).parents[1]


def source(*papers: RawPaper) -> Source:
    """A source of these papers."""

    def read() -> Iterator[RawPaper | Rejected]:
        return iter(papers)

    return Source("test", read)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(data=tmp_path / "new" / "library")


def found(library: Library, n: int) -> bool:
    """Whether the n-th paper is the first that either index finds by its first sentence."""
    paper_id = library.catalogue.resolve(f"10.5555/paper.{n}")
    vector = library.embedder.embed_question(first_sentence(n))
    by_meaning, by_words = library.indexes.dense.search(vector, 1), library.indexes.keyword.search(first_sentence(n), 1)
    return [by_meaning[0][0], by_words[0][0]] == [paper_id, paper_id]


def test_papers_that_were_taken_are_found_also_after_opening_it_again(settings: Settings) -> None:
    with open_library(settings) as library:
        report = library.ingest([source(about(1), about(2))])
        assert (report.added, report.indexed, report.revision) == (2, True, 1)
        assert found(library, 1)
        assert library.not_ready() is None
    with open_library(settings) as library:
        assert library.ingest([source(about(2))]).unchanged == 1
        assert found(library, 2)


def test_closing_leaves_the_indexes_to_others_in_the_same_moment(settings: Settings) -> None:
    with open_library(settings) as first:
        first.ingest([source(about(1))])
        assert found(first, 1)
    with open_library(settings) as second:
        assert second.indexes.searched() == 1
        assert {state.holder for state in second.indexes.check()} == {None}
        second.indexes.reindex()


def test_what_only_reads_the_catalogue_loads_nothing_heavy(settings: Settings) -> None:
    code = (
        "import sys; from pathlib import Path; from rag.build import open_library; from rag.settings import Settings\n"
        "with open_library(Settings(data=Path(sys.argv[1]))) as library:\n"
        "    assert library.catalogue.list() == []\n"
        "heavy = {'chromadb', 'llama_index', 'openai'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code, str(settings.data)], cwd=ROOT, check=True)


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"chroma_url": "chroma:8000"}, SettingsError, "FOOTNOTE_CHROMA_URL"),
        ({"database_url": "mysql://host/name"}, SettingsError, "FOOTNOTE_DATABASE_URL"),
        ({"data": "/dev/null/library"}, CatalogueUnavailable, "--data"),
        ({"embedding": "openai"}, SettingsError, "FOOTNOTE_EMBEDDING"),
    ],
)
def test_what_cannot_be_opened_says_which_setting_to_mend(
    given: dict[str, str], error: type[Exception], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(error, match=said):
        open_library(Settings(**({"data": tmp_path} | given)))  # type: ignore[arg-type]  # pydantic checks the values


def test_without_a_model_or_a_key_there_is_no_llm(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert make_llm(settings) is None


def test_with_openais_key_alone_its_own_model_answers(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    llm = make_llm(settings)
    assert llm is not None
    assert llm.model.startswith("gpt-")
