"""Time contenders beside each other, so that what disturbs one disturbs the others too."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping

Work = Callable[[], object]

ROUNDS = 9
# BLAS threads spin for a while after a call and would take a core from the next contender; after such a rest
# the first calls are slow, so a window is many calls and its median counts
REST_SECONDS = 0.3
SHORTEST_WINDOW = 0.15


def interleaved(contenders: Mapping[str, Work], *, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Return seconds a call for each contender: `rounds` windows each, taken in turn.

    One call warms up. A window repeats the call for at least `SHORTEST_WINDOW` seconds and gives the median.
    """
    for work in contenders.values():
        work()
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, work in contenders.items():
            time.sleep(REST_SECONDS)
            seconds[name].append(_window(work))
    return seconds


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
