#!/bin/sh
# NVIDIA GPUs through CUDA's driver and through OpenCL, with CUDA's libraries and without, beside
# cuBLAS-Xt and PyTorch, on a machine with two of them: cuda-figures.sh PROGRAM [TURNS] > FILE
#
# Right results first, then turns of timed runs, 3 if nothing is said. A turn takes a minute.
set -u
program=$1
turns=${2:-3}
PDAWL_KERNELS=$(mktemp -d)
export PDAWL_KERNELS
nvidia-smi --query-gpu=name,driver_version --format=csv,noheader
date -u +%F
nproc
opencl=$("$program" devices --format json | python3 -c "
import json, sys
for device in json.load(sys.stdin)['devices']:
    if device['driver'].startswith('NVIDIA') and device['name'].startswith('opencl'):
        print(device['name'])")
# Two words.
# shellcheck disable=SC2086
set -- $opencl
one_opencl=$1 two_opencl=$1,$2
shown() { grep -E "Time|Verified|pdawl:|Alone"; }
timed() {
    echo "== $*"
    timeout 60 "$program" run "$@" 2>&1 | shown
}
echo "# right"
for devices in host,cuda0 host,cuda0,cuda1; do
    for work in "stencil --size 2048 --steps 10" "stencil --size 1000 --steps 9 --gpu-memory 8MiB" \
        "stencil --size 200 --dims 3 --steps 9" "spmv --matrix rmat:16,16 --iterate --steps 5" \
        "pagerank --matrix rmat:16,16 --steps 20" "matmul --size 3000" "lu --size 2048" \
        "cholesky --size 2500" "fft --size 1024" "convolution --size 1024 --filter 7" \
        "transformer --heads 4 --beta 256"; do
        # Options are words.
        # shellcheck disable=SC2086
        timed $work --devices $devices --verify
    done
done
echo "# transformer"
bench() {
    echo "== transformer $*"
    timeout 60 "$program" bench --repeats 9 --vary beta=256,512 \
        --case "--policy clustering --queues gpu=1,cpu=1" --case "--policy clustering --search" \
        --case "--policy adaptive --repeats 3" --case "--batch --policy clustering --search" \
        run transformer --heads 16 --keep-inputs --leave-results "$@" 2>&1 | grep -E "beta|--policy"
}
bench --libraries off --devices "host,$one_opencl"
for devices in host,cuda0 host,cuda0,cuda1; do
    bench --libraries off --devices $devices
    bench --devices $devices
    bench --precision f16 --devices $devices
done
for turn in $(seq "$turns"); do
    echo "# turn $turn"
    timed stencil --size 4096 --steps 30 --devices host,cuda0
    timed stencil --size 4096 --steps 30 --strategy gpu --devices cuda0
    timed stencil --size 16384 --steps 30 --strategy gpu --devices cuda0
    timed stencil --size 24576 --steps 30 --strategy gpu --devices cuda0
    timed stencil --size 24576 --steps 30 --strategy gpu --devices cuda0,cuda1
    timed stencil --size 24576 --steps 30 --devices host,cuda0,cuda1
    timed stencil --size 24576 --steps 30 --strategy gpu --devices "$two_opencl"
    for gpu in "$one_opencl" cuda0; do
        timed stencil --size 16384 --steps 30 --gpu-memory 2GiB --devices "host,$gpu"
        timed stencil --size 9700 --steps 30 --gpu-memory 640MiB --devices "host,$gpu"
    done
    timed pagerank --matrix rmat:22,16 --steps 20 --strategy gpu --devices cuda0
    timed pagerank --matrix rmat:22,16 --steps 20 --strategy gpu --devices cuda0,cuda1
    timed pagerank --matrix rmat:22,16 --steps 20 --devices host,cuda0,cuda1
    for work in "cholesky --size 16384" "lu --size 16384" "fft --size 8192" \
        "matmul --size 24576 --gpu-memory 2GiB" \
        "matmul --size 24576 --gpu-memory 2GiB --precision f16" \
        "matmul --size 24576 --gpu-memory 2GiB --precision bf16" \
        "matmul --size 24576 --gpu-memory 2GiB --precision tf32"; do
        # shellcheck disable=SC2086
        timed $work --devices host,cuda0
    done
    for work in "cholesky --size 24576" "lu --size 24576" \
        "matmul --size 24576 --gpu-memory 2GiB"; do
        for devices in cuda0,cuda1 host,cuda0,cuda1; do
            # shellcheck disable=SC2086
            timed $work --devices $devices
        done
    done
done
echo "# beside"
python3 "$(dirname "$0")/one-machine-torch.py"
if nvcc -O2 -o "$PDAWL_KERNELS/cublasxt" "$(dirname "$0")/cublasxt.cu" -lcublas; then
    "$PDAWL_KERNELS/cublasxt" 24576 1 8192 3
    "$PDAWL_KERNELS/cublasxt" 24576 2 8192 3
fi
