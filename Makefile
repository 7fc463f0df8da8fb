# The commands of CONTRIBUTING.md. `make test` is all that a bare machine with
# a Rust toolchain needs.

.PHONY: test opencl check bench

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
