# `make` lists the targets. It builds everything into target/, tools included. Four things are installed
# outside of it: the program by `make install`, the C library by `make install-capi`, toolchains by rustup, and
# Debian's packages by `make rivals-foreign` as root.

# The nightly for Miri and the fuzzers; the stable compiler is named in rust-toolchain.toml.
NIGHTLY ?= nightly-2026-05-20
CARGO_DENY_VERSION := 0.20.2
CARGO_FUZZ_VERSION := 0.13.2
MDBOOK_VERSION := 0.5.4
CARGO_SEMVER_CHECKS_VERSION := 0.51.0
LIBCACHESIM_VERSION := 0.3.5
MATURIN_VERSION := 1.16.0
PLAYWRIGHT_VERSION := 1.65.2
RELSTORAGE_VERSION := 4.3.0
DISKCACHE_VERSION := 5.6.3
DISKCACHE_COMMUNITY_VERSION := 5.8.1
DISKCACHE_RS_VERSION := 0.4.10
DOGPILE_VERSION := 1.5.0
CACHETOOLS_VERSION := 8.0.1
PYMEMCACHE_VERSION := 4.0.0
REDIS_PY_VERSION := 8.1.0
HIREDIS_VERSION := 3.5.0

TARGET := $(or $(CARGO_TARGET_DIR),target)
HAYPILE := $(TARGET)/release/haypile
CARGO_DENY := $(TARGET)/tools/cargo-deny-$(CARGO_DENY_VERSION)/bin/cargo-deny
# gungraun accepts a runner of its own version only.
GUNGRAUN_VERSION := $(shell sed -n 's/^gungraun = "=\(.*\)"$$/\1/p' instructions/Cargo.toml)
GUNGRAUN_RUNNER := $(TARGET)/tools/gungraun-runner-$(GUNGRAUN_VERSION)/bin/gungraun-runner
CARGO_FUZZ := $(TARGET)/tools/cargo-fuzz-$(CARGO_FUZZ_VERSION)/bin/cargo-fuzz
MDBOOK := $(TARGET)/tools/mdbook-$(MDBOOK_VERSION)/bin/mdbook
CARGO_SEMVER_CHECKS := $(TARGET)/tools/cargo-semver-checks-$(CARGO_SEMVER_CHECKS_VERSION)/bin/cargo-semver-checks
# The crates whose public API is compared with the baseline in semver/.
SEMVER_CRATES := haypile haypile-policy
PYTHON := $(TARGET)/python/ready
# The versions of the packages that ours is tested with.
PYTHON_PEERS := python/peers.txt
WHEELS := $(TARGET)/wheels
MATURIN := $(TARGET)/tools/maturin-$(MATURIN_VERSION)/bin/maturin
LIBCACHESIM := $(TARGET)/rivals/libcachesim/bin/python
RELSTORAGE := $(TARGET)/rivals/relstorage/ready
DISKCACHE := $(TARGET)/rivals/diskcache/ready
DISKCACHE_COMMUNITY := $(TARGET)/rivals/diskcache-community/ready
DISKCACHE_RS := $(TARGET)/rivals/diskcache_rs/ready
DOGPILE := $(TARGET)/rivals/dogpile/ready
CACHETOOLS := $(TARGET)/rivals/cachetools/ready
PYMEMCACHE := $(TARGET)/rivals/pymemcache/ready
REDIS_PY := $(TARGET)/rivals/redis-py/ready
STDLIB := $(TARGET)/rivals/stdlib/ready
# Caches of PyPI, and Python's own: each in a virtual environment of its own.
PYPI_RIVALS := $(RELSTORAGE) $(DISKCACHE) $(DISKCACHE_COMMUNITY) $(DISKCACHE_RS) $(DOGPILE) $(CACHETOOLS) \
	$(PYMEMCACHE) $(REDIS_PY) $(STDLIB)
