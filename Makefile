# Every target sets up .venv by itself when it is missing or stale.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3; do $$p -c '' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Real data sets beside the checkout are put on the search path; nothing depends on them.
ifneq ($(wildcard ../shared/data),)
export GRAPHSC_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-faults soak fuzz load reliability audit lint types layers bench bench-long results figures reproduce notebooks docs clean
.DEFAULT_GOAL := test

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(None if (3, 11) <= sys.version_info < (3, 15) else "Python 3.11 to 3.14 is needed")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all,dev]'
	touch $(STAMP)

demo: $(STAMP)  ## the main job on real data, with its result
	$(BIN)/graphsc demo --out demo

test: lint types layers  ## everything that must hold
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

test-faults: $(STAMP)  ## promises that take minutes to prove: real kills, long stops, every method
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m faults

soak: $(STAMP)  ## kill every verb at random moments; at most 15 minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m faults soak

fuzz: $(STAMP)  ## mutated files to every reader
	OMP_NUM_THREADS=1 $(BIN)/python -m faults fuzz

load: $(STAMP)  ## a million graphs through embed and predict, stopped and resumed
	$(BIN)/python -m faults load

reliability: soak fuzz load  ## all three, then their figures onto the page
	$(BIN)/python -m faults page

audit: $(STAMP)  ## known weaknesses of the pinned dependencies, where the service can be reached
	$(BIN)/python -m faults audit

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/bandit -q -r src -c pyproject.toml

types: $(STAMP)
	$(BIN)/mypy

layers: $(STAMP)
	$(BIN)/lint-imports

bench: $(STAMP)  ## speed, as ratios measured in one interleaved run; at most 15 minutes. ROWS=a,b runs only some
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks $(if $(ROWS),--rows $(ROWS))

bench-long: $(STAMP)  ## the rows that take many minutes, once
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks --long

results: $(STAMP)  ## run what results/plan.yaml asks for and has not run, then rebuild the tables of the docs
	$(BIN)/graphsc results run results/plan.yaml
	$(BIN)/graphsc results write results/plan.yaml docs/results.md
	$(BIN)/graphsc results write results/plan.yaml docs/conditions.md
	$(BIN)/graphsc results write results/plan.yaml docs/does-it-learn.md
	$(BIN)/graphsc results write results/plan.yaml docs/search.md
	$(BIN)/graphsc results gains results/plan.yaml docs/images/gains.png
	$(BIN)/graphsc results write results/plan.yaml README.md
	$(BIN)/graphsc results write results/plan.yaml docs/methods/dgk.md
	$(BIN)/graphsc results write results/plan.yaml docs/methods/gl.md
	$(BIN)/graphsc methods --plan results/plan.yaml --page docs/methods/index.md
	$(BIN)/graphsc reproduce claims --page docs/claims.md
	$(BIN)/graphsc reproduce reproduction --page docs/reproduction.md
	$(BIN)/graphsc reproduce freeze --out src/graphsc/methods
	$(BIN)/graphsc reproduce diagnosis --no-run --page docs/diagnosis.md
	$(MAKE) --no-print-directory figures
	-$(BIN)/graphsc results run results/transfer.yaml
	$(BIN)/graphsc results write results/transfer.yaml docs/transfer-results.md
	$(BIN)/graphsc reproduce table4 --no-run --page docs/table4.md
	-$(BIN)/graphsc reproduce results/union.yaml --runs runs/union
	$(BIN)/graphsc reproduce results/union.yaml --no-run --page docs/union.md
	$(BIN)/graphsc reproduce ablation --page docs/methods/graphsc-plus.md
	$(BIN)/graphsc reproduce frozen-valid --page docs/pretraining.md
	$(BIN)/graphsc reproduce frozen-test --page docs/pretraining.md

figures: $(STAMP)  ## the page of the paper's figures from what is stored; runs nothing
	$(BIN)/graphsc reproduce table5 --no-run --page docs/figures.md
	$(BIN)/graphsc reproduce figure1 --no-run --page docs/figures.md
	$(BIN)/graphsc reproduce figure3 --no-run --page docs/figures.md
	$(BIN)/graphsc reproduce figure4 --no-run --page docs/figures.md
	$(BIN)/graphsc reproduce figure5 --no-run --page docs/figures.md

PAPER := table1 table2 table3 table4 table5 figure1 figure2 figure3 figure4 figure5 claims reproduction

reproduce: $(STAMP)  ## every table and figure of the paper from what is stored; runs nothing
	for what in $(PAPER); do $(BIN)/graphsc reproduce $$what --no-run || exit; done

notebooks: $(STAMP)  ## run the notebooks of the docs and store their outputs
	cd docs/notebooks && OMP_NUM_THREADS=1 XDG_CACHE_HOME=$$(mktemp -d) ../../$(BIN)/jupyter execute --inplace *.ipynb
	cd docs/notebooks && rm -rf results run runs *.csv *.safetensors

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) site demo runs reproduced .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
