# Needs python3 (3.11 or newer, with venv) and a package index; everything lands in .venv.
PYTHON ?= python3
PYTHONS := 3.11 3.12 3.13 3.14
PIP := .venv/bin/python -m pip --quiet --quiet --disable-pip-version-check --no-input
LOCK := uv pip compile pyproject.toml --universal --python-version 3.11 \
	--generate-hashes --no-header --no-emit-index-url --quiet

# What one process has compiled, the workers and the processes that they start need not compile again.
export PYTHONDONTWRITEBYTECODE :=
# Many slow tests wait for processes and clocks, so there are two workers for each core. The others wait for
# nothing, and every worker takes some ten seconds of a core to import all tests, so `make check` has one for
# each core but that of the type checker and that of the process which hands tests out. On two cores there are
# no workers: one process runs the tests.
CORES := $(shell nproc 2>/dev/null || sysctl -n hw.ncpu)
WORKERS := $(shell expr 2 '*' $(CORES))
PYTEST := .venv/bin/python -m pytest --numprocesses $(WORKERS) --dist worksteal
# The type checker keeps one core busy, so the tests run beside it.
TOGETHER := $(MAKE) --no-print-directory --jobs=2

.PHONY: demo test test-long test-browser test-package test-probes check bench detector-figures faults silent hostile fleets strangers promises fit forest lint tests release lock docs site clean

demo: .venv/demo  ## four trainings go wrong under a watch, in half a minute
	@.venv/bin/python sample_logs/demo.py

test: .venv/remote  ## style, types and all tests but the long ones, or with AREA=sources/csv every test of one room
ifdef AREA
	$(PYTEST) tests/$(AREA)
else
	$(TOGETHER) lint tests SELECT="not long"
endif

test-long: .venv/remote  ## the long tests: processes that are killed, floods, poison, whole days
	$(PYTEST) -m long

test-browser: .venv/browser  ## the HTML report and the live page in a real browser; needs `chromium` (apt-get install chromium)
	$(PYTEST) --numprocesses 0 tests/browser

test-package: .venv/pythons/made  ## the wheel and the source distribution on each Python from 3.11 that is on the PATH
	$(PYTEST) --numprocesses 0 tests/test_package.py

test-probes: .venv/trainers/tested  ## the probes in trainings with PyTorch
	.venv/trainers/bin/python -m pytest tests/probes

check: .venv/dev  ## style, types and the fast tests: what to run after each change
	$(TOGETHER) lint tests SELECT="not slow and not long" WORKERS=$(shell expr $(CORES) - 2)

tests:
	$(PYTEST) -m "$(SELECT)"

lint: .venv/dev  ## style and types
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy

bench: .venv/dev  ## speed and memory beside other readers, and what probes cost where `make test-probes` ran
	.venv/bin/python -m studies.benchmarks.whole
	.venv/bin/python -m studies.benchmarks.tensorboard
	.venv/bin/python -m studies.benchmarks.wandb
	.venv/bin/python -m studies.benchmarks.text
	.venv/bin/python -m studies.benchmarks.listing
	.venv/bin/python -m studies.benchmarks.live
	.venv/bin/python -m studies.benchmarks.extras
	.venv/bin/python -m studies.benchmarks.archive
	@[ ! -e .venv/trainers/tested ] || .venv/trainers/bin/python -m studies.benchmarks.probes

detector-figures: .venv/dev  ## measure the detectors on simulated runs, into measurements/figures.md
	.venv/bin/python -m studies.figures

faults: .venv/dev .venv/trainers/installed .venv/peers/installed  ## train with and without each fault, into measurements/faults.md
	.venv/bin/python -m studies.faults

silent: .venv/trainers/tested  ## train with and without each silent error, into measurements/silent.md
	.venv/trainers/bin/python -m studies.silent

hostile: .venv/dev  ## try damaged and hostile logs, receivers, states and archives, into measurements/hostile.md
	.venv/bin/python -m studies.hostile

fleets: .venv/dev  ## train fleets of siblings with and without faults, into measurements/siblings.md
	OPENBLAS_NUM_THREADS=1 .venv/bin/python -m studies.fleets

strangers: .venv/dev  ## judge strangers' labelled logs below FOLDER, into measurements/strangers.md and build/strangers
	.venv/bin/python -m studies.strangers $(FOLDER)

promises: .venv/dev  ## calibrate halves of labelled logs below FOLDER and of simulated fleets, into measurements/promises.md
	.venv/bin/python -m studies.promises $(FOLDER)

