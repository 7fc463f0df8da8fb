#!/usr/bin/env python3
"""Arrays on a GPU through pdawl on all CUDA GPUs, beside CuPy on one: seconds of the whole call and
of the run, bytes as the report has them, and bytes over the GPUs' PCI buses as their counters have
them. Prints a line of JSON for each call.

usage: gpu-arrays.py [GIB] [REPEATS]    an array's size (2), and how often each call is made (4)
"""

import ctypes
import json
import sys
import time

import cupy
import cupyx.scipy.sparse
import numpy as np
import scipy.sparse

import pdawl

GIB = float(sys.argv[1]) if len(sys.argv) > 1 else 2
REPEATS = int(sys.argv[2]) if len(sys.argv) > 2 else 4

STENCIL = cupy.RawKernel(
    r"""extern "C" __global__ void stencil(const float *from, float *to, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    size_t i = (size_t)y * n + x;
    if (x >= n) return;
    bool inner = x > 0 && y > 0 && x < n - 1 && y < n - 1;
    to[i] = inner ? 0.2f * (from[i] + from[i - 1] + from[i + 1] + from[i - n] + from[i + n])
                  : from[i];
}""",
    "stencil",
)
SAXPY = """__kernel void saxpy(__global const float *x, __global float *y, float a) {
    size_t i = get_global_id(0);
    y[i] += a * x[i];
}"""


class Field(ctypes.Structure):
    """What NVML answers about a counter."""

    _fields_ = [
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("kind", ctypes.c_int),
        ("status", ctypes.c_int),
        ("value", ctypes.c_ulonglong),
    ]


NVML = ctypes.CDLL("libnvidia-ml.so.1")
NVML.nvmlInit_v2()
SENT, RECEIVED = 197, 198


def bus():
    """Bytes that the GPUs have sent and received over their buses, modulo 2^32 each."""
    found = []
    for gpu in range(cupy.cuda.runtime.getDeviceCount()):
        handle = ctypes.c_void_p()
        NVML.nvmlDeviceGetHandleByIndex_v2(gpu, ctypes.byref(handle))
        fields = (Field * 2)()
        fields[0].id, fields[1].id = SENT, RECEIVED
        NVML.nvmlDeviceGetFieldValues(handle, 2, fields)
        found += [field.value for field in fields]
    return found


def synchronize():
    for gpu in range(cupy.cuda.runtime.getDeviceCount()):
        with cupy.cuda.Device(gpu):
            cupy.cuda.runtime.deviceSynchronize()


def measured(name, call, right=lambda result: None):
    for turn in range(REPEATS):
        synchronize()
        before, began = bus(), time.perf_counter()
        result = call()
        synchronize()
        seconds = time.perf_counter() - began
        moved = sum((now - then) % 2**32 for now, then in zip(bus(), before))
        line = {"call": name, "turn": turn, "call_seconds": seconds, "bus_bytes": moved}
        if isinstance(result, pdawl.Run):
            report = result.report
            line["seconds"] = report["seconds"]
            for kind in ("bytes_h2d", "bytes_d2h", "bytes_peer"):
                line[kind] = [device[kind] for device in report["devices"]]
            line["shares"] = result.shares
        line["error"] = right(result)
        print(json.dumps(line), flush=True)
        del result


names = [device["name"] for device in pdawl.Session().devices if device["runtime"] == "cuda"]
session = pdawl.Session(",".join(names))
random = cupy.random.default_rng(1)
side = int((GIB * 2**30 / 4) ** 0.5) // 64 * 64
a = random.random((side, side), dtype=cupy.float32)
b = random.random((side, side), dtype=cupy.float32)
some = a[:64] @ b


def product_error(c):
    return float(cupy.abs(getattr(c, "array", c)[:64] - some).max())


measured(f"cupy {side} a @ b", lambda: a @ b, product_error)
measured(f"pdawl {side} matmul", lambda: session.matmul(a, b), product_error)

other = cupy.empty_like(a)


def stencil():
    grid, to = a, other
    for _ in range(100):
        STENCIL(((side + 255) // 256, side), (256,), (grid, to, np.int32(side)))
        grid, to = to, grid


measured(f"cupy {side} stencil, 100 steps", stencil)
measured(f"pdawl {side} stencil, 100 steps", lambda: session.stencil(a, 100))
small = random.random((2000, 3000), dtype=cupy.float32)
expected = small.get()
pdawl.Session("host").stencil(expected, 100)
session.stencil(small, 100)
print(json.dumps({"stencil_error": float(np.abs(small.get() - expected).max())}), flush=True)
del other, some

kernel = session.kernel(SAXPY)
x, y = a.reshape(-1), b.reshape(-1)


def saxpy():
    global y
    y += cupy.float32(3) * x


def launched():
    global last
    last = y[:1000] + cupy.float32(3) * x[:1000]
    return kernel(x, y, 3.0)


measured(f"cupy {x.size} saxpy", saxpy)
measured(f"pdawl {x.size} saxpy", launched, lambda _: float(cupy.abs(y[:1000] - last).max()))
del a, b, x, y

matrix = scipy.sparse.random_array((2_000_000, 2_000_000), density=5e-6, format="csr", rng=1)
on_gpu, held = cupyx.scipy.sparse.csr_matrix(matrix), pdawl.Matrix(matrix)
vector, out = random.random(2_000_000), cupy.empty(2_000_000)
right = on_gpu @ vector
measured("cupy spmv of 2e7 entries", lambda: on_gpu @ vector)
measured(
    "pdawl spmv of 2e7 entries",
    lambda: session.spmv(held, vector, out),
    lambda _: float(cupy.abs(out - right).max()),
)
