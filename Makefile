# The commands of CONTRIBUTING.md. `make test` is all that a bare machine with
# a Rust toolchain needs.

.PHONY: test opencl check bench notebooks

PYTHON ?= python3
VENV := target/notebooks-venv

# Every test. None is skipped: one that cannot run fails and says what it lacks.
test: opencl
	cargo test --workspace

# An OpenCL CPU device for the tests, through the system's package manager.
opencl:
	sh scripts/install-opencl.sh

# What a change must also pass.
check:
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps

bench:
	cargo bench --workspace

# The figures of notebooks/, as pages in target/notebooks. Needs Python 3.11 or
# newer; a cell that fails fails this.
notebooks: $(VENV)/installed
	PYTHONDONTWRITEBYTECODE=1 $(VENV)/bin/python -m nbconvert --to html --execute \
		--output-dir target/notebooks notebooks/*.ipynb

$(VENV)/installed: notebooks/requirements.txt
	$(PYTHON) -m venv --clear $(VENV)
	$(VENV)/bin/pip install --quiet --disable-pip-version-check -r notebooks/requirements.txt
	touch $@
