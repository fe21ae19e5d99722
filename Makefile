# `make` alone prints what there is.
VENV ?= .venv
PYTHON ?= python3
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

SHELL := /bin/bash -o pipefail

# Installs a lock file and says how far it is; pip's own words are for errors, which it prints beside.
define install
	@$(PIP) install --require-hashes -r $(1) | awk -v all=$$(grep -c '^[a-z].*==' $(1)) -v shown=$$([ -t 1 ] && echo 1) '\
		/^(Collecting|Requirement already)/ { n++; if (shown) printf "\r  package %d of at most %d", n, all; fflush() } \
		/^Installing/ { if (shown) printf "\r"; printf "  installing %d packages        \n", n; fflush() } \
		END { if (shown) print "" }'
endef

.DEFAULT_GOAL := help
.PHONY: help setup demo up test real faults faults-full worst check format bench pairwise worked attacks replies mutants held broker screenshots lock clean

help:  ## print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(VENV)/.setup: requirements.lock pyproject.toml
	@echo "setting up $(VENV) (once; a minute or two)"
	@$(PYTHON) -m venv $(VENV)
	$(call install,requirements.lock)
	@$(PIP) install --quiet --no-deps -e .
	@touch $@

$(VENV)/.develop: requirements-dev.lock $(VENV)/.setup
	@echo "adding the tools for tests and checks"
	$(call install,requirements-dev.lock)
	@touch $@

setup: $(VENV)/.setup  ## install what running takes

demo: setup  ## grade the bundled traces: a first result in minutes
	@$(BIN)/tracegrade demo

up: setup  ## run the embedded pipeline on ./tracegrade-data
	@$(BIN)/tracegrade up

# Three processes, whatever the cores: all that need the broker are in one of them, and mostly wait.
test: $(VENV)/.develop  ## run all tests but the long ones
	@$(BIN)/python -m pytest -n 3 --dist loadscope --no-loadscope-reorder -m "not real and not faults_full and not worst" $(PYTEST)

real: $(VENV)/.develop  ## run the long tests on real parts, faults among them
	@$(BIN)/python -m pytest -m real $(PYTEST)

faults: $(VENV)/.develop  ## kill, freeze, fill and lie to the parts of a cluster, for minutes; prints what was counted
	@$(BIN)/python -m pytest -m faults -s $(PYTEST)

faults-full: $(VENV)/.develop  ## the same with all faults, as often as in a bad week: more than an hour
	@$(BIN)/python -m pytest -m faults_full -s $(PYTEST)

worst: $(VENV)/.develop  ## send the receiver the worst requests there are, and print how long each takes; ten minutes
	@$(BIN)/python -m pytest -m worst -s $(PYTEST)

check: $(VENV)/.develop  ## types, lint, layers, sizes
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(VENV)/.develop  ## format and mend what the linter can
	@$(BIN)/ruff check --fix-only --quiet .
	@$(BIN)/ruff format .

bench: $(VENV)/.develop  ## measure spans a second, embedded and over Kafka, against bare decoding and the OpenTelemetry Collector
	@$(BIN)/python tests/bench_cluster.py
	@$(BIN)/python tests/bench_ways_in.py
	@$(BIN)/python tests/bench_shapes.py
	@$(BIN)/python tests/bench_scoring.py
	@$(BIN)/python tests/bench_judge.py

eval-corpora: $(VENV)/.develop  ## how scores in code tell good runs from bad ones, on labelled real runs
	@PYTHONPATH=.:tests $(BIN)/python tests/eval_corpora.py

pairwise: $(VENV)/.develop  ## print what 65 judges said of pairs of replies: as published, and by the product's rule of both orders
	@PYTHONPATH=.:tests $(BIN)/python tests/llmbar.py

worked: $(VENV)/.develop  ## print every worked value of the scoring rules beside what the product makes of it
	@PYTHONPATH=.:tests $(BIN)/python -m worked.table

attacks: $(VENV)/.develop  ## play attacks on a judge that believes everything, without the fence and with it; a minute or two
	@PYTHONPATH=.:tests $(BIN)/python -m judge_attacks.table

replies: $(VENV)/.develop  ## print every kind of reply of a judge's model beside what becomes of it
	@PYTHONPATH=.:tests $(BIN)/python -m judge_replies.table

mutants: $(VENV)/.develop  ## break what scores in every small way, and name what no test finds; ten minutes
	@$(BIN)/python tests/mutation/mutants.py $(MODULES)

held: $(VENV)/.develop  ## hold half of what the machine can do for ten minutes, with memory, open files and lag by the minute
	@$(BIN)/python tests/bench_held.py

broker: $(VENV)/.develop  ## run a Kafka broker on loopback until Ctrl-C; its address is the first line
	@$(BIN)/python tests/kafka_broker.py

screenshots: $(VENV)/.develop  ## have a real browser draw the pages into docs/screenshots, or into the folder FOLDER=…
	@PYTHONPATH=.:tests $(BIN)/python tests/browser/screenshots.py $(or $(FOLDER),docs/screenshots)

lock: $(VENV)/.develop  ## write the lock files anew (needs uv, and npm for one of the quick-starts)
	@uv pip compile pyproject.toml --extra embedded --extra sql --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet -o requirements.lock
	@uv pip compile pyproject.toml --extra embedded --extra sql --group dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet -o requirements-dev.lock
	@PYTHONPATH=tests $(BIN)/python -m quickstarts.environments
	@for tool in agentevals_beside mutation small_model; do uv pip compile tests/$$tool/requirements.in --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet -o tests/$$tool/requirements.txt; done
	@uv pip compile tests/small_model/model.in --no-deps --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-emit-find-links --no-header --quiet -o tests/small_model/model.txt

clean:  ## remove the environment and what tests leave
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache mutants
