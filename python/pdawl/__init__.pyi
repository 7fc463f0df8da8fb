# What type checkers see of the package, whose modules are loaded when they are needed.

from ._arrays import Matrix
from ._cluster import Cluster
from ._graph import Graph
from ._kernel import Kernel
from ._pdawl import Divider, Error, __version__
from ._program import Report, predict, run, train
from ._run import Factors, Result, Run
from ._scheduling import Balancer, Policy
from ._session import (
    Session,
    cholesky,
    devices,
    fft2,
    lu,
    matmul,
    simulate,
    sort,
    spmv,
    stencil,
)

_START: list[str]

__all__ = [
    "Balancer",
    "Cluster",
    "Divider",
    "Error",
    "Factors",
    "Graph",
    "Kernel",
    "Matrix",
    "Policy",
    "Report",
    "Result",
    "Run",
    "Session",
    "__version__",
    "cholesky",
    "devices",
    "fft2",
    "lu",
    "matmul",
    "predict",
    "run",
    "simulate",
    "sort",
    "spmv",
    "stencil",
    "train",
]
