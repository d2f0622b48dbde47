# Two commands do everything: `make demo` and `make test`. Each brings what it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin

.PHONY: help demo serve test fuzz test-collectors check lint bench bench-quality docs lock clean services
.DEFAULT_GOAL := help

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | expand -t 14

$(VENV)/run.ok: requirements.lock pyproject.toml
	@./.ci/bring python "$(PYTHON)" requirements.lock
	@touch $@ && rm -f $(VENV)/dev.ok

$(VENV)/dev.ok: requirements-dev.lock pyproject.toml
	@./.ci/bring python "$(PYTHON)" requirements-dev.lock
	@touch $@ $(VENV)/run.ok

demo: $(VENV)/run.ok  ## monitor and small agents that misbehave, on this machine, nothing else needed
	@$(BIN)/otelmon demo

serve: $(VENV)/run.ok  ## the monitor: OTLP on 4317 and 4318, pages on 8317
	@$(BIN)/otelmon serve

services: $(VENV)/dev.ok  ## bring what the tests talk to: Java, Kafka, Prometheus, Alertmanager, Chromium
	@./.ci/bring services
	@$(BIN)/python -m tests.services.kafka fetch

test: services  ## every test, on the real services
	@$(BIN)/pytest

test-collectors: services  ## the real OpenTelemetry Collector in front of the monitor; builds it (two minutes)
	@./.ci/bring collector
	@$(BIN)/pytest -m collector

FUZZ_SECONDS ?= 3600
fuzz: $(VENV)/dev.ok  ## every fuzzer in turn for FUZZ_SECONDS together; what crashes is kept in .cache/fuzz
	@$(BIN)/python -m tests.fuzz all .cache/fuzz $(FUZZ_SECONDS)

lint: $(VENV)/dev.ok  ## style, types, import contracts
	@$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

check: lint  ## lint, rule tests and generated files
	@$(BIN)/otelmon rules test --mutate && $(BIN)/otelmon build --check

bench: $(VENV)/dev.ok  ## throughput, written to docs/measurements.md
	@$(BIN)/otelmon bench throughput

# With the airline pack only the sets it was written for are judged.
QUALITY = $(foreach set,tau2 taubench tau2_es agentdojo,$(OTELMON_DATA)/$(set)/dev.jsonl.gz)
bench-quality: $(VENV)/dev.ok  ## detection quality on the labelled sets of OTELMON_DATA, written to docs/measurements.md
	@test -d "$(OTELMON_DATA)" || { echo "bench-quality: OTELMON_DATA is not set; expected the folder of labelled data sets" >&2; exit 2; }
	@$(BIN)/otelmon bench quality $(QUALITY) $(wildcard $(OTELMON_DATA)/tooldrift/*.jsonl.gz) > /dev/null
	@$(BIN)/otelmon bench quality $(wordlist 1,2,$(QUALITY)) $(wildcard $(OTELMON_DATA)/llm_judge_baseline/*.jsonl.gz) --rules rules/examples/airline > /dev/null

docs: $(VENV)/dev.ok  ## write the generated references, dashboards and alerts again
	@$(BIN)/otelmon build

lock: $(VENV)/dev.ok  ## pin all versions again
	@for extra in server dev; do \
	  file=requirements$$([ $$extra = dev ] && echo -dev).lock; \
	  $(BIN)/pip-compile -q --strip-extras --generate-hashes --allow-unsafe --no-header --no-emit-index-url \
	    --no-emit-find-links --no-emit-trusted-host --extra $$extra --extra source -o $$file pyproject.toml && \
	  sed -i -e '/^otelmon @/,+1d' $$file; done

clean:  ## remove what was built; keeps otelmon-data
	@rm -rf $(VENV) .cache build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