HAYPILE_PYTHON := $(TARGET)/rivals/haypile-python/ready
HAYPILE_PERL := $(TARGET)/rivals/haypile-perl/ready
WORKERS := $(TARGET)/workers/ready
WORKERS_PACKAGE := $(TARGET)/workers/haypile-installed
KSHAREDDATACACHE := $(TARGET)/rivals/kshareddatacache/kshareddatacache
KSHAREDDATACACHE_HEADER := /usr/include/KF5/KCoreAddons/kshareddatacache.h
REPORT_TEST := $(TARGET)/report-test/ready
RIVALS := $(TARGET)/rivals/rust/release/haypile-rivals
# The program for tests. Alone it has other features than with the tests of the workspace, and cargo builds most of
# it twice; .ci/run has all steps use the build of the tests.
PROGRAM_BUILD ?= cargo build --locked -p haypile-cli
CAPI_BUILD ?= cargo build --locked -p haypile-capi
STRESS_BUILD ?= cargo build --locked -p haypile-stress --bins
# What the runner of our Perl distribution is built against; .ci/run has it use the build of the tests too.
PERL_PROFILE ?= release
# The profile of the Python package that the suites and the runners use; .ci/run has them use the build of `make test-python`.
PYTHON_PROFILE ?= release
# A workspace of its own, with a target directory of its own.
RIVALS_CARGO := --manifest-path rivals/rust/Cargo.toml --target-dir $(TARGET)/rivals/rust --locked

# A workspace of its own as well: it needs a Python.
PYTHON_CARGO := --manifest-path python/Cargo.toml --target-dir $(TARGET)/python-build --locked

# A workspace of its own as well: it needs gungraun.
INSTRUCTIONS_CARGO := --manifest-path instructions/Cargo.toml --target-dir $(TARGET)/instructions --locked

# What `make run` simulates; the laboratory's part of it takes about a minute.
TRACE ?= traces/redis-build.csv.zst
POLICIES ?= fifo,lru,slru,clock,sieve,s3fifo,wtinylfu,arc,lirs,belady
SIZES ?= 1MiB,2MiB,4MiB,8MiB,16MiB

# What `make bench` measures, and in how many blocks.
BENCH_INPUTS ?= $(TARGET)/bench
BENCH_POLICIES ?= fifo,lru,slru4,clock,sieve,s3fifo,arc,lirs,belady
BENCH_OBJECTS ?= 2000,20000
BENCH_BLOCKS ?= 10
BENCH_JOB := $(TARGET)/release/examples/bench_job

# How long `make test-full` goes on.
PROPTEST_CASES ?= 4096
FUZZ_SECONDS ?= 60
FLAKES_TIMES ?= 30

# How long each part of `make stress` goes on; there are about forty.
STRESS_SECONDS ?= 6

# Where `make install-capi` installs. DESTDIR, for those who make packages, comes before each path.
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib

.DEFAULT_GOAL := help
# A tool whose installation failed half way must not look installed.
.DELETE_ON_ERROR:
.PHONY: help run test features test-c test-perl perl dist-perl test-languages languages test-python test-suites wheel test-full interleavings crash-points stress mutants lint site fmt clippy docs deny \
	instructions instructions-renew instructions-lint semver semver-renew layers scripts tables docs-check options sample-report header header-check python-lint bench verdicts rivals rivals-foreign \
	rivals-rust rivals-test runners-test firefox-test rivals-lint report-test pages-browser-test http-conformance http-crowds http-speed workers-bench install install-capi clean build

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## the main job: which cache would win on a trace, and what do ours cost? (TRACE= POLICIES= SIZES=)
	$(HAYPILE) simulate $(TRACE) --policy $(POLICIES) --size $(SIZES)
	$(HAYPILE) advise $(TRACE)
	$(HAYPILE) lab all --quick --embedded --trace $(TRACE) --output $(TARGET)/results
	$(HAYPILE) lab first

build:
	@echo "Set-up: cargo fetches the crates of Cargo.lock and builds into $(TARGET)/; nothing else is installed."
	cargo build --release --locked -p haypile-cli

test: ## all tests of the workspace
	@echo "Set-up: cargo fetches the crates of Cargo.lock and builds into $(TARGET)/; nothing else is installed."
	@traces="$${HAYPILE_SHARED:-../shared}/traces"; [ -d "$$traces" ] || \
		echo "Skipped: tests on shared traces, for there is no $$traces (HAYPILE_SHARED= names the folder above it)."
	@echo "Not in here: C, Perl and Python (make test-c test-perl test-python), the runners of other caches (make" \
		"rivals-test), threads in many orders (make interleavings), mutants, Miri, sanitizers and" \
		"fuzzing (make test-full)."
	cargo test --workspace --locked