fit: .venv/dev  ## fit the score cards to labelled logs below each FOLDER, into detectors/reading/claims and measurements/cards.md; then make docs
	.venv/bin/python -m studies.cards fit $(FOLDER)

forest: .venv/trees/installed  ## fit the second opinion to labelled logs below each FOLDER, into detectors/reading/forest.json
	.venv/trees/bin/python -m studies.cards forest $(FOLDER)

docs: .venv/dev  ## rewrite the generated parts of the docs, and measurements/coverage.md
	.venv/bin/python -m tests.tools.docs

site: .venv/site  ## the docs site, into build/site
	NO_MKDOCS_2_WARNING=1 .venv/bin/python -m mkdocs --quiet build --config-file deploy/site/mkdocs.yml

release: test test-long  ## cut the release whose version stands in pyproject.toml; with REHEARSE=1 commit and tag nothing
	.venv/bin/python -m tests.tools.release $(if $(REHEARSE),--rehearse)

lock:  ## pin the newest versions that fit pyproject.toml (needs uv)
	$(LOCK) --upgrade --group build --output-file requirements/runtime.txt
	$(LOCK) --upgrade --group dev --constraint requirements/runtime.txt --output-file requirements/dev.txt
	sed -n '/^py-spy==/,/# via/p' requirements/dev.txt > requirements/demo.txt
	$(LOCK) --upgrade --group remote --constraint requirements/dev.txt --output-file requirements/remote.txt
	$(LOCK) --upgrade --group browser --constraint requirements/remote.txt --output-file requirements/browser.txt
	$(LOCK) --upgrade --group site --constraint requirements/browser.txt --output-file requirements/site.txt

clean:  ## remove everything that make made
	rm -rf .venv .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/runtime: requirements/runtime.txt pyproject.toml
	@echo "Installing sentinel and what it needs into .venv; the first time this takes a minute or two."
	$(PYTHON) -m venv .venv
	$(PIP) install --require-hashes --requirement requirements/runtime.txt
	$(PIP) install --no-build-isolation --no-deps --editable .
	touch $@

# The extra `stacks`, so that the alert of the hang names the line.
.venv/demo: requirements/demo.txt .venv/runtime
	$(PIP) install --require-hashes --requirement requirements/demo.txt
	touch $@

.venv/dev: requirements/dev.txt .venv/runtime
	$(PIP) install --require-hashes --requirement requirements/dev.txt
	touch $@

.venv/remote: requirements/remote.txt .venv/dev
	$(PIP) install --require-hashes --requirement requirements/remote.txt
	touch $@

.venv/browser: requirements/browser.txt .venv/dev
	$(PIP) install --require-hashes --requirement requirements/browser.txt
	touch $@

.venv/site: requirements/site.txt .venv/dev
	$(PIP) install --require-hashes --requirement requirements/site.txt
	touch $@

.venv/pythons/made: requirements/runtime.txt .venv/dev
	@for version in $(PYTHONS); do \
		python$$version --version >/dev/null 2>&1 || { echo "python$$version is not on the PATH"; continue; }; \
		echo "Installing what sentinel needs for python$$version"; \
		python$$version -m venv .venv/pythons/$$version && \
		.venv/pythons/$$version/bin/python -m pip --quiet --quiet --disable-pip-version-check --no-input \
			install --require-hashes --requirement requirements/runtime.txt || exit 1; \
	done
	@touch $@

# What trains and what other tools need stays apart from what sentinel and its tests need.
.venv/trainers/installed: requirements/trainers.txt sample_logs/requirements.txt .venv/runtime
	$(PYTHON) -m venv .venv/trainers
	.venv/trainers/bin/python -m pip --quiet --no-input install --requirement $<
	touch $@

# The probes run where PyTorch is, so their tests do, too.
.venv/trainers/tested: .venv/trainers/installed pyproject.toml
	.venv/trainers/bin/python -m pip install --quiet --no-input --editable . pytest hypothesis
	touch $@

.venv/trees/installed: requirements/trees.txt pyproject.toml .venv/runtime
	$(PYTHON) -m venv .venv/trees
	.venv/trees/bin/python -m pip --quiet --no-input install --editable . --requirement $<
	@touch $@

.venv/peers/installed: requirements/peers.txt .venv/runtime
	$(PYTHON) -m venv .venv/peers
	.venv/peers/bin/python -m pip --quiet --no-input install --requirement $<
	touch $@
