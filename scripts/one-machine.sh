#!/bin/bash
# LU, Fourier transforms, convolutions and Cholesky factors on one machine with a GPU, in turns,
# beside PyTorch with its copies: scripts/one-machine.sh PROGRAM > datasets/one-machine/NAME.txt
set -u
program=${1:?the program, such as target/release/pdawl}
python3 "$(dirname "$0")/one-machine-torch.py"
for turn in 1 2 3; do
    for run in "lu --size 16384" "lu --size 16384 --tile 256" "lu --size 16384 --tile 128" \
        "lu --size 16384 --tile 1024" "lu --size 16384 --policy heft" "fft --size 8192" \
        "convolution --size 16384 --filter 31" "cholesky --size 16384"; do
        echo "== $run"
        # shellcheck disable=SC2086
        timeout 100 "$program" run $run 2>&1 | grep -E "Time|this machine|pdawl:"
    done
done
echo "== matmul --size 24576"
"$program" run matmul --size 24576 2>&1 | grep -E "Time|setup"
