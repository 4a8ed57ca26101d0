# SPDX-License-Identifier: Apache-2.0
# Two commands are all that most need: `make run` and `make test`. Each sets up .venv by itself.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help run test lint unit simulate cluster-tests cluster-slow crash-everywhere trainer trainer-slow trainer-nightly table fit-table chaos chaos-cluster power-loss soak soak-hour benchmarks bench e2e e2e-slow e2e-parts integrations browser worker-kills cluster cluster-down kind kind-down e2e-kind versions binaries images crd chart manifest lock release headers docs picture dashboards reference pod-fields mutations fuzz setup clean

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
TF_KERAS := $(shell sed -n 's/^tf_keras==/tf_keras==/p' constraints.txt)
# TensorFlow has wheels for 3.11 to 3.13. `make PYTHON=/path/to/python3.12 run` names another interpreter.
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys, venv; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' 2>/dev/null && echo $$p && break; done)

help:  ## Show this list
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 28

run: $(STAMP)  ## Train the digits example as local processes: kill -9 any of them and watch it come back
	@$(BIN)/dtjob run examples/digits.yaml

# More processes than cores: most tests wait for longer than they compute.
PROCESSES ?= 4
test: lint binaries e2e-parts  ## Lint, types and all tests (unit, cluster, trainer, e2e; PROCESSES=1: one test after another)
	@$(BIN)/python -m compileall -q operator/dtjob trainer_image/dtjob_trainer tests  # once, and not in each process
	@$(BIN)/python -m pytest $(if $(filter-out 1,$(PROCESSES)),-n $(PROCESSES))

lint: $(STAMP)  ## ruff, mypy --strict and import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

unit: $(STAMP)  ## Only the unit tests, two at a time (about 3 minutes; PROCESSES=4: four)
	@$(BIN)/python -m pytest tests/unit -n $(if $(filter command,$(origin PROCESSES)),$(PROCESSES),2)

simulate: $(STAMP)  ## Look through 10,000 simulated lives of jobs, others each time (LIVES=…, SEED=…; about an hour)
	@seed=$(or $(SEED),$$RANDOM); echo "make simulate SEED=$$seed looks through the same lives again"; \
	DTJOB_SIMULATED_LIVES=$(or $(LIVES),10000) PYTHONHASHSEED=$$seed $(BIN)/python -m pytest --timeout=0 \
		--hypothesis-seed=$$seed tests/unit/operator/plan/test_plan_properties.py \
		tests/unit/operator/plan/test_plan_crashes.py

cluster-tests: $(STAMP) binaries  ## Only the tests against a real API server
	@$(BIN)/python -m pytest tests/cluster

cluster-slow: $(STAMP) binaries  ## Those of them that `make test` leaves out: racks, and small benchmarks of the operator
	@$(BIN)/python -m pytest -m slow tests/cluster

crash-everywhere: $(STAMP) binaries  ## Kill the operator after each of its calls, and fail each call, in eleven lives of jobs (an hour; ONLY=killed, PART=1/10: fewer)
	@mkdir -p build
	@DTJOB_CRASH_PART=$(or $(PART),1/1) DTJOB_CRASH_ONLY='$(ONLY)' DTJOB_CRASH_SLOTS=$(or $(SLOTS),8) \
		$(BIN)/python -m pytest --timeout=0 -s --basetemp=build/crash-everywhere tests/cluster/test_crash_everywhere.py

mutations: $(STAMP) binaries  ## Compare dtjob validate and an API server on 20,000 random manifests, others each time (MUTATIONS=…, SEED=…; 10 minutes)
	@DTJOB_MUTATIONS=$(or $(MUTATIONS),20000) DTJOB_MUTATION_SEED=$(SEED) \
		$(BIN)/python -m pytest --timeout=0 -s tests/cluster/test_mutations.py

FUZZED := tests/unit/operator/plan/test_forged_status.py tests/unit/operator/plan/seen/test_report.py \
	tests/unit/operator/test_hostile_answers.py tests/unit/operator/cli/convert/test_random_tfjobs.py \
	tests/unit/trainer/checkpoint/test_damaged_directories.py tests/unit/trainer/contract/test_task.py \
	tests/unit/trainer/rendezvous/test_rendezvous_histories.py tests/unit/trainer/supervisor/test_hostile_requests.py
