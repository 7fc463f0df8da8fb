"""Arrays on a GPU. Without one, what is told of them; with one, CuPy's and PyTorch's."""

import numpy as np
import pytest
import scipy.sparse

import pdawl
from pdawl import _gpu


class Told:
    """Says that it is on a GPU."""

    def __init__(self, shape=(4, 6), typestr="<f8", address=4096, strides=None, read_only=False):
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "data": (address, read_only),
            "strides": strides,
            "version": 3,
        }


def test_what_is_no_array_on_a_gpu_is_named(session):
    for call in (
        lambda: session.matmul(Told(), np.ones((6, 2))),
        lambda: session.matmul(np.ones((2, 4)), b=Told()),
        lambda: session.stencil(Told()),
        lambda: session.cholesky(Told((4, 4))),
    ):
        with pytest.raises(ValueError, match="(a|b|grid) is not the array on a GPU that it tells"):
            call()
    with pytest.raises(ValueError, match=r"x has the shape \(0,\), and so no numbers"):
        session.spmv(scipy.sparse.eye_array(4, format="csr"), Told((0,)))
    with pytest.raises(TypeError, match="a has dtype >f8, whose bytes are not"):
        session.matmul(Told(typestr=">f8"), Told())
    with pytest.raises(ValueError, match="grid is not contiguous in C's order, and is on a GPU"):
        session.stencil(Told(strides=(96, 16)))


@pytest.mark.parametrize(
    "shape, strides, order",
    [
        ((4, 6), None, "C"),
        ((4, 6), (48, 8), "C"),
        ((4, 6), (8, 32), "F"),
        ((4, 6), (96, 8), None),
        ((4, 6), (-48, 8), None),
        ((1, 6), (7, 8), "C"),
        ((6, 1), (8, 999), "C"),
        ((2, 3, 4), (8, 16, 48), "F"),
        ((2, 3, 4), (8, 64, 16), None),
        ((5,), (16,), None),
    ],
)
def test_orders_are_found(monkeypatch, shape, strides, order):
    monkeypatch.setattr(_gpu._pdawl, "gpu_of", lambda address, bytes: 0)
    array = _gpu._parsed("a", Told(shape, strides=strides))
    assert (array.order, array.nbytes) == (order, 8 * np.prod(shape))


def test_what_is_written_shares_no_memory(monkeypatch, session):
    monkeypatch.setattr(_gpu._pdawl, "gpu_of", lambda address, bytes: 0)
    matrix = scipy.sparse.eye_array(100, format="csr")
    for begin in (0, 8 * 99):
        with pytest.raises(ValueError, match="out is written, and shares memory with x"):
            session.spmv(matrix, Told((100,)), Told((100,), address=4096 + begin))
    # Beside one another they are not refused for that, nor is what is only read twice.
    for call in (
        lambda: session.spmv(matrix, Told((100,)), Told((100,), address=4096 + 8 * 100)),
        lambda: session.matmul(Told((4, 4)), Told((4, 4))),
    ):
        with pytest.raises(TypeError, match="the session has none through CUDA"):
            call()


def kinds():
    """A function that makes an array on a GPU of NumPy's, and one back, of each kind there is."""
    found = {}
    try:
        import cupy

        if cupy.cuda.is_available():
            found["cupy"] = (cupy.asarray, cupy.asnumpy)
    except ImportError:
        pass
    try:
        import torch

        if torch.cuda.is_available():
            last = f"cuda:{torch.cuda.device_count() - 1}"
            found["torch"] = (lambda a: torch.as_tensor(a, device=last), lambda t: t.cpu().numpy())
    except ImportError:
        pass
    return found


@pytest.fixture(scope="module", params=list(kinds()) or [None])
def gpu(request):
    if request.param is None:
        pytest.skip("no CuPy and no PyTorch with a GPU is here")
    names = [d["name"] for d in pdawl.Session().devices if d["runtime"] == "cuda"]
    return pdawl.Session(",".join(names)), *kinds()[request.param]


RANDOM = np.random.default_rng(3)


