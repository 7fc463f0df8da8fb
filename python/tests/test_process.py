"""A session in a process: Ctrl-C in the user's own code, forks, ends. What may hang runs in a
process of its own."""

import os
import subprocess
import sys

import numpy as np
import pytest

import pdawl

PRELUDE = """
import os, signal, sys, threading, time
import numpy as np, pdawl, scipy.sparse

class Fifo(pdawl.Policy):
    def next(self, device, now):
        return self.waiting.pop(0) if self.waiting else None

def graph(session, function=np.negative):
    graph = session.graph()
    given, made = graph.given("a", np.ones(3)), graph.result("b", 3)
    graph.task("t", function, [given], [made], flops=1e6)
    return graph, made

def works(session):
    tasks, made = graph(session)
    assert (tasks.run(Fifo())[made] == -1).all()
    assert not session.stencil(np.ones((30, 30)), steps=3).interrupted

def forked(work):
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        work()
        sys.exit(0)
    return os.waitpid(child, 0)[1]
"""


def run(program, code=0, timeout=60, **environment):
    """The output of a program that ends with a code."""
    ran = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PRELUDE + program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=timeout,
    )
    assert ran.returncode == code, f"{ran.returncode}: {ran.stdout}{ran.stderr}"
    return ran.stdout, ran.stderr


INTERRUPTED = """
session = SESSION
entered = threading.Event()

def press(times):
    entered.wait()
    for _ in range(times):
        time.sleep(0.03)
        os.kill(os.getpid(), signal.SIGINT)

def interrupted(call, times=1):
    entered.clear()
    pressing = threading.Thread(target=press, args=[times])
    pressing.start()

    def all_have_come():
        pressing.join()
        time.sleep(0.1)

    act = call
    while True:
        try:
            act()
            assert act is not call, "not interrupted"
            break
        except KeyboardInterrupt:  # several, as in all Python
            act = all_have_come
    session.set_strategy("dawl")
    works(session)

def stays():
    entered.set()
    while True:
        pass

def sleeps():
    entered.set()
    time.sleep(1000)

class Balancer(pdawl.Balancer):
    def plan(self, step):
        if step == 1:
            wait()
        return [1.0] * len(self.setup["devices"])

for wait in (stays, sleeps):
    class Waits(Fifo):
        def next(self, device, now):
            wait()

    for times in (1, 3):
        interrupted(lambda: graph(session)[0].run(Waits()), times)
        interrupted(lambda: graph(session, lambda a: wait())[0].run(), times)
        session.set_balancer(Balancer)
        interrupted(lambda: session.stencil(np.ones((30, 30)), steps=5), times)
"""


@pytest.mark.parametrize("session", ['pdawl.simulate("k40")', 'pdawl.Session("host:2")'])
def test_ctrl_c_ends_the_users_own_code(session):
    run(INTERRUPTED.replace("SESSION", session, 1))


def test_ctrl_c_in_a_run_of_another_thread_is_that_of_the_main_thread():
    run(
        """
session = pdawl.simulate("k40")
entered, leave = threading.Event(), threading.Event()
def function(a):
    entered.set()
    leave.wait()
    return -a
thread = threading.Thread(target=lambda: graph(session, function)[0].run())
thread.start()
entered.wait()
threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    works(session)  # it waits for the other run, and gives up
    raise AssertionError("not interrupted")
except KeyboardInterrupt:
    pass
assert thread.is_alive()
leave.set()
thread.join()
works(session)
"""
    )


def test_a_call_of_the_session_that_waits_is_refused():
    session = pdawl.simulate("k40")

    class Again(pdawl.Policy):
        def next(self, device, now):
            assert session.devices  # what is known is answered
            session.stencil(np.ones((5, 5)))

    graph = session.graph()
    graph.task("t", np.negative, [graph.given("a", np.ones(3))], [graph.result("b", 3)])
    with pytest.raises(pdawl.Error, match="another pdawl.Session"):
        graph.run(Again())
    assert not session.stencil(np.ones((5, 5))).interrupted