# Programs that are not there are skipped, and a line says so; HAYPILE_REQUIRE_C_TOOLS=1 makes that a failure, as
# HAYPILE_REQUIRE_RIVALS=1 does for memcached and redis-server.
test-c: ## the C interface, from C and C++ programs, installed too (AddressSanitizer and valgrind where they are)
	$(CAPI_BUILD)
	capi/tests/run $(TARGET)/debug

# Against the static library, so that nothing has to be found when it runs.
perl: ## the Perl distribution: Cache::Haypile and a driver of CHI, into target/perl/build/blib
	@echo "Set-up: cargo builds into $(TARGET)/, and perl into $(TARGET)/perl; nothing is installed."
	cargo build --release --locked -p haypile-capi
	perl/build $(TARGET)/release $(TARGET)/perl

# On the library that the tests of C have, which is not optimised. FASTMMAP_T= names sources of Cache::FastMmap, whose tests
# run as well. What is not installed is skipped, and a line says so; HAYPILE_REQUIRE_RIVALS=1 makes that a failure.
test-perl: ## the Perl distribution: its tests, CHI's tests of drivers, and its tarball in an empty directory
	$(CAPI_BUILD)
	perl/build $(TARGET)/debug $(TARGET)/perl-debug
	perl/test $(TARGET)/perl-debug

# After `make test-perl test-python`, whose builds it uses.
test-languages: test-perl test-python ## processes in Rust, C, Python and Perl share one file, under load and kills
	$(MAKE) --no-print-directory languages

languages: # the same, with what was built before
	$(STRESS_BUILD)
	mkdir -p $(TARGET)/languages
	cc -std=c11 -Wall -Wextra -Werror -O1 -D_POSIX_C_SOURCE=200809L -I capi/include tests/languages/workers/worker.c \
		$(TARGET)/perl-debug/haypile/lib/libhaypile.a -lpthread -ldl -lm -o $(TARGET)/languages/worker-c
	tests/languages/run --require --rust $(TARGET)/debug/language-worker --c $(TARGET)/languages/worker-c \
		--python $(abspath $(dir $(PYTHON)))/bin/python --perl $(TARGET)/perl-debug/build

