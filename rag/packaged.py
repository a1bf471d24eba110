"""Model files that installed packages carry: located without importing the package, and believed only by their SHA-256."""

from __future__ import annotations

import hashlib
import importlib.util
from pathlib import Path

from rag.errors import SettingsError


def package_folder(package: str) -> Path | None:
    """Where the package (named as on PyPI) is installed; None if it is not. Nothing of it runs."""
    found = importlib.util.find_spec(package.replace("-", "_"))
    places = found.submodule_search_locations if found else None
    return Path(places[0]) if places else None


def packaged_file(package: str, file: str, sha256: str) -> bytes:
    """The file's bytes. Raises SettingsError if the package is missing or the file is not the one we know."""
    folder = package_folder(package)
    if folder is None:
        raise SettingsError(f"The embedding model is not installed: pip install {package}")
    path = folder / file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SettingsError(f"{path} cannot be read ({error.strerror}): pip install --force-reinstall {package}") from error
    if hashlib.sha256(content).hexdigest() != sha256:
        raise SettingsError(f"{path} is not the model file it should be: pip install --force-reinstall {package}")
    return content
