# Everything a person types. Needs make and Python 3.11 or newer, nothing else.
SHELL := /bin/sh
FITS := -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do $$p $(FITS) && echo $$p && break; done)
VENV := .venv
RUN := $(VENV)/bin/python
FAULTS ?= full
CLIENTS ?= all
RELEASE := var/release
EXTRAS := analytics daphne docs otel s3 sentry
PIP := $(RUN) -m pip --quiet --quiet --disable-pip-version-check install
# Every pin of some files, by two pips at once, because one uses one core; then what this Python and system
# need besides the pins, which are those of Python 3.11.7 on Linux.
half = grep -hv '^-r' $(1) | sed -n '$(2)' | $(PIP) --no-deps -r /dev/stdin
install = { $(call half,$(1),p;n) & $(call half,$(1),n;p) && wait $$!; } && $(PIP) $(1:%=-r %)

.DEFAULT_GOAL := help
.PHONY: help up dev test clients faults hostile lint bench docs wheel sbom audit pins clean

help: ## Show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | while IFS='	' read -r name words; do printf 'make %-7s %s\n' "$$name" "$$words"; done

up: $(VENV)/.base ## Start Parley with everything it needs (PORT=8000 HOST=127.0.0.1); Ctrl-C stops it
	@exec $(RUN) manage.py up

dev: $(VENV)/.dev ## Install what tests, linters and documentation need

test: $(VENV)/.dev ## Run all tests on all cores (ARGS= goes to pytest: ARGS=-n0 for one process)
	@$(RUN) -m pytest --hypothesis-profile=all $(ARGS)

clients: $(VENV)/.dev ## Run every real client, also the heavy ones (CLIENTS=record keeps what those send)
	@CLIENTS=$(CLIENTS) $(RUN) -m pytest tests/clients $(ARGS)

faults: $(VENV)/.dev ## Kill, stop and cut off real processes, in full: about an hour (FAULTS=bounded: minutes)
	@FAULTS=$(FAULTS) $(RUN) -m pytest tests/faults -n0 -m faults $(ARGS)

hostile: $(VENV)/.dev ## Attack a server with hostile input, in full: about an hour
	@$(RUN) -m pytest tests/hostile -n0 --hypothesis-profile=hostile $(ARGS)

lint: $(VENV)/.dev ## Check style, format, types, who may import whom, new migrations, and the licences of all packages
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@DATABASE_URL=postgresql:///unused $(VENV)/bin/mypy .
	@$(VENV)/bin/lint-imports --no-cache
	@DATABASE_URL=postgresql:///unused $(RUN) -m tests.support.migration_lint
	@$(VENV)/bin/pip-licenses --python=$(RUN) >/dev/null

bench: $(VENV)/.dev ## Measure latency and throughput on this machine (ARGS= goes to the load client)
	@$(RUN) -m benchmarks $(ARGS)

docs: $(VENV)/.docs ## Serve the documentation at http://127.0.0.1:8001, and again after each change
	@echo 'The documentation is at http://127.0.0.1:8001. Ctrl-C stops it.'
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs --quiet serve --dev-addr 127.0.0.1:8001

wheel: $(RELEASE)/.done ## Build the package for pip and pipx: var/dist
	@$(RELEASE)/bin/python -m build --outdir var/dist . >var/wheel.log 2>&1 || { cat var/wheel.log; exit 1; }
	@ls var/dist/*

sbom: $(RELEASE)/.done ## Write the software bill of materials (CycloneDX): var/sbom.json
	@$(RELEASE)/bin/cyclonedx-py requirements --pyproject pyproject.toml --output-file var/sbom.json requirements/base.txt

audit: $(RELEASE)/.done ## Ask the public database of vulnerabilities about every pinned version
	@for pins in base analytics daphne otel s3 sentry; do \
		$(RELEASE)/bin/pip-audit --no-deps --disable-pip --progress-spinner off -r requirements/$$pins.txt || exit 1; done

pins: ## Resolve requirements/*.in anew and write the exact versions
	@rm -rf var/pins && mkdir -p var && $(PYTHON) -m venv var/pins
	@var/pins/bin/pip --quiet --quiet install -r requirements/base.in
	@var/pins/bin/pip freeze > requirements/base.txt
	@cp requirements/base.txt var/pinned.txt
	@for extra in $(EXTRAS); do \
		rm -rf var/pins && $(PYTHON) -m venv var/pins && \
		var/pins/bin/pip --quiet --quiet install -r requirements/base.txt && \
		var/pins/bin/pip --quiet --quiet install -c var/pinned.txt -r requirements/$$extra.in && \
		var/pins/bin/pip freeze | grep -vxFf requirements/base.txt > requirements/$$extra.txt && \
		cat requirements/$$extra.txt >> var/pinned.txt || exit 1; \
	done
	@var/pins/bin/pip --quiet --quiet install -c var/pinned.txt -r requirements/dev.in
	@{ echo '-r base.txt'; printf -- '-r %s.txt\n' $(EXTRAS); \
		var/pins/bin/pip freeze --all --exclude pip | grep -vxFf var/pinned.txt; } > requirements/dev.txt
	@for file in requirements/release.in requirements/clients/*.in; do \
		rm -rf var/pins && $(PYTHON) -m venv var/pins && var/pins/bin/pip --quiet --quiet install -r $$file && \
		var/pins/bin/pip freeze > $${file%.in}.txt || exit 1; \
	done
	@rm -rf var/pins var/pinned.txt

clean: ## Remove the caches and .venv; what is under var/ (the data) stays
	@rm -rf $(VENV) build parley.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo 'Parley needs Python 3.11 or newer with its venv module (on Debian: apt-get install python3-venv). Name one with PYTHON=.' >&2; exit 1; }
	@$(PYTHON) $(FITS) || { echo 'PYTHON=$(PYTHON) is not Python 3.11 or newer with its venv module.' >&2; exit 1; }
	@echo 'Making $(VENV) …'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.base: requirements/base.txt | $(VENV)/bin/python
	@echo 'Installing packages …'
	@$(call install,requirements/base.txt)
	@touch $@

$(VENV)/.docs: requirements/docs.txt $(VENV)/.base
	@$(call install,requirements/docs.txt)
	@touch $@

$(VENV)/.dev: requirements/dev.txt requirements/oracle.txt $(EXTRAS:%=requirements/%.txt) $(VENV)/.base
	@echo 'Installing packages for tests, linters and documentation (over 1 GB, some minutes) …'
	@$(call install,requirements/dev.txt $(EXTRAS:%=requirements/%.txt))
	@$(PIP) --no-deps -r requirements/oracle.txt
	@touch $@

$(RELEASE)/.done: requirements/release.txt
	@mkdir -p var && $(PYTHON) -m venv --clear $(RELEASE)
	@$(RELEASE)/bin/pip --quiet --quiet --disable-pip-version-check install -r requirements/release.txt
	@touch $@
