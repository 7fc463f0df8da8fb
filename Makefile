# The commands of CONTRIBUTING.md. `make test` is all that a bare machine with
# a Rust toolchain needs.

.PHONY: test test-mpi test-processes opencl mpi check check-minimal check-mpi check-python bench
.PHONY: check-changed check-deny check-address check-page
.PHONY: notebooks check-notebooks
# The folder of the Python package has the name of this target.
.PHONY: python wheel
.PHONY: release install install-layer install-wire uninstall

PYTHON ?= python3
VENV := target/notebooks-venv
# All crates but the wire over MPI: nothing else needs MPI.
CRATES := --workspace --exclude pdawl-wire-mpi

# Every test that needs no MPI. None of them is skipped: one that cannot run fails and says
# what it lacks. Runs of three processes follow where this machine has Open MPI.
test: opencl
	cargo test $(CRATES)
	@if sh scripts/install-mpi.sh --check; then $(MAKE) test-processes; else \
		echo "SKIPPED: runs of three processes, as mpirun, mpicc or libclang is missing;" \
			"make test-mpi installs them"; fi

# Runs of several processes, with mpirun.
test-mpi: mpi test-processes
	cargo test -p pdawl-wire-mpi

# The program as three processes.
test-processes:
	cargo test $(CRATES) --test program mpi:: -- --ignored

# An OpenCL CPU device for the tests, through the system's package manager.
opencl:
	sh scripts/install-opencl.sh

# Open MPI and libclang, likewise.
mpi:
	sh scripts/install-mpi.sh

# What a change must also pass.
check:
	cargo fmt --all --check
	cargo clippy $(CRATES) --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc $(CRATES) --no-deps
	@$(MAKE) --no-print-directory check-changed check-deny check-minimal check-python \
		check-notebooks check-page

# The oldest Rust that Cargo.toml allows, where rustup has it. It may be called 1.90 or 1.90.0.
MINIMAL := $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
check-minimal:
	@toolchain=$$(rustup toolchain list 2>/dev/null | grep -m 1 -E '^$(MINIMAL)(\.[0-9]+)?-' | \
		cut -d ' ' -f 1); \
	if [ -n "$$toolchain" ]; then \
		echo cargo +$$toolchain check $(CRATES) --all-targets; \
		cargo +$$toolchain check $(CRATES) --all-targets; \
	else echo "SKIPPED: the check with Rust $(MINIMAL), which rustup does not have"; fi

# Changed copies of files, sources and messages for their readers, longer than in `make test`.
check-changed:
	PDAWL_TEST_CHANGED_SECONDS=8 cargo test --quiet $(CRATES) --lib _or_refused

# Licences, and known vulnerabilities, of all packages (deny.toml).
check-deny:
	@if ! cargo deny --version >/dev/null 2>&1; then \
		echo "SKIPPED: licences and known vulnerabilities, as there is no cargo-deny;" \
			"\`cargo install --locked cargo-deny\` installs it"; \
	elif cargo deny fetch db >/dev/null 2>&1; then cargo deny check; \
	else cargo deny check bans licenses sources && \
		echo "SKIPPED: known vulnerabilities, as their database cannot be fetched"; fi

# The page of `pdawl ui` in a headless Chromium, and the types of its scripts, where there are
# Chromium and Node.js; scripts/install-chromium.sh installs them.
check-page:
	@if ! sh scripts/install-chromium.sh --check; then \
		echo "SKIPPED: the page, as Chromium or Node.js is missing;" \
			"\`sh scripts/install-chromium.sh\` installs them"; \
	elif ! (cd tests/page && npm ci --silent --no-audit --no-fund); then \
		echo "SKIPPED: the page, as the packages of its tests cannot be fetched"; \
	else set -ex; cargo build --quiet; cd tests/page; npm run --silent check; npm test --silent; fi

# The tests of the library under AddressSanitizer, which a nightly Rust has: Miri cannot load drivers.
# Drivers and the first launches of kernels handle faults themselves.
check-address:
	ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:use_sigaltstack=0:detect_leaks=0 \
		RUSTFLAGS=-Zsanitizer=address cargo +nightly test --target $(shell uname -m)-unknown-linux-gnu \
		--target-dir target/address --test library -- \
		--skip leave_nothing_behind

check-mpi: mpi
	cargo clippy -p pdawl-wire-mpi --all-targets -- -D warnings

