"""Sessions of the tests: simulated, and on this machine's cores. Each test has a home of its own."""

import os
import pathlib

import pytest

import pdawl


@pytest.fixture(autouse=True)
def home(tmp_path_factory, monkeypatch):
    """No machine, model, kept time or setting of whoever runs the tests."""
    caches = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    # PoCL compiles for long, and what it keeps is of no user.
    kept = os.environ.get("POCL_CACHE_DIR") or os.path.join(caches, "pocl", "kcache")
    monkeypatch.setenv("POCL_CACHE_DIR", kept)
    for name in [name for name in os.environ if name.startswith("PDAWL_") and not name.startswith("PDAWL_TEST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PDAWL_ROWS", "off")
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path_factory.mktemp("home")))


@pytest.fixture(params=["simulated", "host"])
def session(request):
    return pdawl.simulate("k40") if request.param == "simulated" else pdawl.Session("host:2")
