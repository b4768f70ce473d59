# Everything sets itself up: the first run makes a virtual environment in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

export PIP_DISABLE_PIP_VERSION_CHECK = 1
export PIP_CONSTRAINT := $(CURDIR)/constraints.txt

.DEFAULT_GOAL := help
.PHONY: help run test check conformance format bench torture clean

help: ## show this list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/.run ## Dittybag with a sample workspace, in your browser (off a terminal: a tour)
	@$(BIN)/dittybag demo $(ARGS)

test: $(VENV)/.dev ## all tests; ARGS are handed on to pytest
	@$(BIN)/python -m tests.interop.environments
	@$(BIN)/python -m tests.programs
	@$(BIN)/python -m tests $(ARGS)

check: $(VENV)/.dev ## format, lint, types, import rules, conformance and all tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	@$(MAKE) --no-print-directory conformance
	@$(MAKE) --no-print-directory test

conformance: $(VENV)/.dev ## the official conformance suite against our engine and against Dittybag, over HTTP
	@$(BIN)/python -m tests.interop.environments conformance
	@$(BIN)/python -m tests.conformance

format: $(VENV)/.dev ## put the code into its format
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## the engine beside others, stores, libraries, HTTP, databases, fleets and pages, as tables
	@$(BIN)/python -m benchmarks.bench_engines $(ARGS)
	@$(BIN)/python -m benchmarks.bench_store $(ARGS)
	@$(BIN)/python -m benchmarks.bench_libraries $(ARGS)
	@$(BIN)/python -m benchmarks.bench_http $(ARGS)
	@$(BIN)/python -m benchmarks.bench_databases $(ARGS)
	@$(BIN)/python -m benchmarks.bench_fleet $(ARGS)
	@$(BIN)/python -m benchmarks.bench_web $(ARGS)

torture: $(VENV)/.dev ## only the tests that try to break things
	$(BIN)/pytest tests/torture $(ARGS)

clean: ## take away everything that was made here
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "error: Dittybag needs Python 3.11 or newer, and $(PYTHON) is older"; \
	    echo "hint: name another one, as in: make PYTHON=python3.12 run"; exit 1; }
	@echo "Making a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing Dittybag ..."
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "Installing the tools for tests and checks ..."
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@