# An installation, below DESTDIR/PREFIX. The wire over MPI is part of it where it can be built.
PREFIX ?= /usr/local
VERSION := $(shell sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
BUILT = $(or $(CARGO_TARGET_DIR),target)/release
BUILT_DEV = $(or $(CARGO_TARGET_DIR),target)/debug
ROOT = $(DESTDIR)$(PREFIX)
BASH_COMPLETIONS = $(ROOT)/share/bash-completion/completions
ZSH_COMPLETIONS = $(ROOT)/share/zsh/site-functions
FISH_COMPLETIONS = $(ROOT)/share/fish/vendor_completions.d
LAYER = libpdawl_opencl.so
DIVIDER = libpdawl_c.so
WIRE = libpdawl_wire_mpi.so

# All that is installed in one build: a package that is built alone has other features. Where
# root has no cargo, `make release && sudo make install` installs what was built.
release:
	@if [ -x $(BUILT)/pdawl ] && ! command -v cargo >/dev/null; then \
		echo "there is no cargo: $(BUILT) is installed as it is"; \
	elif sh scripts/install-mpi.sh --check; then set -x; \
		cargo build --release --locked --workspace --exclude pdawl-python; \
	else set -x; cargo build --release --locked $(CRATES) --exclude pdawl-python; fi

install: release
	install -D -m 755 $(BUILT)/pdawl $(ROOT)/bin/pdawl
	install -D -m 644 $(BUILT)/$(LAYER) $(ROOT)/lib/pdawl/$(LAYER)
	install -D -m 644 opencl-layer/include/CL/cl_pdawl.h $(ROOT)/include/CL/cl_pdawl.h
	install -D -m 644 src/core/cluster/wire/plugin/pdawl_wire.h $(ROOT)/include/pdawl_wire.h
	install -D -m 755 $(BUILT)/$(DIVIDER) $(ROOT)/lib/$(DIVIDER)
	install -D -m 644 src/c/pdawl.h $(ROOT)/include/pdawl.h
	install -d $(ROOT)/lib/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION)|' src/c/pdawl.pc.in >$(ROOT)/lib/pkgconfig/pdawl.pc
	install -d $(BASH_COMPLETIONS) $(ZSH_COMPLETIONS) $(FISH_COMPLETIONS)
	$(BUILT)/pdawl completions bash >$(BASH_COMPLETIONS)/pdawl
	$(BUILT)/pdawl completions zsh >$(ZSH_COMPLETIONS)/_pdawl
	$(BUILT)/pdawl completions fish >$(FISH_COMPLETIONS)/pdawl.fish
	$(BUILT)/pdawl man $(ROOT)/share/man/man1
	@if sh scripts/install-mpi.sh --check; then set -x; \
		install -D -m 644 $(BUILT)/$(WIRE) $(ROOT)/lib/pdawl/$(WIRE); \
		else echo "SKIPPED: the wire over MPI, as mpirun, mpicc or libclang is missing;" \
			"\`make mpi install-wire PREFIX=$(PREFIX)\` installs them, builds it and installs it"; fi

# One library alone, for a program that is in PREFIX/bin.
install-layer:
	cargo build --release --locked -p pdawl-opencl-layer
	install -D -m 644 $(BUILT)/$(LAYER) $(ROOT)/lib/pdawl/$(LAYER)

install-wire:
	cargo build --release --locked -p pdawl-wire-mpi
	install -D -m 644 $(BUILT)/$(WIRE) $(ROOT)/lib/pdawl/$(WIRE)

# Folders that other programs use, too, stay.
uninstall:
	rm -f $(ROOT)/bin/pdawl $(ROOT)/lib/pdawl/$(LAYER) $(ROOT)/lib/pdawl/$(WIRE)
	rm -f $(ROOT)/include/CL/cl_pdawl.h $(ROOT)/include/pdawl_wire.h $(ROOT)/include/pdawl.h
	rm -f $(ROOT)/lib/$(DIVIDER) $(ROOT)/lib/pkgconfig/pdawl.pc
	rm -f $(BASH_COMPLETIONS)/pdawl $(ZSH_COMPLETIONS)/_pdawl $(FISH_COMPLETIONS)/pdawl.fish
	rm -f $(ROOT)/share/man/man1/pdawl.1 $(ROOT)/share/man/man1/pdawl-*.1
	[ ! -d $(ROOT)/lib/pdawl ] || rmdir --ignore-fail-on-non-empty $(ROOT)/lib/pdawl

# The Python package: a wheel in target/wheels, built and tested in an environment of its own.
# PYTHON_PROFILE=dev builds it fast, and slow code.
PYTHON_VENV := target/python-venv
PYTHON_PROFILE ?= release
python: $(PYTHON_VENV)/installed
	rm -rf target/wheels
	$(PYTHON_VENV)/bin/pip wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps \
		--config-settings build-args="--profile $(PYTHON_PROFILE)" --wheel-dir target/wheels .
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps \
		--force-reinstall target/wheels/pdawl-*.whl
	$(PYTHON_VENV)/bin/python -m pytest -q