fuzz: SEED := $(or $(SEED),$(shell echo $$RANDOM))
fuzz: $(STAMP) binaries  ## Feed 2,000 random requests, reports, statuses, checkpoint directories, environments and manifests (FUZZ=…, SEED=…)
	@echo "make fuzz SEED=$(SEED) makes up the same again"
	@DTJOB_FUZZ=$(or $(FUZZ),2000) $(BIN)/python -m pytest --timeout=0 --hypothesis-seed=$(SEED) $(FUZZED)
	@$(MAKE) --no-print-directory mutations MUTATIONS=$(or $(FUZZ),2000) SEED=$(SEED)

trainer: $(STAMP)  ## Only the tests that run TensorFlow processes
	@$(BIN)/python -m pytest tests/trainer

trainer-slow: $(STAMP)  ## Those of them that `make test` leaves out: more strategies, options and kinds of data
	@$(BIN)/python -m pytest -m slow tests/trainer \
		--ignore=tests/trainer/test_chaos.py --ignore=tests/trainer/test_random_kills.py

# An environment of its own with the packages of .venv, in which keras-nightly hides Keras.
NIGHTLY := build/nightly
SITE := import site; print(site.getsitepackages()[0])
trainer-nightly: $(STAMP)  ## The tests that run TensorFlow processes, with keras-nightly (TESTS=tests/trainer/test_model_fit.py for fewer)
	@$(BIN)/python -m venv $(NIGHTLY)
	@echo "import site; site.addsitedir('$$($(BIN)/python -c '$(SITE)')')" >"$$($(NIGHTLY)/bin/python -c '$(SITE)')/dtjob.pth"
	@$(NIGHTLY)/bin/python -m pip install --quiet --disable-pip-version-check --upgrade --pre --no-deps keras-nightly
	@$(NIGHTLY)/bin/python -m pytest $(or $(TESTS),tests/trainer)

integrations: $(STAMP) binaries e2e-parts  ## Only the tests with others' queues and schedulers (Kueue, Volcano, …), built first (half an hour, once)
	@$(BIN)/python -m pytest tests/integrations

browser: $(STAMP) binaries  ## Only the tests of dtjob ui in chromium, which must be installed (PICTURES=docs/images: pictures of the pages)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[browser]'
	@DTJOB_PICTURES=$(PICTURES) $(BIN)/python -m pytest tests/browser

table: $(STAMP)  ## Run every loop under every strategy and write docs/reference/strategies.md
	@$(BIN)/python -m tests.trainer.support.strategy_table

fit-table: $(STAMP)  ## Train with each argument and kind of data under every strategy and write docs/reference/fit.md
	@$(BIN)/python -m tests.trainer.support.fit_table $(STRATEGIES)

chaos: $(STAMP)  ## Kill -9 the chief in 100 saves of 200 MB, and any task at 20 random moments (DTJOB_CHAOS_KILLS=5 for fewer)
	@$(BIN)/python -m pytest -m slow -s tests/trainer/test_chaos.py tests/trainer/test_random_kills.py

chaos-cluster: $(STAMP) e2e-parts  ## Kill, freeze, cut off and fill everything on real nodes for an hour, under four jobs (root; MINUTES=…, SEED=…)
	@DTJOB_CHAOS_MINUTES=$(MINUTES) DTJOB_CHAOS_SEED=$(SEED) DTJOB_CHAOS_GAP=$(GAP) DTJOB_CHAOS_EPOCHS=$(EPOCHS) \
		$(BIN)/python -m pytest -s tests/chaos

soak: $(STAMP)  ## Play 24 simulated hours in which 1,000 jobs come and go, and fail if what the operator keeps grows (JOBS=…, HOURS=…)
	@$(BIN)/python -m tests.unit.operator.simulation.soak --jobs $(or $(JOBS),1000) --hours $(or $(HOURS),24)

soak-hour: $(STAMP) binaries  ## Let 10,000 pods with 1,000 silent supervisors come and go on a real API server for an hour (PODS=…, WORKERS=…, MINUTES=…)
	@$(BIN)/python -m benchmarks.operators.soak_hour --pods $(or $(PODS),10000) --workers $(or $(WORKERS),8) --minutes $(or $(MINUTES),60)

power-loss: $(STAMP)  ## Cut the power after 100 moments of each record of saves, and 100 times under whole jobs, on three kinds of disk (root and /dev/fuse; LOSSES=500)
	@DTJOB_POWER_LOSSES=$(or $(LOSSES),100) $(BIN)/python -m pytest --timeout=0 -k power_loss --durations=3 \
		tests/unit/trainer/checkpoint tests/unit/trainer/program/test_whole_files.py tests/unit/operator/local/test_runs.py
	@DTJOB_POWER_LOSSES=$(or $(LOSSES),100) $(BIN)/python -m pytest --timeout=0 -s -m slow tests/power_loss

