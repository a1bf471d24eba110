"""An evaluation asks a library of its own or a copy, and knows its gold papers by any of their names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from eval.question_set import Question, pid, with_pids
from eval.shelves import home_of, open_copy, open_papers
from rag.build import Library
from rag.errors import InputError
from rag.settings import Settings

ABSTRACTS = {name: f"{name.capitalize()} are counted before sleep. All of them are white." for name in ("sheep", "goats", "cows")}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("data")


@pytest.fixture(scope="module")
def papers(data: Path) -> Path:
    file = data / "papers.jsonl"
    rows = [{"id": f"file-{name}", "title": name, "abstract": abstract} for name, abstract in ABSTRACTS.items()]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf8")
    return file


@pytest.fixture(scope="module")
def library(data: Path, papers: Path) -> Iterator[Library]:
    with open_papers(Settings(data=data), [papers], None, lambda step: None) as opened:
        yield opened


def test_a_library_of_files_is_made_apart_from_the_person_s_own(library: Library, data: Path) -> None:
    assert library.settings.data.is_relative_to(home_of(Settings(data=data)))
    assert not (data / "catalogue.db").exists()
    assert library.catalogue.count() == 3


def test_the_same_files_are_not_embedded_twice(library: Library, data: Path, papers: Path) -> None:
    revision = library.catalogue.revision()
    with open_papers(Settings(data=data), [papers], None, lambda step: None) as again:
        assert again.settings.data == library.settings.data and again.catalogue.revision() == revision


def test_files_without_papers_are_an_error(data: Path, tmp_path: Path) -> None:
    (tmp_path / "notes.md").write_text("nothing here", encoding="utf8")
    with pytest.raises(InputError):
        open_papers(Settings(data=data), [tmp_path], None, lambda step: None)


def test_a_copy_has_the_papers_and_leaves_the_library_as_it_is(library: Library, tmp_path: Path) -> None:
    before = (library.settings.data / "catalogue.db").read_bytes()
    with open_copy(library.settings, tmp_path / "copy") as copy:
        assert copy.catalogue.count() == 3 and copy.settings.data == tmp_path / "copy"
        copy.catalogue.remove([paper.paper_id for paper in copy.catalogue.list(limit=1)])
        assert copy.catalogue.count() == 2
    assert library.catalogue.count() == 3
    assert (library.settings.data / "catalogue.db").read_bytes() == before


def test_what_cannot_be_copied_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--papers"):
        open_copy(Settings(data=tmp_path), tmp_path / "copy")
    with pytest.raises(InputError, match="--papers"):
        open_copy(Settings(data=tmp_path, database_url="postgresql://x"), tmp_path / "copy")


def test_gold_is_named_by_hash_by_paper_id_or_by_the_file_s_own_name(library: Library) -> None:
    wanted = pid(ABSTRACTS["goats"])
    paper_id = next(paper.paper_id for paper in library.catalogue.list() if paper.title == "goats")
    asked = [Question(id=str(n), question="x", gold=(name,)) for n, name in enumerate((wanted, paper_id, "file-goats"))]
    found, missing = with_pids(asked, library)
    assert [one.gold for one in found] == [(wanted,)] * 3 and missing == []


def test_a_gold_paper_that_is_not_there_is_named_and_a_wrong_library_refused(library: Library) -> None:
    good, bad = (Question(id=name, question="x", gold=(name,)) for name in (pid(ABSTRACTS["cows"]), "0123456789"))
    assert with_pids([good, bad], library)[1] == ["0123456789"]
    with pytest.raises(InputError, match="no gold paper"):
        with_pids([bad], library)