dist-perl: perl ## the tarball of the Perl distribution, target/perl/Cache-Haypile-*.tar.gz
	cd $(TARGET)/perl/build && rm -f *.tar.gz && $(MAKE) --silent dist
	cp $(TARGET)/perl/build/*.tar.gz $(TARGET)/perl/
	@echo "Made $$(ls $(TARGET)/perl/*.tar.gz); it builds where pkg-config finds haypile, or with HAYPILE_DIR=."

# Installs the package each time, which cargo makes cheap where nothing has changed; not optimised, with the
# checks that tests want.
test-python: $(PYTHON) ## the Python package: installed into target/python, tested there, under gunicorn too
	@echo "Set-up: cargo builds into $(TARGET)/python-build, and pip installs into $(TARGET)/python."
	MATURIN_PEP517_ARGS=--profile=dev CARGO_TARGET_DIR=$(abspath $(TARGET)/python-build) \
		$(dir $(PYTHON))bin/pip install --quiet --disable-pip-version-check --force-reinstall --no-deps \
		./python
	cd python/tests && $(abspath $(dir $(PYTHON)))/bin/python -B -m unittest
	cd python/tests && $(abspath $(dir $(PYTHON)))/bin/python -B -m mypy.stubtest haypile \
		--allowlist stubtest.txt
	cd python && $(abspath $(dir $(PYTHON)))/bin/python -B -m mypy --strict --cache-dir \
		$(abspath $(TARGET))/python/mypy --package haypile

# The wheel is built from the source distribution, so that this is whole. Wheels of earlier sources would be tested in
# its place.
wheel: $(MATURIN) ## the Python package to install elsewhere: a wheel for Python 3.11 and later, and the sources, into target/wheels
	@echo "Set-up: cargo fetches crates and builds into $(TARGET)/python-build (the first time about 3 minutes)."
	rm -rf $(WHEELS)
	CARGO_TARGET_DIR=$(abspath $(TARGET)/python-build) $(MATURIN) build --profile $(PYTHON_PROFILE) --sdist --quiet \
		--manifest-path python/Cargo.toml --out $(WHEELS)
	@ls -l $(WHEELS)

# Each suite has an environment of its own.
test-suites: wheel ## the tests that Django, Flask-Caching, cachelib, dogpile.cache and limits have for caches, over ours
	@echo "Set-up: pip installs the packages, at the versions of $(PYTHON_PEERS), into $(TARGET)/suites."
	python3 -B python/suites/clean $(WHEELS)
	python3 -B python/suites/run $(TARGET)/suites $(WHEELS)/*.whl

# In a directory of its own: the engine is built with the model checker's locks. Both programs are built at once, for each
# keeps one processor busy.
MODEL_TEST := RUSTFLAGS="--cfg shuttle" cargo test --locked --profile model -p haypile --target-dir $(TARGET)/shuttle
interleavings: ## the threads of both stores in many orders, by the Shuttle model checker
	$(MODEL_TEST) --test interleavings --lib --no-run
	$(MODEL_TEST) --test interleavings
	$(MODEL_TEST) --lib model::

# With steps at which a process is killed: another build of the engine, in the same directory.
crash-points: ## the file store, with a writer killed at every step
	cargo test --locked -p haypile --features crash-points --test file

# A failure prints the steps that repeat it.
stress: ## search for wrong values for some minutes: operations against a model, processes that are killed (STRESS_SECONDS=)
	@echo "Set-up: cargo builds into $(TARGET)/release."
	cargo build --release --locked -p haypile-stress
	scripts/stress $(TARGET)/release/haypile-stress $(STRESS_SECONDS)

mutants: ## named defects of the engine, one at a time: do the tests notice each? (MUTANTS=)
	@echo "Set-up: cargo builds into $(TARGET)/mutants and $(TARGET)/mutants-shuttle (about 5 minutes)."
	scripts/mutants --strict $(MUTANTS)

test-full: export HAYPILE_TEST_FULL = 1
test-full: test test-c test-languages test-suites interleavings rivals-test site $(CARGO_FUZZ) ## test, then what is long: rivals, mutants, torture, flakes, Miri, fuzzing (FUZZ_SECONDS= FLAKES_TIMES=)
	NIGHTLY=$(NIGHTLY) PROPTEST_CASES=$(PROPTEST_CASES) FUZZ_SECONDS=$(FUZZ_SECONDS) FLAKES_TIMES=$(FLAKES_TIMES) \
		CARGO_FUZZ=$(abspath $(CARGO_FUZZ)) scripts/test-full

lint: fmt clippy features python-lint instructions-lint docs deny header-check layers scripts tables docs-check ## format, clippy, docs, licences, C header, layers, scripts, tables, links

fmt:
	cargo fmt --all --check

# One build of the engine for each choice of its features.
features: ## does the engine work without each method of compression?
	cargo clippy --locked -p haypile --lib --no-default-features -- -D warnings
	cargo clippy --locked -p haypile --lib --no-default-features --features lz4,async -- -D warnings
	cargo test --locked -p haypile --no-default-features --test without_features

clippy:
	cargo clippy --workspace --all-targets --locked -- -D warnings

python-lint:
	cargo fmt --manifest-path python/Cargo.toml --check
	cargo clippy --all-targets $(PYTHON_CARGO) -- -D warnings

instructions-lint:
	cargo fmt --manifest-path instructions/Cargo.toml --check
	cargo clippy --all-targets $(INSTRUCTIONS_CARGO) -- -D warnings

header: ## regenerate the C header from the sources of capi/, and its manual page
	HAYPILE_WRITE_HEADER=1 cargo test --quiet --locked -p haypile-capi --test header
	HAYPILE_WRITE_HEADER=1 cargo test --quiet --locked -p haypile-capi --test man

header-check:
	cargo test --quiet --locked -p haypile-capi --test header --test man

docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --locked
	cargo doc -p haypile --no-deps --locked --quiet --features async --target-dir $(TARGET)/surface
	scripts/check-surface $(TARGET)/surface/doc/haypile/all.html 70

# The crates of Python's package, of the rivals and of the counting of instructions as well: they are workspaces of their own.
deny: $(CARGO_DENY)
	$(CARGO_DENY) --locked check --hide-inclusion-graph licenses bans sources
	$(CARGO_DENY) --locked --manifest-path python/Cargo.toml --config deny.toml check \
		--hide-inclusion-graph licenses bans sources
	$(CARGO_DENY) --locked --manifest-path rivals/rust/Cargo.toml --config deny.toml check \
		--hide-inclusion-graph licenses bans sources
	$(CARGO_DENY) --locked --manifest-path instructions/Cargo.toml --config deny.toml check \
		--hide-inclusion-graph licenses bans sources

layers:
	scripts/check-layers

scripts:
	scripts/check-layers --self-test
	scripts/check-docs --self-test
	scripts/site --self-test
	scripts/check-prose --self-test
	scripts/check-surface --self-test
	scripts/draw-lines --self-test
	python3 -B scripts/bench_common.py
	scripts/bench-simulate --self-test
	scripts/bench-workers --self-test
	scripts/compare-samples --self-test
	scripts/mutants --self-test
	scripts/flakes --help >/dev/null
	scripts/http-conformance --help >/dev/null
	scripts/http-speed --self-test
	scripts/http-crowds --expected >/dev/null
	scripts/instructions self-test
	scripts/semver --self-test
	scripts/stress --help >/dev/null
	scripts/prove-verdicts --self-test
	scripts/check-hars --self-test
	scripts/startup-overhead --help >/dev/null
	traces/record-build --self-test
	bash -n .ci/run capi/install capi/static-library capi/tests/run perl/build perl/test scripts/bench-lab scripts/install-rivals scripts/nightly scripts/sample-report scripts/stress \
		scripts/test-full

# Needs valgrind on Linux on x86-64, and counts of the toolchain; elsewhere it is skipped, and a line says why;
# HAYPILE_REQUIRE_RIVALS=1 or CI=true makes that a failure.
instructions: ## do the engine's operations take as many instructions as committed? (valgrind; docs/instructions.md)
	scripts/instructions check --target $(TARGET) --runner $(GUNGRAUN_RUNNER)

instructions-renew: ## count them again and write instructions/*.csv and the table of docs/instructions.md
	scripts/instructions renew --target $(TARGET) --runner $(GUNGRAUN_RUNNER)

semver: $(CARGO_SEMVER_CHECKS) ## does a change break programs that use the public API of the baseline? (semver/README.md)
	scripts/semver check $(SEMVER_CRATES) --target $(TARGET) --tool $(CARGO_SEMVER_CHECKS)

semver-renew: ## write the current public API as the baseline into semver/: accepts a deliberate break
	scripts/semver renew $(SEMVER_CRATES) --target $(TARGET)

bench: build $(LIBCACHESIM) ## our simulator and libCacheSim in turns, raw rows into record/ (needs 6 GB of disk)
	cargo build --release --locked -p haypile-sim --examples
	scripts/bench-inputs $(HAYPILE) $(BENCH_INPUTS)
	scripts/bench-simulate --ours $(BENCH_JOB) --rival "$(LIBCACHESIM) rivals/libcachesim/run.py" \
		--policies $(BENCH_POLICIES) --objects $(BENCH_OBJECTS) --blocks $(BENCH_BLOCKS) \
		$(BENCH_INPUTS)/*.oracleGeneral.bin
	scripts/bench-simulate --ours $(BENCH_JOB) --jobs $(BENCH_INPUTS)/jobs.jsonl \
		--blocks $(BENCH_BLOCKS) --name simulate-scale

rivals: rivals-foreign rivals-rust ## build the runners of other caches (the first time about 5 minutes)

rivals-rust: # those in Rust alone
	@echo "Set-up: cargo fetches the rivals' crates of rivals/rust/Cargo.lock and builds into $(TARGET)/rivals/rust."
	cargo build --release $(RIVALS_CARGO)
	@echo "Runners: $(RIVALS)"

rivals-foreign: ## install the caches in other languages (Debian's packages if root), build their runners
	@+MAKE="$(MAKE)" scripts/install-rivals $(PYPI_RIVALS) $(KSHAREDDATACACHE) $(HAYPILE_PYTHON) $(HAYPILE_PERL)

# Runners that are not there are skipped, and a line says how to get them; HAYPILE_REQUIRE_RIVALS=1
# makes that a failure.
rivals-test: runners-test firefox-test ## tests of the runners of other caches: tiny jobs, verified

runners-test: $(PYPI_RIVALS) $(HAYPILE_PYTHON) $(HAYPILE_PERL) $(if $(wildcard $(KSHAREDDATACACHE_HEADER)),$(KSHAREDDATACACHE)) # all but the browser
	cargo test $(RIVALS_CARGO)
	$(dir $(RELSTORAGE))bin/python -B rivals/relstorage/test_client.py --quiet
	python3 -B rivals/python/test_measure.py --quiet
	python3 -B rivals/conformance/test_runners.py --quiet

firefox-test: # Firefox and its HTTP cache
	python3 -B rivals/necko/test_necko.py --quiet
	python3 -B rivals/firefox/test_firefox.py --quiet
	python3 -B rivals/firefox/test_lists.py --quiet

# In the browser of the system; without one it is skipped, and a line says how to get it;
# HAYPILE_REQUIRE_RIVALS=1 makes that a failure.
report-test: $(REPORT_TEST) ## tests of the report in a real browser (Debian's package chromium)
	$(PROGRAM_BUILD)
	$(dir $(REPORT_TEST))bin/python -B tests/report/test_report.py

pages-browser-test: $(REPORT_TEST) ## a generated site in real browsers, verified by the origin's counts (packages chromium, firefox-esr)
	$(PROGRAM_BUILD)
	$(dir $(REPORT_TEST))bin/python -B tests/browser/test_pages.py
	python3 -B tests/browser/test_requests.py

http-conformance: ## the tests of cache-tests.fyi against `haypile proxy` (Node.js with npm; CACHE_TESTS=)
	@echo "Set-up: cargo builds into $(TARGET)/, and npm installs the tests into $(TARGET)/http-conformance."
	$(PROGRAM_BUILD)
	scripts/http-conformance --program $(TARGET)/debug/haypile

http-crowds: build ## crowds on haypile proxy, nginx, Varnish and Apache Traffic Server (15 minutes; OUTPUT=)
	scripts/http-crowds --program $(HAYPILE) $(if $(OUTPUT),--output $(OUTPUT))

# Alone on the machine: it has one processor for the server and one for the load.
http-speed: build ## haypile proxy, nginx and Apache Traffic Server in turns, on an idle machine (20 minutes; OUTPUT=)
	scripts/http-speed --program $(HAYPILE) $(if $(OUTPUT),--output $(OUTPUT))

# Alone on the machine. Caches that are not installed are skipped, and a line says how to get them.
workers-bench: $(WORKERS) $(WORKERS_PACKAGE) ## Django's or Flask's caches and ours under 8 gunicorn workers, on an idle machine (30 minutes, SITE=flask 70; OUTPUT=)
	scripts/bench-workers $(if $(SITE),--site $(SITE)) $(if $(OUTPUT),--output $(OUTPUT))

rivals-lint:
	cargo fmt --manifest-path rivals/rust/Cargo.toml --check
	cargo clippy --all-targets $(RIVALS_CARGO) -- -D warnings

tables: # are the tables of the documents, and the sample report, those of the raw results?
	$(PROGRAM_BUILD) --quiet
	$(TARGET)/debug/haypile lab splice --check README.md docs/figures.md \
		docs/file-store.md docs/torture.md docs/perl.md docs/browsers.md
	scripts/sample-report $(TARGET)/debug/haypile --check
	scripts/instructions agree

docs-check: ## links between documents, the README's size, phrases that docs/style.md replaces
	scripts/check-docs
	scripts/check-prose

site: $(MDBOOK) ## the documents as a site that can be searched without a network, in target/site (a release publishes it)
	scripts/site --mdbook $(MDBOOK) --out $(TARGET)/site

options: ## regenerate docs/options.md from the options that URLs take
	cargo run --quiet --locked -p haypile-cli -- schemes --markdown >docs/options.md

sample-report: ## make docs/sample-report.html again, of rows in record/
	$(PROGRAM_BUILD) --quiet
	scripts/sample-report $(TARGET)/debug/haypile

verdicts: build ## A-A comparisons and planted slowdowns on this machine: how many verdicts are right? (20 minutes)
	scripts/prove-verdicts $(HAYPILE) --out $(TARGET)/verdicts.jsonl

# Without symbols, which the programs of target/release keep for backtraces and profiles.
install: ## install the haypile program where cargo installs programs
	CARGO_PROFILE_RELEASE_STRIP=symbols cargo install --locked --path crates/haypile-cli

install-capi: ## install the C library, its header, haypile.pc and haypile.3 (PREFIX=/usr/local LIBDIR= DESTDIR=)
	cargo build --release --locked -p haypile-capi
	PREFIX=$(PREFIX) LIBDIR=$(LIBDIR) DESTDIR=$(DESTDIR) capi/install $(TARGET)/release

clean: ## remove everything that was built, tools included
	cargo clean

# Tools are used for seconds: without optimisation, and each crate in one piece, building them takes the least time.
TOOLS := $(CARGO_DENY) $(CARGO_FUZZ) $(CARGO_SEMVER_CHECKS) $(GUNGRAUN_RUNNER) $(MDBOOK)
$(TOOLS): export CARGO_PROFILE_RELEASE_OPT_LEVEL := 0
$(TOOLS): export CARGO_PROFILE_RELEASE_LTO := off
$(TOOLS): export CARGO_PROFILE_RELEASE_CODEGEN_UNITS := 1
$(TOOLS): export CARGO_PROFILE_RELEASE_BUILD_OVERRIDE_CODEGEN_UNITS := 1
# Crates that two tools use in the same version are built once.
TOOLS_BUILD := $(TARGET)/tools/build

$(CARGO_DENY):
	@echo "Set-up: building cargo-deny $(CARGO_DENY_VERSION) into $(TARGET)/tools (about a minute)."
	cargo install cargo-deny --version $(CARGO_DENY_VERSION) --locked --quiet \
		--root $(TARGET)/tools/cargo-deny-$(CARGO_DENY_VERSION) --target-dir $(TOOLS_BUILD)

$(CARGO_FUZZ):
	@echo "Set-up: building cargo-fuzz $(CARGO_FUZZ_VERSION) into $(TARGET)/tools (about a minute)."
	cargo install cargo-fuzz --version $(CARGO_FUZZ_VERSION) --locked --quiet \
		--root $(TARGET)/tools/cargo-fuzz-$(CARGO_FUZZ_VERSION) --target-dir $(TOOLS_BUILD)

$(CARGO_SEMVER_CHECKS):
	@echo "Set-up: building cargo-semver-checks $(CARGO_SEMVER_CHECKS_VERSION) into $(TARGET)/tools (about two minutes)."
	cargo install cargo-semver-checks --version $(CARGO_SEMVER_CHECKS_VERSION) --locked --quiet \
		--root $(TARGET)/tools/cargo-semver-checks-$(CARGO_SEMVER_CHECKS_VERSION) --target-dir $(TOOLS_BUILD)

$(GUNGRAUN_RUNNER):
	@echo "Set-up: building gungraun-runner $(GUNGRAUN_VERSION) into $(TARGET)/tools (about a minute)."
	cargo install gungraun-runner --version $(GUNGRAUN_VERSION) --locked --quiet \
		--root $(TARGET)/tools/gungraun-runner-$(GUNGRAUN_VERSION) --target-dir $(TOOLS_BUILD)

$(MDBOOK):
	@echo "Set-up: building mdbook $(MDBOOK_VERSION) into $(TARGET)/tools (about a minute)."
	cargo install mdbook --version $(MDBOOK_VERSION) --locked --quiet --no-default-features --features search \
		--root $(TARGET)/tools/mdbook-$(MDBOOK_VERSION) --target-dir $(TOOLS_BUILD)

$(PYTHON): $(PYTHON_PEERS)
	@echo "Set-up: installing the packages of $(PYTHON_PEERS), Django, Flask, mypy and others, into $(TARGET)/python."
	python3 -m venv --clear $(dir $@)
	$(dir $@)bin/pip install --quiet --disable-pip-version-check --requirement $(PYTHON_PEERS)
	touch $@

$(MATURIN):
	@echo "Set-up: installing the Python package maturin $(MATURIN_VERSION) into $(TARGET)/tools."
	python3 -m venv $(TARGET)/tools/maturin-$(MATURIN_VERSION)
	$(dir $@)pip install --quiet --disable-pip-version-check maturin==$(MATURIN_VERSION)

$(REPORT_TEST):
	@echo "Set-up: installing the Python package playwright $(PLAYWRIGHT_VERSION) into $(TARGET)/report-test."
	python3 -m venv $(dir $@)
	$(dir $@)bin/pip install --quiet --disable-pip-version-check playwright==$(PLAYWRIGHT_VERSION)
	touch $@

$(LIBCACHESIM):
	@echo "Set-up: installing the Python package libcachesim $(LIBCACHESIM_VERSION) into $(TARGET)/rivals."
	python3 -m venv $(TARGET)/rivals/libcachesim
	$(TARGET)/rivals/libcachesim/bin/pip install --quiet libcachesim==$(LIBCACHESIM_VERSION)

$(RELSTORAGE): PACKAGE := RelStorage==$(RELSTORAGE_VERSION)
$(DISKCACHE): PACKAGE := diskcache==$(DISKCACHE_VERSION)
$(DISKCACHE_COMMUNITY): PACKAGE := diskcache-community==$(DISKCACHE_COMMUNITY_VERSION)
$(DISKCACHE_RS): PACKAGE := diskcache_rs==$(DISKCACHE_RS_VERSION)
$(DOGPILE): PACKAGE := dogpile.cache==$(DOGPILE_VERSION)
$(CACHETOOLS): PACKAGE := cachetools==$(CACHETOOLS_VERSION)
$(PYMEMCACHE): PACKAGE := pymemcache==$(PYMEMCACHE_VERSION)
$(REDIS_PY): PACKAGE := redis==$(REDIS_PY_VERSION) hiredis==$(HIREDIS_VERSION)
$(STDLIB): PACKAGE :=
$(PYPI_RIVALS):
	@echo "Set-up: installing $(or $(PACKAGE),Python without packages) into $(TARGET)/rivals."
	python3 -m venv $(dir $@)
	$(if $(PACKAGE),$(dir $@)bin/pip install --quiet $(PACKAGE))
	touch $@

# Built as for its users: what `make test-python` installs is not optimised.
$(HAYPILE_PYTHON) $(WORKERS_PACKAGE): $(shell find python/src python/haypile crates/haypile/src crates/haypile-remote/src -name '*.rs' -o -name '*.py') python/Cargo.lock
$(HAYPILE_PYTHON):
	@echo "Set-up: building Haypile's Python package into $(TARGET)/python-build (about a minute), and" \
		"installing it into $(TARGET)/rivals."
	python3 -m venv $(dir $@)
	MATURIN_PEP517_ARGS=--profile=$(PYTHON_PROFILE) CARGO_TARGET_DIR=$(abspath $(TARGET)/python-build) \
		$(dir $@)bin/pip install --quiet --disable-pip-version-check --force-reinstall ./python --constraint $(PYTHON_PEERS) msgpack
	touch $@

# Against a library of its own, as its users have it.
$(HAYPILE_PERL): $(shell find perl capi/src crates/haypile/src crates/haypile-remote/src -type f) Cargo.lock
	@echo "Set-up: building Haypile's Perl distribution into $(TARGET)/rivals/haypile-perl."
	$(if $(filter debug,$(PERL_PROFILE)),$(CAPI_BUILD),cargo build --release --locked -p haypile-capi)
	perl/build $(TARGET)/$(PERL_PROFILE) $(dir $@)
	touch $@

# The versions are those of both files; an environment of earlier ones is brought up to date.
$(WORKERS): $(PYTHON_PEERS) Makefile
	@echo "Set-up: installing gunicorn, Django, Flask-Caching, diskcache $(DISKCACHE_VERSION) and redis-py into" \
		"$(TARGET)/workers."
	python3 -m venv $(dir $@)
	$(dir $@)bin/pip install --quiet --disable-pip-version-check --constraint $(PYTHON_PEERS) gunicorn django \
		flask flask-caching \
		diskcache==$(DISKCACHE_VERSION) redis==$(REDIS_PY_VERSION) hiredis==$(HIREDIS_VERSION)
	touch $@

$(WORKERS_PACKAGE): | $(WORKERS)
	@echo "Set-up: building Haypile's Python package into $(TARGET)/python-build (about a minute), and" \
		"installing it into $(TARGET)/workers."
	CARGO_TARGET_DIR=$(abspath $(TARGET)/python-build) $(dir $@)bin/pip install --quiet \
		--disable-pip-version-check --force-reinstall --no-deps ./python
	touch $@

# From Debian's libkf5coreaddons-dev; its headers are not ours to have no warnings.
$(KSHAREDDATACACHE): $(wildcard rivals/kshareddatacache/src/*)
	@echo "Set-up: building the runner of KSharedDataCache into $(TARGET)/rivals."
	mkdir -p $(dir $@)
	g++ -std=c++17 -O2 -fPIC -Wall -Wextra -Werror rivals/kshareddatacache/src/*.cpp -o $@ \
		-isystem $(dir $(KSHAREDDATACACHE_HEADER)) -isystem /usr/include/KF5 \
		$$(pkg-config --cflags Qt5Core | sed 's/-I */-isystem /g') \
		-lKF5CoreAddons $$(pkg-config --libs Qt5Core)
