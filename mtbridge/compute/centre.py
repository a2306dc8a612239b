"""Centre and scale columns in float64, before any product is taken.

Every engine multiplies what this module returns. So no engine ever sees a large level, and float32
products only see numbers near one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.matrix import Matrix

# Deviations within 2**-120 .. 2**120 can be multiplied four at a time in float64; beyond, they are scaled.
MODERATE = 120
# Beyond this, sums and differences of values may overflow.
VAST = 2.0**960


@dataclass(frozen=True, slots=True, eq=False)
class Centred:
    """Columns ready for products: ``z = (x - origin) * 2**-exponent``.

    `values` has the dtype in which products are taken; a column that holds NaN or inf is all NaN, a
    column that never changes is all zero. `mean` (float64) is what rounding left in the mean of z.
    """

    origin: NDArray[np.float64]
    exponent: NDArray[np.int64]
    mean: NDArray[np.float64]
    values: Matrix


def ordinary_centre(
    total: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    *,
    rows: int | NDArray[np.int64],
    dtype: np.dtype[Any],
) -> tuple[NDArray[np.float64], NDArray[np.int64]] | None:
    """Return origin and exponent as `centre` chooses them, from the sum and the range of a column's `rows`.

    None where a column is anything but ordinary: not finite, near the ends of the range of float64, or with
    deviations that are not moderate; `centre` knows what to do with those.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        reach = np.frexp(high - low)[1].astype(np.int64)
        ordinary = (
            np.isfinite(total) & (np.maximum(np.abs(low), np.abs(high)) <= VAST) & (np.abs(reach) <= MODERATE)
        )
    if not ordinary.all():
        return None
    origin = np.where(low == high, low, total / rows)
    return origin, reach if dtype == np.float32 else np.zeros_like(reach)


def centre(X: Matrix, dtype: np.dtype[Any] | None = None) -> Centred:
    """Return the columns of `X`, float32 or float64 of shape (rows >= 1, columns), centred and scaled.

    Subtraction is done in float64; `dtype` is that of the result, by default that of `X`.
    """
    dtype = dtype or X.dtype
    low = X.min(axis=0).astype(np.float64)
    high = X.max(axis=0).astype(np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        finite = np.isfinite(low) & np.isfinite(high)
        constant = low == high
        largest = np.maximum(np.abs(low), np.abs(high))
        vast = finite & (largest > VAST)
        huge = bool(vast.any())
        # |x - origin| <= high - low < 2**reach; halves where the difference itself would overflow
        mantissa, reach = np.frexp(np.where(vast, high / 2 - low / 2, high - low))
        reach = np.where(finite & (mantissa > 0), reach.astype(np.int64) + vast, 0)
        moderate = bool((np.abs(reach) <= MODERATE).all())
        scaled = dtype == np.float32 or huge or not moderate
        exponent = reach if scaled else np.zeros_like(reach)
        origin = low / 2 + high / 2 if huge else X.mean(axis=0, dtype=np.float64)
        # a mean may round away from a constant; equality, not a tolerance, decides what is constant
        origin = np.where(constant, low, origin)
        if huge:
            shift = (-exponent).astype(np.int32)
            Z = np.ldexp(X.astype(np.float64), shift) - np.ldexp(origin, shift)
        else:
            Z = X - origin
            if scaled:
                Z = np.ldexp(Z, (-exponent).astype(np.int32)) if not moderate else Z * 2.0**-exponent
        if not finite.all():
            Z[:, ~finite] = np.nan
            origin[~finite] = np.nan
        mean = Z.mean(axis=0)
    return Centred(origin, exponent, mean, Z.astype(dtype, copy=False))
