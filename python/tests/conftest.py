"""Sessions of the tests: simulated, and on this machine's cores."""

import pytest

import pdawl


@pytest.fixture(params=["simulated", "host"])
def session(request):
    return pdawl.simulate("k40") if request.param == "simulated" else pdawl.Session("host:2")