benchmarks: $(STAMP) binaries  ## Measure training against TensorFlow alone, and the operator (a quiet machine, an hour)
	@for each in steps_per_second data_memory restore_memory checkpoint_stall first_step start recovery variables parameter_server plan_cost operator_memory event_cost event_loop rules_cost; do echo "$$each"; $(BIN)/python -m benchmarks.$$each; done

SCENARIOS := burst big_job standing_load small_beside_big away
# Where tables, plots and numbers go; what stands there of a scenario is overwritten.
RESULTS ?= benchmarks/results
.PHONY: $(SCENARIOS:%=bench-%)
bench: $(SCENARIOS:%=bench-%) bench-recovery bench-local-recovery  ## Measure the operator beside Kubeflow's and a bare loop (root; 15 hours; bench-burst: one of them; BENCH='--rounds 1', RESULTS=directory)

$(SCENARIOS:%=bench-%): bench-%: $(STAMP)
	@$(BIN)/python tools/binaries.py benchmarks >/dev/null
	@$(BIN)/python -m benchmarks.operators.$* --out $(RESULTS) $(BENCH)

QUICK := $(MAKE) --no-print-directory RESULTS=build/bench-quick
bench-quick: $(STAMP)  ## All on nodes and kwok of that in sizes for 25 minutes (root), into build/bench-quick; TFJob at its defaults in one burst only
	@$(QUICK) bench-burst BENCH='--jobs 60 --rounds 2 --slow-rounds 1'
	@$(QUICK) bench-big_job BENCH='--rounds 1 --sides dtjob tfjob-tuned bare'
	@$(QUICK) bench-standing_load BENCH='--jobs 60 --rest 15 --failures 30 --rounds 1 --sides dtjob tfjob-tuned'
	@$(QUICK) bench-small_beside_big BENCH='--jobs 40 --workers 500 --rounds 1 --sides dtjob tfjob-tuned'
	@$(QUICK) bench-away BENCH='--jobs 90 --away 30 --rounds 1 --sides dtjob tfjob-tuned'
	@$(QUICK) bench-recovery UNDER=MultiWorkerMirrored RECOVERY='--rounds 1 --seconds 120 --sides dtjob tfjob'
	@$(QUICK) bench-recovery UNDER=ParameterServer RECOVERY='--rounds 1 --seconds 180 --sides dtjob tfjob'

.PHONY: bench-recovery bench-local-recovery bench-quick
bench-recovery: $(STAMP)  ## What kill -9 costs real training, each minute, beside TFJob (root; 7 hours; UNDER=ParameterServer RECOVERY='--rounds 1')
	@$(BIN)/python tools/binaries.py node training-operator >/dev/null
	@for strategy in $(or $(UNDER),MultiWorkerMirrored ParameterServer); do \
		$(BIN)/python -m benchmarks.operators.recovery $$strategy --out $(RESULTS) $(RECOVERY); done

bench-local-recovery: $(STAMP)  ## The same without Kubernetes: `dtjob run`, and processes that start again (3.6 hours; UNDER, LOCAL='--rounds 1')
	@for strategy in $(or $(UNDER),MultiWorkerMirrored ParameterServer); do \
		$(BIN)/python -m benchmarks.operators.local_recovery $$strategy --out $(RESULTS) $(LOCAL); done

e2e: $(STAMP) e2e-parts  ## Only the end-to-end tests, on real nodes (Docker for kind, or Linux and root)
	@$(BIN)/python -m pytest tests/e2e

e2e-slow: $(STAMP) e2e-parts  ## Those of them that `make test` leaves out: elastic workers, own images, what a node leaves
	@$(BIN)/python -m pytest -m slow tests/e2e

e2e-parts: $(STAMP)
	@$(BIN)/python -m tools.cluster.prepare

worker-kills: $(STAMP) e2e-parts  ## Kill a worker's container on a real node, 20 times in a row
	@$(BIN)/python -m pytest tests/e2e/jobs/test_failures.py -k worker_container --count=20

cluster: $(STAMP)  ## Leave a cluster of two real nodes running, to play with (root)
	@$(BIN)/python -m tools.cluster.developer up

cluster-down: $(STAMP)  ## Remove that cluster
	@$(BIN)/python -m tools.cluster.developer down

kind: $(STAMP)  ## Leave a kind cluster with both images running (root where Docker does not run; half an hour the first time)
	@$(BIN)/python -m tools.kind up

kind-down: $(STAMP)  ## Remove that cluster, and end the Docker that was started for it
	@$(BIN)/python -m tools.kind down

