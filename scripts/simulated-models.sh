#!/bin/sh
# Makes the datasets and models of the simulated machines that ship with pdawl,
# in datasets/simulated/ and models/. scripts/model-accuracy.py evaluates the
# models on other sizes. notebooks/model.ipynb shows predictions of these models
# alone: `scripts/paper-reports.sh datasets/reports` makes them again.
#
#   scripts/simulated-models.sh
set -eu
cd "$(dirname "$0")/.."
cargo build --release --quiet
pdawl=target/release/pdawl
machines="k20-32 k20-40 k40 titan"
# Do not use the user's models, datasets and machine files.
PDAWL_MODELS=models
PDAWL_DATASETS=datasets/simulated
PDAWL_MACHINES=datasets/machines
export PDAWL_MODELS PDAWL_DATASETS PDAWL_MACHINES

mkdir -p "$PDAWL_MODELS" "$PDAWL_DATASETS"
profile() {
    $pdawl profile "$@" --out "$PDAWL_DATASETS/$machine.csv"
}
for machine in $machines; do
    profile stencil --machine "$machine" --configurations 66 --max-size 18000 --fresh
    for options in "--dims 3 --max-size 690" "--precision f32 --max-size 18000" \
        "--dims 3 --precision f32 --max-size 690"; do
        # shellcheck disable=SC2086 # several options
        profile stencil --machine "$machine" --configurations 44 --repeats 2 $options
    done
    profile spmv --machine "$machine" --count 25 --repeats 1
    rm -f "$PDAWL_DATASETS/$machine.csv.bak"
    $pdawl train --dataset "$PDAWL_DATASETS/$machine.csv"
done
