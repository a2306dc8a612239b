"""Expanding and exponentially weighted matrices on the host, and the recurrence that every engine follows.

A pair of columns carries means, standard deviations and the correlation R, not sums of products. Let a row
deviate by d from the means, and have the share u of the new total weight, the rows before it g = 1 - u. Then

    mean' = mean + u d          sigma' = hypot(sqrt(g) sigma, sqrt(g u) d)
    R' = a_i a_j R + b_i b_j    with a = sqrt(g) sigma / sigma' and b = sqrt(g u) d / sigma'.

Nothing is ever subtracted but a mean from a value, so no departed value leaves a trace beyond its
weight; nothing is squared, so 1e-170 and 1e200 meet unharmed; sigma is exactly 0 until the first value that
differs. Means are pairs of floats, so a level of 1e8 costs no digits. Where no value is missing, means and
deviations are a column's and only R is a pair's.

The squares of a and b sum to 1 but for rounding, and that adds up over the rows. The norm, the R of a column
with itself by the same recurrence, tells what it adds up to, and the answer is R over the root of both norms:
equal columns correlate by exactly 1, and negated ones by -1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.decay import Decay
from mtbridge.compute.moments import NEAR_ONE
from mtbridge.compute.sequence import MatrixSequence, Statistic, Wanted
from mtbridge.errors import OptionError, ShapeError
from mtbridge.matrix import Matrix

Floats = NDArray[np.float64]

SMALLEST = float(np.finfo(np.float64).tiny)
"""A deviation that was not 0 stays at least this, however long its column rests afterwards."""
TINY = 2.0**-900
"""Values below it, but for 0, may have deviations that lose digits."""

RAISED = 20
"""Power of two up to which columns with such values are raised; 2**1000 times as much is still a number."""

SURVEYED = 1 << 18
"""Elements that are looked at together, so that a long history needs no copy."""


class HostDecay(MatrixSequence):
    """The matrices of `X`, float32 or float64 of shape (rows, columns), one for each row.

    NaN is missing, inf is data: it makes its pairs NaN from its row on.

    Raises
    ------
    ShapeError
        If the plan has another number of rows.
    OptionError
        If `ddof` is neither 0 nor 1 for an exponential plan, or negative.
    """

    def __init__(self, X: Matrix, plan: Decay, wanted: Wanted) -> None:
        check_decay(X, plan, wanted)
        super().__init__(wanted, X.shape[1], len(plan))
        self._plan = plan
        self._dense, _, tiny = surveyed(X)
        self._shift: NDArray[np.int64] | None = None
        self._X = X
        if tiny:
            self._X, self._shift = raised(X)
        left = np.arange(self.columns) if wanted.left is None else np.array(wanted.left, np.int64)
        self._left = left
        self._diagonal = (np.arange(len(left)), left)
        self._upper = np.triu_indices(self.columns) if wanted.packed else None
        whole = (len(left), self.columns)
        self._i = Side((len(left), 1) if self._dense else whole)
        self._j = Side((1, self.columns) if self._dense else whole)
        shape = (1, 1) if self._dense else whole
        self._weight, self._spread, self._rows = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self._R = np.zeros(whole)

    def skip(self, count: int) -> None:
        """Pass over the next `count` matrices without writing them."""
        with np.errstate(all="ignore"):
            for t in range(self.done, self.done + count):
                self._take(t)
        self.done += count

    def _write(self, out: NDArray[Any], start: int) -> None:
        with np.errstate(all="ignore"):
            for k in range(len(out)):
                self._take(start + k)
                found = self._matrix()
                out[k] = found if self._upper is None else found[self._upper]

    def _take(self, t: int) -> None:
        """Take row `t` into what is carried."""
        plan = self._plan
        x, present = values_and_presence(self._X[t])
        faded = self._weight * plan.factor[t]
        seen = None
        if not self._dense:
            seen = present[self._left][:, None] & present
            if plan.ignore_na:
                faded = np.where(seen, faded, self._weight)
        total = faded + plan.weight
        g, u = faded / total, plan.weight / total
        if seen is not None:
            # a row that a pair does not have has no share in it
            g, u = np.where(seen, g, 1.0), np.where(seen, u, 0.0)
        after = total if plan.adjust else np.ones_like(total)
        self._weight = after if seen is None else np.where(seen, after, faded)
        self._rows = self._rows + (1 if seen is None else seen)
        self._spread = g * g * self._spread + 2 * g * u
        a_i, b_i = self._i.take(x[self._left][:, None], g, u, seen)
        a_j, b_j = self._j.take(x, g, u, seen)
        self._R = (a_i * a_j) * self._R + b_i * b_j

    def _matrix(self) -> Floats:
        wanted, i, j = self.wanted, self._i.sigma, self._j.sigma
        R = self._R / np.sqrt(self._i.norm * self._j.norm)
        near = np.abs(R) > 1 - NEAR_ONE
        R[near] = np.sign(R[near])
        own = R[self._diagonal]
        R[self._diagonal] = np.where(np.isnan(own), np.nan, 1.0)
        few = self._rows < max(wanted.min_periods, 1)
        if wanted.statistic == "covariance":
            # the larger deviation first: their product alone may overflow or vanish; and a root for each, for
            # where the newest row has nearly all weight, deviations are as small as the divisor is large
            root = np.sqrt(self._divisor())
            found = R * (root * np.maximum(i, j)) * (root * np.minimum(i, j))
        elif wanted.statistic == "correlation":
            found = np.where((i == 0) | (j == 0), np.nan, R)
        else:
            found = np.where(i == 0, np.nan, (R * j) / i)
            own = found[self._diagonal]
            found[self._diagonal] = np.where(np.isnan(own), own, 1.0)
        if self._shift is not None:
            found = lowered(found, self._shift[self._left][:, None], self._shift, wanted.statistic)
        return np.where(few, np.nan, found)

    def _divisor(self) -> Floats:
        """What turns a variance of shares of weight into the one that is wanted; NaN where there is none."""
        if self._plan.counted:
            left = self._rows - self.wanted.ddof
            return np.where(left > 0, self._rows / left, np.nan)
        if self.wanted.ddof == 0:
            return np.ones_like(self._spread)
        return np.where(self._spread > 0, 1.0 / self._spread, np.nan)


class Side:
    """The mean, as a pair of floats, the deviation and the norm of one column of each pair."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.mean, self.rest, self.sigma = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        self.norm = np.ones(shape)

    def take(self, x: Floats, g: Floats, u: Floats, seen: NDArray[np.bool_] | None) -> tuple[Floats, Floats]:
        """Take the values `x` in and return a and b of the recurrence."""
        d = (x - self.mean) - self.rest
        if seen is not None:
            d = np.where(seen, d, 0.0)
        # from the nearer of the mean and the value, so that a mean of heavy rows forgets what it was before
        near = u > g
        base = np.where(near, x, self.mean)
        mean, lost = two_sum(base, np.where(near, -g, u) * d)
        self.mean, self.rest = two_sum(mean, lost + np.where(near, 0.0, self.rest))
        p, q = np.sqrt(g) * self.sigma, np.sqrt(g * u) * d
        sigma = np.hypot(p, q)
        moved = sigma != 0
        a = np.where(moved, p / sigma, 1.0)
        b = np.where(moved, q / sigma, 0.0)
        self.norm = (a * a) * self.norm + b * b
        was = ((self.sigma > 0) & (g > 0)) | moved
        self.sigma = np.where(was & (sigma < SMALLEST), SMALLEST, sigma)
        return a, b


