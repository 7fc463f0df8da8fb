"""NumPy and SciPy on the CPU and the GPUs of a machine together.

>>> import numpy as np, pdawl
>>> session = pdawl.simulate("k40")          # pdawl.Session() has the devices of this machine
>>> plate = np.zeros((60, 40))
>>> plate[0] = 100.0
>>> run = session.stencil(plate, steps=30)
>>> bool(plate[1, 20] > 50.0)
True
"""

from ._arrays import Matrix
from ._graph import Graph
from ._kernel import Kernel
from ._pdawl import Error, __version__
from ._run import Run
from ._scheduling import Balancer, Policy
from ._session import Session, devices, simulate, spmv, stencil

__all__ = [
    "Balancer",
    "Error",
    "Graph",
    "Kernel",
    "Matrix",
    "Policy",
    "Run",
    "Session",
    "__version__",
    "devices",
    "simulate",
    "spmv",
    "stencil",
]
