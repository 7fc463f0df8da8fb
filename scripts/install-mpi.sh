#!/bin/sh
# Installs Open MPI and libclang if they are missing. The wire over MPI is compiled with
# both, and its tests start several processes with mpirun. With `--check` it installs
# nothing; its status says whether both are there.
set -eu

have_libclang() {
    for file in "${LIBCLANG_PATH:-/nonexistent}"/libclang*.so* /usr/lib/llvm*/lib/libclang*.so* \
        /usr/lib/libclang*.so* /usr/lib64/libclang*.so* /usr/lib/*-linux-gnu/libclang*.so*; do
        if [ -e "$file" ]; then return 0; fi
    done
    return 1
}

have_all() {
    command -v mpirun >/dev/null && command -v mpicc >/dev/null && have_libclang
}

if have_all; then
    exit 0
fi
if [ "${1:-}" = --check ]; then
    exit 1
fi

. "$(dirname "$0")/packages.sh"
packages "Open MPI and libclang" \
    "openmpi-bin libopenmpi-dev libclang-dev" "openmpi openmpi-devel clang-libs" \
    "openmpi clang" "openmpi4 openmpi4-devel libclang-devel"

if ! have_all; then
    echo "mpirun, mpicc or libclang is still missing: add the folder of Open MPI's programs to" \
        "PATH (on some systems /usr/lib64/openmpi/bin)" >&2
    exit 1
fi
