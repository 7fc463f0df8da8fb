#!/bin/sh
# Measures co-runs over two ranks with a GPU each, on a machine with two GPUs:
# two-gpu-ranks.sh PROGRAM WIRE FIRST SECOND, where WIRE is libpdawl_wire_mpi.so and the others
# are the GPUs' names (`pdawl devices`).
#
# Right results first. Then three turns of each workload: one GPU in one process, two ranks, and
# in the first turn one process with both GPUs.
set -u
program=$1 wire=$2 first=$3 second=$4
cores=$(nproc)
half=$((cores / 2))
low=0-$((half - 1)) high=$half-$((cores - 1)) host=host:$((half - 1))
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
nproc
shown() { grep -E "Time|Throughput|Verified|Eigenvalue|change|^pdawl:"; }
one() {
    timeout 120 taskset -c "$low" "$program" run "$@" --devices "$host,$first" 2>&1 | shown
}
two() {
    timeout 120 mpirun --bind-to none \
        -n 1 taskset -c "$low" "$program" run "$@" --devices "$host,$first" --wire "$wire" : \
        -n 1 taskset -c "$high" "$program" run "$@" --devices "$host,$second" --wire "$wire" 2>&1 | shown
}
for work in "stencil --size 4096 --steps 40" "spmv --matrix rmat:16,16 --iterate --steps 20" \
    "spmv --matrix rmat:16,16 --steps 5" "pagerank --matrix rmat:16,16 --steps 20"; do
    echo "== right: $work"
    # Options are words.
    # shellcheck disable=SC2086
    two $work --verify
done
for turn in 1 2 3; do
    for work in "stencil --size 8192 --steps 100" "stencil --size 16384 --steps 100" \
        "stencil --size 32768 --steps 50 --precision f32" "pagerank --matrix rmat:20,16 --steps 20" \
        "pagerank --matrix rmat:22,16 --steps 20" "spmv --matrix rmat:22,16 --iterate --steps 20"; do
        echo "== one GPU: $work"
        # shellcheck disable=SC2086
        one $work
        echo "== two ranks: $work"
        # shellcheck disable=SC2086
        two $work
        if [ $turn = 1 ]; then
            echo "== one process, both GPUs: $work"
            # shellcheck disable=SC2086
            timeout 120 "$program" run $work 2>&1 | shown
        fi
    done
done
