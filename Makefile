# The commands of CONTRIBUTING.md. `make test` is all that a bare machine with
# a Rust toolchain needs.

.PHONY: test test-mpi test-processes opencl mpi check check-mpi bench notebooks

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

check-mpi: mpi
	cargo clippy -p pdawl-wire-mpi --all-targets -- -D warnings

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
	touch $@
