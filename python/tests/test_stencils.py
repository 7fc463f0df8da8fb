import multiprocessing
import os
import signal
import threading
import time

import numpy as np
import pytest

import pdawl


def step(grid):
    new = grid.copy()
    inner = (slice(1, -1),) * grid.ndim
    total = grid[inner].copy()
    for axis in range(grid.ndim):
        for shift in (-1, 1):
            total += np.roll(grid, shift, axis)[inner]
    new[inner] = total / (2 * grid.ndim + 1)
    return new


@pytest.mark.parametrize("shape", [(3, 3), (41, 17), (7, 9, 11)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_stencils_are_right(session, shape, dtype):
    grid = np.random.default_rng(1).random(shape).astype(dtype)
    right = grid.copy()
    for _ in range(5):
        right = step(right)
    run = session.stencil(grid, steps=5, superstep=2, verify=True, traced=True)
    assert np.allclose(grid, right, atol=1e-5 if dtype == np.float32 else 1e-13)
    assert run.report["verification"]["right"] and not run.interrupted
    assert abs(sum(run.shares) - 1) < 1e-9
    assert run.steps["steps"].sum() == 5 and set(run.devices.index)
    page = run._repr_html_()
    assert "<iframe" in page and "stencil" in page


def test_supersteps_are_planned_where_a_machine_file_tells():
    session = pdawl.simulate("k40")
    grid = np.random.default_rng(2).random((1500, 1500))
    right = grid.copy()
    for _ in range(12):
        right = step(right)
    run = session.stencil(grid, steps=12, superstep="auto")
    assert run.report["workload"]["parameters"]["superstep"] > 1
    assert np.allclose(grid, right, atol=1e-13)


def test_a_balancer_in_python_divides(session):
    class Halves(pdawl.Balancer):
        def plan(self, step):
            return [1.0] * len(self.setup["devices"])

    session.set_balancer(Halves)
    grid = np.random.default_rng(1).random((64, 20))
    run = session.stencil(grid, steps=4, verify=True)
    assert run.report["verification"]["right"]
    assert run.report["policy"] == "Halves"
    count = len(session.devices)
    assert np.allclose(run.shares, 1 / count)


def test_an_exception_in_a_balancer_ends_the_run(session):
    class Broken(pdawl.Balancer):
        def plan(self, step):
            if step == 2:
                raise KeyError("here")
            return [1.0] * len(self.setup["devices"])

    session.set_balancer(Broken)
    with pytest.raises(KeyError, match="here"):
        session.stencil(np.ones((30, 30)), steps=10)
    session.set_balancer(lambda setup: None)
    with pytest.raises(AttributeError, match="plan"):
        session.stencil(np.ones((30, 30)), steps=10)
    session.set_strategy("dawl")
    assert not session.stencil(np.ones((30, 30)), steps=10).interrupted


def test_wrong_grids_are_named(session):
    frozen = np.ones((5, 5))
    frozen.flags.writeable = False
    for grid, error, words in [
        (np.ones((5, 5), int), TypeError, "dtype int64"),
        (np.ones((5, 5)).T[::2], ValueError, "contiguous"),
        (frozen, ValueError, "read-only"),
        (np.ones(5), ValueError, "2 axes"),
        (np.ones((2, 5)), ValueError, "at least 3 points"),
    ]:
        with pytest.raises(error, match=words):
            session.stencil(grid)
    with pytest.raises(ValueError, match="at least 1 step"):
        session.stencil(np.ones((5, 5)), steps=0)


def test_ctrl_c_ends_a_run_and_nothing_else():
    session = pdawl.Session("host:2")
    grid = np.ones((300, 300))
    threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        session.stencil(grid, steps=2_000_000_000)
    assert time.monotonic() - began < 10
    assert not session.stencil(grid, steps=3).interrupted


def test_other_threads_run_meanwhile():
    session = pdawl.Session("host:1")
    counted, done = [0], threading.Event()

    def count():
        while not done.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    session.stencil(np.ones((2000, 2000)), steps=100)
    done.set()
    thread.join()
    assert counted[0] > 20


def test_a_cost_model_plans():
    plate = np.ones((2048, 2048))
    run = pdawl.simulate("k40", strategy="pdawl").stencil(plate, steps=5, verify=True)
    assert run.report["policy"] == "pdawl" and not run.interrupted
    with pytest.raises(pdawl.Error, match="pdawl train"):
        pdawl.simulate("v100x2", strategy="pdawl").stencil(plate)


def computes():
    # Several MiB, which threads copy.
    grid = np.random.default_rng(2).random((1000, 1500))
    right = step(grid)
    pdawl.Session("host:2").stencil(grid)
    assert np.allclose(grid, right, atol=1e-13)


def test_a_forked_process_computes_with_threads_of_its_own():
    computes()
    child = multiprocessing.get_context("fork").Process(target=computes)
    child.start()
    child.join(60)
    hangs = child.is_alive()
    child.kill()
    assert not hangs and child.exitcode == 0


@pytest.mark.parametrize("shape", [(30, 40), (12, 14, 20)])
def test_grids_in_fortrans_order_are_taken(session, shape):
    grid = np.random.default_rng(1).random(shape)
    coefficients = list(0.05 * np.arange(1, 2 + 2 * len(shape)))
    for chosen in (None, coefficients):
        turned, right = np.asfortranarray(grid), grid.copy()
        session.stencil(turned, steps=5, coefficients=chosen)
        session.stencil(right, steps=5, coefficients=chosen)
        np.testing.assert_allclose(turned, right, rtol=1e-12)
