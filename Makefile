# The commands that a user and CI run alike. Everything is installed into $(VENV).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Tests wait for servers as often as they compute: three at a time on two cores.
WORKERS ?= $(shell expr $$(nproc) \* 3 / 2)
# Threads of libraries gain nothing beside other workers, and take a tenth of the processor's time;
# polars gives groups in no order by one thread either.
PYTEST = OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/python -m pytest --numprocesses $(WORKERS)
SOURCES := pyproject.toml Cargo.toml $(wildcard Cargo.lock) $(shell find rust python -name '*.rs' -o -name '*.toml')

# What is built is what Cargo.lock says, and one thing at a time.
export MATURIN_PEP517_ARGS ?= --locked
# Images of CI set it; then each process that a test starts compiles all that it imports.
unexport PYTHONDONTWRITEBYTECODE
.NOTPARALLEL:

.PHONY: help demo demo-judge quick test soak integrations integrations-and-soak wheel lint bench \
bench-smoke benchmark figures docs site site-links clean

help:
	@echo "make demo      simulated judges: what calibration does, and where majority vote wins"
	@echo "make demo-judge  votes of a simulated judge to labels and a page"
	@echo "make quick     what a change of Python needs first: format, lint, fast tests of each folder"
	@echo "make test      the tests, Rust and Python"
	@echo "make soak      tests that take long: kills, faults, load, many draws"
	@echo "make integrations  tests that need a server, an engine, a browser, Cargo or a peer"
	@echo "make wheel     a source distribution and the wheel made of it, audited, in dist/"
	@echo "make lint      formatters, linters, type checkers"
	@echo "make bench     kernels, and btdagg against its peers"
	@echo "make benchmark  every method on every set, and the page made of it"
	@echo "make figures   draw the figures of README and docs again"
	@echo "make docs      API documentation of the Rust crate"
	@echo "make site      the pages, the references and search as a site: build/site/index.html"
	@echo "make site-links  look up the links that lead out of the site; needs the network"

demo: $(VENV)/.demo
	$(BIN)/btdagg demo --output demo

demo-judge: $(VENV)/.judge
	$(BIN)/btdagg demo --pairs demo/sums
	$(BIN)/btdagg run demo/sums/pairs.jsonl --labels demo/sums/labels.csv \
	  --model simulated -n 12 -o demo/judge
	$(BIN)/btdagg votes demo/judge/votes.db

# Where there is no Rust on the machine the build fetches one for itself, and Cargo's own tests,
# which need it installed, are left out.
test: $(VENV)/.test
	@if command -v cargo >/dev/null; then cargo test --workspace --locked --quiet; \
	else echo "cargo is not installed: the tests of the Rust crate are left out"; fi
	$(PYTEST) --dist worksteal --durations 20

# Format, lint, and the files of tests that take a second or two. It leaves out types, Rust, figures,
# servers, the pages, and the tests that draw, sweep or start processes.
QUICK := _util/test_arrays _util/test_errors _util/test_extensions _util/test_readable \
	methods/test_aggregators methods/test_aggregators_more \
	votes/test_filters votes/test_import votes/test_items votes/test_label_means \
	votes/test_labels_checked votes/test_provenance votes/test_reading votes/test_row_order votes/test_scale \
	votes/test_several_raters votes/test_sides votes/test_strength votes/test_tables \
	model/test_calibration model/test_grades_core promises/test_model model/test_offsets model/test_panel \
	model/test_saved model/test_uncertainty \
	evaluation/test_bias evaluation/test_cross_fit evaluation/test_evaluation evaluation/test_metrics \
	evaluation/test_ranking evaluation/test_sweeps \
	questions/test_decisions questions/test_estimate_systems questions/test_estimates \
	questions/test_estimates_of_grades questions/test_judge_bias questions/test_panels \
	online/test_online_drift online/test_online_forecast online/test_online_tally \
	judge/test_judge_answers judge/test_judge_pairs judge/test_judge_prompts \
	cli/test_cli_choose cli/test_cli_counts project/test_package project/test_skill project/test_lists

quick: $(VENV)/.quick
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(PYTEST) --dist worksteal --quiet $(QUICK:%=tests/%.py)

soak: $(VENV)/.test
	$(PYTEST) --dist loadgroup -m soak
	$(PYTEST) --hypothesis-profile soak tests/promises/test_properties.py

integrations: $(VENV)/.integrations $(VENV)-phoenix/.installed
	$(PYTEST) --dist loadgroup -m "integration and not soak"

# As CI runs them: collected once, and workers wait once for the last of them.
integrations-and-soak: $(VENV)/.integrations $(VENV)-phoenix/.installed
	$(PYTEST) --dist loadgroup --durations 40 -m "integration or soak"
	$(PYTEST) --hypothesis-profile soak tests/promises/test_properties.py

