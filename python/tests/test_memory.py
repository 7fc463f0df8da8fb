"""Memory of the user's: what arrays are taken, and what keeps them where they are."""

import threading

import numpy as np
import pandas
import pytest
import scipy.sparse

import pdawl


def diagonal(size=500):
    return scipy.sparse.eye_array(size, format="csr") * 2.0


def changed(array):
    """The same numbers in memory as NumPy has it elsewhere."""
    swapped = array.astype(array.dtype.newbyteorder())
    shifted = np.frombuffer(b"x" + array.tobytes(), np.uint8)[1:].view(array.dtype)
    return {
        "order": swapped,
        "masked": np.ma.masked_array(array, mask=array == array.ravel()[0]),
        "object": array.astype(object),
        "aligned": shifted.reshape(array.shape),
        "to_numpy": pandas.DataFrame(array) if array.ndim == 2 else pandas.Series(array),
        "numpy.asarray": array.tolist(),
    }


WAYS = list(changed(np.ones(1)))


@pytest.mark.parametrize("way", WAYS)
def test_memory_of_other_kinds_is_refused_by_all_that_take_arrays(session, way):
    cluster = pdawl.Cluster("host:1")
    refused = pytest.raises((TypeError, ValueError), match=way)
    single, half = np.eye(3, dtype="f4"), np.eye(3, dtype="f2")
    x, a = np.arange(3.0), diagonal(3)
    for call, right in [
        (lambda given: session.matmul(given, single), single),
        (lambda given: session.matmul(half, given), half),
        (session.cholesky, single),
        (session.lu, np.eye(3)),
        (session.fft2, single.astype("c8")),
        (session.sort, single[0]),
        (session.stencil, np.eye(3)),
        (lambda given: session.spmv(a, given), x),
        (lambda given: session.spmv(a, x, given), x.copy()),
        (lambda given: session.graph().given("given", given), x),
        (lambda given: cluster.matmul(given, single), single),
        (cluster.lu, single),
        (cluster.fft2, single.astype("c8")),
        (cluster.sort, single[0]),
    ]:
        with refused:
            call(changed(right)[way])
    for of in ("data", "indices", "indptr"):
        wrong = diagonal(3)
        setattr(wrong, of, changed(getattr(wrong, of))[way])
        with refused:
            pdawl.Matrix(wrong)


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_kinds_of_arrays_are_arrays(session, tmp_path):
    a = np.random.default_rng(1).random((3, 3)).astype("f4")
    file = np.memmap(tmp_path / "a", "f4", "w+", shape=a.shape)
    file[:] = a
    for given in (np.matrix(a), file, a.view(np.recarray)):
        product = session.matmul(given, given)
        assert type(product.array) is np.ndarray
        np.testing.assert_allclose(product, a @ a, rtol=1e-5)
    plate = np.asmatrix(np.eye(5))
    session.stencil(plate, steps=1)
    assert plate[1, 1] < 1
    y = np.memmap(tmp_path / "y", "f8", "w+", shape=(3,))
    assert session.spmv(diagonal(3), np.ones(3), y) is y and (y == 2).all()


@pytest.mark.filterwarnings("ignore:the matrix subclass")
def test_nodes_sort_only_vectors():
    for numbers in (np.ones((2, 3), "f4"), np.array(1, "f4"), np.matrix([1.0], "f4")):
        with pytest.raises(ValueError, match="ravel"):
            pdawl.Cluster("host:1").sort(numbers)


def test_what_a_task_returns_is_not_cut(session):
    def returns(made, dtype):
        graph = session.graph()
        datum = graph.result("made", 2, dtype)
        graph.task("t", lambda: made, [], [datum])
        return graph.run()[datum]

    for made, dtype in [
        ([0.5, 1.0], int),
        ([1.0, 2.0], "u1"),
        ([1, 2**40], "i4"),
        ([-1, 0], "u8"),
        ([1j, 0], float),
        (np.ma.masked_array([1.0, 2.0], mask=[0, 1]), float),
        (np.array(["a", "b"], object), float),
    ]:
        with pytest.raises(TypeError, match="what task t returned"):
            returns(made, dtype)
    for made, dtype in [([1, 2], "i4"), ([1, 2], "f4"), ([0.1, 2.0], "f4"), ([True, False], int)]:
        np.testing.assert_array_equal(returns(made, dtype), np.array(made, dtype))
    for dtype in (">f8", object, [("a", ">i4")]):
        with pytest.raises(TypeError, match="datum x has dtype"):
            session.graph().result("x", 2, dtype)