# What this Python has is not installed again.
$(PYTHON_VENV)/installed: pyproject.toml
	$(PYTHON) -m venv --clear --system-site-packages $(PYTHON_VENV)
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check \
		'maturin>=1.13,<2' 'mypy>=1.11' 'numpy>=1.24' 'scipy>=1.10' 'pandas>=2.0' 'pytest>=8'
	touch $@

# The package on the library that the workspace's build makes, without a wheel, where Python and its
# packages can be had. `--tests` chooses the features of the tests, so that nothing is built again.
PYTHON_PACKAGE = target/python-package
check-python:
	@if $(MAKE) --no-print-directory $(PYTHON_VENV)/installed >/dev/null 2>&1; then set -ex; \
		cargo build $(CRATES) --lib --tests; \
		rm -rf $(PYTHON_PACKAGE) && mkdir -p $(PYTHON_PACKAGE); \
		cp -r python/pdawl $(PYTHON_PACKAGE)/; \
		cp $(BUILT_DEV)/lib_pdawl.so $(PYTHON_PACKAGE)/pdawl/_pdawl.abi3.so; \
		cp $(BUILT_DEV)/$(LAYER) $(PYTHON_PACKAGE)/pdawl/; \
		PYTHONPATH=$(abspath $(PYTHON_PACKAGE)) $(PYTHON_VENV)/bin/python -m pytest -q; \
	else echo "SKIPPED: the Python package, as $(PYTHON) -m venv and pip cannot make an" \
		"environment with maturin, mypy, NumPy, SciPy, pandas and pytest"; fi

# The code of the notebooks, without Jupyter, on that package.
check-notebooks: check-python
	@if $(MAKE) --no-print-directory $(PYTHON_VENV)/notebooks >/dev/null 2>&1; then set -ex; \
		PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$(PYTHON_PACKAGE) \
			$(PYTHON_VENV)/bin/python notebooks/run.py notebooks/*.ipynb; \
	else echo "SKIPPED: the notebooks, as pip cannot add the matplotlib of" \
		"notebooks/requirements.txt, which needs Python 3.11, to $(PYTHON_VENV)"; fi

$(PYTHON_VENV)/notebooks: $(PYTHON_VENV)/installed notebooks/requirements.txt
	$(PYTHON_VENV)/bin/pip install --quiet --disable-pip-version-check \
		"$$(grep '^matplotlib==' notebooks/requirements.txt)"
	touch $@

# What users of Python get, in dist/: a wheel for every x86-64 Linux with glibc 2.28 and Python 3.10,
# or newer ones, and the sources. Zig links with the functions of that glibc, so no container is
# needed. The wheel is at most 12 MiB, and is the program where nothing else is installed.
WHEEL_VENV := target/wheel-venv
wheel: $(WHEEL_VENV)/installed
	rm -rf dist
	PATH="$(abspath $(WHEEL_VENV))/bin:$$PATH" maturin build --profile wheel --locked --zig \
		--compatibility manylinux_2_28 --compression-level 9 --out dist
	$(WHEEL_VENV)/bin/maturin sdist --out dist
	test $$(stat --format %s dist/pdawl-*.whl) -le 12582912
	$(WHEEL_VENV)/bin/auditwheel show dist/pdawl-*.whl | tr '\n' ' ' | \
		grep -o 'platform tag: "manylinux_2_28_x86_64"'
	$(WHEEL_VENV)/bin/abi3audit --strict dist/pdawl-*.whl
	$(PYTHON) -m venv --clear $(WHEEL_VENV)/empty
	$(WHEEL_VENV)/empty/bin/pip install --quiet --disable-pip-version-check dist/pdawl-*.whl
	test -f $(WHEEL_VENV)/empty/lib/python3*/site-packages/pdawl/$(LAYER)
	$(WHEEL_VENV)/empty/bin/pdawl run stencil --machine k40 --size 512 --steps 3

$(WHEEL_VENV)/installed: pyproject.toml
	$(PYTHON) -m venv --clear $(WHEEL_VENV)
	$(WHEEL_VENV)/bin/pip install --quiet --disable-pip-version-check \
		'maturin>=1.13,<2' ziglang auditwheel abi3audit
	touch $@

bench:
	cargo bench $(CRATES)

# The figures of notebooks/, as pages in target/notebooks. Needs Python 3.11 or
# newer; a cell that fails fails this.
notebooks: $(VENV)/installed
	PYTHONDONTWRITEBYTECODE=1 $(VENV)/bin/python -m nbconvert --to html --execute \
		--output-dir target/notebooks notebooks/*.ipynb

$(VENV)/installed: notebooks/requirements.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r notebooks/requirements.txt
	$(VENV)/bin/pip install --quiet --disable-pip-version-check .
	touch $@
