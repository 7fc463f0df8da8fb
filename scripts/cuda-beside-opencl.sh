#!/bin/sh
# Runs the kernels of this project through OpenCL and through CUDA's driver, on a machine with
# NVIDIA GPUs: cuda-beside-opencl.sh PROGRAM > datasets/cuda/NAME.txt
#
# Right results first, then turns of timed runs. CUDA_VISIBLE_DEVICES=0 leaves one GPU.
set -u
program=$1
shown() { grep -E "Time|Verified|pdawl:"; }
for runtime in opencl cuda; do
    for work in "stencil --size 2048 --steps 10" "stencil --size 2048 --steps 10 --precision f32" \
        "stencil --size 1000 --steps 9 --gpu-memory 8MiB" "spmv --matrix rmat:16,16 --steps 5" \
        "spmv --matrix rmat:16,16 --steps 5 --precision f32" "pagerank --matrix rmat:16,16 --steps 20" \
        "matmul --size 2048" "matmul --size 1024 --precision f64" "lu --size 2048" \
        "cholesky --size 2048" "fft --size 1024" "convolution --size 1024 --filter 7" \
        "transformer --heads 4 --beta 256" "transformer --heads 4 --beta 256 --batch"; do
        echo "== $runtime $work"
        # Options are words.
        # shellcheck disable=SC2086
        timeout 60 "$program" run $work --verify --runtime "$runtime" 2>&1 | shown
    done
done
for turn in 1 2 3; do
    for runtime in opencl cuda; do
        for work in "lu --size 16384" "fft --size 8192" "convolution --size 16384 --filter 31" \
            "cholesky --size 16384" "matmul --size 24576" "stencil --size 4096 --steps 30" \
            "stencil --size 16384 --steps 30" "stencil --size 16384 --gpu-memory 2GiB --steps 30" \
            "stencil --size 9700 --gpu-memory 640MiB --steps 30" "pagerank --matrix rmat:20,16 --steps 20"; do
            echo "== $runtime $work"
            # shellcheck disable=SC2086
            timeout 60 "$program" run $work --runtime "$runtime" 2>&1 | shown
        done
    done
done
for runtime in opencl cuda; do
    echo "== $runtime bench transformer"
    timeout 60 "$program" bench transformer --heads 16 --beta 256,512 --resident --seed 1 --runtime "$runtime" 2>&1
done
