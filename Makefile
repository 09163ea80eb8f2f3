# The index of everyday commands. `make` alone lists them.

CARGO ?= cargo
TARGET_DIR = $(or $(CARGO_TARGET_DIR),target)
FSTONE = $(TARGET_DIR)/release/fstone
# Each MPI has a directory of its own: what was built for one is not built again for another.
MPI_DIR = $(TARGET_DIR)/$(notdir $(or $(MPICC),mpi))
MUSL = x86_64-unknown-linux-musl

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: ## install what is missing, build, and run the small-file study in its quick form with four filesystems for 90 seconds
	@scripts/prerequisites run
	@$(CARGO) build --profile quick --locked --package fstone
	@$(TARGET_DIR)/quick/fstone run small-file --quick --budget 90s $(foreach row,ext3 xfs ext4_today btrfs_today,--only filesystem="$(subst _, ,$(row))")

.PHONY: check
check: ## formatting, lints, unit tests, the pure crates and the engine: some minutes, no root, no guests
	@scripts/prerequisites check
	@scripts/test check

.PHONY: test
test: ## install what is missing, then formatting, lints and all tests (as root: those that need root too)
	@scripts/prerequisites test
	@scripts/test

.PHONY: test-all
test-all: ## before a release: the tests, a second MPI, GlusterFS, a kernel that counts its work, and 200 kills (about an hour)
	@scripts/prerequisites test-all
	@scripts/test all

.PHONY: kill-nine
kill-nine: ## kill -9 of runs at random moments, KILLS (default 200) times, then resume: nothing lost, nothing left (half an hour)
	@scripts/prerequisites test
	@FSTONE_TEST_KILLS=$(or $(KILLS),200) $(CARGO) test --locked --package fstone --test cli -- killed_at --nocapture

.PHONY: bench
bench: ## the load engine beside bare loops, fio and sysbench; results in bench/runs/, which git ignores
	@scripts/prerequisites test
	@$(CARGO) run --release --locked --package fstone-bench

.PHONY: compare
compare: build ## beside the real sysbench and fio (Debian's) and, with FFSB=/path/to/ffsb, the real FFSB; some minutes, as root (filebench: bench/compare-filebench.sh)
	@FSTONE=$(FSTONE) bench/compare-sysbench.sh counts witness throughput
	@FSTONE=$(FSTONE) bench/compare-fio.sh
	@FSTONE=$(FSTONE) bench/compare-ffsb.sh

.PHONY: calibrate
calibrate: build ## coverage, false alarms and power: simulated, then with real trials (root, about an hour and a half)
	@$(CARGO) run --release --locked --package fstone-stats --example calibrate_intervals
	@$(CARGO) run --release --locked --package fstone-stats --example calibrate_tests
	@$(CARGO) run --release --locked --package fstone-stats --example calibrate_tables 1000
	@$(CARGO) run --release --locked --package fstone-stats --example calibrate_sequential 1000
	@$(CARGO) test --release --locked --package fstone judge::tests::calibrate -- --ignored --nocapture
	@FSTONE=$(FSTONE) bench/calibrate.sh
	@FSTONE=$(FSTONE) RUNS=100 bench/calibrate-budget.sh

.PHONY: fuzz
fuzz: ## every parser for SECONDS (default 60) each; needs the nightly toolchain
	@fuzz/run.sh $(or $(SECONDS),60)

.PHONY: sanitize
sanitize: ## the engine under the address and the thread sanitizer; needs the nightly toolchain with rust-src
	@scripts/sanitize

.PHONY: build
build: ## the release binary
	$(CARGO) build --release --locked --package fstone

.PHONY: mpi
mpi: ## the release binary for loads of many ranks: links the MPI of $MPICC, else of mpicc (libopenmpi-dev or libmpich-dev, and libclang-dev)
	$(CARGO) build --release --locked --package fstone --features mpi --target-dir $(MPI_DIR)
	@echo "$(MPI_DIR)/release/fstone"

.PHONY: static
static: ## a stripped binary that needs no libraries, here and as the agent in guests, and a try of it (musl; rustup and musl-tools)
	rustup target add $(MUSL)
	CC_x86_64_unknown_linux_musl=musl-gcc $(CARGO) build --release --locked --package fstone --target $(MUSL)
	install -D --strip --mode 755 $(TARGET_DIR)/$(MUSL)/release/fstone $(TARGET_DIR)/static/fstone
	scripts/try-binary $(TARGET_DIR)/static/fstone
	@echo "$(TARGET_DIR)/static/fstone"

.PHONY: deb
deb: ## a Debian package in target/debian/ (cargo install --locked cargo-deb)
	@$(CARGO) deb --version >/dev/null 2>&1 || { echo "no cargo-deb; cargo install --locked cargo-deb" >&2; exit 1; }
	rm -rf target/deb
	$(MAKE) install DESTDIR=$(CURDIR)/target/deb PREFIX=/usr
	$(CARGO) deb --package fstone --locked --no-build --no-strip --output target/debian/

.PHONY: try-deb
try-deb: ## install that package in a fresh Debian 12, run a study there, and purge it (as root; debootstrap)
	scripts/try-deb target/debian/fstone_*.deb

.PHONY: format
format: ## put all source in the house's format
	$(CARGO) fmt --all

.PHONY: lint
lint: ## clippy and rustdoc, warnings as errors
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps --locked

# What is installed, each at its usual place; DESTDIR is for those who make packages.
PREFIX ?= /usr/local
ifneq ($(words [$(DESTDIR)$(PREFIX)]),1)
$(error PREFIX and DESTDIR must not contain spaces)
endif
BINARY = $(DESTDIR)$(PREFIX)/bin/fstone
SHARED = $(DESTDIR)$(PREFIX)/share
COMPLETIONS = $(SHARED)/bash-completion/completions/fstone $(SHARED)/zsh/site-functions/_fstone \
	$(SHARED)/fish/vendor_completions.d/fstone.fish

.PHONY: install
install: build ## install the binary, its manual and completions (bash, zsh, fish) under $(PREFIX), by default /usr/local
	install -D --strip --mode 755 $(FSTONE) $(BINARY)
	install -d $(SHARED)/man/man1 $(dir $(COMPLETIONS))
	$(BINARY) manual --directory $(SHARED)/man/man1
	$(BINARY) completions bash >$(word 1,$(COMPLETIONS))
	$(BINARY) completions zsh >$(word 2,$(COMPLETIONS))
	$(BINARY) completions fish >$(word 3,$(COMPLETIONS))
	chmod 644 $(COMPLETIONS) $(SHARED)/man/man1/fstone.1 $(SHARED)/man/man1/fstone-*.1

.PHONY: uninstall
uninstall: ## remove what `make install` installed (with the same PREFIX and DESTDIR)
	rm -f $(BINARY) $(SHARED)/man/man1/fstone.1 $(SHARED)/man/man1/fstone-*.1 $(COMPLETIONS)
