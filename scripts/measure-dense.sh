#!/usr/bin/env bash
# Products and factorisations of 24576 x 24576 in 2 GiB of a GPU's memory, in turns with
# cuBLAS-Xt.
#
#   scripts/measure-dense.sh PDAWL FOLDER DEVICE [DEVICE]
#
# PDAWL is the program, FOLDER gets its reports and cublasxt's output, and the devices are
# one or two NVIDIA GPUs, as `pdawl devices` names them. Needs nvcc and cuBLAS.
set -euo pipefail

program=$1 folder=$2 one=$3
shift 2
all=$(IFS=,; echo "$*")
count=$#
mkdir -p "$folder"
nvcc -O2 -o "$folder/cublasxt" "$(dirname "$0")/cublasxt.cu" -lcublas

# Arguments: the name of the report, the operation, and its options.
run() {
    local name=$1 operation=$2
    shift 2
    "$program" run "$operation" --size 24576 --gpu-memory 2GiB --repeats 3 --format json "$@" \
        > "$folder/$name.json"
}

for turn in 1 2; do
    "$folder/cublasxt" 24576 1 2048,4096,8192 3 > "$folder/cublasxt-1-gpu-$turn.csv"
    "$folder/cublasxt" 24576 "$count" 2048,4096,8192 3 > "$folder/cublasxt-$count-gpus-$turn.csv"
    for policy in locality darts+luf dmdar eager; do
        run "matmul-${policy/+/-}-$turn" matmul --devices "$all" --policy "$policy"
    done
    run "matmul-random-$turn" matmul --devices "$all" --order random
    run "matmul-one-$turn" matmul --devices "$one"
    run "matmul-host-$turn" matmul
    run "cholesky-$turn" cholesky --devices "$all"
    run "cholesky-one-$turn" cholesky --devices "$one"
done
rm "$folder/cublasxt"
