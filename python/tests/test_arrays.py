import pickle

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import pdawl

RANDOM = np.random.default_rng(1)


def random(shape, dtype):
    return (2 * RANDOM.random(shape) - 1).astype(dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("tile", [None, 17])
def test_products_and_factors_are_right(session, dtype, tile):
    a, b = random((70, 45), dtype), random((45, 33), dtype)
    near = {"rtol": 0, "atol": 2e-5 if dtype == "float32" else 1e-13}
    c = session.matmul(a, b, tile=tile, verify=True)
    assert c.array.dtype == dtype and c.is_right
    np.testing.assert_allclose(c, a.astype("f8") @ b, **near)

    square = random((60, 60), dtype)
    definite = square @ square.T + 60 * np.eye(60, dtype=dtype)
    lower = session.cholesky(np.tril(definite), tile=tile)
    np.testing.assert_allclose(lower, np.linalg.cholesky(definite.astype("f8")), **near)

    factors = session.lu(square, tile=tile)
    x = scipy.linalg.lu_solve((factors.lu, factors.pivots), square @ np.ones(60, dtype))
    np.testing.assert_allclose(x, 1, rtol=0, atol=1e-2 if dtype == "float32" else 1e-9)
    assert factors.pivots.dtype == np.int32 and factors.is_right is None


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_factors_of_16_bits_are_summed_in_floats(session, dtype):
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes").bfloat16
    a, b = random((70, 45), "f4").astype(dtype), random((45, 33), "f4").astype(dtype)
    c = session.matmul(a, b, verify=True)
    assert c.array.dtype == np.float32 and c.is_right
    np.testing.assert_allclose(c, a.astype("f8") @ b.astype("f8"), rtol=0, atol=2e-5)
    with pytest.raises(TypeError, match="astype"):
        session.matmul(a, b.astype("f4"))


def test_transforms_and_sorts_are_right(session):
    a = (random((24, 50), "f4") + 1j * random((24, 50), "f4")).astype("c8")
    found = session.fft2(a)
    assert found.array.dtype == np.complex64
    np.testing.assert_allclose(found, np.fft.fft2(a.astype("c16")), rtol=0, atol=1e-3)
    for other in (a.T, random((3, 8, 10), "f4"), random((2, 3, 4, 5), "f4")):
        for axes in ((-2, -1), (0, 1), (-1, 0)):
            right = np.fft.fft2(other.astype("c16"), axes=axes)
            np.testing.assert_allclose(session.fft2(other, axes), right, rtol=0, atol=1e-3)
    for other in (a.astype("c16"), random((5, 16, 8), "f8"), random((30, 21), "f8").T):
        found = session.fft2(other, verify=True)
        assert found.dtype == np.complex128 and found.is_right
        np.testing.assert_allclose(found, np.fft.fft2(other), rtol=0, atol=1e-12)
    with pytest.raises(ValueError, match="two axes"):
        session.fft2(a[0])
    for dtype in ("f4", "f8"):
        numbers = random(100_001, dtype)
        np.testing.assert_array_equal(session.sort(numbers, verify=True), np.sort(numbers))
        numbers = random((7, 40, 30), dtype)
        for axis in (-1, 0, 1, None):
            found = session.sort(numbers, axis, verify=True)
            np.testing.assert_array_equal(found, np.sort(numbers, axis))
    with pytest.raises(np.exceptions.AxisError if hasattr(np, "exceptions") else np.AxisError):
        session.sort(numbers, 3)


def test_this_machine_computes_without_a_session():
    a = random((20, 20), "f4")
    np.testing.assert_allclose(pdawl.matmul(a, a), a @ a, atol=1e-5)
    np.testing.assert_array_equal(pdawl.sort(a.ravel()), np.sort(a.ravel()))


def test_a_run_comes_with_an_array():
    session = pdawl.simulate("v100x4", gpu_memory=1 << 20)
    c = session.matmul(random((300, 300), "f4"), random((300, 300), "f4"), tile=64, traced=True)
    assert list(c.devices.index) == [device["name"] for device in session.devices]
    assert c.report["details"]["gpu_memory_bytes"] == 1 << 20
    assert "<iframe" in c._repr_html_() and "matmul" in repr(c)
    assert np.asarray(c) is c.array and np.asarray(c, "f8").dtype == "f8"


def test_a_result_is_an_array(session):
    a = random((40, 40), "f8") + 40 * np.eye(40)
    product = session.matmul(a, a.T)
    assert (product.shape, product.dtype, product.ndim, len(product)) == ((40, 40), "f8", 2, 40)
    lower = session.cholesky(product)
    np.testing.assert_allclose(lower @ lower.T - product, 0, atol=1e-9)
    np.testing.assert_array_equal(product[3], product.array[3])
    assert isinstance(product + 1, np.ndarray) and np.max(product) == product.array.max()
    added = product.array + 1
    np.add(product, 1, out=product)
    np.testing.assert_array_equal(product, added)
    product -= 1
    product = session.matmul(a, a.T)
    np.testing.assert_allclose(session.spmv(scipy.sparse.csr_array(a), product[0]), a @ product[0])


def test_other_orders_are_taken(session):
    a, b = random((30, 20), "f8"), random((20, 50), "f8")
    for one in (a, np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2]):
        for other in (b, np.asfortranarray(b), b[::-1][::-1]):
            np.testing.assert_allclose(session.matmul(one, other), a @ b)
    numbers = random(1001, "f4")
    np.testing.assert_array_equal(session.sort(numbers[::-1]), np.sort(numbers))
    square = np.asfortranarray(random((30, 30), "f8"))
    factors = session.lu(square)
    np.testing.assert_allclose(scipy.linalg.lu_solve((factors.lu, factors.pivots), square), np.eye(30), atol=1e-9)


