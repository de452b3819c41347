# Everything a person types. Needs make and Python 3.11 or newer, nothing else.
SHELL := /bin/sh
FITS := -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do $$p $(FITS) && echo $$p && break; done)
VENV := .venv
RUN := $(VENV)/bin/python
FAULTS ?= full
CLIENTS ?= all
PIP := $(RUN) -m pip --quiet --quiet --disable-pip-version-check install

.DEFAULT_GOAL := help
.PHONY: help up test clients faults hostile lint bench pins clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS='	' read -r name words; do printf 'make %-7s %s\n' "$$name" "$$words"; done

up: $(VENV)/.base ## Start Parley with everything it needs (PORT=8000 HOST=127.0.0.1); Ctrl-C stops it
	@exec $(RUN) manage.py up

test: $(VENV)/.dev ## Run all tests on all cores (ARGS= goes to pytest: ARGS=-n0 for one process)
	@$(RUN) -m pytest -n logical --dist loadfile --hypothesis-profile=all $(ARGS)

clients: $(VENV)/.dev ## Run every real client, also the heavy ones (CLIENTS=record keeps what those send)
	@CLIENTS=$(CLIENTS) $(RUN) -m pytest tests/clients -n logical --dist loadfile $(ARGS)

faults: $(VENV)/.dev ## Kill, stop and cut off real processes, in full: about an hour (FAULTS=bounded: minutes)
	@FAULTS=$(FAULTS) $(RUN) -m pytest tests/faults -m faults $(ARGS)

hostile: $(VENV)/.dev ## Attack a server with hostile input, in full: about an hour
	@$(RUN) -m pytest tests/hostile -n0 --hypothesis-profile=hostile $(ARGS)

lint: $(VENV)/.dev ## Check style, format, types and who may import whom
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@DATABASE_URL=postgresql:///unused $(VENV)/bin/mypy .
	@$(VENV)/bin/lint-imports --no-cache

bench: $(VENV)/.dev ## Measure latency and throughput on this machine (ARGS= goes to the load client)
	@$(RUN) -m benchmarks $(ARGS)

pins: ## Resolve requirements/*.in anew and write the exact versions
	@rm -rf var/pins && mkdir -p var && $(PYTHON) -m venv var/pins
	@var/pins/bin/pip --quiet --quiet install -r requirements/base.in
	@var/pins/bin/pip freeze > requirements/base.txt
	@var/pins/bin/pip --quiet --quiet install -c requirements/base.txt -r requirements/dev.in
	@{ echo '-r base.txt'; var/pins/bin/pip freeze --all --exclude pip | grep -vxFf requirements/base.txt; } > requirements/dev.txt
	@rm -rf var/pins
	@for client in requirements/clients/*.in; do \
		rm -rf var/pins && $(PYTHON) -m venv var/pins && var/pins/bin/pip --quiet --quiet install -r $$client && \
		var/pins/bin/pip freeze > $${client%.in}.txt || exit 1; \
	done
	@rm -rf var/pins

clean: ## Remove the caches and .venv; what is under var/ (the data) stays
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo 'Parley needs Python 3.11 or newer with its venv module (on Debian: apt-get install python3-venv). Name one with PYTHON=.' >&2; exit 1; }
	@$(PYTHON) $(FITS) || { echo 'PYTHON=$(PYTHON) is not Python 3.11 or newer with its venv module.' >&2; exit 1; }
	@echo 'Making $(VENV) …'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: requirements/base.txt | $(VENV)/bin/python
	@echo 'Installing packages …'
	@$(PIP) -r requirements/base.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt requirements/analytics.txt requirements/oracle.txt $(VENV)/.base
	@$(PIP) -r requirements/dev.txt -r requirements/analytics.txt
	@$(PIP) --no-deps -r requirements/oracle.txt
	@touch $@