def two_sum(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """The rounded sum and what the rounding lost, exactly (Knuth)."""
    total = x + y
    taken = total - x
    return total, (x - (total - taken)) + (y - taken)


def values_and_presence(X: Matrix) -> tuple[Floats, NDArray[np.bool_]]:
    """The values in float64, NaN where they are infinite, and which are present; both C-ordered."""
    values = np.array(X, np.float64, order="C")
    present = ~np.isnan(values)
    values[np.isinf(values)] = np.nan
    return values, present


def raised(X: Matrix) -> tuple[Matrix, NDArray[np.int64]]:
    """Return the columns in float64 times 2**shift, which is exact, and the shifts, 0 or more."""
    values = np.array(X, np.float64, order="C")
    sizes = np.abs(values)
    _, reach = np.frexp(sizes.max(axis=0, initial=0.0, where=np.isfinite(sizes)))
    shift = np.clip(RAISED - reach.astype(np.int64), 0, 1000)
    return np.ldexp(values, shift.astype(np.int32)), shift


def lowered(values: Floats, left: Any, right: Any, statistic: Statistic) -> Floats:
    """Return what was found of columns that were raised by `left` and `right` as it is of the columns."""
    if statistic == "correlation":
        return values
    shift = left - right if statistic == "beta" else -left - right
    return np.asarray(np.ldexp(values, np.asarray(shift, np.int32)))


def surveyed(X: Matrix) -> tuple[bool, float, bool]:
    """What the values of `X` are like.

    Returns
    -------
    whether none is missing; the largest size of those that are finite, 0 where there is none; whether one is
    so small that deviations may lose digits
    """
    dense, largest, tiny = True, 0.0, False
    piece = max(1, SURVEYED // max(X.shape[1], 1))
    for start in range(0, len(X), piece):
        sizes = np.abs(X[start : start + piece])
        dense = dense and not np.isnan(sizes).any()
        largest = max(largest, float(sizes.max(initial=0.0, where=np.isfinite(sizes))))
        below = sizes < TINY
        tiny = tiny or bool(np.count_nonzero(below) > np.count_nonzero(sizes[below] == 0))
    return dense, largest, tiny


def check_decay(X: Matrix, plan: Decay, wanted: Wanted) -> None:
    """Refuse what does not fit the history, and a ddof that has no meaning."""
    wanted.check_left(X.shape[1])
    if len(X) != len(plan):
        raise ShapeError(f"the plan has {len(plan)} rows but X has {len(X)}; they must be equal.")
    if wanted.ddof < 0 or (not plan.counted and wanted.ddof > 1):
        rule = "0 or more" if plan.counted else "0 for the biased covariance or 1 for the unbiased one"
        raise OptionError(f"ddof is {wanted.ddof}; it must be {rule}.")
