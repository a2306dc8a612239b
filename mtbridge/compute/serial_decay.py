"""Expanding and exponentially weighted matrices in plain loops, one pair of columns after the other."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.decay import Decay
from mtbridge.compute.host_decay import (
    SMALLEST,
    check_decay,
    lowered,
    raised,
    surveyed,
    values_and_presence,
)
from mtbridge.compute.moments import NEAR_ONE
from mtbridge.compute.sequence import STATISTICS, MatrixSequence, Wanted
from mtbridge.compute.serial import loop_of
from mtbridge.matrix import Matrix

STATES = 12
NEAR = float(1 - NEAR_ONE)
SIGNATURE = "void(float64[:, ::1], float64[:, ::1], float64[:, ::1])"


class SerialDecay(MatrixSequence):
    """The matrices of `X`, one for each row, by the recurrence of host_decay.py.

    Raises
    ------
    ShapeError, OptionError
        As for `HostDecay`.
    """

    def __init__(self, X: Matrix, plan: Decay, wanted: Wanted) -> None:
        check_decay(X, plan, wanted)
        super().__init__(wanted, X.shape[1], len(plan))
        _, _, tiny = surveyed(X)
        self._shift: NDArray[np.int64] | None = None
        self._X = X
        if tiny:
            self._X, self._shift = raised(X)
        self._plan = plan
        left = range(self.columns) if wanted.left is None else wanted.left
        self._pairs = [(i, j) for i in left for j in range(i if wanted.packed else 0, self.columns)]
        # what each pair carries from block to block
        self._carried = np.zeros((len(self._pairs), STATES))
        self._carried[:, 10:] = 1
        self._loop = loop_of(decay_pair, SIGNATURE)

    def _write(self, out: NDArray[Any], start: int) -> None:
        count, wanted, plan = len(out), self.wanted, self._plan
        stop = start + count
        settings = np.zeros((1 + count, 8))
        settings[0] = (
            *(plan.weight, plan.adjust, plan.ignore_na, plan.counted),
            *(STATISTICS.index(wanted.statistic), wanted.ddof, max(wanted.min_periods, 1), 0),
        )
        settings[1:, 0] = plan.factor[start:stop]
        values, present = values_and_presence(self._X[start:stop])
        values[~present] = math.inf
        flat = out.reshape(count, -1)
        found = np.empty((count, STATES))
        with np.errstate(all="ignore"):
            for k, (i, j) in enumerate(self._pairs):
                record = np.concatenate([self._carried[k : k + 1], found])
                settings[0, 7] = i == j
                self._loop(np.ascontiguousarray(values[:, [i, j]]), settings, record)
                self._carried[k] = record[0]
                values_of = record[1:, 0]
                if self._shift is not None:
                    values_of = lowered(values_of, self._shift[i], self._shift[j], wanted.statistic)
                flat[:, k] = values_of


def decay_pair(series: Matrix, settings: Matrix, record: Matrix) -> None:
    """Write the statistic of each row of one pair into column 0 of `record`, below what the pair carries.

    `series` has a column for each side, infinity where a value is missing; `settings` has what holds for all
    rows in its first row, and the factors of the rows below it.
    """
    weight, adjust, ignore, counted = settings[0, 0], settings[0, 1], settings[0, 2], settings[0, 3]
    statistic, ddof, least, own = settings[0, 4], settings[0, 5], settings[0, 6], settings[0, 7]
    total, spread, rows, R = record[0, 0], record[0, 1], record[0, 2], record[0, 3]
    for t in range(series.shape[0]):
        seen = series[t, 0] != math.inf and series[t, 1] != math.inf
        if seen or ignore == 0:
            total *= settings[t + 1, 0]
        if seen:
            g, u = total / (total + weight), weight / (total + weight)
            total = total + weight if adjust != 0 else 1.0
            rows += 1
            spread = g * g * spread + 2 * g * u
            a, b = 1.0, 1.0
            for side in range(2):
                mean, rest, sigma = record[0, 4 + side], record[0, 6 + side], record[0, 8 + side]
                x = series[t, side]
                d = (x - mean) - rest
                # from the nearer of the mean and the value
                base, moved = mean, u * d
                if u > g:
                    base, moved, rest = x, -g * d, 0.0
                rough = base + moved
                taken = rough - base
                rest = ((base - (rough - taken)) + (moved - taken)) + rest
                mean = rough + rest
                part = mean - rough
                rest = (rough - (mean - part)) + (rest - part)
                old, fresh = math.sqrt(g) * sigma, math.sqrt(g * u) * d
                now = math.hypot(old, fresh)
                before = old / now if now != 0 else 1.0
                itself = fresh / now if now != 0 else 0.0
                record[0, 10 + side] = before * before * record[0, 10 + side] + itself * itself
                a *= before
                b *= itself
                if now < SMALLEST and (now > 0 or (sigma > 0 and g > 0)):
                    now = SMALLEST
                record[0, 4 + side], record[0, 6 + side], record[0, 8 + side] = mean, rest, now
            R = a * R + b
        left, right = record[0, 8], record[0, 9]
        # what rounding made of the correlations of the columns with themselves is taken out
        share = R / math.sqrt(record[0, 10] * record[0, 11])
        share = 1.0 if share > NEAR else -1.0 if share < -NEAR else share
        if own != 0:
            share = 1.0 if left == left else math.nan
        value = math.nan
        if rows >= least:
            if statistic == 0:
                scale = math.nan
                if counted != 0:
                    if rows > ddof:
                        scale = rows / (rows - ddof)
                elif ddof == 0:
                    scale = 1.0
                elif spread > 0:
                    scale = 1.0 / spread
                # the larger deviation first, and a root of the scale for each: host_decay.py says why
                scale = math.sqrt(scale)
                value = share * (scale * max(left, right)) * (scale * min(left, right))
            elif left > 0 and (statistic == 2 or right > 0):
                value = share if statistic == 1 or own != 0 else share * right / left
        record[t + 1, 0] = value
    record[0, 0], record[0, 1], record[0, 2], record[0, 3] = total, spread, rows, R
