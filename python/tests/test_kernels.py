import numpy as np
import pytest

import pdawl
from pdawl import _session

SAXPY = """__kernel void saxpy(__global const float *x, __global float *y, float a) {
    size_t i = get_global_id(0);
    y[i] += a * x[i];
}"""


@pytest.fixture(scope="module")
def opencl():
    here = pdawl.Session()
    names = [device["name"] for device in pdawl.Session("opencl0.0").devices]
    assert here.devices and names
    return pdawl.Session(f"{names[0]}:1,{names[0]}:1=own")


def test_a_kernel_is_divided(opencl):
    saxpy = opencl.kernel(SAXPY)
    assert [usage for _, _, usage in saxpy.parameters] == ["reads", "updates", None]
    x = np.arange(10_000, dtype=np.float32)
    for factor in (2.0, 3.0):
        y = np.ones(10_000, np.float32)
        run = saxpy(x, y, factor)
        assert (y == 1 + np.float32(factor) * x).all()
        assert len(run.shares) == 2


def test_wrong_arguments_are_named(opencl):
    saxpy = opencl.kernel(SAXPY)
    x, y = np.ones(8, np.float32), np.ones(8, np.float32)
    frozen = np.ones(8, np.float32)
    frozen.flags.writeable = False
    for arguments, error, words in [
        ((x, y), TypeError, "takes 3 arguments .x, y, a."),
        ((x.astype(float), y, 1.0), TypeError, "x has dtype float64"),
        ((x, frozen, 1.0), ValueError, "y is read-only"),
        ((x, np.ones(16, np.float32)[::2], 1.0), ValueError, "not contiguous"),
        ((x, y, x), TypeError, "a is a value"),
    ]:
        with pytest.raises(error, match=words):
            saxpy(*arguments)
    with pytest.raises(ValueError, match="no kernel `f`; it has saxpy"):
        opencl.kernel(SAXPY, "f")
    with pytest.raises(pdawl.Error, match="undeclared|error"):
        opencl.kernel("__kernel void k(__global int *a) { a[0] = b; }")(np.ones(1, np.int32))


def test_arrays_that_are_too_short_are_refused(opencl):
    saxpy = opencl.kernel(SAXPY)
    y = np.zeros(10, np.float32)
    with pytest.raises(pdawl.Error, match=r"past the end of buffer `y` \(argument 1, 40 bytes\)"):
        saxpy(np.ones(1000, np.float32), y, 3.0, items=1000)
    assert (y == 0).all()
    for wrong in ({"groups": 0}, {"items": 0}, {"items": -1}, {"items": 2**63}, {"groups": [3]}):
        with pytest.raises(ValueError):
            saxpy(np.ones(10, np.float32), y, 3.0, **wrong)
    saxpy(np.ones(10, np.float32), y, 3.0)
    assert (y == 3).all()


def test_items_count_elements_of_the_kernel(opencl):
    add = opencl.kernel("""__kernel void add(__global const float4 *x, __global float4 *y) {
        size_t i = get_global_id(0);
        y[i] += x[i];
    }""")
    x, y = np.arange(64, dtype=np.float32), np.ones(64, np.float32)
    add(x, y)
    assert (y == 1 + x).all()
    with pytest.raises(TypeError, match="dtype float64"):
        add(x.astype(float), y)


def test_indices_are_examined_in_each_call(opencl):
    source = """__kernel void gather(__global const int *at, __global const float *x,
                                     __global float *y) {
        y[get_global_id(0)] = x[at[get_global_id(0)]];
    }"""
    at, x, y = np.zeros(32, np.int32), np.ones(32, np.float32), np.zeros(32, np.float32)
    gather = opencl.kernel(source)
    gather(at, x, y)
    assert (y == 1).all()
    at[7] = 32
    with pytest.raises(pdawl.Error, match="past the end of buffer `x`"):
        gather(at, x, y)
    at[7] = 31
    y[:] = 0
    opencl.kernel(source, unchecked=True)(at, x, y)
    assert (y == 1).all()


def test_a_panic_or_an_error_ends_one_session_at_most():
    a = np.eye(20, dtype="f4")
    before = _session._this_machine()
    for launch in ({"groups": 0}, {"groups": [0]}, {"items": 2**63}, {"items": 8, "groups": 0}):
        session = _session._this_machine()
        kernel = session.kernel("__kernel void k(__global float *y) { y[get_global_id(0)] = 1; }")
        with pytest.raises((ValueError, TypeError, pdawl.Error)):
            kernel(np.ones(8, "f4"), **launch)
        if not session._session.works():
            for call in (session.stencil, session.cholesky):
                with pytest.raises(pdawl.Error, match="panicked .*open another"):
                    call(np.eye(5))
        np.testing.assert_array_equal(pdawl.matmul(a, a), a)
        np.testing.assert_array_equal(pdawl.sort(a[0]), np.sort(a[0]))
    assert before.devices
