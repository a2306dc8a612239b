"""Pairwise moments in plain loops: pair by pair, two passes over its rows. Every faster way must equal it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mtbridge.compute.pair_moments import PairMoments, Side
from mtbridge.compute.serial import WRITEABLE, loop_of
from mtbridge.matrix import Matrix

SIGNATURE = f"void({', '.join(['float64[:, ::1]'] * 2)}, boolean, {', '.join(['float64[:, :, ::1]'] * 3)})"


def pair_loop(X: Matrix, Y: Matrix, symmetric: bool, pairs: Any, left: Any, right: Any) -> None:
    """Fill `pairs` (2, L, R): rows, co-moment; `left` and `right` (4, L, R): as the fields of `Side`.

    X is (L, rows) and Y (R, rows), columns of the data lying along memory; the upper triangle if symmetric.
    """
    first, low, high, mean = [0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]
    once, twice, exponent, fixed = [1.0, 1.0], [1.0, 1.0], [0, 0], [False, False]
    for i in range(X.shape[0]):
        for j in range(i if symmetric else 0, Y.shape[0]):
            n = 0
            for r in range(X.shape[1]):
                x, y = X[i, r], Y[j, r]
                if x == x and y == y:
                    if n == 0:
                        first[0] = low[0] = high[0] = x
                        first[1] = low[1] = high[1] = y
                    low[0], high[0] = min(low[0], x), max(high[0], x)
                    low[1], high[1] = min(low[1], y), max(high[1], y)
                    n += 1
            pairs[0, i, j] = n
            if n == 0:
                continue
            # powers of two that bring each range near one, as two factors, for one alone may be no number
            for side in range(2):
                exponent[side] = 0
                fixed[side] = low[side] == high[side] and abs(low[side]) < math.inf
                spread, halved = high[side] - low[side], 0
                if spread == math.inf:
                    spread, halved = high[side] / 2 - low[side] / 2, 1
                if 0 < spread < math.inf:
                    exponent[side] = math.frexp(spread)[1] + halved
                half = -exponent[side] // 2
                once[side] = math.ldexp(1.0, half)
                twice[side] = math.ldexp(1.0, -exponent[side] - half)
                mean[side] = 0.0
            x0, y0 = first[0] * once[0] * twice[0], first[1] * once[1] * twice[1]
            for r in range(X.shape[1]):
                x, y = X[i, r], Y[j, r]
                if x == x and y == y:
                    mean[0] += x * once[0] * twice[0] - x0
                    mean[1] += y * once[1] * twice[1] - y0
            mean[0] /= n
            mean[1] /= n
            product, square, other, rest, remainder = 0.0, 0.0, 0.0, 0.0, 0.0
            for r in range(X.shape[1]):
                x, y = X[i, r], Y[j, r]
                if x == x and y == y:
                    x = x * once[0] * twice[0] - x0 - mean[0]
                    y = y * once[1] * twice[1] - y0 - mean[1]
                    product += x * y
                    square += x * x
                    other += y * y
                    rest += x
                    remainder += y
            # what rounding left in the means is taken out
            pairs[1, i, j] = product - rest * remainder / n
            left[0, i, j], right[0, i, j] = first[0], first[1]
            left[1, i, j], right[1, i, j] = exponent[0], exponent[1]
            left[2, i, j], right[2, i, j] = mean[0], mean[1]
            left[3, i, j], right[3, i, j] = square - rest * rest / n, other - remainder * remainder / n
            if fixed[0]:
                left[3, i, j] = 0.0
            if fixed[1]:
                right[3, i, j] = 0.0
            # a constant has no co-moment, but beside an inf it is NaN
            if (fixed[0] and right[3, i, j] == right[3, i, j]) or (
                fixed[1] and left[3, i, j] == left[3, i, j]
            ):
                pairs[1, i, j] = 0.0


def serial_pair_moments(X: Matrix, Y: Matrix) -> PairMoments:
    """Return the moments of each column of `X` with each of `Y`, which has as many rows; NaN is missing.

    Sums are float64 whatever the dtype. If `Y` is `X` itself, the upper triangle is computed and mirrored.
    """
    same = Y is X
    shape = X.shape[1], Y.shape[1]
    pairs, left, right = np.zeros((2, *shape)), np.zeros((4, *shape)), np.zeros((4, *shape))
    columns = [np.require(matrix.T, np.float64, WRITEABLE) for matrix in (X, Y)]
    with np.errstate(all="ignore"):
        loop_of(pair_loop, SIGNATURE)(*columns, same, pairs, left, right)
    if same:
        lower = np.tril_indices(shape[0], -1)
        for array, mirror in (*zip(pairs, pairs, strict=True), *zip(left, right, strict=True)):
            array[lower] = mirror.T[lower]
        # a column is its own partner
        right = left.swapaxes(1, 2)
    sides = [
        Side(origin, exponent.astype(np.int64), mean, squares)
        for origin, exponent, mean, squares in (left, right)
    ]
    return PairMoments(
        pairs[0].astype(np.int64), pairs[1], sides[0], sides[0].transposed if same else sides[1]
    )
