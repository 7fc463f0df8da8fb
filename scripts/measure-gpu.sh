#!/usr/bin/env bash
# Measures pdawl on a machine with a GPU and collects a dataset for datasets/:
#
#   scripts/measure-gpu.sh OUTDIR
#
# OUTDIR receives up to eight files: devices.json, measured.toml, bench.json,
# runs.json, verify.json, trace.json.gz, gantt.html.gz and provenance.txt. The
# script records a failed command with its error output and continues. At the end
# of the time budget it interrupts the running command, which reports its partial
# result, and records the remaining commands as left out.
#
# Environment:
#   PDAWL         the program                          [./target/release/pdawl]
#   BUDGET        time budget in seconds               [480]
#   SIZE, STEPS   main grid, and steps of every run    [16384, 30]
#   SIZES         grids of the sweep                   [4096 8192 16384 24576]
#   VERIFY_SIZE   grid of the verified runs            [4096]
#   REPEATS       runs of each strategy                [5]
#   ROUNDS        runs of each share in runs.json      [3]
#   LIMIT         limit on GPU memory                  [2GiB]
#   VERIFY_LIMIT  the same for the verified runs       [64MiB]
#   COPY          copy size for bandwidth measurements [1GiB]
set -uo pipefail

if [ $# -ne 1 ]; then
    echo "usage: scripts/measure-gpu.sh OUTDIR" >&2
    exit 2
fi
out=$1
pdawl=$(realpath "${PDAWL:-./target/release/pdawl}")
scripts=$(realpath "$(dirname "$0")")
budget=${BUDGET:-480}
size=${SIZE:-16384}
steps=${STEPS:-30}
sizes=${SIZES:-4096 8192 16384 24576}
verify_size=${VERIFY_SIZE:-4096}
repeats=${REPEATS:-5}
rounds=${ROUNDS:-3}
limit=${LIMIT:-2GiB}
verify_limit=${VERIFY_LIMIT:-64MiB}
copy=${COPY:-1GiB}

shares=(fixed:0.02 fixed:0.05 fixed:0.1)
# The benchmark has one more share: about the fraction that 2 GiB cannot hold.
strategies=(cpu gpu "${shares[@]}" fixed:0.042 guided dawl oracle)
# Largest file for a repository, in bytes.
largest=$((16 << 20))

if ! "$pdawl" --version >/dev/null; then
    echo "measure-gpu: cannot run $pdawl; build it (cargo build --release) or set PDAWL" >&2
    exit 1
fi
mkdir -p "$out" || exit 1
out=$(cd "$out" && pwd) || exit 1
work=$(mktemp -d) || exit 1
# Recorded commands then contain no paths.
cd "$work" || exit 1
mkdir bench runs verify
failures=0
number=0

note() { printf '[%3d s] %s\n' "$SECONDS" "$*" | tee -a "$work/log" >&2; }

# Prints standard input as a JSON string.
json_string() {
    tr -d '\000-\010\013-\037' | awk '
        { gsub(/\\/, "\\\\"); gsub(/"/, "\\\""); gsub(/\t/, "\\t"); text = text sep $0; sep = "\\n" }
        END { printf "\"%s\"", text }'
}

# join LIST: prints the recorded entries as a JSON array.
join() {
    local separator='[' part
    for part in "$work/$1"/*; do
        [ -e "$part" ] || continue
        printf '%s\n' "$separator"
        cat "$part"
        separator=','
    done
    [ "$separator" = '[' ] && printf '['
    printf ']\n'
}

finish() {
    trap - EXIT
    local list file
    for list in bench runs verify; do
        join "$list" >"$out/$list.json"
    done
    {
        provenance
        printf '\n== commands ==\n'
        cat "$work/log"
    } >"$out/provenance.txt" 2>&1
    cd / && rm -rf "$work"
    for file in "$out"/*; do
        if [ "$(wc -c <"$file")" -gt "$largest" ]; then
            echo "measure-gpu: $file is larger than $largest bytes" >&2
        fi
    done
    echo "measure-gpu: $failures failures; the files are in $out" >&2
}
trap finish EXIT
trap 'note "interrupted"; exit 130' INT TERM

# query COMMAND...: prints the output of a system command, if it exists.
query() {
    printf '\n== %s ==\n' "$*"
    if command -v "$1" >/dev/null; then timeout 20 "$@"; else echo "not available"; fi
}

provenance() {
    printf 'date: %s\nsystem: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$(uname -srvm)"
    printf 'program: %s\n' "$("$pdawl" --version)"
    printf 'sha256 of the program: %s\n' "$(sha256sum "$pdawl" | cut -d' ' -f1)"
    printf 'commit: %s\n' "$(git -C "$scripts" rev-parse HEAD 2>/dev/null || echo unknown)"
    query lscpu
    query nvidia-smi
    query nvidia-smi --query-gpu=name,driver_version,memory.total,pcie.link.gen.current,pcie.link.width.current,clocks.max.sm,clocks.max.memory --format=csv
    query clinfo -l
    query free -b
    query cat /etc/os-release
}

# run SECONDS WORDS...: runs the program with a time limit, and within the budget.
# At the limit SIGINT makes it report its partial result. Standard output and
# error go to files. Sets `status`.
run() {
    local seconds=$1
    shift
    local left=$((budget - SECONDS))
    : >"$work/stdout"
    : >"$work/stderr"
    if [ "$left" -lt 3 ]; then
        echo "left out: the time budget is spent" >"$work/stderr"
        status=124
    else
        [ "$left" -lt "$seconds" ] && seconds=$left
        timeout -s INT -k 15 "$seconds" "$pdawl" "$@" >"$work/stdout" 2>"$work/stderr"
        status=$?
    fi
    if [ "$status" -eq 0 ]; then
        note "pdawl $*"
    else
        failures=$((failures + 1))
        note "pdawl $*: exit status $status: $(tr '\n' ' ' <"$work/stderr")"
    fi
}

# record LIST GPU_MEMORY SECONDS WORDS...: runs the program and adds its JSON
# report and its error output to a list. GPU_MEMORY is - for no limit.
record() {
    local list=$1 memory=$2 seconds=$3
    shift 3
    local words=("$@" --steps "$steps" --format json) start=$SECONDS
    local limited=null
    if [ "$memory" != - ]; then
        words+=(--gpu-memory "$memory")
        limited="\"$memory\""
    fi
    run "$seconds" "${words[@]}"
    number=$((number + 1))
    {
        printf '{"command": %s,\n' "$(printf 'pdawl %s' "${words[*]}" | json_string)"
        printf ' "gpu_memory": %s, "exit": %d, "wall_seconds": %d,\n' \
            "$limited" "$status" "$((SECONDS - start))"
        printf ' "said": %s,\n "report":\n' "$(json_string <"$work/stderr")"
        if [ -s "$work/stdout" ]; then cat "$work/stdout"; else echo null; fi
        printf '}\n'
    } >"$work/$list/$(printf '%04d' "$number")"
    [ -s "$work/stdout" ]
}

# bench GPU_MEMORY SIZE SECONDS REPEATS STRATEGY...: compares the strategies in
# one interleaved benchmark, or in one benchmark each if that fails.
bench() {
    local memory=$1 size=$2 seconds=$3 repeats=$4 strategy
    shift 4
    local list
    list=$(IFS=, && echo "$*")
    record bench "$memory" "$seconds" bench --vary "strategy=$list" --repeats "$repeats" \
        run stencil --size "$size" && return
    # After a timeout, single benchmarks would not fit into the budget either.
    [ "$status" -ne 124 ] && [ $# -gt 1 ] || return
    for strategy in "$@"; do
        record bench "$memory" "$((seconds / $# + 5))" bench --vary "strategy=$strategy" \
            --repeats "$repeats" run stencil --size "$size"
    done
}

run 30 devices --format json
cp "$work/stdout" "$out/devices.json"

PDAWL_MACHINES=$out run 60 machine save measured --copy-size "$copy"

# Reports with the time of every step, for the comparison with the simulator.
# Rounds interleave the cases, since the load of the machine may change.
for ((round = 0; round < rounds; round++)); do
    for memory in - "$limit"; do
        for strategy in cpu gpu "${shares[@]}"; do
            record runs "$memory" 30 run stencil --size "$size" --strategy "$strategy"
        done
    done
done

record runs "$limit" 60 run stencil --size "$size" --strategy dawl \
    --trace trace.json --gantt gantt.html
for file in trace.json gantt.html; do
    [ -e "$file" ] && gzip -9 -c "$file" >"$out/$file.gz"
done

for strategy in "${strategies[@]}"; do
    record verify "$verify_limit" 30 run stencil --size "$verify_size" \
        --strategy "$strategy" --verify
done

bench "$limit" "$size" 200 "$repeats" "${strategies[@]}"
bench - "$size" 120 "$repeats" cpu gpu "${shares[@]}" dawl

for edge in $sizes; do
    bench - "$edge" 40 3 gpu dawl
done
exit 0
