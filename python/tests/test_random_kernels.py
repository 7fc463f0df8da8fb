"""Random kernels on arrays of random lengths: right or refused. PDAWL_TEST_KERNELS has how many."""

import os

import numpy as np
import pdawl

TYPES = {"int": np.int32, "float": np.float32, "double": np.float64, "short": np.int16}


def index(random, items):
    """The text of an index of work-item `i`, and the index itself."""
    kind = random.integers(6)
    by, of = int(random.integers(-2, 3)), int(random.integers(1, items + 1))
    if kind == 0:
        return f"{items - 1} - i", lambda i, table: items - 1 - i
    if kind == 1:
        return f"i * {abs(by) + 1} % {of}", lambda i, table: i * (abs(by) + 1) % of
    if kind == 2:
        return f"i + ({by})", lambda i, table: i + by
    if kind == 3:
        return "table[i]", lambda i, table: table[i]
    return "i", lambda i, table: i


def test_random_kernels_are_right_or_refused():
    count = int(os.environ.get("PDAWL_TEST_KERNELS", 4))
    random = np.random.default_rng(int(os.environ.get("PDAWL_TEST_SEED", 1)))
    session = pdawl.Session(os.environ.get("PDAWL_TEST_DEVICES", "opencl0.0:1,opencl0.0:1=own"))
    right = refused = 0
    for _ in range(count):
        items, name = int(random.integers(1, 500)), str(random.choice(list(TYPES)))
        (read, read_at), (write, write_at) = index(random, items), index(random, items)
        if "%" in write:
            write, write_at = "i", lambda i, table: i
        kernel = session.kernel(
            f"""#pragma OPENCL EXTENSION cl_khr_fp64 : enable
            __kernel void k(__global const {name} *a, __global const int *table,
                            __global {name} *y, int below) {{
                int i = get_global_id(0);
                if (i < below) y[{write}] = a[{read}] + 1;
            }}"""
        )
        below = items if random.integers(2) else int(random.integers(items + 1))
        lengths = [items + int(random.integers(-1, 4)) if random.integers(4) else 2 * items
                   for _ in range(2)]
        lengths = [max(length, 1) for length in lengths]
        for call in range(2):
            table = random.permutation(items).astype(np.int32)
            if call and random.integers(2):
                table[random.integers(items)] = random.choice([-1, 2 * items, 2**31 - 1])
            a = random.integers(-99, 99, lengths[0]).astype(TYPES[name])
            y = np.full(lengths[1], 5, TYPES[name])
            i = np.arange(below)
            reads, writes = read_at(i, table), write_at(i, table)
            inside = all(
                ((at >= 0) & (at < length)).all()
                for at, length in zip((reads, writes), lengths)
            )
            wanted = y.copy()
            if inside:
                wanted[writes] = a[reads] + 1
            try:
                kernel(a, table, y, below, items=items)
                assert inside, (read, write, lengths, items, below, call)
                right += 1
            except pdawl.Error as error:
                assert not inside and "kernel `k`" in str(error), error
                refused += 1
            assert (y == wanted).all(), (read, write, lengths, items, below, call)
    assert count < 100 or right > 0.6 * (right + refused), (right, refused)
