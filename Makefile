# Every target sets itself up: .venv is made from requirements.lock, and made anew only when that or pyproject.toml changes.
# torch has a file of its own: it comes from different places with different hashes, and pip checks all hashes or none.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
# Programs that look at the environment from outside, and must not be part of it.
TOOLS := .venv-tools/.ready
# One process per core; the tests of a file share its fits, so they stay together.
TESTS := --numprocesses=auto --dist=loadfile
# In continuous integration the same run measures which lines it runs, and fails below the floor in pyproject.toml.
COVERAGE := $(if $(filter true,$(CI)),--cov --cov-report=term:skip-covered)

.DEFAULT_GOAL := help
.PHONY: help demo test lint format bench bench-scale fuzz lock hashes sbom audit clean

help:  ## Show what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock requirements-torch.lock pyproject.toml paper/pyproject.toml
	@echo "Setting up .venv from requirements.lock (once; a minute or two) ..."
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "wgcn needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes --no-deps -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements-torch.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable paper
	@touch $@

demo: $(READY)  ## Train on the documentation of numpy, scipy and scikit-learn, beside a linear SVM, and show what comes of it
	@$(BIN)/wgcn-paper demo

test: $(READY)  ## Run the tests; those on the benchmark data need WGCN_DATA, and are skipped without
	@$(BIN)/python -m pytest $(TESTS) $(COVERAGE)

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

fuzz: $(READY)  ## Damage saved models, graphs, checkpoints, results and projects, and use them (20,000 times; more: python -m benchmarks.fuzz --help)
	@$(BIN)/python -m benchmarks.fuzz
	@$(BIN)/python -m benchmarks.large

lock: pyproject.toml  ## Resolve the newest versions that fit pyproject.toml into requirements.lock, with their hashes
	@rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock
	@.venv-lock/bin/python -m pip install --quiet -r requirements-torch.lock --editable '.[dev]' --editable 'paper[fasttext,static]'
	@.venv-lock/bin/python -m pip freeze --exclude-editable --exclude torch | grep -Ev '^(nvidia|cuda|triton)' > .venv-lock/pinned.txt
	@$(MAKE) --no-print-directory hashes PINNED=.venv-lock/pinned.txt && rm -rf .venv-lock

hashes: $(TOOLS)
	@.venv-tools/bin/uv pip compile --quiet --no-deps --universal --python-version 3.11 --generate-hashes --no-header --no-annotate $(PINNED) > requirements.lock.new
	@{ grep '^#' requirements.lock; cat requirements.lock.new; } > requirements.lock.both
	@mv requirements.lock.both requirements.lock && rm requirements.lock.new

$(TOOLS):
	@rm -rf .venv-tools && $(PYTHON) -m venv .venv-tools
	@.venv-tools/bin/python -m pip install -qq --disable-pip-version-check 'uv>=0.9' 'cyclonedx-bom>=7' 'pip-audit>=2.9'
	@touch $@

sbom: $(READY) $(TOOLS)  ## Write the bill of materials of the environment, CycloneDX, to build/sbom.json
	@mkdir -p build
	@.venv-tools/bin/cyclonedx-py environment --output-reproducible --output-format JSON --output-file build/sbom.json $(BIN)/python
	@echo "The bill of materials is in build/sbom.json."

audit: $(TOOLS)  ## Look up known vulnerabilities of the locked packages (needs the network)
	@.venv-tools/bin/pip-audit --progress-spinner off --disable-pip -r requirements.lock
	@.venv-tools/bin/pip-audit --progress-spinner off --disable-pip --no-deps -r requirements-torch.lock

clean:  ## Remove the environment, what was built, and what make demo wrote
	@rm -rf .venv .venv-lock .venv-tools build dist demo .coverage .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
