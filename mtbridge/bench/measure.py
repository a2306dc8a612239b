"""Time contenders beside each other, so that what disturbs one disturbs the others too."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

Work = Callable[[], object]

ROUNDS = 9
FEWEST_ROUNDS = 7
"""Windows that a published median rests on at least."""

# BLAS threads spin after a call (those of OpenBLAS for 0.1 s, whatever limit is set meanwhile) and would take
# a core from the next contender. After such a rest the first calls are slow, so a window is many calls and
# its median counts.
REST_STEP = 0.05
LONGEST_REST = 1.0
IDLE_SHARE = 0.2
SHORTEST_WINDOW = 0.15


def interleaved(contenders: Mapping[str, Work], *, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Return seconds a call for each contender: `rounds` windows each, taken in turn.

    One call warms up. A window begins when no thread of this process works any more, repeats the call for at
    least `SHORTEST_WINDOW` seconds and gives the median.
    """
    for work in contenders.values():
        work()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            rest()
            seconds[name].append(_window(work))
    return seconds


def rest() -> float:
    """Sleep until the other threads of this process have stopped spinning; return the seconds slept."""
    start = time.perf_counter()
    slept = 0.0
    while slept < LONGEST_REST:
        before, used = slept, time.process_time()
        time.sleep(REST_STEP)
        slept = time.perf_counter() - start
        if time.process_time() - used < IDLE_SHARE * (slept - before):
            break
    return slept


def _window(work: Work) -> float:
    calls: list[float] = []
    start = now = time.perf_counter()
    while not calls or now - start < SHORTEST_WINDOW:
        before = now
        work()
        now = time.perf_counter()
        calls.append(now - before)
    return statistics.median(calls)


def spread(seconds: list[float]) -> float:
    """Return half the distance between the quartiles."""
    if len(seconds) < 4:
        return (max(seconds) - min(seconds)) / 2
    low, _, high = statistics.quantiles(seconds, n=4)
    return (high - low) / 2
