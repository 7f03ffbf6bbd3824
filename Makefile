# `make run` and `make test` work on a machine with nothing but Python 3.11, its venv and git; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
CONFIG ?=
CORES ?= all
MINUTES ?= 480
PAPERS ?= titsias2016 fagan2018 ruiz2018 yen2018 yen2018-labels bamler2020
QUICK ?=
TEXTS ?=
WORKERS ?= auto
SHARE ?= 1/1
# What runs of experiments need, and all extras but gpu: which build of PyTorch is right depends on the card.
RUNS := data report track pipeline
LOCKED := $(RUNS) search serve notebook docs dev
ELSEWHERE := not cluster and not results
STAMP := .venv/.installed
STAMP_OF_RUNS := .venv/.installed-run

RESOLVE := uv pip compile pyproject.toml --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
  --no-emit-find-links --no-annotate --no-header

# Tells DVC of the results that are there, so that `dvc repro` retrains none; dates stay, by which Snakemake decides.
RECORD := if [ -e .git ] && command -v dvc > /dev/null; then dvc commit --force --no-relink --quiet 2> logs/dvc.log || \
  echo "warning: DVC has not recorded the results; logs/dvc.log says why" >&2; fi

export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: help setup setup-run run test test-all lint audit sbom docs site site-serve benchmark papers words lock

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' Makefile | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 16

setup: $(STAMP) ## prepare .venv with all of requirements.lock: tests, linters, pages

setup-run: $(STAMP_OF_RUNS) ## prepare .venv with what runs need, requirements-run.lock

$(STAMP): $(STAMP_OF_RUNS) requirements.lock envs/install.py
	@.venv/bin/python envs/install.py requirements.lock
	@touch $@

$(STAMP_OF_RUNS): requirements-run.lock pyproject.toml envs/create-venv.sh envs/install.py
	@bash envs/create-venv.sh .venv
	@.venv/bin/python envs/install.py requirements-run.lock
	@.venv/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

run: setup-run ## run the quick start, or the experiment CONFIG=file, to its report
	@python -m xsoftmax.lab.workflow.config_files --configfile "$(or $(CONFIG),config/config.yaml)" || exit 1
	snakemake --cores $(CORES) $(if $(CONFIG),--configfile $(CONFIG))
	@$(if $(CONFIG),true,$(RECORD))
	@name=$$(sed -nE "s/^experiment: *[\"']?([^\"' #]+).*/\\1/p" $(or $(CONFIG),config/config.yaml)); \
	printf '\nreport:    %s\nMLflow UI: .venv/bin/mlflow ui, then open http://127.0.0.1:5000 and choose Model training\n' "$(CURDIR)/results/$$name/report.html"

test: setup ## run the tests that show that it works: about twenty minutes on two cores (WORKERS=1: one after the other)
	pytest -n $(WORKERS) --dist worksteal -m "not slow and not alone and $(ELSEWHERE)"
	pytest -m "not slow and alone and $(ELSEWHERE)" || [ $$? = 5 ] # 5: none was selected

test-all: setup ## run the longer tests, which `make test` leaves out: about two hours (SHARE=1/3: a third of them)
	pytest -n $(WORKERS) --dist worksteal --share $(SHARE) -m "slow and not alone and $(ELSEWHERE)"
	pytest --share $(SHARE) -m "slow and alone and $(ELSEWHERE)" || [ $$? = 5 ]

lint: setup ## check format, style, types, layers and rules
	ruff format --check .
	ruff check .
	mypy
	lint-imports
	snakefmt --check Snakefile workflow
	snakemake --lint

audit: setup ## compare the locked dependencies with the list of known vulnerabilities
	bash envs/audit.sh

sbom: setup ## list the locked dependencies in results/sbom.json (CycloneDX), for those who look after installations
	bash envs/sbom.sh

docs: setup-run ## run the experiment of the documentation, draw its figures, renew its generated parts
	snakemake --cores $(CORES) --configfile config/experiments/methods.yaml
	python -m xsoftmax figures results/methods -o docs/methods/figures
	python -m xsoftmax methods --update docs/*.md docs/methods/*.md

site: setup ## build the pages of docs/ into site/, and fail on a link that leads nowhere
	NO_MKDOCS_2_WARNING=1 mkdocs build --strict

site-serve: setup ## show the pages at http://127.0.0.1:8000, and follow edits
	NO_MKDOCS_2_WARNING=1 mkdocs serve

benchmark: setup ## run ours beside other programs for MINUTES (480), on a quiet machine: table and figures
	python -m xsoftmax benchmark peers --minutes $(MINUTES) --json results/benchmark/peers.json

papers: setup-run ## reproduce PAPERS, by default all five, into docs/papers (many hours; QUICK=1: 15 minutes, results/ only)
	@for paper in $(PAPERS); do \
	  echo "== $$paper"; \
	  snakemake --cores $(CORES) --configfile config/experiments/$$paper.yaml $(if $(QUICK),config/experiments/quick/$$paper.yaml); \
	  $(if $(QUICK),,rm -rf docs/papers/$$paper; cp -r results/$$paper/paper/* docs/papers/;) \
	done
	$(if $(QUICK),,python -m xsoftmax papers docs/papers)

words: setup-run ## reproduce yen2018's vectors of words from TEXTS='books=FILE gcide=FILE' into docs/papers (100 minutes)
	python -m xsoftmax words config/words/yen2018-words.yaml $(TEXTS) -o results/yen2018-words
	python -m xsoftmax paper results/yen2018-words/fits/*/*/seed-* --paper yen2018-words -o docs/papers
	python -m xsoftmax papers docs/papers

lock: ## resolve the dependencies of pyproject.toml anew into requirements.lock and requirements-run.lock (needs uv)
	$(RESOLVE) $(addprefix --extra ,$(LOCKED)) -o requirements.lock
	$(RESOLVE) $(addprefix --extra ,$(RUNS)) --constraint requirements.lock -o requirements-run.lock
