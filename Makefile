# Two commands for a stranger: `make demo` and `make test`. Each sets up all it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo test lint types unit fuzz bench experiments docs wheel clean help

help:            ## list the commands
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'

$(VENV)/pyvenv.cfg:
	@$(PYTHON) -c 'import sys; sys.exit("toprank needs Python 3.11 or later, this is " + sys.version) if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.user: pyproject.toml | $(VENV)/pyvenv.cfg
	$(PIP) install --quiet --editable '.[cpu]'
	@touch $@

$(VENV)/.developer: pyproject.toml | $(VENV)/pyvenv.cfg
	$(PIP) install --quiet --editable '.[cpu,dask,dev]'
	@touch $@ $(VENV)/.user

$(VENV)/.bench: pyproject.toml | $(VENV)/pyvenv.cfg
	$(PIP) install --quiet --editable '.[cpu,dask,bench]'
	@touch $@ $(VENV)/.user

$(VENV)/.docs: pyproject.toml | $(VENV)/pyvenv.cfg
	$(PIP) install --quiet --editable '.[cpu,docs]'
	@touch $@ $(VENV)/.user

demo: $(VENV)/.user            ## run the main job on built-in data, write the report
	$(BIN)/toprank demo --out demo-report

test: lint types unit            ## lint, types and all tests

lint: $(VENV)/.developer            ## ruff: format and lint
	$(BIN)/ruff format --check src tests benchmarks experiments examples
	$(BIN)/ruff check src tests benchmarks experiments examples

types: $(VENV)/.developer            ## mypy on the library
	$(BIN)/mypy

unit: $(VENV)/.developer            ## all tests
	OMP_WAIT_POLICY=passive $(BIN)/python -m pytest -q -n 2 --dist worksteal

fuzz: $(VENV)/.developer            ## tens of thousands of mutated model files and hostile tables
	$(BIN)/python tests/hardening/fuzz.py --cases 20000 --tables 4000 --record
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=.bounds $(BIN)/python -m pytest -q -n 2 tests/test_ranking.py \
	  tests/metrics/test_metric_kernels.py tests/pairs tests/objectives tests/test_binning.py

bench: $(VENV)/.bench            ## the bars of speed and memory, ours with the yardsticks
	$(BIN)/python -m benchmarks

experiments: $(VENV)/.bench            ## list the experiments, or go on with one: make experiments NAME=sgbap
	$(BIN)/python -m experiments $(NAME) $(OPTIONS)

docs: $(VENV)/.docs            ## the manual in docs/_build; what it shows is run
	$(BIN)/sphinx-build -W -q -b html docs docs/_build

wheel: $(VENV)/.developer            ## build the wheel
	$(BIN)/python -m build --wheel

clean:            ## remove the environment and all that was built
	rm -rf $(VENV) build dist docs/_build docs/api docs/examples docs/results docs/changelog.md .pytest_cache .mypy_cache .ruff_cache .bounds demo-report
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