e2e-kind: $(STAMP)  ## Only the end-to-end tests, on kind (root where Docker does not run; TESTS=tests/e2e/test_cluster.py for fewer)
	@$(BIN)/python -m tools.kind exec $(BIN)/python -m pytest $(or $(TESTS),tests/e2e)

QUICK_START := tests/e2e/jobs/test_training.py::test_digits_under_multi_worker_mirrored
versions: $(STAMP)  ## Only the cluster tests and one job on kind, with the Kubernetes that VERSION=1.34 names (root where Docker does not run)
	@test -n "$(VERSION)" || { echo "make versions: name a version, such as VERSION=1.34" >&2; exit 2; }
	@export DTJOB_KUBERNETES=$(VERSION); $(MAKE) --no-print-directory cluster-tests; \
	$(MAKE) --no-print-directory e2e-kind TESTS=$(QUICK_START)

# Kubernetes programs that cannot be had skip their tier; they do not fail the others.
binaries: $(STAMP)  ## Find or build etcd, kube-apiserver, kube-controller-manager, kubectl, helm 4 and 3, kwok, kube-scheduler and promtool
	@$(BIN)/python tools/binaries.py control-plane helm helm-3 kwok kube-scheduler promtool >/dev/null || echo "make: without them the cluster tests are skipped" >&2

images:  ## Build the operator's and the trainer's image into ~/.cache/dtjob/images
	@$(PYTHON) tools/images.py

crd: $(STAMP)  ## Write crds/, the chart's copy and docs/reference/api.md from operator/dtjob/api/ and crd/
	@$(BIN)/python -m tools.definition
	@$(BIN)/python -m tools.reference

chart: $(STAMP)  ## Write the README of the chart from its values, and its dashboards
	@$(BIN)/python -m tools.chart readme
	@$(BIN)/python -m tools.dashboards.grafana

manifest: $(STAMP) binaries  ## Write build/dtjob.yaml: the operator's objects without helm
	@$(BIN)/python -m tools.chart manifest build/dtjob.yaml

pod-fields: $(STAMP)  ## Write what dtjob validate knows of pods, after another Kubernetes client was installed
	@$(BIN)/python -m tools.pod_fields

lock: $(STAMP)  ## Write constraints.txt with the newest versions that pyproject.toml allows (minutes; run all tests afterwards)
	@$(BIN)/python -m tools.lock

release: $(STAMP) binaries  ## Make all that a tag needs in build/release: wheels, images, chart, dtjob.yaml, schema, SBOM, checksums (RELEASE=--without-images)
	@$(BIN)/python -m tools.release $(RELEASE)

headers: $(STAMP)  ## Write the licence line into each source file that lacks it
	@$(BIN)/python -m tools.headers

docs: $(STAMP)  ## Build the documentation site into build/site, strictly (DOCS=serve: show it on this machine)
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(or $(DOCS),build) --strict $(if $(DOCS),,--quiet)

picture: $(STAMP)  ## Draw docs/images/run.svg: the terminal of `make run` while a worker is killed (a minute)
	@$(BIN)/python -m tools.picture

dashboards: $(STAMP)  ## Draw docs/images/dtjob-*.png: both dashboards from a run on nodes that Prometheus scrapes (root; 10 minutes; OUT=directory)
	@$(BIN)/python -m tools.dashboards.record $(if $(OUT),--out $(OUT))

reference: $(STAMP)  ## Write the pages of docs/reference/ that are made from the code
	@$(BIN)/python -m tools.reference

setup: $(STAMP)  ## Set up .venv and nothing more

$(STAMP): pyproject.toml trainer_image/pyproject.toml constraints.txt
	@if [ -z "$(PYTHON)" ]; then \
		echo "dtjob needs Python 3.11, 3.12 or 3.13 with the venv module; none is on the PATH (set PYTHON=/path/to/python)" >&2; \
		exit 2; fi
	@echo "Setting up $(VENV) with $$($(PYTHON) --version): about 400 MB of packages, 1-3 minutes, once."
	@if ! $(BIN)/python -c 'import pip' 2>/dev/null; then rm -rf $(VENV); $(PYTHON) -m venv $(VENV); fi
	@echo "  dtjob, dtjob-trainer, TensorFlow (CPU), test tools …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e '.[test]' -e 'trainer_image[cpu]'
	@echo "  tf_keras (without its dependency on the full TensorFlow package) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps '$(TF_KERAS)'
	@touch $(STAMP)
	@echo "  ready."

clean:  ## Remove .venv, caches and local runs
	@rm -rf $(VENV) .dtjob .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build operator/*.egg-info trainer_image/*.egg-info
