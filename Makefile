# Each target does all of its own set-up; a virtual environment is kept per lock file.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
STAMP   = $(VENV)/.ready-$(shell cat pyproject.toml requirements.lock | cksum | cut -d' ' -f1)

.PHONY: demo test sweep lint check docs format bench test-agents clean

$(STAMP):
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	rm -f $(VENV)/.ready-* && touch $@

demo: $(STAMP)
	$(BIN)/rondel demo

test: $(STAMP)
	$(BIN)/python tests/vendors/install.py
	$(BIN)/python -m pytest -n 2

# Every point of every kill sweep, many in one session, and all kills by time, where `make test` takes a share.
sweep: export RONDEL_SWEEP = 1
sweep: $(STAMP)
	$(BIN)/python -m pytest -n 2 -m sweep

test-agents: export RONDEL_VENDORS ?= claude,codex,gemini,opencode
test-agents: $(STAMP)
	$(BIN)/python tests/vendors/install.py
	$(BIN)/python -m pytest -n 2 -m agents

lint: $(STAMP)
	$(BIN)/ruff format --check src tests bench tools examples
	$(BIN)/ruff check src tests bench tools examples
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/vulture

check: lint test

docs: $(STAMP)
	$(BIN)/python tools/docs.py

format: $(STAMP)
	$(BIN)/ruff format src tests bench tools examples
	$(BIN)/ruff check --fix src tests bench tools examples

bench: $(STAMP)
	$(BIN)/python bench/run.py $(BENCH)

clean:
	rm -rf $(VENV) .cache build dist
