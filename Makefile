# The first run of any target creates a virtual environment in .venv and installs what the target needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Relative, because pip splits the variable at spaces.
export PIP_CONSTRAINT := constraints.txt

.DEFAULT_GOAL := help
.PHONY: help run test check static environments programs conformance format bench benchpage torture bugs pictures docs dist bundle containers packages release clean

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

run: $(VENV)/.run ## open a sample workspace in your browser; without a terminal, share a prompt over MCP
	@$(BIN)/dittybag demo $(ARGS)

test: $(VENV)/.dev ## run all tests; ARGS are passed to pytest
	@$(BIN)/python -m tests.interop.environments
	@$(BIN)/python -m tests.programs
	@$(BIN)/python -m tests $(ARGS)

check: $(VENV)/.dev ## check format, lint, types and import rules, then run conformance and all tests
	@$(MAKE) --no-print-directory --jobs=3 --output-sync static environments programs
	@$(MAKE) --no-print-directory conformance
	@$(MAKE) --no-print-directory test

static: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# What the tests need, installed while the types are checked.
environments: $(VENV)/.dev
	@$(BIN)/python -m tests.interop.environments

programs: $(VENV)/.dev
	@$(BIN)/python -m tests.programs

conformance: $(VENV)/.dev ## run the official conformance suite on the engine and on Dittybag, over HTTP
	@$(BIN)/python -m tests.interop.environments conformance
	@$(BIN)/python -m tests.conformance

format: $(VENV)/.dev ## format the code
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## run the benchmarks and print tables; ARGS="--quick", "--long", or the names of some
	@$(BIN)/python -m benchmarks $(ARGS)

benchpage: $(VENV)/.dev ## write the results of the last benchmarks into the pages
	@$(BIN)/python -m benchmarks.report
	@$(BIN)/python -m benchmarks.compared

torture: $(VENV)/.dev ## run only the kill, fault and fuzz tests, with many more repetitions; ARGS names some files
	@TORTURE=1 PGBOUNCER=1 $(BIN)/python -m pytest -o timeout=7200 $(or $(ARGS), \
	    tests/torture $(shell grep -lrE --include='test_*.py' 'tests.repetitions|backend.examples' tests))

bugs: $(VENV)/.dev ## plant known bugs into copies of the source, and check that the tests catch them
	@$(BIN)/python -m tests.torture.plant $(ARGS)

pictures: $(VENV)/.dev ## regenerate the pictures of the documentation
	@$(BIN)/python -m tests.e2e.pictures

docs: $(VENV)/.dev ## build the documentation as a site in site/
	@$(BIN)/python -m website

dist: $(VENV)/.dev ## build the wheel and the source distribution in dist/, and install both with every supported Python
	@$(BIN)/python -m tests.package.distributions
	@INSTALLS=1 $(BIN)/python -m pytest -q -p no:cacheprovider tests/package/test_installation.py

bundle: $(VENV)/.dev ## pack the bundle for desktop clients in dist/
	@$(BIN)/python -m tests.interop.environments mcpb
	@$(BIN)/python -m tests.package.bundle

containers: $(VENV)/.dev ## validate the files in deploy/
	@$(BIN)/python -m tests.programs
	@$(BIN)/python -m tests.fleet.deploy_validators

packages: $(VENV)/.dev ## validate what is published: distributions, registry entry and bundle
	@$(BIN)/python -m tests.interop.environments mcpb
	@$(BIN)/python -m pytest -q -p no:cacheprovider tests/package

release: $(VENV)/.dev ## write a version into all files, commit and tag it; VERSION=0.3.0
	@test -z "$$(git status --porcelain)" || { echo "error: commit or remove what \`git status\` shows"; exit 1; }
	@test -z "$$(git tag --list v$(VERSION))" || { echo "error: the tag v$(VERSION) exists"; exit 1; }
	@$(BIN)/python -m tests.package.versions set "$(VERSION)"
	@git commit --quiet --all --message "release: version $(VERSION)"
	@git tag --annotate --message "Dittybag $(VERSION)" v$(VERSION)
	@echo "To publish it: git push --atomic origin main v$(VERSION)"
	@echo "To undo it: git tag --delete v$(VERSION) && git reset --hard HEAD~1"

clean: ## delete the virtual environment and all caches
	rm -rf $(VENV) site .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	    echo "error: Dittybag needs Python 3.11 or newer; $(PYTHON) is older"; \
	    echo "hint: name another interpreter: make PYTHON=python3.12 run"; exit 1; }
	@echo "Creating a virtual environment in $(VENV) ..."
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "Installing Dittybag ..."
	@$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "Installing development tools ..."
	@$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@
