#!/usr/bin/env python3
"""What the examination of a kernel costs in a session of Python's.

    scripts/measure-examination.py [DEVICES]

Prints medians of nine, in milliseconds: the first call of a kernel of 1000 work-items, examined
and with `unchecked=True`, and a call of a kernel whose data decide what it touches, which is
examined each time. Run it twice: the first run also compiles.
"""

import statistics
import sys
import time

import numpy as np
import pdawl

TIMES = 9


def seconds(call):
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun


def main():
    session = pdawl.Session(sys.argv[1] if len(sys.argv) > 1 else "opencl0.0:1")
    x, y, table = np.ones(1000, "f4"), np.zeros(1000, "f4"), np.arange(1000, dtype="i4")
    first = {False: [], True: []}
    for number in range(TIMES):
        for unchecked, times in first.items():
            kernel = session.kernel(
                f"__kernel void k{number}(__global const float *x, __global float *y) {{"
                f" size_t i = get_global_id(0); y[i] = x[i] * 2 + {number}; }}",
                unchecked=unchecked,
            )
            times.append(seconds(lambda: kernel(x, y, items=1000)))
    gather = session.kernel(
        "__kernel void g(__global const int *t, __global const float *x, __global float *y) {"
        " size_t i = get_global_id(0); y[i] = x[t[i]]; }"
    )
    each = [seconds(lambda: gather(table, x, y, items=1000)) for _ in range(TIMES)]
    for what, times in [
        ("first call, examined", first[False]),
        ("first call, unchecked", first[True]),
        ("each call where data decide", each),
    ]:
        print(f"{what}: {statistics.median(times) * 1e3:.1f} ms")


if __name__ == "__main__":
    main()
