import os
import shutil
import subprocess
import sys
from pathlib import Path

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


PROGRAM = """
import numpy as np, pdawl
cluster = pdawl.Cluster("host:1")
random = np.random.default_rng(3)
a, b = random.random((90, 70), "f4"), random.random((70, 80), "f4")
c = cluster.matmul(a, b, tile=32, verify=True)
numbers = random.random(50_001, "f4")
ordered = cluster.sort(numbers)
if cluster.rank == 0:
    assert c.is_right
    np.testing.assert_allclose(c, a @ b, rtol=1e-5)
    np.testing.assert_array_equal(ordered, np.sort(numbers))
else:
    assert c is None and ordered is None
try:
    cluster.matmul(a, a)
except ValueError as error:
    assert "70 columns" in str(error)
else:
    raise AssertionError("there is no such product")
print(cluster)
"""


def wire():
    """The library for messages, which `make test-mpi` builds beside the program."""
    named = os.environ.get("PDAWL_WIRE")
    program = os.environ.get("PDAWL") or shutil.which("pdawl") or "pdawl"
    beside = Path(program).parent / "libpdawl_wire_mpi.so"
    return named or (str(beside) if beside.is_file() else None)


def test_processes_of_mpirun_are_nodes():
    if shutil.which("mpirun") is None or wire() is None:
        pytest.skip("mpirun or the wire over MPI is missing; `make test-mpi` installs and builds")
    allowed = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    ran = subprocess.run(
        ["mpirun", "--oversubscribe", "-n", "3", sys.executable, "-c", PROGRAM],
        env={**os.environ, **allowed, "PDAWL_WIRE": wire()},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    nodes = sorted(ran.stdout.split("\n")[:-1])
    assert nodes == [f"<pdawl.Cluster node {rank} of 3>" for rank in range(3)]
