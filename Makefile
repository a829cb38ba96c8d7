# Every target makes .venv with the pinned set first (once) and sees to Java 17 where Spark runs, and to a
# PostgreSQL server and a Chromium where what needs them is tested.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo dashboard test verify mutants check docs pictures bench soak venv clean

bin := .venv/bin
with_postgresql = POSTGRESQL_BIN="$$(scripts/ensure_postgresql.sh || true)" && export POSTGRESQL_BIN &&
with_chromium = CHROMIUM="$$(scripts/ensure_chromium.sh || true)" && export CHROMIUM &&
benchmarks := run nexmark sharing durable plan_search estimates small_steps small_steps_before long_pushes many_lanes \
	many_results memory partitions workers trickle checkpoints optimizer optimizer.family ring kafka
with_java = JAVA_HOME="$$(scripts/ensure_java.sh)" && export JAVA_HOME &&

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1	\2/p' Makefile

venv: ## the virtual environment .venv with the pinned set
	@scripts/ensure_venv.sh

demo: venv ## flights of 2013 through Spark, plans changed by hand and by the optimizer, checked against DuckDB
	@$(with_java) $(bin)/midstream demo --out build/demo
	@echo "Act 5: flights in topics of Kafka, joined into a topic while the plan changes"
	@$(bin)/python examples/kafka/flights.py

dashboard: venv ## a job over the same flights that goes on, in the browser: look at its plan, approve another one
	@$(bin)/midstream demo --dashboard --out build/dashboard

check: venv ## lint, format, prose and types
	$(bin)/ruff check
	$(bin)/ruff format --check
	$(bin)/python scripts/lint_prose.py
	$(bin)/mypy

test: venv ## lint, format, types and the tests that a change needs: minutes
	@checked=$$(mktemp) failed=0; nice -n 5 $(MAKE) --no-print-directory check >"$$checked" 2>&1 & check=$$!; \
	$(with_java) $(with_postgresql) $(with_chromium) $(bin)/pytest -n 2 $(PYTEST_ARGS) || failed=$$?; \
	wait $$check || failed=$$?; cat "$$checked"; rm "$$checked"; exit $$failed

verify: test ## `make test`, then all other tests: every random case, all of Spark, the lab, the packages, a browser
	@$(with_java) $(with_postgresql) $(with_chromium) $(bin)/pytest -n 2 -m "verify and not soak" $(PYTEST_ARGS)

mutants: venv ## one seeded fault after the other in a copy of the tree: make test must kill each (MUTANTS=names to choose)
	@$(with_java) $(with_postgresql) nice -n 5 $(bin)/python -m tests.mutants.run $(MUTANTS)

docs: venv ## the site, in build/docs: pages, reference, pictures; a broken link is an error
	$(bin)/python -m sphinx -E -W --keep-going -q -c docs . build/docs
	@echo "build/docs/index.html"

pictures: venv ## the pictures of docs/architecture.md, drawn again from the code
	$(bin)/python -m docs.drawing

bench: venv ## the measurements: Spark's own join and DuckDB beside ours, changes of plan in mid-run, sharing, the optimizer, spreads
	@$(with_java) failed=0 && for what in $(benchmarks); do $(bin)/python -m benchmarks.$$what || failed=1; done && exit $$failed

soak: venv ## many more random cases, an hour of texts of queries, a month of event time, an hour of kills
	@$(with_java) $(with_postgresql) MIDSTREAM_PROFILE=soak $(bin)/pytest -m "soak or property" --timeout 7200 $(PYTEST_ARGS)
	@PYTHONPATH=src:. $(bin)/python -W ignore -m tests.texts --minutes 60
	@$(with_java) $(bin)/python -m benchmarks.soak
	@$(with_java) $(with_postgresql) PYTHONPATH=src:. $(bin)/python -m tests.spark.random_kills --minutes 60

clean: ## everything that the targets made
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