# With Zig as linker it runs on any Linux since 2014, wherever it is built. The wheel is made of the
# source distribution, so that nothing may be missing there.
wheel: $(VENV)-wheel/.installed
	rm -rf dist
	PATH="$(abspath $(VENV)-wheel/bin):$$PATH" CARGO_TARGET_DIR="$(abspath target/wheel)" \
	  maturin build --quiet --locked --release --sdist --zig --compatibility manylinux2014 --out dist
	$(VENV)-wheel/bin/auditwheel show dist/*.whl | grep --quiet '"manylinux_2_17_'
	$(VENV)-wheel/bin/abi3audit --strict dist/*.whl
	$(VENV)-wheel/bin/twine check --strict dist/*

# What the compiled module has is compared with its types alone: mypy has checked what these import.
lint: $(VENV)/.lint
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	for folder in benches examples/rust_service examples/rust_wasm; do (cd $$folder && cargo fmt --check \
	  && cargo clippy --target-dir "$(abspath target)" --all-targets --locked -- -D warnings) || exit 1; done
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked --quiet
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports --no-cache
	$(BIN)/mypy
	$(BIN)/python tests/public_types.py
	printf '[mypy]\nfollow_imports = skip\nignore_missing_imports = true\n' > $(VENV)/stubtest.ini
	$(BIN)/python -m mypy.stubtest --mypy-config-file $(VENV)/stubtest.ini btdagg._core
	$(BIN)/zizmor --offline --quiet .github action.yml examples/release_gate/release-gate.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml \
	  examples/release_gate/release-gate.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms \
	  $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.citation-file-format CITATION.cff
	$(BIN)/hadolint Containerfile
	cargo package --package btdagg --locked --allow-dirty --no-verify --quiet

# Each prints a table; with --smoke it shows that it runs, as a soak test does for `serve`.
BENCHES := peers certify tables local_minima few_labels covariates rejudge changes anchors strength grades panel forecast significance anytime evaluation new_items compare \
	estimates populations interval_coverage choose refits online inspect_epochs judge serve labelling sql importing
KERNELS := cargo bench --locked --manifest-path benches/Cargo.toml --target-dir target

bench: $(VENV)/.test
	$(KERNELS)
	@set -e; for name in $(BENCHES); do \
	  echo "benches/$$name.py"; OPENBLAS_NUM_THREADS=1 $(BIN)/python benches/$$name.py; done

bench-smoke: $(VENV)/.test
	$(KERNELS) --profile smoke -- --test
	OPENBLAS_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/python benches/smoke.py $(filter-out serve,$(BENCHES))

# The votes are those of BTDAGG_SHARED, or of their sources with OPTIONS=--download; half an hour on
# two cores.
benchmark: $(VENV)/.benchmark
	OPENBLAS_NUM_THREADS=1 $(BIN)/python benches/benchmark/run.py $(OPTIONS)
	$(BIN)/python benches/benchmark/page.py

figures: $(VENV)/.figures
	$(BIN)/python docs/figures/draw.py
	$(BIN)/python docs/figures/method.py
	$(BIN)/python docs/figures/online.py
	$(BIN)/python docs/figures/known.py
	$(BIN)/python docs/figures/difference.py

docs:
	cargo doc -p btdagg --no-deps --locked

site: $(VENV)/.docs
	$(BIN)/python docs/site/build.py build

site-links: $(VENV)/.docs
	$(BIN)/python docs/site/build.py build linkcheck

# A stamp for each set of extras; the package itself is installed as an editable one, so that only
# the Rust sources make a rebuild necessary.
$(VENV)/.demo: EXTRAS = cli
$(VENV)/.judge: EXTRAS = judge,report
$(VENV)/.quick: EXTRAS = lint
$(VENV)/.test: EXTRAS = test
$(VENV)/.integrations: EXTRAS = integrations
$(VENV)/.lint: EXTRAS = lint
$(VENV)/.figures: EXTRAS = cli,report
$(VENV)/.benchmark: EXTRAS = benchmark
$(VENV)/.docs: EXTRAS = docs
$(VENV)/.demo $(VENV)/.judge $(VENV)/.quick $(VENV)/.test $(VENV)/.integrations $(VENV)/.lint \
$(VENV)/.benchmark $(VENV)/.figures $(VENV)/.docs: $(SOURCES) | $(VENV)/.created
	$(INSTALL) --reinstall-package btdagg --editable ".[$(EXTRAS)]"
	@touch $@

# Phoenix's server needs another graphql-core than MLflow's, so each has an environment.
$(VENV)-phoenix/.installed: | $(VENV)-phoenix/.created
	$(INSTALL) "arize-phoenix>=20"
	@touch $@

$(VENV)-wheel/.installed: | $(VENV)-wheel/.created
	$(INSTALL) "maturin>=1.12,<2" cargo-zigbuild ziglang "auditwheel>=6" "abi3audit>=0.0.20" "twine>=6"
	@touch $@

# uv installs all that the tests need in ten seconds, where pip takes two minutes. Stamped only once
# it is there: Debian's Python without python3-venv leaves half an environment.
INSTALL = $(@D)/bin/uv pip install --quiet --python $(@D)/bin/python
$(VENV)/.created $(VENV)-phoenix/.created $(VENV)-wheel/.created:
	$(PYTHON) -m venv $(@D) || { rm -rf $(@D); exit 1; }
	$(@D)/bin/python -m pip install --quiet uv
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-phoenix $(VENV)-wheel build target dist demo
