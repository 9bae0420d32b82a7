# `make help` lists the targets. Each one sets up what it needs in .venv, from nothing but Python 3.11+.

VENV ?= .venv
BIN := $(VENV)/bin
# PyTorch would be seen by the other tests and by pyright, so it has an environment of its own.
EXTRAS ?= .venv-extras
JOBS ?= 2
# The first Python on the path that is new enough; PYTHON=/some/python overrides.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo "$$p"; break; }; done)
# A machine without any linker gets the one inside the ziglang wheel.
LINK := $(shell command -v ld.lld >/dev/null 2>&1 || command -v ld >/dev/null 2>&1 || command -v cc >/dev/null 2>&1 || echo link)
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Of the fuzzing: each day has other graphs, and the seed is printed.
SEED ?= $(shell date -u +%Y%m%d)
FUZZ_SECONDS ?= 120
MODEL ?= google/mobilebert-uncased
ORT_GPU ?= onnxruntime-gpu>=1.22
ENGINE ?= $(shell command -v podman || echo docker)
STAGE ?= cpu

SYNC := $(if $(filter output-sync,$(.FEATURES)),--output-sync=target)

.DEFAULT_GOAL := help
.PHONY: help setup install install-cuda demo-model image demo test test-rest test-full test-extras test-wheel test-machines test-aarch64 test-gpu sbom fuzz check pytest lint lit format bench runtime docs clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "igniter needs Python 3.11 or newer on the path (or PYTHON=...)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of extras, so that a target installs no more than it needs.
$(VENV)/.installed-run: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.$(LINK:%=[%])'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[dev]'
	@touch $@ $(VENV)/.installed-run

$(EXTRAS)/.installed-dev: pyproject.toml
	@test -n "$(PYTHON)" || { echo "igniter needs Python 3.11 or newer on the path (or PYTHON=...)" >&2; exit 1; }
	$(PYTHON) -m venv $(EXTRAS)
	$(EXTRAS)/bin/python -m pip --disable-pip-version-check --quiet install -e '.[dev]'
	@touch $@

$(VENV)/.installed-bench: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[bench$(LINK:%=,%)]'
	@touch $@ $(VENV)/.installed-run

# ONNX Runtime for GPUs holds the module of the one for CPUs, so it takes its place.
$(VENV)/.installed-cuda: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[triton$(LINK:%=,%)]'
	$(PIP) uninstall --yes onnxruntime
	$(PIP) install '$(ORT_GPU)'
	@touch $@ $(VENV)/.installed-run

$(VENV)/.installed-docs: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[docs]'
	@touch $@

setup: $(VENV)/.installed-dev ## make .venv with everything that the tests need

install: $(VENV)/.installed-run ## make .venv with what igniter itself needs

install-cuda: $(VENV)/.installed-cuda ## the same with Triton and the ONNX Runtime that has the CUDA provider

demo-model: $(VENV)/.installed-run ## a small model of the demo's kind, made by code: models/demo.onnx
	@mkdir -p models
	$(BIN)/python -m igniter.tools.demo_model --layers 4 models/demo.onnx

image: ## a container image of Containerfile, igniter:cpu (STAGE=cuda for GPUs), with podman or docker
	$(ENGINE) build --file Containerfile --target $(STAGE) --tag igniter:$(STAGE) .

demo: $(VENV)/.installed-run ## compile the embedded model, verify it against ONNX Runtime, print the speed-up
	@$(BIN)/igniter demo

test: check pytest ## lint, lit and the quick tests: one set of parameters of each sweep, and half of the pages

test-rest: $(VENV)/.installed-dev ## the slow tests, and more sets of parameters: a twelfth of each sweep (what `make test` leaves out of it)
	$(BIN)/python -m pytest -rs -n $(JOBS) --dist worksteal -m 'not full' --rest tests

test-extras: $(EXTRAS)/.installed-dev ## the tests that need PyTorch (for CPUs) and a browser, in .venv-extras; TORCH_INDEX=URL of its CPU builds
	$(EXTRAS)/bin/python -m tests.extras -n $(JOBS) --dist worksteal

test-wheel: $(VENV)/.installed-dev ## the wheel outside of the checkout: every verb and public call, versions, extras, Pythons (PYTHONS="...")
	$(BIN)/python -m tests.installed --jobs $(JOBS)

sbom: $(VENV)/.installed-dev ## the bill of materials of the wheel with versions and licences, as CycloneDX JSON: build/igniter.cdx.json
	$(BIN)/python -m tests.installed.sbom -o build/igniter.cdx.json

fuzz: $(VENV)/.installed-dev ## random graphs against ONNX Runtime and networks of images, FUZZ_SECONDS=120 each, from the SEED of the day
	$(BIN)/python -m tests.fuzz --seed $(SEED) --count 100000 --seconds $(FUZZ_SECONDS)
	$(BIN)/python -m tests.fuzz --seed $(SEED) --count 100000 --seconds $(FUZZ_SECONDS) --images

test-full: check ## every test with every set of parameters, slow ones too
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --sweeps --timeout=0 tests

test-machines: $(VENV)/.installed-dev ## the tests whose outcome can follow from the machine, as if on five others (tests/machines)
	$(BIN)/python -m tests.machines --jobs $(JOBS)

test-aarch64: $(VENV)/.installed-dev ## models for aarch64 in stock ONNX Runtime under qemu-user, in a root of Debian's arm64 packages
	$(BIN)/python -m tests.platforms.arm64_root
	$(BIN)/python -m pytest -rs -vv --timeout=0 --sweeps tests/platforms/test_aarch64.py

test-gpu: $(VENV)/.installed-dev ## the tests that need a GPU and ONNX Runtime's CUDA provider; without them they skip
	$(BIN)/python -m pytest -rs tests/gpu

# pyright has one thread, so lit runs beside it; each one's output comes in one piece.
check: $(VENV)/.installed-dev ## lint and lit at the same time
	@$(MAKE) --no-print-directory -j 2 $(SYNC) lint lit

pytest: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -rs -n $(JOBS) --dist worksteal -m 'not full' --quick tests

lint: $(VENV)/.installed-dev ## ruff and pyright (strict on igniter/)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright --pythonpath $(BIN)/python

lit: $(VENV)/.installed-dev ## the lit tests of dialects and passes
	$(BIN)/lit -j $(JOBS) -q lit_tests

format: $(VENV)/.installed-dev ## reformat the sources
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(VENV)/.installed-bench ## compile and time one model beside ONNX Runtime (MODEL=google/mobilebert-uncased)
	$(BIN)/python benchmark/run_benchmark.py --model_name=$(MODEL) --backend=x86_64

runtime: $(VENV)/.installed-dev ## compile the run time in C to the LLVM IR that is shipped, after a change of it (docs/explanation/c-runtime.md)
	$(BIN)/python -m igniter.backends.c_runtime.build

docs: $(VENV)/.installed-docs ## the documentation as a site, in build/site
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo build/site/index.html

clean: ## remove .venv, caches and build products
	rm -rf $(VENV) $(EXTRAS) build dist models .pytest_cache .ruff_cache .hypothesis benchmark/results
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
	find lit_tests -name Output -type d -prune -exec rm -rf {} +
