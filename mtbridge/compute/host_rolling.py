"""Rolling matrices on the host: the moments of each window by itself, from its own rows about its own origin.

So what left a window cannot leave a trace, and a window is as right as a matrix by itself is.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.host import NumpyEngine
from mtbridge.compute.masked import masked_moments, masked_pair_moments
from mtbridge.compute.pair_moments import PairMoments
from mtbridge.compute.sequence import FLOAT64, MatrixSequence, Wanted
from mtbridge.compute.windows import Rolling
from mtbridge.errors import OptionError, ShapeError
from mtbridge.matrix import Matrix


class WindowByWindow(MatrixSequence):
    """The matrices of the windows of `plan` over `X`, one by one.

    Parameters
    ----------
    X : float32 or float64 of shape (rows, columns); NaN is missing, inf makes its pairs NaN

    Raises
    ------
    ShapeError
        If the plan has a window behind the last row.
    OptionError
        If `ddof` is negative, or one of the left columns does not exist.
    """

    def __init__(self, X: Matrix, plan: Rolling, wanted: Wanted) -> None:
        check_rolling(X, plan, wanted)
        super().__init__(wanted, X.shape[1], len(plan))
        self._values = np.ascontiguousarray(X, FLOAT64)
        self._plan = plan
        self._left = None if wanted.left is None else np.array(wanted.left, np.int64)
        self._upper = np.triu_indices(self.columns) if wanted.packed else None

    def _write(self, out: NDArray[Any], start: int) -> None:
        for k in range(len(out)):
            first, last = int(self._plan.first[start + k]), int(self._plan.last[start + k])
            found = answer(self._moments(first, last + 1), self.wanted, self._left)
            with np.errstate(over="ignore", under="ignore"):
                out[k] = found if self._upper is None else found[self._upper]

    @abstractmethod
    def _moments(self, begin: int, end: int) -> PairMoments:
        """The moments of the left columns with all columns in the rows `begin` to `end`."""


class HostRolling(WindowByWindow):
    """One small product a window, centred; with masks where a value is missing."""

    def __init__(self, X: Matrix, plan: Rolling, wanted: Wanted) -> None:
        super().__init__(X, plan, wanted)
        self._engine = NumpyEngine()
        missing = np.isnan(self._values).any(axis=1)
        self._missing_before = np.concatenate(([0], np.cumsum(missing))).tolist()

    def _moments(self, begin: int, end: int) -> PairMoments:
        window = self._values[begin:end]
        if self._left is not None:
            return masked_pair_moments(self._engine, window[:, self._left], window)
        if self._missing_before[end] > self._missing_before[begin]:
            return masked_moments(self._engine, window)
        return PairMoments.of(self._engine.moments(window))


def answer(moments: PairMoments, wanted: Wanted, left: NDArray[np.int64] | None) -> Matrix:
    """Return what is wanted of the pairs of the columns `left`, all where it is None, with all columns."""
    if wanted.statistic == "covariance":
        return moments.covariance(wanted.ddof, wanted.min_periods)
    own = (np.arange(len(moments.n)), np.arange(len(moments.n)) if left is None else left)
    matrix: Matrix
    if wanted.statistic == "correlation":
        matrix = moments.correlation(wanted.min_periods)
    else:
        matrix = beta(moments, wanted.min_periods)
    matrix[own] = np.where(np.isnan(matrix[own]), np.nan, 1.0)
    return matrix


def beta(moments: PairMoments, min_periods: int = 1) -> Matrix:
    """Return the betas of the right columns to the left ones: co-moment over the left column's squares.

    NaN where the left column is constant on the pair's rows, or n < min_periods.
    """
    left, right = moments.left, moments.right
    with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
        matrix: Matrix = moments.comoment / left.squares
        if left.exponent.any() or right.exponent.any():
            matrix = np.ldexp(matrix, (right.exponent - left.exponent).astype(np.int32))
    unknown = (left.squares == 0) | (moments.n < max(min_periods, 1))
    matrix[np.broadcast_to(unknown, matrix.shape)] = np.nan
    return matrix


def check_rolling(X: Matrix, plan: Rolling, wanted: Wanted) -> None:
    """Refuse windows and options that do not fit the history, as `WindowByWindow` says."""
    if plan.end > len(X):
        raise ShapeError(f"the last window ends at row {plan.end - 1} but X has {len(X)} rows.")
    if wanted.ddof < 0:
        raise OptionError(f"ddof is {wanted.ddof}; it must be 0 or more.")
    wanted.check_left(X.shape[1])
