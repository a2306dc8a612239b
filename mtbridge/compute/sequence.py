"""`MatrixSequence`: one matrix for each window of a history, computed in order, a block at a time.

Rolling, expanding and exponentially weighted matrices are such sequences. An engine opens one with
`Engine.sequence`; whoever holds it takes the next matrices into an array of any length, so an answer
larger than memory can be streamed, and a reducer can look at each block and keep only its own numbers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import short
from mtbridge.errors import OptionError, ShapeError

Statistic: TypeAlias = Literal["covariance", "correlation", "beta"]
FLOAT64 = np.dtype(np.float64)
STATISTICS: tuple[Statistic, ...] = ("covariance", "correlation", "beta")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is wanted of each window.

    Attributes
    ----------
    statistic : element (i, j) is the covariance of columns i and j, their correlation, or the beta of column
        j to column i, ``covariance(i, j) / variance(i)``; means and variances are of the pair's own rows
    ddof : the divisor of a covariance is rows - ddof; of an exponentially weighted one, 0 is the biased one,
        1 the unbiased one. A correlation and a beta do not depend on it.
    min_periods : rows that a pair must have in common, else its element is NaN
    left : the columns i of the matrices' rows, all where it is None; one benchmark is ``(7,)``
    packed : only elements with j >= i, row by row, ``columns * (columns + 1) / 2`` of them a window
    dtype : of the answer, float64 or float32; sums are float64 in either case
    """

    statistic: Statistic = "covariance"
    ddof: int = 1
    min_periods: int = 1
    left: tuple[int, ...] | None = None
    packed: bool = False
    dtype: np.dtype[Any] = FLOAT64

    def __post_init__(self) -> None:
        if not isinstance(self.statistic, str) or self.statistic not in STATISTICS:
            raise OptionError(
                f"there is no statistic {short(self.statistic)}; there are {', '.join(STATISTICS)}."
            )
        if self.packed and (self.left is not None or self.statistic == "beta"):
            raise OptionError("a packed triangle needs the whole symmetric matrix; leave packed out.")

    def check_left(self, columns: int) -> None:
        """Refuse left columns that a history of `columns` columns does not have."""
        for column in self.left or ():
            if not 0 <= column < columns:
                raise OptionError(f"there is no column {column}; there are {columns}, counted from 0.")

    def shape(self, columns: int) -> tuple[int, ...]:
        """Return the shape of one window's answer, for a history of `columns` columns."""
        if self.packed:
            return (columns * (columns + 1) // 2,)
        return (columns if self.left is None else len(self.left), columns)


class MatrixSequence(ABC):
    """The matrices of one history, in order.

    Attributes
    ----------
    wanted : what each of them is
    columns : of the history
    count : how many matrices there are
    done : how many have been written
    """

    def __init__(self, wanted: Wanted, columns: int, count: int) -> None:
        self.wanted = wanted
        self.columns = columns
        self.count = count
        self.done = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of one matrix."""
        return self.wanted.shape(self.columns)

    def write(self, out: NDArray[Any]) -> None:
        """Write the next ``len(out)`` matrices into `out`, C-ordered, of shape (matrices, *shape).

        Raises
        ------
        ShapeError
            If `out` has another shape, dtype or order, or fewer matrices are left.
        """
        if out.shape[1:] != self.shape or out.dtype != self.wanted.dtype or not out.flags.c_contiguous:
            raise ShapeError(
                f"out is {out.dtype} of shape {out.shape}; it must be C-ordered {self.wanted.dtype} of shape "
                f"(matrices, {', '.join(map(str, self.shape))})."
            )
        if len(out) > self.count - self.done:
            raise ShapeError(f"{len(out)} matrices are asked for but {self.count - self.done} are left.")
        if out.size:
            self._write(out, self.done)
        self.done += len(out)

    @abstractmethod
    def _write(self, out: NDArray[Any], start: int) -> None:
        """Write matrices `start` to ``start + len(out)``, at least one, all with elements."""
