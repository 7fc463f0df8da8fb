"""Products of cuSPARSE, by way of CuPy, on a matrix that pdawl has written in
its binary form. Both are needed where this is called, and not before."""

import statistics
import time

# Of the binary form: see src/matrix/cache/header.rs.
HEADER = 80


def load(path):
    """The matrix, on the device."""
    import cupy
    import cupyx.scipy.sparse
    import numpy

    with open(path, "rb") as binary:
        header = numpy.frombuffer(binary.read(HEADER), dtype=numpy.uint64)
        rows, columns, nonzeros = (int(n) for n in header[5:8])
        starts = numpy.fromfile(binary, numpy.uint64, rows + 1)
        column_of = numpy.fromfile(binary, numpy.uint32, nonzeros)
        values = numpy.fromfile(binary, numpy.float64, nonzeros)
    arrays = values, column_of.astype(numpy.int32), starts.astype(numpy.int32)
    return cupyx.scipy.sparse.csr_matrix(
        tuple(cupy.asarray(a) for a in arrays), shape=(rows, columns)
    )


def seconds(matrix, steps, rounds=6):
    """Seconds of a product, of many in a row: the median round after the first."""
    import cupy

    x = cupy.random.rand(matrix.shape[1])
    took = []
    for _ in range(rounds):
        cupy.cuda.Device().synchronize()
        began = time.perf_counter()
        for _ in range(steps):
            matrix @ x
        cupy.cuda.Device().synchronize()
        took.append((time.perf_counter() - began) / steps)
    # The first one warms up.
    return statistics.median(took[1:])


def seconds_in_a_graph(matrix, steps):
    """The same, recorded once and then launched by the device alone, which leaves
    out what Python takes for a call; None where CuPy cannot record it."""
    import cupy

    x = cupy.random.rand(matrix.shape[1])
    stream = cupy.cuda.Stream(non_blocking=True)
    try:
        with stream:
            y = matrix @ x
            stream.synchronize()
            stream.begin_capture()
            for _ in range(steps):
                y = matrix @ x
            graph = stream.end_capture()
            took = []
            for _ in range(6):
                stream.synchronize()
                began = time.perf_counter()
                graph.launch(stream)
                stream.synchronize()
                took.append((time.perf_counter() - began) / steps)
            del y
    except Exception:  # Of the driver, or of CuPy: each has its own.
        return None
    return statistics.median(took[1:])