def test_products_and_factors_stay_on_the_gpu(gpu):
    session, to, back = gpu
    for dtype, near in (("float32", 2e-5), ("float64", 1e-12)):
        a, b = RANDOM.random((70, 45)).astype(dtype), RANDOM.random((45, 33)).astype(dtype)
        for given in ((to(a), to(b)), (to(a.T.copy()).T, to(b)), (to(a), b)):
            found = session.matmul(*given)
            assert type(found.array) is type(given[0]) and str(found.dtype).endswith(dtype)
            np.testing.assert_allclose(back(found.array), a @ b, rtol=near, atol=near)
            assert all(d["bytes_h2d"] == d["bytes_d2h"] == 0 for d in found.report["devices"])
    square = RANDOM.random((60, 60))
    definite = square @ square.T + 60 * np.eye(60)
    lower = session.cholesky(to(definite))
    np.testing.assert_allclose(back(lower.array), np.linalg.cholesky(definite), atol=1e-11)
    again = session.matmul(lower, to(square))
    np.testing.assert_allclose(back(again.array), np.linalg.cholesky(definite) @ square, atol=1e-10)


def test_grids_change_in_place(gpu):
    session, to, back = gpu
    for shape in ((50, 40), (20, 30, 25)):
        grid = RANDOM.random(shape)
        expected = grid.copy()
        session.stencil(expected, steps=5)
        given = to(grid.copy())
        address = _gpu._parsed("a", given).address
        run = session.stencil(given, steps=5)
        np.testing.assert_array_equal(back(given), expected)
        assert _gpu._parsed("a", given).address == address and not run.interrupted
    given = to(np.asfortranarray(RANDOM.random((30, 44))).T.copy()).T
    expected = back(given).copy()
    session.stencil(expected, steps=3)
    session.stencil(given, steps=3)
    np.testing.assert_allclose(back(given), expected, atol=1e-15)
    with pytest.raises(ValueError, match="not contiguous"):
        session.stencil(given[::2])


def test_sparse_products_kernels_and_graphs_take_them(gpu):
    session, to, back = gpu
    matrix = scipy.sparse.random_array((500, 300), density=0.05, format="csr", rng=RANDOM)
    x = RANDOM.random(300)
    y = session.spmv(matrix, to(x))
    assert type(y) is type(to(x))
    np.testing.assert_allclose(back(y), matrix @ x, atol=1e-12)
    out = to(np.zeros(500))
    assert session.spmv(pdawl.Matrix(matrix), to(x), out) is out
    assert sum(session.spmv_shares) == pytest.approx(1)
    np.testing.assert_allclose(back(out), matrix @ x, atol=1e-12)

    source = """__kernel void add(__global const double *a, __global const double *b,
                                  __global double *sum) {
        size_t i = get_global_id(0);
        sum[i] = a[i] + b[i];
    }"""
    a, b = RANDOM.random(1000), RANDOM.random(1000)
    total = to(np.zeros(1000))
    session.kernel(source)(to(a), to(b), total)
    np.testing.assert_array_equal(back(total), a + b)

    graph = session.graph()
    first, second = graph.given("a", to(a)), graph.given("b", to(b))
    once, twice = graph.between("once", 1000), graph.result("twice", 1000)
    graph.task("once", None, [first, second], [once], kernel=(source, "add", [1000]))
    graph.task("twice", None, [first, once], [twice], kernel=(source, "add", [1000]))
    found = graph.run()[twice]
    assert type(found) is type(to(a))
    np.testing.assert_array_equal(back(found), a + (a + b))
    graph.task("by a function", lambda a: a, [first], [graph.result("c", 1000)])
    with pytest.raises(TypeError, match="task by a function has no kernel, and data are on a GPU"):
        graph.run()


def test_a_session_without_cuda_says_so(gpu):
    _, to, _ = gpu
    with pytest.raises(TypeError, match="the session has none through CUDA"):
        pdawl.Session("host").matmul(to(np.ones((4, 4))), to(np.ones((4, 4))))
