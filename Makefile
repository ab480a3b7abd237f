# llmshed: `make help` lists the targets. Everything is installed into .venv; nothing else on the machine changes,
# except that `make test` installs mandoc and promtool from Debian where it may (root, apt).
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
CONFIG ?= llmshed.toml

.DEFAULT_GOAL := help

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

$(VENV)/.installed-run: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.installed-run
	$(BIN)/python -m pip install --quiet --editable '.[dev,fast,clients]'
	@touch $@

serve: $(VENV)/.installed-run ## start the gateway on 127.0.0.1:8080 in front of a simulated replica
	$(BIN)/llmshed serve --config $(CONFIG)

debian-tools:
	@command -v mandoc >/dev/null && command -v promtool >/dev/null || sh tests/debian_tools.sh

test: $(VENV)/.installed-dev debian-tools ## everything that must hold for a change to land
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m "not slow and not soak"
	$(PYTEST) -m "slow and not soak"

lint: $(VENV)/.installed-dev ## ruff and mypy, nothing else
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

soak: $(VENV)/.installed-dev ## the long runs: minutes to hours, bounded
	$(PYTEST) -m soak --timeout 3600

bench: $(VENV)/.installed-dev ## figures, as ratios in one run
	$(BIN)/python bench/run.py

man: $(VENV)/.installed-run ## check the manual pages and show the first
	mandoc -T lint -W warning man/*.[157]
	$(BIN)/llmshed man

.PHONY: help serve debian-tools test lint soak bench man
