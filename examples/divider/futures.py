"""Tasks on two processes without barriers: a process takes more whenever it is free. The tasks are
unlike, so no division in advance is right."""

import time
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait

import pdawl

TASKS, PROCESSES = 400, 2


def work(tasks: range) -> tuple[int, float]:
    """Some tasks, the later ones longer: a sum, and the seconds."""
    began = time.perf_counter()
    total = sum(number * number % 7 for task in tasks for number in range(20 * task))
    return total, time.perf_counter() - began


def main() -> int:
    divider = pdawl.Divider(units=TASKS, parts=PROCESSES)
    total, running = 0, {}
    with ProcessPoolExecutor(PROCESSES) as pool:

        def give(part: int) -> None:
            tasks = divider.take(part)
            if tasks is not None:
                running[pool.submit(work, tasks)] = part

        for part in range(PROCESSES):
            give(part)
        while running:
            ended: set[Future[tuple[int, float]]] = wait(running, return_when=FIRST_COMPLETED).done
            for future in ended:
                part = running.pop(future)
                one, seconds = future.result()
                total += one
                divider.done(part, seconds)
                give(part)
    assert divider.is_done
    print(divider.why())
    return total


if __name__ == "__main__":
    main()
