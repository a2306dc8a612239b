"""`Decay`: which weights the rows of a history have, for expanding and exponentially weighted matrices.

Matrix t is of the rows 0 to t. From row to row every weight so far is multiplied by a factor: 1 for
expanding matrices, 1 - alpha for exponential ones, ``0.5 ** (time passed / half-life)`` for irregular times.
The definitions are those of pandas, `adjust` and `ignore_na` included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import is_number, short
from mtbridge.errors import OptionError, ShapeError

MOST_HALFLIVES = 400
"""Of one pause: after it a correlation is that of its two sides, as after any long pause, and never 0 / 0."""


@dataclass(frozen=True, slots=True, eq=False)
class Decay:
    """The weights of the rows; make one by `expanding`, `exponential` or `by_time`.

    Attributes
    ----------
    factor : float64 of shape (rows,), by which a row multiplies the weights before it; 1 for the first
    weight : of a new row
    adjust : weights are summed up; else a pair's weights are made to sum to 1 after each of its rows
    ignore_na : a row that a pair does not have leaves the pair's weights as they are
    counted : rows are counted, a covariance is divided by their number less ddof; else ddof 0 is the biased
        one and 1 the unbiased one

    A weight below 1e-300 of the newest row's counts as none.
    """

    factor: NDArray[np.float64]
    weight: float = 1.0
    adjust: bool = True
    ignore_na: bool = False
    counted: bool = False

    def __len__(self) -> int:
        return len(self.factor)

    @classmethod
    def expanding(cls, rows: int) -> Self:
        """All rows so far, each with the same weight."""
        return cls(np.ones(rows), ignore_na=True, counted=True)

    @classmethod
    def exponential(cls, rows: int, alpha: float, adjust: bool = True, ignore_na: bool = False) -> Self:
        """Weights that fall by 1 - alpha from row to row; see `alpha_of`.

        With `adjust` the newest row weighs 1; without, it weighs alpha and all before it 1 - alpha together.
        """
        alpha = alpha_of(alpha=alpha)
        factor = np.full(rows, 1.0 - alpha)
        factor[:1] = 1.0
        return cls(factor, 1.0 if adjust else alpha, bool(adjust), bool(ignore_na))

    @classmethod
    def by_time(cls, times: NDArray[np.int64], halflife: float, ignore_na: bool = False) -> Self:
        """Weights ``0.5 ** (age / halflife)``, the ages and the half-life in the unit of `times`.

        With `ignore_na` only the time since the row before counts of each row that a pair has. A pause counts
        as 400 half-lives at most: the rows before it weigh 4e-121 then, and no less.

        Raises
        ------
        OptionError
            If the half-life is not above 0, or the times are not strictly increasing.
        ShapeError
            If the times are not int64 of one dimension.
        """
        if not (halflife > 0 and math.isfinite(halflife)):
            raise OptionError(f"halflife is {halflife!r}; it must be above 0, in the unit of the times.")
        if times.ndim != 1 or times.dtype != np.int64:
            raise ShapeError(
                f"times are {times.dtype} of shape {times.shape}; they must be int64 of shape (rows,)."
            )
        late = np.flatnonzero(times[1:] <= times[:-1])
        if len(late):
            at = int(late[0])
            raise OptionError(
                f"row {at + 1} has time {times[at + 1]}, which is not after {times[at]} of row {at}; "
                "sort the rows and keep one of each time."
            )
        # differences of int64 always fit uint64, whatever they start from
        passed = times[1:].astype(np.uint64) - times[:-1].astype(np.uint64)
        factor = np.ones(len(times))
        # many half-lives may be past the largest number; the factor is then 0
        with np.errstate(over="ignore"):
            factor[1:] = 0.5 ** np.minimum(passed / float(halflife), MOST_HALFLIVES)
        return cls(factor, ignore_na=bool(ignore_na))


def alpha_of(
    com: float | None = None,
    span: float | None = None,
    halflife: float | None = None,
    alpha: float | None = None,
) -> float:
    """Return alpha, 0 < alpha <= 1, from the one of these that is given, as pandas does.

    Parameters
    ----------
    com : centre of mass, at least 0; alpha = 1 / (1 + com)
    span : at least 1; alpha = 2 / (span + 1)
    halflife : rows in which a weight falls to its half, above 0; alpha = 1 - 0.5 ** (1 / halflife)
    alpha : itself

    Raises
    ------
    OptionError
        If none or more than one is given, or its value is out of its range.
    """
    named = {"com": com, "span": span, "halflife": halflife, "alpha": alpha}
    given = {name: value for name, value in named.items() if value is not None}
    if len(given) != 1:
        which = " and ".join(given) if given else "none of com, span, halflife and alpha"
        raise OptionError(f"{which} is given; give exactly one of com, span, halflife and alpha.")
    ((name, value),) = given.items()
    number = _number(name, value)
    if name == "com":
        _check(name, number, number >= 0, "at least 0")
        return 1.0 / (1.0 + number)
    if name == "span":
        _check(name, number, number >= 1, "at least 1")
        return 2.0 / (number + 1.0)
    if name == "halflife":
        _check(name, number, number > 0, "above 0")
        return -math.expm1(-math.log(2.0) / number)
    _check(name, number, 0 < number <= 1, "above 0 and at most 1")
    return number


def _number(name: str, value: Any) -> float:
    if not is_number(value):
        raise OptionError(f"{name} is {short(value)}; it must be a number.")
    try:
        return float(value)
    except OverflowError:
        raise OptionError(f"{name} is past the range of float64; give a smaller number.") from None


def _check(name: str, value: float, fits: bool, rule: str) -> None:
    if not fits or not math.isfinite(value):
        raise OptionError(f"{name} is {value!r}; it must be {rule}.")
