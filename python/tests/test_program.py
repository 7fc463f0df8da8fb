import os
import stat

import pytest

import pdawl


@pytest.fixture
def program():
    """The program, in the home of the test."""
    if "PDAWL" not in os.environ:
        pytest.skip("$PDAWL does not name the program; `make python` does")


def test_a_trained_model_predicts(program):
    trained = pdawl.train("k40", budget="20s", sizes=[512, 1024, 2048, 4096], repeats=1)
    assert trained["machine"] == "k40" and trained["groups"]
    predicted = pdawl.predict("stencil", size=4096, machine="k40")
    frame = predicted.frame("predictions", "strategy")
    assert {"cpu", "gpu", "pdawl"} <= set(frame.index)


def test_wrong_options_are_named(program):
    with pytest.raises(ValueError, match="--size"):
        pdawl.predict("stencil", size="many", machine="k40")
    with pytest.raises((ValueError, pdawl.Error), match="k41"):
        pdawl.train("k41")


def test_a_missing_program_is_named(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("PDAWL", raising=False)
    with pytest.raises(pdawl.Error, match="make install"):
        pdawl.train("k40")


def test_what_the_program_says_is_told(monkeypatch, tmp_path):
    fake = tmp_path / "pdawl"
    fake.write_text("#!/bin/sh\necho error: no such thing >&2\nexit 1\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PDAWL", str(fake))
    with pytest.raises(pdawl.Error, match="no such thing"):
        pdawl.predict("stencil")
