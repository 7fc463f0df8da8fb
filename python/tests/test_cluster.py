import numpy as np
import pytest

import pdawl

RANDOM = np.random.default_rng(2)


def test_nodes_in_threads_are_right():
    cluster = pdawl.Cluster("host:1", threads=3)
    assert (cluster.rank, cluster.size) == (0, 3)
    a, b = RANDOM.random((50, 40), "f4"), RANDOM.random((40, 30), "f4")
    c = cluster.matmul(a, b, tile=16, verify=True)
    assert c.is_right
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    square = RANDOM.random((64, 64))
    factors = cluster.lu(square, tile=16)
    upper, lower = np.triu(factors.lu), np.tril(factors.lu, -1) + np.eye(64)
    exchanged = square.copy()
    for row, other in enumerate(factors.pivots):
        exchanged[[row, other]] = exchanged[[other, row]]
    np.testing.assert_allclose(lower @ upper, exchanged, atol=1e-12)
    complex = (a + 1j * a).astype("c8")
    np.testing.assert_allclose(cluster.fft2(complex), np.fft.fft2(complex), atol=2e-3)
    numbers = RANDOM.random(100_000, "f4")
    np.testing.assert_array_equal(cluster.sort(numbers), np.sort(numbers))
    assert "node 0 of 3" in repr(cluster)


def test_what_is_wrong_is_named():
    for options, text in [
        ({"devices": "gpu9"}, "gpu9"),
        ({"spread": "best"}, "best"),
        ({"threads": 0}, "1 or more"),
        ({"wire": "/nonexistent.so"}, "nonexistent"),
    ]:
        with pytest.raises((ValueError, pdawl.Error), match=text):
            pdawl.Cluster(**options)
    cluster = pdawl.Cluster("host:1")
    with pytest.raises(ValueError, match="square"):
        cluster.lu(np.ones((2, 3)))
