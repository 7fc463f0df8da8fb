"""The program `pdawl`: `pdawl` on the PATH, and `python -m pdawl`."""

import os
import signal
import sys

if not __package__:
    # Started by its path: Python looks in the package's folder, and not in that of packages.
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from pdawl import _pdawl


def main() -> int:
    """Runs the program with this process's arguments, and returns its exit status."""
    # Python's handler would wait for the program's end. SIGPIPE stays ignored, as in every
    # program in Rust.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _pdawl.program(["pdawl", *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
