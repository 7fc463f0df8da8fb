import ast
import json
import os
import pathlib
import re
import signal
import stat
import subprocess
import sys
import time

import pytest

import pdawl
import pdawl._program

MODULE = [sys.executable, "-m", "pdawl"]
RUN = ["run", "stencil", "--machine", "k40", "--size", "512", "--steps", "3", "--format", "json"]


def run(*arguments, start=MODULE, **options):
    return subprocess.run(
        [*start, *arguments], capture_output=True, text=True, timeout=120, **options
    )


def report(ran):
    assert ran.returncode == 0 and not ran.stderr, ran
    return json.loads(ran.stdout)


def test_the_package_is_the_program():
    version = run("--version")
    assert (version.returncode, version.stdout) == (0, f"pdawl {pdawl.__version__}\n"), version
    assert [device["name"] for device in report(run(*RUN))["devices"]] == ["host", "gpu0"]
    wrong = run("run", "stencil", "--sise", "512")
    assert wrong.returncode == 2 and "--size" in wrong.stderr, wrong


def test_the_program_starts_itself_and_no_other(tmp_path):
    (tmp_path / "pdawl.py").write_text("raise SystemExit(9)")
    assert run(cwd=tmp_path).returncode == 9
    bench = ["bench", "--vary", "strategy=cpu,gpu", *RUN]
    runs = report(run(*bench, start=pdawl._START, cwd=tmp_path))["runs"]
    assert len(runs) == 2, runs


def test_an_opencl_program_is_run_with_the_packages_layer(tmp_path):
    ran = run("exec", "--report", "report.json", "--", "sh", "-c", "exit 3", cwd=tmp_path)
    assert ran.returncode == 3, ran
    layer = json.loads((tmp_path / "report.json").read_text())["settings"]["layer"]
    assert os.path.samefile(os.path.dirname(layer), os.path.dirname(pdawl.__file__)), layer


def test_signals_end_the_program_as_any_other():
    lasting = ["run", "stencil", "--devices", "host:1", "--size", "64", "--steps", "1000000000"]
    with subprocess.Popen([*MODULE, *lasting], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as ran:
        threads = pathlib.Path(f"/proc/{ran.pid}/task")
        # Its thread for signals is there once they are heard.
        while not any(name.read_text() == "signals\n" for name in threads.glob("*/comm")):
            assert ran.poll() is None, ran.communicate()
            time.sleep(0.01)
        ran.send_signal(signal.SIGINT)
        said = ran.communicate(timeout=60)[1]
    assert ran.returncode == 130 and b"stopping" in said and b"Traceback" not in said, said


def test_a_closed_reader_is_no_failure():
    reading, writing = os.pipe()
    os.close(reading)
    ran = subprocess.run([*MODULE, "schema"], stdout=writing, stderr=subprocess.PIPE, timeout=60)
    os.close(writing)
    assert ran.returncode == 0 and not ran.stderr, ran


def options_of(*command):
    told = run(*command, "--help").stdout
    named = re.findall(r"^ +(?:-\w, )?--([a-z-]+)", told, re.MULTILINE)
    return {name.replace("-", "_") for name in named} - {"help", "format", "machine", "workload"}


def test_type_checkers_know_the_options_of_the_program():
    train, predict = (getattr(pdawl._program, name).__annotations__ for name in ("TrainOptions", "PredictOptions"))
    assert set(train) == options_of("train")
    assert set(predict) == options_of("predict", "stencil") | options_of("predict", "spmv")


def test_a_misspelt_option_is_found(tmp_path):
    mypy = pytest.importorskip("mypy.api")
    package = pathlib.Path(pdawl.__file__).parents[1]
    program = tmp_path / "program.py"
    program.write_text(
        "import numpy as np\nimport pdawl\n\na = np.ones((3, 3))\nsession = pdawl.simulate('k40')\n"
        "session.cholesky(session.matmul(a, a, verify=True))\npdawl.train('k40', budget='1s')\n"
        "session.matmul(a, a, veryfy=True)\nsession.stencil(a, untill=1.0)\npdawl.lu(a, tyle=2)\n"
        "pdawl.train('k40', budgett='1s')\npdawl.Divider(1, 2, granulrity=3)\n"
    )
    root = pathlib.Path(__file__).parents[2]
    settings = ["--config-file", str(root / "pyproject.toml"), "--cache-dir", str(tmp_path)]
    (right, _, status) = mypy.run([*settings, str(package / "pdawl"), *map(str, root.glob("examples/divider/*.py"))])
    assert status == 0, right
    told = mypy.run([*settings, str(program)])[0]
    lines = {int(line) for line in re.findall(r"program.py:(\d+): error", told)}
    assert lines == {8, 9, 10, 11, 12}, told


def test_a_run_has_the_report_of_the_program():
    faults = ["gpu0:slow:2@0.001s", "gpu1:lost@0.002s"]
    report = pdawl.run("cholesky", size=4096, machine="v100x2,gpu0.speed=2x", fault=faults)
    assert report["machine"]["name"] == "v100x2,gpu0.speed=2x" and report["lost"]
    assert report["devices"][1]["share"] > 0
    with pytest.raises(ValueError, match="--sizee"):
        pdawl.run("stencil", machine="k40", sizee=3)


def test_a_trained_model_predicts():
    trained = pdawl.train("k40", budget="3s", sizes=[512, 1024, 2048, 4096], repeats=1)
    assert trained["machine"] == "k40" and trained["groups"]
    predicted = pdawl.predict("stencil", size=4096, machine="k40")
    frame = predicted.frame("predictions", "strategy")
    assert {"cpu", "gpu", "pdawl"} <= set(frame.index)


def test_wrong_options_are_named():
    with pytest.raises(ValueError, match="--size"):
        pdawl.predict("stencil", size="many", machine="k40")
    with pytest.raises((ValueError, pdawl.Error), match="k41"):
        pdawl.train("k41")


def test_what_the_program_says_is_told(monkeypatch, tmp_path):
    fake = tmp_path / "pdawl"
    fake.write_text("#!/bin/sh\necho error: no such thing >&2\nexit 1\n")
    fake.chmod(fake.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr("pdawl._program._START", [str(fake)])
    with pytest.raises(pdawl.Error, match="no such thing"):
        pdawl.predict("stencil")


def test_names_are_those_that_type_checkers_see():
    stub = pathlib.Path(pdawl.__file__).with_suffix(".pyi").read_text()
    seen = ast.literal_eval(stub.split("__all__ = ")[1])
    assert sorted(seen) == sorted(pdawl.__all__) == sorted(dir(pdawl))
    for name in pdawl.__all__:
        assert getattr(pdawl, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        pdawl.nothing


def test_the_program_loads_no_numpy():
    seen = "import sys, pdawl.__main__; print('numpy' in sys.modules)"
    assert run(start=[sys.executable, "-c", seen]).stdout == "False\n"
