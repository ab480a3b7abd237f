# llmshed: `make help` lists the targets. Everything is installed into .venv; nothing else on the machine changes,
# except that `make test` installs the Debian packages that it lacks where it may (root, apt).

# The first Python that runs and is new enough; `make PYTHON=/path/to/python3.12 ...` takes another.
PYTHON ?= $(shell for python in python3.11 python3 python3.12 python3.13 python3.14; do \
	  $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$python && break; done)
VENV := .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest
# setuptools warns at length of what every editable install does. What tests need is compiled as it is imported: most of
# it never is, and compiling all takes as long as the rest of the installation.
PIP_INSTALL := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet
CONFIG ?= llmshed.toml
# Each process has one half of the files, so that what files share is made once, and helps the other when it is done.
SHARED := --numprocesses 2 --dist worksteal
# Files whose slow tests bound how long an event loop stands still: they run alone.
TIMED := $(addprefix tests/integration/,test_counting_stall.py test_show_stalls.py)

.DEFAULT_GOAL := help
# All targets share one environment, and pip must not run in it twice at once.
.NOTPARALLEL:

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 10

$(VENV)/.installed-run: pyproject.toml
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer is found; on Debian 12 install the package" \
	  "python3-venv, elsewhere name one: make PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'from ensurepip import version' 2>/dev/null || { echo "make: $(PYTHON) cannot make an environment;" \
	  "on Debian install the package python3-venv" >&2; exit 1; }
	@echo "installing into $(VENV), which takes about a minute"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip
	@$(PIP_INSTALL) --editable .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml $(VENV)/.installed-run
	@echo "installing what tests need into $(VENV)"
	@$(PIP_INSTALL) --no-compile --editable '.[dev,fast,plots,clients,drill]'
	@touch $@

serve: $(VENV)/.installed-run ## start the gateway on 127.0.0.1:8080 in front of a simulated replica
	$(BIN)/llmshed serve --config $(CONFIG)

debian-tools:
	@VENV='$(VENV)' PYTHON='$(PYTHON)' sh tests/debian_tools.sh

test: debian-tools $(VENV)/.installed-dev ## everything that must hold for a change to land
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(PYTEST) -m "not slow and not soak" $(SHARED)
	$(PYTEST) -m "slow and not soak" $(SHARED) $(TIMED:%=--ignore=%)
	$(PYTEST) -m "slow and not soak" $(TIMED)

lint: $(VENV)/.installed-dev ## ruff and mypy, nothing else
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

soak: $(VENV)/.installed-dev ## the long runs: minutes to hours, bounded; tells at the end what was skipped
	$(PYTEST) -m soak --timeout 3600 -rs

bench: $(VENV)/.installed-dev ## figures, as ratios in one run
	$(BIN)/python bench/run.py

dataplane: debian-tools $(VENV)/.installed-dev ## CPU and memory beside other proxies: a quarter of an hour
	$(BIN)/python bench/dataplane/run.py

man: $(VENV)/.installed-run ## check the manual pages and show the first
	@command -v mandoc >/dev/null || { echo "make: mandoc is not installed; on Debian: apt install mandoc" >&2; exit 1; }
	mandoc -T lint -W warning man/*.[157]
	$(BIN)/llmshed man

.PHONY: help serve debian-tools test lint soak bench dataplane man
