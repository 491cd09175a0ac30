# Every target sets up its own virtual environment first; nothing has to be installed by hand.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint types unit docs bench clean

demo: $(VENV)/.demo          ## learning curves by theory and simulation: a figure and a table
	$(BIN)/giantsteps demo --overwrite

test: lint types unit        ## everything that must pass before a change lands

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

# One worker a core, one BLAS thread a worker; a file's tests share its fixtures.
unit: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile

docs: $(VENV)/.docs          ## the documentation site, in docs/_build/html
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "giantsteps needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable '.[plot]'
	touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) --editable '.[plot,sweep,cluster,torch,practice,explore,dev]'
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(PIP) --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) docs/_build
