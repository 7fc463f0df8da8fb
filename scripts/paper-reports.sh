#!/usr/bin/env bash
# Makes the reports for the figures of notebooks/:
#
#   scripts/paper-reports.sh OUTDIR [MACHINE...]
#
# Each machine has a folder OUTDIR/MACHINE. The default machines are the paper's
# four. A machine is simulated unless it is this one. It needs a model.
#
#   bench.json      the paper's stencil by size and strategy: a list of commands
#                   and their reports. Simulations have no noise here, so one
#                   repeat is enough
#   held.csv        runs of sizes outside of the training data; simulated ones
#                   have noise
#   held.json       the model's predictions of these runs
#   provenance.txt  machine, program, commands
#
# If a command fails, the script ends and leaves that machine's folder unchanged.
#
# Environment:
#   PDAWL          the program                       [target/release/pdawl]
#   SIZES          grids of bench.json, points along an axis
#   STRATEGIES     compared strategies               [cpu,gpu,dawl,pdawl]
#   GPU_MEMORY     limit on GPU memory               [2GiB, as in the paper]
#   STEPS          steps of each run                 [30, as in the paper]
#   REPEATS        runs of each strategy             [1]
#   HELD_SIZES     grids of held.csv, outside of the training data
#   PDAWL_MODELS   directory of models               [the shipped models]
set -euo pipefail

if [ $# -lt 1 ]; then
    echo "usage: scripts/paper-reports.sh OUTDIR [MACHINE...]" >&2
    exit 2
fi
out=$1
shift
machines=("$@")
[ $# -gt 0 ] || machines=(k20-32 k20-40 k40 titan)
scripts=$(realpath "$(dirname "$0")")
pdawl=$(realpath "${PDAWL:-$scripts/../target/release/pdawl}")
sizes=${SIZES:-1000 2000 4000 6000 8000 10000 12000 14000 15000 16000 17000 18000 19000 20000 22000 24000 26000 28000 30000}
strategies=${STRATEGIES:-cpu,gpu,dawl,pdawl}
gpu_memory=${GPU_MEMORY:-2GiB}
steps=${STEPS:-30}
repeats=${REPEATS:-1}
held_sizes=${HELD_SIZES:-700,1300,2900,5300,8100,13000,17000,22000,27000}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/models"
models='shipped'
[ -z "${PDAWL_MODELS:-}" ] || models='from PDAWL_MODELS'
export PDAWL_MODELS=${PDAWL_MODELS:-$work/models}

# entry GPU_MEMORY STRATEGIES WORDS...: runs `pdawl bench` and prints an entry of the list,
# in the form of measure-gpu.sh, but without the steps of the runs. GPU_MEMORY is - for no limit.
entry() {
    local memory=$1 limit=null
    local words=(bench --vary "strategy=$2" --repeats "$repeats" run stencil)
    shift 2
    words+=("$@" --steps "$steps" --format json)
    if [ "$memory" != - ]; then
        words+=(--gpu-memory "$memory")
        limit="\"$memory\""
    fi
    if ! "$pdawl" "${words[@]}" >"$work/report"; then
        echo "paper-reports: failed: pdawl ${words[*]}" >&2
        return 1
    fi
    # The command needs no JSON escapes: it has no quotes or backslashes.
    printf '{"command": "pdawl %s",\n "gpu_memory": %s, "exit": 0,\n "report":\n' \
        "${words[*]}" "$limit"
    python3 -c '
import json, sys
bench = json.load(sys.stdin)
for run in bench["runs"]:
    del run["report"]["details"]["steps"]
print(json.dumps(bench, indent=1))' <"$work/report"
    printf '}\n'
}

# reports MACHINE: prints the whole list. The first entry of a size is one core
# alone (CPU-Seq in the paper), the second compares the strategies on all devices.
reports() {
    local size separator='['
    for size in $sizes; do
        echo "$1, $size" >&2
        printf '%s\n' "$separator"
        entry - cpu --machine "$1" --size "$size" --devices host:1
        printf ',\n'
        entry "$gpu_memory" "$strategies" --machine "$1" --size "$size"
        separator=','
    done
    printf ']\n'
}

# held MACHINE: makes held.csv and held.json. Runs in $work, so that recorded
# commands contain no paths.
held() (
    cd "$work"
    echo "$1, sizes outside of the training data" >&2
    "$pdawl" profile stencil --machine "$1" --sizes "$held_sizes" --configurations 60 \
        --repeats 1 --seed 99 --out held.csv >log
    "$pdawl" model check "$1" --machine "$1" --dataset held.csv --format json >held.json
)

provenance() {
    printf 'machine: %s\n' "$1"
    if grep -q '"simulated": true' "$work/bench.json"; then
        printf 'times: simulated, on the machine file below\n'
    else
        printf 'times: measured\n'
    fi
    printf 'date: %s\n' "$(date -u +%Y-%m-%dT%H:%M:%SZ)"
    printf 'program: %s\n' "$("$pdawl" --version)"
    printf 'commit: %s\n' \
        "$(git -C "$scripts" describe --always --dirty --abbrev=40 2>/dev/null || echo unknown)"
    printf 'model: %s, checksum %s\n' "$models" \
        "$(sed -n 's/.*"checksum": "\([0-9a-f]*\)".*/\1/p' "$work/held.json")"
    printf "command: SIZES='%s' STRATEGIES=%s GPU_MEMORY=%s STEPS=%s REPEATS=%s HELD_SIZES=%s" \
        "$sizes" "$strategies" "$gpu_memory" "$steps" "$repeats" "$held_sizes"
    printf ' scripts/paper-reports.sh OUTDIR %s\n' "$1"
    if grep -q '"simulated": false' "$work/bench.json"; then
        printf '\n== system ==\n%s\n' "$(uname -srvm)"
        printf '\n== pdawl devices ==\n'
        "$pdawl" devices
    fi
    printf '\n== pdawl machine show %s ==\n' "$1"
    "$pdawl" machine show "$1"
}

for machine in "${machines[@]}"; do
    rm -f "$work"/held.*
    held "$machine"
    reports "$machine" >"$work/bench.json"
    provenance "$machine" >"$work/provenance.txt"
    mkdir -p "$out/$machine"
    mv "$work"/{bench.json,held.csv,held.json,provenance.txt} "$out/$machine/"
done
