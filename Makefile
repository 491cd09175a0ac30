# Every target sets up its own virtual environment first; nothing has to be installed by hand.
PYTHON ?= python3
VENV   ?= .venv
BIN     = $(VENV)/bin
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test test-slow lint types unit coverage docs note bench clean

demo: $(VENV)/.demo          ## learning curves by theory and simulation: a figure and a table
	$(BIN)/giantsteps demo --overwrite

test: lint types unit        ## everything that must pass before a change lands

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

# One worker per core, one BLAS thread per worker; a file's tests share its fixtures.
unit: $(VENV)/.dev
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile
	OPENBLAS_CORETYPE=Prescott OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
		$(BIN)/python -m pytest -n auto tests/golden

test-slow: $(VENV)/.dev      ## the tests that take minutes
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist loadfile -m slow

coverage: $(VENV)/.dev       ## the share of lines that the default tests reach
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m coverage run -m pytest -n auto --dist loadfile
	$(BIN)/python -m coverage combine --quiet
	$(BIN)/python -m coverage report

bench: $(VENV)/.dev          ## speed of theory and simulation; benchmarks/README.md has the others
	$(BIN)/python benchmarks/equivalent.py
	$(BIN)/python benchmarks/engine.py

note: $(VENV)/.docs          ## the theory as a PDF, in docs/_build/note; needs LaTeX (Debian: texlive-xetex latexmk)
	$(BIN)/sphinx-build -q -b latex -D plot_gallery=0 -D suppress_warnings=image.not_readable docs docs/_build/note
	@if command -v latexmk > /dev/null; then $(MAKE) -C docs/_build/note; \
	else echo "latexmk was not found: docs/_build/note has the LaTeX source, no PDF was made"; fi

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