def test_a_forked_process_has_sessions_of_its_own():
    run(
        """
import multiprocessing, subprocess
from concurrent.futures import ProcessPoolExecutor

a = scipy.sparse.eye_array(50, format="csr") * 2.0
matrix, x = pdawl.Matrix(a), np.arange(50.0)
session, simulated = pdawl.Session("host:1"), pdawl.simulate("k40")
tasks = graph(session)[0]

def product(_=None):
    return float(pdawl.spmv(matrix, x).sum())

def child():
    signal.alarm(30)
    assert product() == 2450
    for call in (
        lambda: session.spmv(matrix, x), tasks.run, lambda: simulated.stencil(np.ones((5, 5))),
        lambda: session.set_strategy("cpu"),
    ):
        try:
            call()
        except pdawl.Error as error:
            assert "forked" in str(error) and "open another" in str(error), error
        else:
            raise AssertionError("the session is not of this process")
    works(pdawl.Session("host:1"))

def after_all():
    assert product() == 2450
    works(session)
    works(simulated)

after_all()
assert forked(child) == 0
assert forked(lambda: (child(), os._exit(0))) == 0
after_all()
fork = multiprocessing.get_context("fork")
with fork.Pool(2) as pool:
    assert pool.map(product, range(4)) == [2450] * 4
with ProcessPoolExecutor(2, fork) as pool:
    assert list(pool.map(product, range(4))) == [2450] * 4
assert subprocess.run(["true"], preexec_fn=lambda: None).returncode == 0
after_all()

thread = threading.Thread(target=session.stencil, args=[np.ones((300, 300)), 3000])
thread.start()
time.sleep(0.1)
assert forked(child) == 0
thread.join()

# A run whose task forks goes on in the parent alone.
parent, children = os.getpid(), []

def forks(a):
    if not children:
        children.append(os.fork())
    return -a

forking, made = graph(simulated, forks)
try:
    assert (forking.run()[made] == -1).all()
except pdawl.Error as error:
    assert os.getpid() != parent and "forked" in str(error)
    sys.exit(7)
assert os.getpid() == parent
assert os.waitstatus_to_exitcode(os.waitpid(children[0], 0)[1]) == 7
after_all()
"""
    )


def test_drivers_are_those_of_one_process():
    run(
        """
session = pdawl.Session("opencl0.0")

def child():
    signal.alarm(30)
    try:
        pdawl.Session("opencl0.0")
    except (ValueError, pdawl.Error) as error:
        assert "forked" in str(error) and "spawn" in str(error), error
    else:
        raise AssertionError("drivers do not survive a fork")
    works(pdawl.Session("host:1"))

assert forked(child) == 0
assert not session.stencil(np.ones((30, 30)), steps=3).interrupted
"""
    )


def test_a_process_ends_with_open_sessions():
    run(
        """
class Leaves(pdawl.Balancer):
    def plan(self, step):
        sys.exit(5)

def balanced(session):
    session.set_balancer(Leaves)
    session.stencil(np.ones((30, 30)))

def thread(work):
    threading.Thread(target=work, daemon=True).start()
    time.sleep(0.2)

def endless(a):
    while True:
        pass

def again(session):
    while True:
        works(session)

class Endless(Fifo):
    def next(self, device, now):
        endless(None)

for code, work in [
    (3, lambda session: graph(session, lambda a: sys.exit(3))[0].run()),
    (4, lambda session: graph(session, lambda a: os._exit(4))[0].run()),
    (5, balanced),
    (0, lambda session: pdawl.spmv(scipy.sparse.eye_array(5, format="csr"), np.ones(5))),
    (0, lambda session: thread(lambda: session.stencil(np.ones((300, 300)), steps=10**9))),
    (0, lambda session: thread(lambda: graph(session, lambda a: time.sleep(1000))[0].run())),
    (0, lambda session: thread(lambda: graph(session, endless)[0].run())),
    (0, lambda session: thread(lambda: graph(session)[0].run(Endless()))),
    (0, lambda session: thread(lambda: again(session))),
]:
    def child():
        signal.alarm(20)
        work(pdawl.Session("host:1"))
    ended = os.waitstatus_to_exitcode(forked(child))
    assert ended == code, (ended, code)
"""
    )
