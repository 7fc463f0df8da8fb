#!/bin/sh
# Compares our kernels with CUDA's libraries on one GPU: the whole runs in turns, with and
# without libraries, and then each codelet's two times as reports have them.
#
#   scripts/cuda-libraries.sh [PDAWL] [ROUNDS]      (target/release/pdawl and 3)
#
# Needs a GPU, CUDA's libraries (docs/cuda.md says where they are looked for) and Python 3. The
# times are kept in a folder of its own, so that the first run with libraries measures, and later
# ones know what is faster. Results go to $OUT, or to a temporary folder.
set -eu
pdawl=${1:-target/release/pdawl}
rounds=${2:-3}
out=${OUT:-$(mktemp -d)}
PDAWL_KERNELS=$out/kernels
export PDAWL_KERNELS
mkdir -p "$PDAWL_KERNELS"
devices=${DEVICES:-cuda0}

run() {
    name=$1
    choice=$2
    round=$3
    shift 3
    "$pdawl" run "$@" --devices "$devices" --libraries "$choice" --format json \
        >"$out/$name-$choice-$round.json" 2>"$out/$name-$choice-$round.err" || {
        echo "$name with --libraries $choice fails:" >&2
        cat "$out/$name-$choice-$round.err" >&2
    }
}

for round in $(seq "$rounds"); do
    for choice in off auto; do
        run cholesky "$choice" "$round" cholesky --size 16384
        run lu "$choice" "$round" lu --size 16384
        run fft "$choice" "$round" fft --size 8192
        run matmul "$choice" "$round" matmul --size 24576
    done
done
for workload in cholesky lu fft; do
    run "$workload-checked" auto 1 "$workload" --size 4096 --verify
done
python3 - "$out" <<'EOF'
import glob, json, os, statistics, sys

out = sys.argv[1]


def reports(pattern):
    for path in sorted(glob.glob(os.path.join(out, pattern))):
        try:
            yield json.load(open(path))
        except ValueError:
            print(os.path.basename(path), "is no report")


print(f"{'':10} {'ours':>9} {'libraries':>9}   seconds, medians")
for name in ["cholesky", "lu", "fft", "matmul"]:
    times = [[r["seconds"] for r in reports(f"{name}-{c}-*.json")] for c in ["off", "auto"]]
    cells = [f"{statistics.median(t):9.4f}" if t else f"{'-':>9}" for t in times]
    print(f"{name:10} {cells[0]} {cells[1]}")
for name in ["cholesky", "lu", "fft"]:
    for report in reports(f"{name}-checked-auto-*.json"):
        print(f"{name} of 4096 is", "right" if report["verification"]["right"] else "WRONG")
print(f"\n{'codelet':20} {'sizes':22} {'ours':>10} {'library':>10}  serves   library")
seen = {}
for report in reports("*-auto-*.json"):
    for one in report["machine"]["implementations"]:
        seen[one["codelet"], tuple(one["sizes"])] = one
for (codelet, sizes), one in sorted(seen.items()):
    cells = [f"{s * 1e6:8.1f}us" if (s := one[f"{k}_seconds"]) else f"{'-':>10}" for k in ["own", "library"]]
    size = "x".join(map(str, sizes))
    print(f"{codelet:20} {size:22} {cells[0]} {cells[1]}  {one['serves'] or 'both':8} {one['library'] or ''} {one['refusal'] or ''}")
EOF
echo "reports are in $out"
