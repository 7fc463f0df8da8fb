"""Policies and balancers of the user's."""

from __future__ import annotations

from typing import Any


class Policy:
    """Which task of a graph goes to which device, and when.

    A subclass has `next`. `begin` gets the problem first: a dictionary of `tasks` (each with
    `predecessors`, `inputs`, `outputs`, `rank` and, by device, `seconds`, None where it cannot
    run), `devices` (`kind`, `bandwidth`, `memory`) and `data` (bytes of each). An exception in
    any method ends the run with its traceback.
    """

    #: Tasks that a device has at once: one is computed, the data of the others are loaded.
    window: int | None = 2

    def begin(self, problem: dict[str, Any]) -> None:
        """The problem, before the run. Here tasks wait in the order in which they become ready."""
        self.problem = problem
        self.waiting: list[int] = []

    def ready(self, task: int, now: float) -> None:
        """All that a task waits for has ended, at `now` seconds. Told before the next question."""
        self.waiting.append(task)

    def next(self, device: int, now: float) -> int | None:
        """The task that a device gets next, or None. Each task is given once."""
        raise NotImplementedError("a policy has `next(device, now)`")

    def finished(self, task: int, device: int, ended: float) -> None:
        """A task has ended. Told before the next question, or at the end of the run."""

    def lost(self, device: int) -> None:
        """A device is lost. Ready tasks are reported again."""
        self.waiting.clear()


class Balancer:
    """How a step is divided among devices.

    A subclass has `plan`. The constructor gets a dictionary of `units`, `steps` and `devices`
    (each with `kind`, `compute_units` and `capacity`, the units that its own memory holds, or
    None).
    """

    def __init__(self, setup: dict[str, Any]) -> None:
        self.setup = setup

    def plan(self, step: int) -> list[float]:
        """The share of each device in a step; shares need not sum to 1."""
        raise NotImplementedError("a balancer has `plan(step)`")

    def step_ended(self, step: int, units: list[int], seconds: list[float]) -> None:
        """A step has ended: the units of each device, and when it had finished."""
