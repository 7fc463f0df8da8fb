#!/bin/sh
# Measures `pdawl run pagerank` on this machine, with several GPUs too: page-ranks.sh PROGRAM
#
# Three turns of each: alone as pdawl decides, the host, halves and thirds of fixed shares; then
# right results with fixed shares, little memory and a tolerance.
set -u
program=$1
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null
nproc
run() {
    echo "== pagerank $*"
    timeout 100 "$program" run pagerank "$@" 2>&1 | grep -E "Throughput|Time|Change|Verified|Steps|^pdawl:"
}
for turn in 1 2 3; do
    for graph in rmat:20,16 rmat:22,16; do
        run --matrix $graph --steps 20
        run --matrix $graph --steps 20 --devices host
        run --matrix $graph --steps 20 --strategy gpu
        run --matrix $graph --steps 20 --gpu-memory 100MiB
        run --matrix $graph --steps 20 --tolerance 1e-30
    done
done
for options in "--strategy fixed:0.3" "--strategy gpu" "--strategy fixed:0.1 --gpu-memory 20MiB" \
    "--precision f32 --strategy fixed:0.5" "--tolerance 1e-9 --steps 200" "--strategy cpu"; do
    # Options are words.
    # shellcheck disable=SC2086
    run --matrix rmat:18,16 --verify $options
done
