#!/usr/bin/env bash
# Makes the reports for the figures of notebooks/tasks.ipynb:
#
#   scripts/simulated-tasks.sh PDAWL FOLDER
#
# PDAWL is the program, such as target/release/pdawl. FOLDER gets a report
# pdawl-tasks/1 for each set of tasks and machine, as `pdawl bench tasks` writes it,
# and provenance.txt with the commands. Times of tasks are simulated.
# `deciding_seconds` are real, those of this machine. It takes 11 minutes on one core.
#
# If a command fails, the script ends and leaves FOLDER unchanged.
#
# Environment:
#   REPEATS   runs of each policy, of which the median one counts   [3]
set -euo pipefail

if [ $# -ne 2 ]; then
    echo "usage: scripts/simulated-tasks.sh PDAWL FOLDER" >&2
    exit 2
fi
pdawl=$(realpath "$1")
out=$2
scripts=$(realpath "$(dirname "$0")")
repeats=${REPEATS:-3}

# StarPU counts 2^20 bytes as a megabyte, so the paper's 500 MB are 500 MiB.
memory='--gpu-memory 500MiB'
one=eager,dmdar,mhfp,darts,darts+luf,locality
common=eager,dmdar,partition,mhfp
several=$common,darts,darts+luf,locality

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
commands=()

# report FILE WORDS...: runs `pdawl bench tasks` and keeps its report as FILE.
report() {
    local file=$1
    shift
    local words=(bench tasks "$@" --repeats "$repeats" --format json)
    echo "$file" >&2
    "$pdawl" "${words[@]}" >"$work/$file"
    commands+=("$file: pdawl ${words[*]}")
}

# list FIRST STEP LAST: numbers with commas.
list() {
    seq -s, "$1" "$2" "$3"
}

# shellcheck disable=SC2086 # $memory is an option and its value
{
    # Figures 3 and 4; 5, 6 and 7; 8; 9.
    report matmul2d-v100x1.json --set matmul2d --n "$(list 5 5 75)" \
        --machine v100x1 $memory --policies $one
    report matmul2d-v100x2.json --set matmul2d --n "5,$(list 10 10 140)" \
        --machine v100x2 $memory --policies $several
    report matmul2d-v100x4.json --set matmul2d --n "5,$(list 20 20 300)" \
        --machine v100x4 $memory --policies $several
    report matmul2d-random-v100x2.json --set matmul2d --order random \
        --n "5,$(list 10 10 140)" --machine v100x2 $memory --policies $several
    # Figure 10.
    report matmul3d-v100x4.json --set matmul3d \
        --n "$(list 2 2 20),$(list 24 4 32),40,48,56,69" --machine v100x4 $memory \
        --policies "$common,darts+luf,darts+luf+3inputs,locality"
    # Figure 11.
    report cholesky-v100x4.json --set cholesky --n "$(list 4 4 72)" --machine v100x4 $memory \
        --policies "$common,darts+luf,darts+luf+3inputs,darts+luf+3inputs+opti,locality"
    # Figures 12 and 13.
    report sparse-v100x4.json --set sparse --n "$(list 20 20 300)" --machine v100x4 $memory \
        --policies "$common,darts,darts+luf,darts+luf+opti,locality"
    report sparse-unlimited-v100x4.json --set sparse --n "$(list 20 20 300)" --machine v100x4 \
        --policies "$common,darts,darts+luf,darts+opti,locality"
}

{
    printf 'times: simulated, on machines that ship with the program; `deciding_seconds` are real\n'
    printf 'date: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    printf 'program: %s\n' "$("$pdawl" --version)"
    printf 'commit: %s\n' \
        "$(git -C "$scripts" describe --always --dirty --abbrev=40 2>/dev/null || echo unknown)"
    printf 'decided on: %s, %s cores, %s\n' \
        "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "$(nproc)" "$(uname -srm)"
    printf 'load average at the end: %s\n' "$(cut -d ' ' -f 1-3 /proc/loadavg)"
    printf 'command: REPEATS=%s scripts/simulated-tasks.sh PDAWL FOLDER\n\n' "$repeats"
    printf '%s\n' "${commands[@]}"
} >"$work/provenance.txt"
mkdir -p "$out"
mv "$work"/*.json "$work/provenance.txt" "$out/"
