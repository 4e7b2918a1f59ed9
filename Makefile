# `make demo`, `make check` and `make test` work on a fresh clone. They need Python 3.11 or newer,
# make, and a package index.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
TRACERS := .venv-sionna .venv-deepmimo
BRIDGES := .venv-flower .venv-pfl
# A package of Flower uses what click 8.5 will remove.
FLOWER_WARNS := -W "ignore:'click.utils:DeprecationWarning"
DIST_EXTRAS ?= test
OUT ?= runs/demo
SEED ?= 1
PIP_VERSION := 26.3
INSTALL := $(BIN)/python -m pip install --quiet --constraint constraints.txt --build-constraint constraints.txt

.PHONY: help demo check test browser lint docs bench attack test-importers test-bridges dist test-dist clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 16

demo: $(VENV)/.installed ## design and train the paper's small set-up, write runs/demo/report.html
	$(BIN)/airpass demo --out $(OUT)

check: lint ## lint, types, import rules and the fast tests (two minutes)
	$(BIN)/python -m pytest --numprocesses 2 -m 'not slow'

test: lint browser ## lint, types, import rules and all tests
	$(BIN)/python -m pytest --numprocesses 2

browser: ## find or install Chromium and what the tests of the explorer need
	sh tests/browser/install.sh

lint: $(VENV)/.installed-test ## lint, types and import rules only
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

docs: $(VENV)/.installed-docs ## build the site in runs/site; tutorials are run
	rm -rf runs/site docs/reference/api
	$(BIN)/sphinx-build -W --keep-going --jobs 2 --builder html docs runs/site

bench: $(VENV)/.installed-bench $(PEERS)/.installed ## benchmarks against peers (half an hour); writes docs/science/benchmarks.md
	$(BIN)/airpass data fetch mnist
	$(BIN)/airpass data fetch cifar10
	$(BIN)/python benchmarks/run.py

attack: $(VENV)/.installed-test ## 20,000 bad inputs and 200 killed runs (three quarters of an hour); see docs/reference/reliability.md
	PYTHONPATH=$(CURDIR)/tests $(BIN)/python -m attack.campaign --seed $(SEED) --out runs/attack-$(SEED)
	PYTHONPATH=$(CURDIR)/tests $(BIN)/python -m attack.faults --seed $(SEED) --out runs/faults-$(SEED)

test-importers: $(TRACERS:=/.installed) ## tests with Sionna RT and DeepMIMO, in environments of their own
	.venv-sionna/bin/python -m pytest tests/importers/test_sionna_rt.py
	.venv-deepmimo/bin/python -m pytest tests/importers/test_deepmimo.py

test-bridges: $(BRIDGES:=/.installed) ## tests with Flower and pfl, in environments of their own
	.venv-flower/bin/python -m pytest $(FLOWER_WARNS) tests/bridges/test_flower.py
	.venv-pfl/bin/python -m pytest tests/bridges/test_pfl.py

dist: $(VENV)/.installed-dist ## build wheel and sdist in dist/
	rm -rf dist
	$(BIN)/python -m hatchling build

test-dist: dist ## install the wheel into an empty environment, and run demo and fast tests without the repository
	sh tests/dist.sh $(PYTHON) $(DIST_EXTRAS)

clean: ## remove the environment and all caches
	rm -rf $(VENV) $(PEERS) $(TRACERS) $(BRIDGES) tests/browser/node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis
	rm -rf runs/site runs/docs-cache docs/reference/api
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet pip==$(PIP_VERSION)
	touch $@

$(VENV)/.installed: $(VENV)/.created pyproject.toml constraints.txt
	$(INSTALL) --editable '.[learn,explore]'
	touch $@

$(VENV)/.installed-test: $(VENV)/.created pyproject.toml constraints.txt
	$(INSTALL) --editable '.[test]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-docs: $(VENV)/.created pyproject.toml constraints.txt
	$(INSTALL) --editable '.[docs]'
	touch $@ $(VENV)/.installed

$(VENV)/.installed-dist: $(VENV)/.created constraints.txt
	$(BIN)/python -m pip install --quiet --constraint constraints.txt hatchling
	touch $@

$(VENV)/.installed-bench: $(VENV)/.created pyproject.toml constraints.txt
	$(INSTALL) --editable '.[bench]'
	touch $@ $(VENV)/.installed $(VENV)/.installed-test

# Flower and pfl pin packages that this one does not.
$(PEERS)/.installed: benchmarks/loops/constraints.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --constraint $< torch numpy
	$(PEERS)/bin/python -m pip install --quiet --constraint $< 'flwr[simulation]' 'pfl[pytorch]'
	touch $@

# The test of DeepMIMO makes its data set with Sionna RT.
.venv-sionna/.installed: EXTRAS := sionna
.venv-deepmimo/.installed: EXTRAS := sionna,deepmimo
$(TRACERS:=/.installed): tests/importers/constraints.txt pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --constraint $< --editable '.[$(EXTRAS)]' pytest hypothesis
	touch $@

# PyTorch comes first, so that nothing else decides on its build.
.venv-flower/.installed: PACKAGES := --editable '.[flower,learn]' 'flwr[simulation]'
.venv-pfl/.installed: PACKAGES := --editable '.[pfl,learn]'
$(BRIDGES:=/.installed): tests/bridges/constraints.txt pyproject.toml
	$(PYTHON) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --constraint $< torch
	$(@D)/bin/python -m pip install --quiet --constraint $< $(PACKAGES) pytest hypothesis
	touch $@
