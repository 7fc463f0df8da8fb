import gc
import resource
import threading

import numpy as np
import pytest
import scipy.sparse

import pdawl


def random_matrix(rows, columns, seed, density=0.05):
    rng = np.random.default_rng(seed)
    matrix = scipy.sparse.random_array((rows, columns), density=density, format="csr", rng=rng)
    matrix.indices = matrix.indices.astype(np.int32)
    matrix.indptr = matrix.indptr.astype(np.int32)
    matrix.sort_indices()
    return matrix


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (300, 200), (2000, 50)])
def test_products_are_right(session, shape):
    a = random_matrix(*shape, seed=shape[0])
    matrix = pdawl.Matrix(a)
    for seed in range(4):
        x = np.random.default_rng(seed).normal(size=shape[1])
        size = abs(a) @ abs(x)
        assert (abs(session.spmv(matrix, x) - a @ x) <= 1e-12 * size + 1e-300).all()
        assert abs(sum(session.spmv_shares) - 1) < 1e-9


def test_long_rows_are_right(session):
    rng = np.random.default_rng(5)
    dense = rng.normal(size=(40, 5000))
    dense[1:, 100:] = 0
    a = scipy.sparse.csr_array(dense)
    x = rng.normal(size=5000)
    out = np.full(40, np.nan)
    y = session.spmv(pdawl.Matrix(a), x, out)
    assert y is out
    assert (abs(y - dense @ x) <= 1e-12 * (abs(dense) @ abs(x))).all()


def test_a_matrix_is_not_copied():
    rows, each = 200_000, 40
    indices = (np.arange(rows * each, dtype=np.int64) * 7919 % 1000).reshape(rows, each)
    indices = np.sort(np.argsort(np.random.default_rng(1).random((rows, 64)), axis=1)[:, :each], axis=1)
    data = np.ones(rows * each)
    indptr = np.arange(0, rows * each + 1, each, dtype=np.int32)
    a = scipy.sparse.csr_array(
        (data, indices.astype(np.int32).reshape(-1), indptr), shape=(rows, 64)
    )
    session = pdawl.Session("host:2")
    session.spmv(pdawl.Matrix(random_matrix(10, 10, 1)), np.ones(10))
    gc.collect()
    before = resident()
    y = session.spmv(pdawl.Matrix(a), np.ones(64))
    grown = resident() - before
    assert (y == each).all()
    # Column numbers are copied.
    grown -= a.indices.nbytes
    assert grown < data.nbytes / 4, f"{grown} of {data.nbytes}"


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def test_wrong_arguments_are_named(session):
    a = random_matrix(20, 30, seed=3)
    x = np.ones(30)
    wide = a.copy()
    wide.indices = wide.indices.astype(np.int64)
    twice = scipy.sparse.csr_array(
        (np.ones(2), np.array([4, 4], np.int32), np.array([0, 2], np.int32)), shape=(1, 5)
    )
    outside = scipy.sparse.csr_array((1, 5))
    outside.data, outside.indices = np.ones(1), np.array([9], np.int32)
    outside.indptr = np.array([0, 1], np.int32)
    read_only = np.empty(20)
    read_only.flags.writeable = False
    for call, error, words in [
        (lambda: pdawl.Matrix(a.tocoo()), TypeError, "tocsr"),
        (lambda: pdawl.Matrix(np.eye(3)), TypeError, "csr_array"),
        (lambda: pdawl.Matrix(a.astype(np.float32)), TypeError, "float64"),
        (lambda: pdawl.Matrix(wide), TypeError, "astype.numpy.int32"),
        (lambda: pdawl.Matrix(twice), ValueError, "sum_duplicates"),
        (lambda: pdawl.Matrix(outside), ValueError, "column 9"),
        (lambda: session.spmv(a, x.astype(np.float32)), TypeError, "x has dtype float32"),
        (lambda: session.spmv(a, np.ones(29)), ValueError, "30 columns"),
        (lambda: session.spmv(a, [1.0] * 30), TypeError, "NumPy array"),
        (lambda: session.spmv(a, x, np.empty(19)), ValueError, "20 rows"),
        (lambda: session.spmv(a, x, read_only), ValueError, "read-only"),
        (lambda: pdawl.simulate("k41"), ValueError, "no machine is called `k41`"),
        (lambda: pdawl.Session("gpu9"), ValueError, "gpu9"),
        (lambda: session.set_strategy("fair"), ValueError, "fair"),
    ]:
        with pytest.raises(error, match=words):
            call()


def test_many_calls_leave_nothing_behind():
    session = pdawl.Session("host:2")
    a = random_matrix(3000, 3000, seed=9, density=0.01)
    matrix, x = pdawl.Matrix(a), np.ones(3000)
    right = a @ x
    before = None
    for call in range(300):
        if call % 3 == 0:
            with pytest.raises(ValueError):
                session.spmv(matrix, np.ones(2))
        if call % 10 == 0:
            assert np.allclose(session.spmv(a, x), right)
        assert np.allclose(session.spmv(matrix, x), right)
        if call == 100:
            before = resident()
    assert resident() - before < 8 << 20


def test_threads_have_sessions_of_their_own():
    a = random_matrix(500, 500, seed=2)
    x = np.arange(500.0)
    failures = []

    def work():
        try:
            session = pdawl.Session("host:1")
            matrix = pdawl.Matrix(a)
            for _ in range(100):
                assert np.allclose(session.spmv(matrix, x), a @ x)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
