#!/bin/sh
# Makes the datasets and models of the simulated machines that ship with pdawl,
# in datasets/simulated/ and models/. scripts/model-accuracy.py evaluates the
# models on other sizes.
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
for machine in $machines; do
    $pdawl profile stencil --machine "$machine" --configurations 66 \
        --max-size 18000 --fresh --out "$PDAWL_DATASETS/$machine.csv"
    rm -f "$PDAWL_DATASETS/$machine.csv.bak"
    $pdawl train --dataset "$PDAWL_DATASETS/$machine.csv"
done
