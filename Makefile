# Needs Python 3.11 or newer and make; everything else is set up in .venv by the first target that needs it.

BIN := .venv/bin
# More than there are cores: tests that start processes mostly wait for them.
WORKERS ?= 4
# Where it is set, every process that a test starts compiles all modules anew.
unexport PYTHONDONTWRITEBYTECODE

help:
	@echo "make run     serve http://127.0.0.1:8700 (SQLite, embedded engine)"
	@echo "make demo    run the demo on a simulated internet; no account or network needed"
	@echo "make check   quick checks while you work: style, types, short tests"
	@echo "make test    check style and types, run every test"
	@echo "make lint    check style and types"
	@echo "make bench   run the benchmarks"
	@echo "make endure  100,000 mutated answers; a simulated week under faults and kills, on both databases"
	@echo "make docs    generate the reference pages"
	@echo "make messages  update the catalogue of translations from the code, and compile it"
	@echo "make audit   look up known vulnerabilities of the installed packages (needs the internet)"
	@echo "make clean   remove build output; your data stays"

run: .venv/ready-to-run
	$(BIN)/catchment serve

demo: .venv/ready-to-run
	$(BIN)/catchment demo

# Types are checked beside the tests: on two cores both are done sooner. Errors in types are printed as soon as they are
# found; without any, the last line is the summary of the tests.
with_types = $(BIN)/mypy --no-error-summary & types=$$!; $(1); tests=$$?; \
	wait $$types || { echo "mypy found errors (see above)"; exit 1; }; exit $$tests

test: style
	tools/get-chromium
	$(call with_types,$(BIN)/pytest --forks $(WORKERS))

check: style
	$(call with_types,$(BIN)/pytest --forks 2 -m "not process and not long")

lint: style
	$(BIN)/mypy

style: .venv/ready-to-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: .venv/ready-to-bench .venv-bench/ready
	$(BIN)/python -m bench

endure: .venv/ready-to-test
	CATCHMENT_EXAMPLES=100000 $(BIN)/pytest -q tests/platforms/test_mutations.py
	$(BIN)/python -m endure

docs: .venv/ready-to-run
	$(BIN)/python -m tools.docs

messages: .venv/ready-to-test
	$(BIN)/python -m tools.messages

# pip-audit has packages of its own, which are not to be mixed with ours.
audit: .venv/ready-to-run
	$(BIN)/python -m venv .venv-audit
	.venv-audit/bin/pip install --quiet --disable-pip-version-check "pip-audit>=2.7,<3"
	.venv-audit/bin/pip-audit --path $(BIN)/../lib/python3*/site-packages

clean:
	rm -rf .venv .venv-bench .venv-audit build catchment.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# What is installed depends on these.
INSTALLED = pyproject.toml tools/make-venv catchment/text/_plain_html.c

# Touched when the packages are as pyproject.toml wants them: the next run starts at once.
.venv/ready-to-run: $(INSTALLED)
	tools/make-venv "[parquet]"
	@touch $@

.venv/ready-to-test: $(INSTALLED)
	tools/make-venv "[dev]"
	@touch $@

.venv/ready-to-bench: $(INSTALLED)
	tools/make-venv "[bench]"
	@touch $@

# Those we are compared with, away from our own packages. One that cannot be installed is left out of the comparison.
.venv-bench/ready: bench/peers/requirements.txt .venv/ready-to-bench
	$(BIN)/python -m venv .venv-bench
	@while read -r peer; do \
		echo "installing $$peer into .venv-bench"; \
		.venv-bench/bin/pip install --quiet --disable-pip-version-check "$$peer" || echo "$$peer: left out"; \
	done < bench/peers/requirements.txt
	@touch $@

.PHONY: help run demo check test lint style bench endure docs messages audit clean
