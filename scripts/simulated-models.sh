#!/bin/sh
# Makes the datasets and models of the simulated machines that ship with pdawl
# (datasets/simulated/ and models/), and says how good they are on sizes that
# they have not learned, between and up to 1.5 times beyond.
#
#   scripts/simulated-models.sh [--check]
#
# With --check nothing is made: the models that are there are tried.
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet
pdawl=target/release/pdawl
machines="k20-32 k20-40 k40 titan"
# Only what is made here counts, not what the user has.
PDAWL_MODELS=models
PDAWL_DATASETS=datasets/simulated
PDAWL_MACHINES=datasets/machines
export PDAWL_MODELS PDAWL_DATASETS PDAWL_MACHINES

if [ "${1:-}" != --check ]; then
    mkdir -p "$PDAWL_MODELS" "$PDAWL_DATASETS"
    for machine in $machines; do
        $pdawl profile stencil --machine "$machine" --configurations 66 \
            --max-size 18000 --fresh --out "$PDAWL_DATASETS/$machine.csv"
        rm -f "$PDAWL_DATASETS/$machine.csv.bak"
        $pdawl train --dataset "$PDAWL_DATASETS/$machine.csv"
    done
fi

held=$(mktemp -d)
trap 'rm -rf "$held"' EXIT
for machine in $machines; do
    $pdawl profile stencil --machine "$machine" --repeats 1 --seed 99 \
        --sizes 700,1300,2900,5300,8100,13000,17000,22000,27000 \
        --out "$held/$machine.csv" >/dev/null
done

echo "Native: held-out sizes, planning features"
for machine in $machines; do
    $pdawl model check "$machine" --machine "$machine" --dataset "$held/$machine.csv"
done

echo "Reuse: the model of k20-32, without and with 8 calibration runs"
adapted=$held/models
mkdir "$adapted"
for machine in k40 titan; do
    $pdawl model check k20-32 --machine "$machine" --dataset "$held/$machine.csv"
    PDAWL_MODELS=$adapted $pdawl model adapt models/k20-32.json --machine "$machine" --runs 8
    $pdawl model check "$adapted/$machine-from-k20-32.json" --machine "$machine" \
        --dataset "$held/$machine.csv"
done
