"""NumPy and SciPy on the CPU and the GPUs of a machine together.

>>> import numpy as np, pdawl
>>> session = pdawl.simulate("k40")          # pdawl.Session() has the devices of this machine
>>> plate = np.zeros((60, 40))
>>> plate[0] = 100.0
>>> run = session.stencil(plate, steps=30)
>>> bool(plate[1, 20] > 50.0)
True
"""

import os
import sys
from importlib import import_module

from . import _pdawl
from ._pdawl import Divider, Error, __version__

# The program is started by its path: in the folder where it runs, there may be another pdawl.
_MAIN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "__main__.py")
_START = [sys.executable or "python3", _MAIN]
_pdawl.loaded(_START, _pdawl.__file__)

# The program needs none of these modules, nor NumPy, which they load: its start takes 20 ms, and
# would take 100. `__init__.pyi` has the names for type checkers.
_MODULES = {
    "_arrays": ["Matrix"],
    "_cluster": ["Cluster"],
    "_graph": ["Graph"],
    "_kernel": ["Kernel"],
    "_program": ["Report", "predict", "run", "train"],
    "_run": ["Factors", "Result", "Run"],
    "_scheduling": ["Balancer", "Policy"],
    "_session": [
        *["Session", "cholesky", "devices", "fft2", "lu", "matmul", "simulate", "sort", "spmv"],
        "stencil",
    ],
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}

__all__ = ["Divider", "Error", "__version__", *_MODULE_OF]


def __getattr__(name: str) -> object:
    module = _MODULE_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module("." + module, __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
