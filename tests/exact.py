"""Statistics of a pair of columns in exact rational arithmetic: the reference of the property tests.

NaN in either column leaves the row out; an infinity in a row that counts makes the answer NaN.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import mpmath

Numbers = Sequence[float]


def common_rows(x: Numbers, y: Numbers) -> list[tuple[float, float]]:
    """The rows in which both are present."""
    return [(float(a), float(b)) for a, b in zip(x, y, strict=True) if not (math.isnan(a) or math.isnan(b))]


def sums(
    x: Numbers, y: Numbers, weights: Sequence[Fraction] | None = None
) -> tuple[int, Fraction, Fraction, Fraction] | None:
    """Rows, and the sums of products of deviations: of x and y, of x, of y; None where one is infinite.

    Weights belong to the rows of x and y, before any is left out.
    """
    rows = common_rows(x, y)
    if any(math.isinf(value) for row in rows for value in row):
        return None
    shares = [Fraction(1)] * len(rows)
    if weights is not None:
        shares = [w for w, a, b in zip(weights, x, y, strict=True) if not (math.isnan(a) or math.isnan(b))]
    total = sum(shares, Fraction(0))
    if not total:
        return len(rows), Fraction(0), Fraction(0), Fraction(0)
    exact = [(Fraction(a), Fraction(b)) for a, b in rows]
    mean_x = sum((w * a for w, (a, _) in zip(shares, exact, strict=True)), Fraction(0)) / total
    mean_y = sum((w * b for w, (_, b) in zip(shares, exact, strict=True)), Fraction(0)) / total
    product = sum(
        (w * (a - mean_x) * (b - mean_y) for w, (a, b) in zip(shares, exact, strict=True)), Fraction(0)
    )
    left = sum((w * (a - mean_x) ** 2 for w, (a, _) in zip(shares, exact, strict=True)), Fraction(0))
    right = sum((w * (b - mean_y) ** 2 for w, (_, b) in zip(shares, exact, strict=True)), Fraction(0))
    return len(rows), product, left, right


def covariance(x: Numbers, y: Numbers, *, ddof: int = 1, min_periods: int = 1) -> float:
    """The covariance, correctly rounded; NaN where it is not defined."""
    found = sums(x, y)
    if found is None or found[0] < min_periods or found[0] <= ddof:
        return math.nan
    return to_float(found[1] / (found[0] - ddof))


def correlation(x: Numbers, y: Numbers, *, min_periods: int = 1) -> float:
    """Pearson's correlation to 60 digits, rounded; NaN where it is not defined."""
    found = sums(x, y)
    if found is None or found[0] < min_periods or not found[2] or not found[3]:
        return math.nan
    with mpmath.workdps(60):
        square = found[1] ** 2 / (found[2] * found[3])
        root = mpmath.sqrt(mpmath.mpf(square.numerator) / mpmath.mpf(square.denominator))
        return float(root) if found[1] >= 0 else -float(root)


def scale(x: Numbers, y: Numbers) -> float:
    """The root of the product of the two sums of squares: what an error of a co-moment is a share of."""
    found = sums(x, y)
    if found is None:
        return math.nan
    with mpmath.workdps(60):
        product = found[2] * found[3]
        return float(mpmath.sqrt(mpmath.mpf(product.numerator) / mpmath.mpf(product.denominator)))


def to_float(value: Fraction) -> float:
    """The nearest float; an infinity past their range."""
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
