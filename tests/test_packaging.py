"""An installed Footnote has all that a checkout has: prompts, the web page, sample papers, weights."""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
PARTS = ("rag", "api", "eval", "prompts")


def test_the_wheel_holds_every_file_of_the_packages(tmp_path: Path) -> None:
    for part in PARTS:
        shutil.copytree(ROOT / part, tmp_path / part, ignore=shutil.ignore_patterns("__pycache__"))
    for file in ("footnote.py", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / file, tmp_path / file)
    wanted = {str(path.relative_to(tmp_path)) for part in PARTS for path in (tmp_path / part).rglob("*") if path.is_file()}
    build = "import setuptools.build_meta as backend; backend.build_wheel('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=tmp_path, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("footnote-*.whl")
    held = set(zipfile.ZipFile(wheel).namelist())
    assert wanted | {"footnote.py"} <= held
    assert "rag/samples/papers.txt" in held