def test_runs_results_and_matrices_are_pickled(session):
    a = random((30, 30), "f8")
    product = session.matmul(a, a, traced=True)
    again = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(product))))
    np.testing.assert_array_equal(again, product)
    assert again.report == product.report and again.trace() == product.trace()
    assert again.shares == product.shares and "<iframe" in again._repr_html_()
    sparse = scipy.sparse.csr_array(a)
    matrix = pickle.loads(pickle.dumps(pdawl.Matrix(sparse)))
    np.testing.assert_allclose(session.spmv(matrix, a[0]), a @ a[0])


def test_wrong_arrays_are_named(session):
    a = np.ones((3, 4))
    for call, error, text in [
        (lambda: session.matmul(a, a), ValueError, "as many columns of a"),
        (lambda: session.matmul(a, np.ones((4, 3), "f4")), TypeError, "astype"),
        (lambda: session.matmul(a, np.ones((4, 3), "i4")), TypeError, "float32 or float64"),
        (lambda: session.matmul(a, np.ones(4)), ValueError, "rows and columns"),
        (lambda: session.matmul(a, np.ones((4, 0))), ValueError, "rows and columns"),
        (lambda: session.matmul(a, a.T.copy(), policy="best"), ValueError, "best"),
        (lambda: session.matmul(a, a.T.copy(), tile=0), ValueError, "at least 1 row"),
        (lambda: session.matmul(a, a.T.copy(), size=3), TypeError, "there is no option size"),
        (lambda: session.cholesky(a), ValueError, "square"),
        (lambda: session.cholesky(-np.eye(3)), np.linalg.LinAlgError, "not positive definite"),
        (lambda: session.lu(np.zeros((3, 3))), np.linalg.LinAlgError, "singular"),
        (lambda: session.fft2(np.ones((4, 4), "i4")), TypeError, "complex128"),
        (lambda: session.sort(np.ones(3, "i4")), TypeError, "float64"),
        (lambda: session.sort(np.ones(0, "f4")), ValueError, "at least one"),
    ]:
        with pytest.raises(error, match=text):
            call()
    np.testing.assert_allclose(session.matmul(a, a.T.copy()), a @ a.T)


@pytest.mark.parametrize("name", ["matmul2d", "matmul3d", "cholesky", "sparse", "random"])
def test_task_sets_run_under_a_policy_of_python(name):
    class Fifo(pdawl.Policy):
        def next(self, device, now):
            return self.waiting.pop(0) if self.waiting else None

    session = pdawl.simulate("v100x2")
    run = session.task_set(name, 20, Fifo())
    assert run.policy_seconds > 0 and run.seconds > 0
    assert session.task_set(name, 20, "darts+luf", gpu_memory=500 << 20).policy_seconds is None


def test_wrong_task_sets_are_named():
    with pytest.raises(ValueError, match="matmul2d"):
        pdawl.simulate("k40").task_set("matmul", 4)
    for tile in (0, 2**30, 2**32 - 1):
        with pytest.raises(ValueError, match="take 1 to"):
            pdawl.simulate("k40").task_set("matmul2d", 4, tile=tile)
    with pytest.raises(ValueError, match="simulated"):
        pdawl.Session("host:1").task_set("matmul2d", 4)
