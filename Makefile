# Two commands matter: `make run` and `make test`. Both work from a bare machine with Python 3.11+, make and a package index.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet

.DEFAULT_GOAL := help
.PHONY: help run test check bench format snapshots lock clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## / \t/' | expand -t 12

run: $(VENV)/.installed ## set up, audit examples/shop, ask two questions, keep serving (ONCE=1: stop after)
	@BIN=$(BIN) ONCE=$(ONCE) sh scripts/run.sh

test: $(VENV)/.dev ## every test (fetches the small model first)
	@$(BIN)/casemate fetch qwen2.5-coder-0.5b cwe attack
	@$(BIN)/python -m pytest

check: $(VENV)/.dev ## format, lint, types, import contracts, budgets, docs; no tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python -m pytest -q tests/house -m "not slow"

bench: $(VENV)/.dev ## the figures of the documentation
	@for figures in command audit knowledge checkpoint plan_memory plan diagnose watch gateway; do echo "== bench/$$figures.py"; $(BIN)/python bench/$$figures.py || exit 1; done

format: $(VENV)/.dev ## rewrite in the house format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

snapshots: $(VENV)/.dev ## refresh the snapshots; the diff is the review
	@$(BIN)/python -m pytest --snapshot-update

lock: $(VENV)/.dev ## renew the two lock files from pyproject.toml
	@$(PIP) install uv
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --no-header --group build pyproject.toml -o requirements.lock
	@$(BIN)/uv pip compile -q --universal --generate-hashes --no-annotate --no-header --group build --group dev pyproject.toml -o requirements-dev.lock

clean: ## remove the environment (fetched artefacts stay in ~/.casemate)
	rm -rf $(VENV)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Casemate needs Python 3.11 or newer, this is $$($(PYTHON) --version): name one with make PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing into $(VENV) (locked, by hash)"
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.installed
	@echo "installing the development tools into $(VENV) (locked, by hash)"
	@$(PIP) install --require-hashes -r requirements-dev.lock
	@touch $@
