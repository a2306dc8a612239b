"""A piece of work that lies ready on a device to be repeated, checked and timed: what every contender is."""

from __future__ import annotations

import statistics
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.bench.gpu_data import Case, Lines, spread_over

SHORTEST_WINDOW = 0.02
"""Seconds of the device that a window takes at least; its median counts."""

LONGEST_WAIT = 0.2
"""Seconds of the host after which a window of short work ends all the same."""

MOST_LOOKED_AT = 1 << 29
"""Bytes of an answer that are looked at: all of the matrix of 8192 columns, parts of a larger one."""


class Trial(ABC):
    """Work on equal copies of an input, taken in turn so that no cache can hold them."""

    @abstractmethod
    def run(self, turn: int, *, poisoned: bool = False) -> float:
        """Do the work on copy number `turn`, modulo their number; return seconds by the device's clock.

        The answer of the run before may be lost. `poisoned` fills the memory of this one with NaN first.
        """

    @abstractmethod
    def lines(self, some: Lines) -> NDArray[Any]:
        """Return the lines `some` of the last answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One row of a case.

    Attributes
    ----------
    name, device : as the row says
    make : brings the input to the device; None if it cannot run, with the reason in `note`
    note : stands beside the row
    case : what its answer is compared with, where that is not the case it stands in
    answers : whether there is an answer to compare
    against : contenders of its case whose times are divided by its own
    """

    name: str
    device: str = ""
    make: Callable[[], Trial] | None = None
    note: str = ""
    case: Case | None = None
    answers: bool = True
    against: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """What two runs on different copies gave."""

    error: float
    bias: float | None
    same_bits: bool


def checked(trial: Trial, case: Case) -> Checked:
    """Run twice, the first time into NaN, and compare the answer with the exact one and with itself.

    Raises
    ------
    ArithmeticError
        If numbers of the answer were not written, or are wrong.
    """
    some = spread_over(case.count, max(MOST_LOOKED_AT // max(case.line_bytes, 1), 1))
    trial.run(0, poisoned=True)
    found = trial.lines(some)
    lost = int(np.count_nonzero(~np.isfinite(found)))
    if lost:
        raise ArithmeticError(f"wrong: {lost} of {found.size} numbers of the answer are not finite")
    error, bound = case.error(found, some), case.terms * float(np.finfo(case.dtype).eps)
    if not error <= bound:
        raise ArithmeticError(f"wrong: the error is {error:.1e}, where {bound:.1e} is allowed")
    trial.run(1)
    again = trial.lines(some)
    return Checked(error, case.bias(found, some), np.array_equal(bits(found), bits(again)))


def bits(found: NDArray[Any]) -> NDArray[Any]:
    """Return the bits of an answer as whole numbers: NaN is equal to itself there, and 0 not to -0."""
    return found.view(f"u{found.itemsize}")


def in_turn(trials: Mapping[str, Trial], *, rounds: int) -> dict[str, tuple[list[float], list[float]]]:
    """Return seconds a run of each trial by its device and by the host: `rounds` windows, taken in turn."""
    found: dict[str, tuple[list[float], list[float]]] = {name: ([], []) for name in trials}
    turn = 0
    for _ in range(rounds):
        for name, trial in trials.items():
            spent: list[float] = []
            walls: list[float] = []
            while not spent or (sum(spent) < SHORTEST_WINDOW and sum(walls) < LONGEST_WAIT):
                start = time.perf_counter()
                spent.append(trial.run(turn))
                walls.append(time.perf_counter() - start)
                turn += 1
            for values, window in zip(found[name], (spent, walls), strict=True):
                values.append(statistics.median(window))
    return found
