.DEFAULT_GOAL := help
PYTHON ?= python3
CONFIG ?=
PART ?=
BIN := .venv/bin

help: ## print the tasks
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 14

.venv/installed: requirements.lock pyproject.toml
	sh deploy/make-venv $(PYTHON)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

.venv/spark: requirements-spark.lock .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-spark.lock
	@touch $@

.venv/helm: requirements-helm.lock .venv/installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements-helm.lock
	@touch $@

setup: .venv/installed ## install everything into .venv

run: .venv/installed ## watch a live demo log; CONFIG=path watches your own
	$(BIN)/recsys-monitor $(if $(CONFIG),run --config $(CONFIG),demo)

test: .venv/spark .venv/helm ## install the servers, Spark and Helm that the tests use, run every test; PART=2/3: a third of the slow ones
	sh deploy/install-test-services
	$(BIN)/python -m pytest -q -rs -n 3 --dist loadfile --no-loadscope-reorder --durations=25 --durations-min=5 $(if $(PART),--part $(PART))

test-fast: .venv/installed ## run the quick tests: no server, no Spark, no browser; about two minutes on two cores
	$(BIN)/python -m pytest -q -m "not slow" -n 3 --dist loadfile --no-loadscope-reorder

pythons: .venv/installed ## install the lock and run the quick tests on every Python of this machine that may be used
	sh deploy/test-pythons $(BIN)/uv

lint: .venv/installed ## check format, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fix: .venv/installed ## format, and fix what the linter can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/installed ## generate the pages and dashboards that are made from the code
	$(BIN)/python -m monitor.docs.metric_pages docs/metrics
	$(BIN)/python -m monitor.docs.rollup_table
	$(BIN)/python -m monitor.experiments.describe > docs/experiments.md
	$(BIN)/python -m monitor.simulate.incidents.describe > docs/incidents.md
	$(BIN)/python -m benchmarks.scoreboard.results
	$(BIN)/python -m benchmarks.real_traffic.results
	$(BIN)/python -m monitor.service.prometheus.gauges > docs/gauges.md
	$(BIN)/python -m monitor.rules.reference
	$(BIN)/python -m monitor.config.reference > docs/config.md
	$(BIN)/python -m monitor.cli.reference > docs/cli.md
	$(BIN)/python -m grafana.generate
	$(BIN)/python -m tests.python.notebook
	$(BIN)/python -m grafana.mixin

bench: .venv/installed ## measure the cost of every rule and metric on ten million exposures
	$(BIN)/python -m benchmarks.run

bench-growth: .venv/installed ## measure how the cost grows with rows and slices, and a day of a hundred million; takes an hour
	$(BIN)/python -m benchmarks.growth

bench-small: .venv/installed ## compare the cost of a small window with statements by hand; fails if it got worse
	$(BIN)/python -m benchmarks.small_window

bench-everything: .venv/installed ## measure a small window with slices, an experiment, models and bands
	$(BIN)/python -m benchmarks.everything

bench-span: .venv/installed ## measure the cost of a month of hourly windows
	$(BIN)/python -m benchmarks.span

bench-spark: .venv/spark ## measure what windows of 1, 10 and 50 million exposures cost on Spark and on DuckDB; takes hours on two cores
	$(BIN)/python -m benchmarks.spark --keep
	$(BIN)/python -m benchmarks.spark --cluster --rows 10000000 --keep

bench-rollups: .venv/installed ## measure what days cost that are added up from windows
	$(BIN)/python -m benchmarks.rollups

bench-fleet: .venv/installed ## measure a daemon with two hundred recommenders
	$(BIN)/python -m benchmarks.fleet

bench-peers: .venv/installed ## compare with the metrics that RecTools and Evidently also have
	$(BIN)/python -m benchmarks.peers

bench-models: .venv/installed ## compare exact AUC with argsort, and features online with offline
	$(BIN)/python -m benchmarks.models

bench-diagnosis: .venv/installed ## check whether the causes of AUC gaps and their shares are right
	$(BIN)/python -m benchmarks.diagnosis

bench-rest: .venv/installed ## check whether the daemon's memory grows over two thousand windows
	$(BIN)/python -m benchmarks.rest

bench-simulate: .venv/installed ## time a simulated day of a million exposures
	$(BIN)/python -m benchmarks.simulate

bench-replay: .venv/installed ## measure how fast replay sends, against an endpoint on loopback
	$(BIN)/python -m benchmarks.replay

sizing: .venv/installed ## measure series, seconds and memory of a scrape for 1 to 200 recommenders
	$(BIN)/python -m benchmarks.sizing --keep

soak: .venv/installed ## kill the daemon 200 times over 2,000 windows, with broken files and failures of each history; takes hours
	$(BIN)/python -m benchmarks.soak --keep
	$(BIN)/python -m benchmarks.soak --history postgresql --keep

history-size: .venv/installed ## measure how many bytes 30 weeks of history take; takes minutes
	$(BIN)/python -m benchmarks.history_size

scoreboard: .venv/installed ## measure which incidents are caught, and the false alarms of healthy days; takes about two hours
	sh deploy/install-test-services
	$(BIN)/python -m benchmarks.scoreboard --keep

real-traffic: .venv/installed ## measure what the bands catch on real traffic, and their false alarms; takes hours
	sh deploy/install-test-services
	$(BIN)/python -m benchmarks.real_traffic --keep

lock: ## choose the newest versions that fit and lock them with hashes
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra lake --generate-hashes --no-emit-index-url --no-emit-find-links \
		--python-version 3.11 --custom-compile-command "make lock" --quiet --output-file requirements.lock
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["spark"], sep="\n")' | \
		$(BIN)/uv pip compile - --constraint requirements.lock --generate-hashes --no-emit-index-url --no-emit-find-links \
		--python-version 3.11 --custom-compile-command "make lock" --quiet --output-file requirements-spark.lock
	$(BIN)/python -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["optional-dependencies"]["helm"], sep="\n")' | \
		$(BIN)/uv pip compile - --constraint requirements.lock --generate-hashes --no-emit-index-url --no-emit-find-links \
		--python-version 3.11 --custom-compile-command "make lock" --quiet --output-file requirements-helm.lock

.PHONY: help setup run test test-fast pythons lint fix docs bench bench-growth bench-small bench-everything bench-span bench-rollups bench-fleet bench-peers bench-models bench-diagnosis bench-rest bench-simulate bench-replay sizing soak history-size scoreboard real-traffic lock
