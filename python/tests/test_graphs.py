import traceback

import numpy as np
import pytest

import pdawl


class Fifo(pdawl.Policy):
    def next(self, device, now):
        return self.waiting.pop(0) if self.waiting else None


def tournament(session, leaves=16):
    graph = session.graph()
    round = [graph.given("leaf", np.full(100, float(leaf))) for leaf in range(leaves)]
    while len(round) > 1:
        make = graph.result if len(round) == 2 else graph.between
        pairs = zip(round[::2], round[1::2])
        sums = []
        for one, other in pairs:
            both = make("sum", 100)
            graph.task("add", np.add, [one, other], [both], flops=1e6)
            sums.append(both)
        round = sums
    return graph, round[0]


@pytest.mark.parametrize("policy", ["eager", "heft", "darts+luf", Fifo()])
def test_graphs_are_right(session, policy):
    graph, total = tournament(session)
    run = graph.run(policy)
    assert (run[total] == sum(range(16))).all()
    assert abs(sum(run.shares) - 1) < 1e-9
    assert (run.policy_seconds is None) == isinstance(policy, str)


def test_exceptions_of_a_policy_have_their_traceback(session):
    class Broken(Fifo):
        def finished(self, task, device, ended):
            raise ZeroDivisionError("in finished")

    graph, total = tournament(session)
    with pytest.raises(ZeroDivisionError, match="in finished") as raised:
        graph.run(Broken())
    assert "finished" in "".join(traceback.format_tb(raised.tb))
    assert (graph.run(Fifo())[total] == 120).all()


def test_wrong_answers_of_a_policy_are_named(session):
    class Twice(Fifo):
        def next(self, device, now):
            return 0

    class Never(Fifo):
        def next(self, device, now):
            return None

    class Word(Fifo):
        def next(self, device, now):
            return "first"

    graph, _ = tournament(session)
    with pytest.raises(ValueError, match="gave task 0 .* not ready"):
        graph.run(Twice())
    with pytest.raises(pdawl.Error, match="Never"):
        graph.run(Never())
    with pytest.raises(TypeError):
        graph.run(Word())
    with pytest.raises(NotImplementedError, match="next"):
        graph.run(pdawl.Policy())
    with pytest.raises(ValueError, match="`fifo` is not a policy"):
        graph.run("fifo")


def test_wrong_tasks_are_named(session):
    graph = session.graph()
    given, made = graph.given("a", np.ones(3)), graph.result("b", 3)
    graph.task("halve", lambda a: a[:2], [given], [made])
    with pytest.raises(ValueError, match="halve makes an array of shape .3,."):
        graph.run()
    with pytest.raises(ValueError, match="another graph"):
        session.graph().task("t", None, [given], [])
    with pytest.raises(ValueError, match="no bytes"):
        graph.given("empty", np.ones(0))
    unmade = session.graph()
    unmade.task("t", lambda a: a, [unmade.between("never", 1)], [unmade.result("r", 1)])
    with pytest.raises(ValueError, match="never"):
        unmade.run()
