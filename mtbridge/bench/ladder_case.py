"""One size and type of the ladder: its matrices, the right answer, and how calls are judged and timed."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from mtbridge.bench.measure import spread
from mtbridge.matrix import Matrix

Row = dict[str, Any]
Timing = tuple[float, float | None]
"""Wall seconds of a call, and those its launches ran on the device."""

MOST_ROUNDS, SECONDS_A_RUNG = 21, 1.0
# Threads of OpenBLAS spin for a while after a call and would take the cores of whoever comes next
REST_SECONDS = 0.3


class Case:
    """A product of square matrices.

    Attributes
    ----------
    A, B : standard normal, of shape (size, size) and of `dtype`
    exact : their product in float64
    weight : |A| |B|, what an error is a share of
    bound : the largest share that rounding explains, one unit in the last place for each addition
    """

    def __init__(self, size: int, dtype: str) -> None:
        random = np.random.default_rng(size)
        self.size = size
        self.dtype = np.dtype(dtype)
        self.A: Matrix = random.standard_normal((size, size)).astype(self.dtype)
        self.B: Matrix = random.standard_normal((size, size)).astype(self.dtype)
        self.exact: Matrix = self.A.astype(np.float64) @ self.B.astype(np.float64)
        self.weight: Matrix = np.abs(self.A).astype(np.float64) @ np.abs(self.B).astype(np.float64)
        self.bound = float(size * np.finfo(self.dtype).eps)
        self.flops = 2.0 * size**3
        time.sleep(REST_SECONDS)

    @property
    def sizes(self) -> tuple[int, int, int]:
        """Rows, inner and columns."""
        return self.size, self.size, self.size

    def row(self, contender: str, article: str = "") -> Row:
        """Return a row of the benchmark in which nothing was measured yet."""
        return blank(f"ladder {self.size}x{self.size}x{self.size}", str(self.dtype), contender, article)

    def error(self, C: Matrix) -> float:
        """Return the largest error of `C` as a share of |A| |B|; NaN where C has one."""
        return float((np.abs(C - self.exact) / self.weight).max())

    def judged(self, C: Matrix, work: Callable[[], Timing], *done: Timing) -> Row:
        """Return the error of `C` and, where that is within its bound, the times of `work`.

        Parameters
        ----------
        C : the answer of a first call
        done : timings there are already
        """
        error = self.error(C)
        if not error <= self.bound:
            return {
                "error": error,
                "note": f"wrong: the error {error:.1e} is past its bound {self.bound:.1e}",
            }
        timings = list(done)
        while len(timings) < MOST_ROUNDS and sum(wall for wall, _ in timings) < SECONDS_A_RUNG:
            timings.append(work())
        walls = [wall for wall, _ in timings]
        on_device = [seconds for _, seconds in timings if seconds is not None]
        found = {
            "error": error,
            "median_s": statistics.median(walls),
            "spread_s": spread(walls),
        }
        if on_device:
            found["device_s"] = statistics.median(on_device)
            found["device_spread_s"] = spread(on_device)
        return found | {"gflops": self.flops / found.get("device_s", found["median_s"]) / 1e9}


def blank(case: str, dtype: str, contender: str, article: str) -> Row:
    """Return a row in which nothing was measured yet."""
    return {
        "case": case,
        "dtype": dtype,
        "contender": contender,
        "device": "",
        "threads": os.cpu_count() or 1,
        "median_s": None,
        "spread_s": None,
        "gflops": None,
        "error": None,
        "note": "",
        "versus": {},
        "article": article,
        "device_s": None,
        "device_spread_s": None,
        "device_versus": {},
        "peak_share": None,
    }
