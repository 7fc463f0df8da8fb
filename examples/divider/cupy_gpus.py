"""A CuPy loop over all GPUs: rows of a matrix times a vector, again and again. Rows that change their
GPU are copied, which the divider is told; then it moves them only where that pays."""

import time
from typing import Any

import cupy
import numpy as np
import pdawl

ROWS, COLUMNS, STEPS = 40_000, 8192, 30


def main() -> np.ndarray:
    gpus = cupy.cuda.runtime.getDeviceCount()
    matrix = np.random.default_rng(0).random((ROWS, COLUMNS), dtype=np.float32)
    vector = np.ones(COLUMNS, np.float32)
    free = [cupy.cuda.Device(gpu).mem_info[0] // (8 * COLUMNS) for gpu in range(gpus)]
    divider = pdawl.Divider(units=ROWS, parts=gpus, limits=free, steps=STEPS)
    held: list[Any] = [None] * gpus
    before: list[range | None] = [None] * gpus
    product = np.empty(ROWS, np.float32)
    for _ in range(STEPS):
        parts = divider.next()
        began = time.perf_counter()
        for gpu, rows in enumerate(parts):
            if before[gpu] != rows:
                with cupy.cuda.Device(gpu):
                    held[gpu] = (cupy.asarray(matrix[rows.start : rows.stop]), cupy.asarray(vector))
                    cupy.cuda.Device(gpu).synchronize()
        moving, before = time.perf_counter() - began, [*parts]
        events, results = [], []
        for gpu in range(gpus):
            with cupy.cuda.Device(gpu):
                first, last = cupy.cuda.Event(), cupy.cuda.Event()
                first.record()
                results.append(held[gpu][0] @ held[gpu][1])
                last.record()
                events.append((first, last))
        seconds = []
        for gpu, (first, last) in enumerate(events):
            with cupy.cuda.Device(gpu):
                last.synchronize()
                seconds.append(cupy.cuda.get_elapsed_time(first, last) / 1e3)
                product[parts[gpu].start : parts[gpu].stop] = results[gpu].get()
        divider.took(seconds, moving=moving)
    assert np.allclose(product, matrix.sum(axis=1), rtol=1e-3)
    print(divider.why())
    return product


if __name__ == "__main__":
    main()
