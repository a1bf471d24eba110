"""The README promises only what is there: its settings, its commands with their options, its make targets."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from typer import Context
from typer.core import TyperGroup
from typer.main import get_command

from footnote import app
from rag.settings import PREFIX, Settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf8")
BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.DOTALL | re.MULTILINE)


def code() -> list[str]:
    """Every line of code and every piece of inline code in the README."""
    lines = [line.split("#")[0] for block in BLOCK.findall(README) for line in block.splitlines()]
    return lines + re.findall(r"`([^`\n]+)`", BLOCK.sub("", README))


COMMANDS = sorted({line[line.index("footnote ") :].strip() for line in code() if re.search(r"(^|[ /])footnote [a-z]", line)})


def test_the_settings_table_lists_every_setting_and_no_other() -> None:
    listed = re.findall(rf"^\| `({PREFIX}\w+)`", README, re.MULTILINE)
    assert sorted(listed) == sorted(PREFIX + name.upper() for name in Settings.model_fields)


def test_settings_named_anywhere_in_the_readme_exist() -> None:
    known = {PREFIX + name.upper() for name in Settings.model_fields}
    assert set(re.findall(rf"{PREFIX}[A-Z_]+", README)) <= known


@pytest.mark.parametrize("line", COMMANDS)
def test_a_command_in_the_readme_exists_with_its_options(line: str) -> None:
    group = get_command(app)
    words = line.split()[1:]
    while words and isinstance(group, TyperGroup):
        command = group.get_command(Context(group), words.pop(0))
        assert command is not None, line
        group = command
    options = {option for parameter in group.params for option in parameter.opts}
    assert {word for word in words if re.match(r"-{1,2}\w", word)} <= options, line


def test_the_readme_shows_commands() -> None:
    assert len(COMMANDS) > 8


def test_make_targets_in_the_readme_exist() -> None:
    named = {match for line in code() for match in re.findall(r"^make (\w+)", line)}
    assert named >= {"demo", "test"}
    assert named <= set(re.findall(r"^(\w+):", MAKEFILE, re.MULTILINE))


def test_the_two_commands_come_before_everything_else() -> None:
    assert re.findall(r"^make \w+", README, re.MULTILINE)[:2] == ["make demo", "make test"]
    assert README.index("make demo") < README.index("\n## ")
