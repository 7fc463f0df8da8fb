import importlib.util
import os
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest

import pdawl

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "divider"


def example(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def step(divider, seconds):
    parts = divider.next()
    divider.took([each * len(part) for each, part in zip(seconds, parts)])
    return [len(part) for part in parts]


def test_shares_follow_what_steps_took():
    divider = pdawl.Divider(units=1200, parts=3)
    assert step(divider, [1, 2, 4]) == [400, 400, 400]
    assert step(divider, [1, 2, 4]) == [686, 343, 171]
    assert "part 0: 686 units" in divider.why()
    assert divider.rates == pytest.approx([1, 0.5, 0.25])
    # A later run begins with them.
    assert step(pdawl.Divider(1200, 3, rates=divider.rates), [1, 1, 1]) == [686, 343, 171]
    assert divider.took.__doc__ and "lost" in divider.took.__doc__


def test_what_a_lost_part_had_goes_to_the_others():
    divider = pdawl.Divider(units=100, parts=2, limits=[None, 40], weights=np.ones(100))
    assert divider.next() == [range(0, 60), range(60, 100)]
    assert divider.took([1.0, None]) == [(0, range(60, 100))]
    assert divider.next() == [range(0, 100), range(100, 100)]
    divider.back(1)
    divider.took([1.0, 0.0])
    assert len(divider.next()[1]) == 40


def test_a_divider_goes_on_where_it_was_written():
    divider = pdawl.Divider(units=1000, parts=2)
    step(divider, [1, 3])
    for other in (pickle.loads(pickle.dumps(divider)), pdawl.Divider.from_json(divider.to_json())):
        assert other.next() == [range(0, 750), range(750, 1000)]


def test_nodes_have_devices():
    nodes, devices = pdawl.Divider(100, 2), pdawl.Divider(100, 2)
    first = nodes.next()[0]
    parts = devices.next(first)
    assert (parts[0].start, parts[0].stop, parts[1].stop) == (0, parts[1].start, first.stop)


def test_balancers_decide():
    class Halves(pdawl.Balancer):
        def __init__(self):
            self.told = []

        def plan(self, step):
            return [1, 0] if step % 2 else [1, 3]

        def step_ended(self, step, units, seconds):
            self.told.append((step, units, seconds))

    halves = Halves()
    divider = pdawl.Divider(8, 2, balancer=halves)
    assert [step(divider, [1, 2]) for _ in range(3)] == [[2, 6], [8, 0], [2, 6]]
    assert halves.told[:2] == [(0, [2, 6], [2.0, 12.0]), (1, [8, 0], [8.0, 0.0])]
    with pytest.raises(ValueError, match="balancer"):
        divider.to_json()
    dawl = pdawl.Divider(1000, 2, balancer="dawl")
    assert [step(dawl, [1e-3, 3e-3]) for _ in range(4)][-1] == pytest.approx([750, 250], abs=20)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pdawl.Divider(10, 0), "parts"),
        (lambda: pdawl.Divider(10, 2, limits=[1]), "limits"),
        (lambda: pdawl.Divider(10, 2, weights=[-1.0] * 10), "unit 0"),
        (lambda: pdawl.Divider(10, 2, balancer="fastest"), "fastest"),
        (lambda: pdawl.Divider(10, 2).took([1.0, 1.0]), "next"),
        (lambda: pdawl.Divider(10, 2, limits=[2, 2]).next(), "room for 4 of 10"),
        (lambda: pdawl.Divider(10, 2).take(2), "no part 2"),
        (lambda: pdawl.Divider(10, 2).done(0, 1.0), "take"),
        (lambda: pdawl.Divider(10, 2).next(range(5, 20)), "outside"),
        (lambda: pdawl.Divider(10, 2).next(range(0, 10, 2)), "every unit"),
        (lambda: pdawl.Divider(2**60, 2), "units"),
        (lambda: pdawl.Divider.from_json("{}"), "no state"),
    ],
)
def test_what_is_wrong_is_named(call, words):
    with pytest.raises(ValueError, match=words):
        call()


def test_seconds_that_are_none_change_nothing():
    divider = pdawl.Divider(10, 2)
    divider.next()
    for wrong in (float("nan"), -1.0, float("inf")):
        with pytest.raises(ValueError, match="part 1"):
            divider.took([1.0, wrong])
    with pytest.raises(ValueError, match="1 entries for 2 parts"):
        divider.took([1.0])
    with pytest.raises(TypeError):
        divider.took(["soon", 1.0])
    assert divider.took([1.0, 1.0]) == []


def test_the_example_of_threads(capsys):
    smoothed = example("threads").main()
    old = np.random.default_rng(0).random((2002, 500))
    for _ in range(30):
        old[1:-1] = (old[:-2] + old[1:-1] + old[2:]) / 3
    np.testing.assert_array_equal(smoothed, old)
    assert "step 30" in capsys.readouterr().out


def test_the_example_of_processes():
    expected = sum(number * number % 7 for task in range(400) for number in range(20 * task))
    printed = subprocess.run(
        [sys.executable, EXAMPLES / "futures.py"], capture_output=True, text=True, check=True
    )
    assert "part 1" in printed.stdout
    assert example("futures").work(range(400))[0] == expected


@pytest.mark.parametrize("module", ["torch", "cupy", "mpi4py"])
def test_the_examples_of_other_libraries(module):
    pytest.importorskip(module, exc_type=ImportError)
    name = {"torch": "torch_parallel", "cupy": "cupy_gpus", "mpi4py": "mpi"}[module]
    command = [sys.executable, EXAMPLES / f"{name}.py"]
    if module == "mpi4py":
        command = ["mpirun", "--oversubscribe", "-n", "2", *command]
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    printed = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | root
    )
    assert "part 1" in printed.stdout
