"""A NumPy loop on two threads: steps of smoothing, whose result does not depend on who computes
which rows."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pdawl

ROWS, THREADS, STEPS = 2000, 2, 30


def smooth(old: np.ndarray, new: np.ndarray, rows: range) -> float:
    """A step of some rows, between the first one and the last; its seconds."""
    began = time.perf_counter()
    first, last = rows.start + 1, rows.stop + 1
    new[first:last] = (old[first - 1 : last - 1] + old[first:last] + old[first + 1 : last + 1]) / 3
    return time.perf_counter() - began


def main() -> np.ndarray:
    divider = pdawl.Divider(units=ROWS, parts=THREADS, granularity=8)
    old = np.random.default_rng(0).random((ROWS + 2, 500))
    new = old.copy()
    with ThreadPoolExecutor(THREADS) as pool:
        for _ in range(STEPS):
            seconds = pool.map(lambda rows: smooth(old, new, rows), divider.next())
            divider.took(list(seconds))
            old, new = new, old
    print(divider.why())
    return old


if __name__ == "__main__":
    main()