def test_a_task_that_does_nothing_is_refused(session):
    graph = session.graph()
    graph.task("idle", None, [], [graph.result("r", 3)])
    with pytest.raises(ValueError, match="task idle has neither a function nor a kernel"):
        graph.run()
    graph = session.graph()
    source = "__kernel void k(__global double *r) { r[get_global_id(0)] = 1; }"
    graph.task("device", None, [], [graph.result("r", 3)], kernel=(source, "k", [3]))
    # No host computes it, and no simulation.
    with pytest.raises((ValueError, pdawl.Error), match="task device|device"):
        graph.run()


def test_a_matrix_has_columns_of_its_own(session):
    a = diagonal()
    matrix, x = pdawl.Matrix(a), np.arange(500.0)
    assert (session.spmv(matrix, x) == 2 * x).all()
    for wild in (2**31 - 2, -1, 500):
        a.indices[:] = wild
        a.indptr[1:-1] = wild
        assert (session.spmv(matrix, x) == 2 * x).all()
        assert (pdawl.simulate("k40").spmv(matrix, x) == 2 * x).all()
        with pytest.raises(ValueError):
            pdawl.Matrix(a)


def test_memory_that_is_used_is_not_resized():
    a = diagonal()
    values = a.data = a.data.copy()
    views = [np.frombuffer(values), np.asarray(memoryview(values)), values[:]]
    matrices = []
    for data in [values, *views]:
        a.data = data
        matrices.append(pdawl.Matrix(a))
        a.data = np.ones(1)
        with pytest.raises(ValueError, match="resize"):
            values.resize(1, refcheck=False)
        matrices.clear()
    values.resize(1, refcheck=False)

    session = pdawl.simulate("k40")
    grid, begun, refused = np.ones((300, 300)), threading.Event(), []

    class Halves(pdawl.Balancer):
        def plan(self, step):
            begun.set()
            for array in (grid, grid.base):
                if array is not None:
                    with pytest.raises(ValueError, match="resize"):
                        array.resize(1, refcheck=False)
                    refused.append(step)
            return [1.0, 1.0]

    session.set_balancer(Halves)
    session.stencil(grid, steps=2)
    grid = np.ones(90_000).reshape(300, 300)
    session.stencil(grid, steps=2)
    x, y = np.ones(500), np.ones(500)

    class Pinned(pdawl.Balancer):
        def plan(self, step):
            for array in (x, y):
                with pytest.raises(ValueError, match="resize"):
                    array.resize(1, refcheck=False)
            refused.append(step)
            return [1.0, 1.0]

    session.set_balancer(Pinned)
    session.spmv(diagonal(), x, y)
    assert len(refused) >= 5
    x.resize(1, refcheck=False)


def test_an_array_that_is_written_serves_one_call(session):
    with pytest.raises(ValueError, match="out is written, and shares memory"):
        x = np.ones(500)
        session.spmv(diagonal(), x, out=x)
    both = np.ones(1000)
    with pytest.raises(ValueError, match="give a copy"):
        session.spmv(diagonal(), both[:500], out=both[250:750])
    assert (session.spmv(diagonal(), both[:500], out=both[500:]) == 2).all()

    grid, other = np.ones((30, 30)), pdawl.simulate("k40")

    class Shares(pdawl.Balancer):
        def plan(self, step):
            for call in (other.stencil, other.cholesky, other.lu):
                with pytest.raises(ValueError, match="give a copy"):
                    call(grid)
            return [1.0] * len(self.setup["devices"])

    session.set_balancer(Shares)
    assert not session.stencil(grid, steps=2).interrupted
