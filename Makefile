# Daybreak: what can be done from a checkout. Needs Python 3.11+ and make.
PYTHON ?= python3
# Processes that tests run in; each may start a JVM of its own.
WORKERS ?= 2
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.daybreak-setup
# Airflow's packages would not go beside ours. uv installs them in seconds; pip knows an index that uv was not told of.
AIRFLOW := .venv-airflow
SPARK_CLASSES := .pytest_cache/spark-classes
SOURCES := daybreak streaming lakehouse jobs
CHECKED := $(SOURCES) bench deploy docs tests

.DEFAULT_GOAL := help
.PHONY: help setup demo airflow test test-airflow test-fast lint types imports fmt bench bench-large docs site notebooks bundle lock clean

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with the locked packages; does nothing when up to date

$(STAMP): requirements/bootstrap.txt requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Daybreak needs Python 3.11 or newer, not " + sys.version.split()[0] + "; try make setup PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bootstrap.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-build-isolation -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: setup ## Replay real flights, correct the day, show the error
	@$(BIN)/daybreak demo

airflow: $(AIRFLOW)/.daybreak-setup ## Make .venv-airflow with Airflow's locked packages

$(AIRFLOW)/.daybreak-setup: requirements/airflow.txt $(STAMP)
	$(PYTHON) -m venv $(AIRFLOW)
	$(BIN)/python -m uv pip install --quiet --python $(AIRFLOW)/bin/python --require-hashes -r requirements/airflow.txt || \
	$(AIRFLOW)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/airflow.txt
	@touch $@

test-airflow: airflow ## The DAGs' suite alone, in Airflow's environment
	$(AIRFLOW)/bin/python -m pytest -c tests/dags/pytest.ini tests/dags

test: lint types imports airflow $(SPARK_CLASSES) ## Everything: lint, types, import contracts, the whole test suite
	$(BIN)/python -m pytest --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder --durations 10

# What a JVM of Spark loads, kept once so that those of the tests start in half the time; without it they are slower.
$(SPARK_CLASSES): $(STAMP) tests/spark_classes.py tests/engines.py
	@$(BIN)/python -m tests.spark_classes && touch $@ || echo "Spark's classes could not be kept; the tests say why"

test-fast: setup ## The tests that start no engine, server or process
	$(BIN)/python -m pytest -m "not slow" --numprocesses $(WORKERS) --dist loadfile --no-loadscope-reorder

lint: setup ## Check style and formatting
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup ## Check types (mypy strict on our packages)
	$(BIN)/mypy

imports: setup ## Check who imports whom
	$(BIN)/lint-imports

fmt: setup ## Format, and mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## Measure the targets, write bench/RESULTS.md
	$(BIN)/python -m bench

bench-large: setup ## Measure 2.5 M, 20 M and 100 M events on every engine, write bench/LARGE.md
	$(BIN)/python -m bench.large_days

docs: setup ## Generate the reference pages and conf/README.md
	$(BIN)/python docs/generate.py

site: setup ## Build the documentation as a site, into site/
	$(BIN)/mkdocs build --strict --quiet

notebooks: setup ## Open the notebooks in a browser
	$(BIN)/marimo edit notebooks

bundle: setup ## Zip the packages for spark-submit, into build/
	$(BIN)/python deploy/bundle.py

lock: setup ## Resolve the lock files anew from pyproject.toml
	$(BIN)/python requirements/lock.py

clean: ## Remove caches and build leftovers; .venv and .daybreak stay
	rm -rf build site .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis *.egg-info
	find $(CHECKED) -name __pycache__ -type d -prune -exec rm -rf {} +
