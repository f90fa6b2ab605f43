# Every target sets itself up: .venv is made from requirements.lock, and made anew only when that or pyproject.toml changes.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# One process per core; the tests of a file share its fits, so they stay together.
TESTS := --numprocesses=auto --dist=loadfile

.DEFAULT_GOAL := help
.PHONY: help demo test coverage lint format bench bench-scale lock clean

help:  ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml paper/pyproject.toml
	@echo "Setting up .venv from requirements.lock (once; a minute or two) ..."
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "wgcn needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable paper
	@touch $@

demo: $(READY)  ## Train on the documentation of numpy, scipy and scikit-learn, beside a linear SVM, and show what comes of it
	@$(BIN)/wgcn-paper demo

test: $(READY)  ## Run the tests; those on the benchmark data need WGCN_DATA, and are skipped without
	@$(BIN)/python -m pytest $(TESTS)

coverage: $(READY)  ## Run the tests and measure which lines they run; fail below the floor in pyproject.toml
	@$(BIN)/python -m pytest $(TESTS) --cov --cov-report=term:skip-covered

lint: $(READY)  ## Check style, types, and that no layer imports from a later one
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

format: $(READY)  ## Format the code
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

bench: $(READY)  ## Measure speed and memory on this machine (an hour or more; some parts: python -m benchmarks --help)
	@$(BIN)/python -m benchmarks

bench-scale: $(READY)  ## Measure text that does not fit into memory (an hour, 40 GB of disk; python -m benchmarks.scale --help)
	@$(BIN)/python -m benchmarks.scale counting
	@$(BIN)/python -m benchmarks.scale fitting

lock: pyproject.toml  ## Resolve the newest versions that fit pyproject.toml into requirements.lock
	@rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install --quiet torch==2.13.0 --editable '.[dev]' --editable 'paper[fasttext,static]'
	@{ grep '^#' requirements.lock; .venv-lock/bin/python -m pip freeze --exclude-editable | sed 's/^torch==\([0-9.]*\).*/torch==\1/'; } > requirements.lock.new
	@mv requirements.lock.new requirements.lock && rm -rf .venv-lock

clean:  ## Remove the environment, what was built, and what make demo wrote
	@rm -rf .venv .venv-lock build dist demo .coverage .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
