"""Rank correlations in plain loops, by their definitions: the reference for all faster ways.

Each pair of columns on the rows that both have; a rank is found by counting the values below and beside it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mtbridge.compute.ranks import Answer
from mtbridge.compute.serial import WRITEABLE, loop_of
from mtbridge.matrix import Matrix

SIGNATURE = "void(float64[:, ::1], float64[:, ::1], int64[:, ::1])"


def spearman_loop(X: Matrix, matrix: Any, counts: Any) -> None:
    """Fill `matrix` and `counts`; X is (columns, rows), a column of the data each of its rows."""
    columns, rows = X.shape
    for i in range(columns):
        for j in range(i, columns):
            n, product, left, right = 0, 0, 0, 0
            for r in range(rows):
                n += int(X[i, r] == X[i, r] and X[j, r] == X[j, r])
            for r in range(rows):
                x, y = X[i, r], X[j, r]
                if x != x or y != y:
                    continue
                # doubled, so that the mean of tied ranks is whole, and less their mean
                a = b = -n
                for s in range(rows):
                    u, v = X[i, s], X[j, s]
                    if u == u and v == v:
                        a += 2 * int(u < x) + int(u == x)
                        b += 2 * int(v < y) + int(v == y)
                product += a * b
                left += a * a
                right += b * b
            counts[i, j] = counts[j, i] = n
            matrix[i, j] = matrix[j, i] = math.nan
            if left > 0 and right > 0:
                matrix[i, j] = matrix[j, i] = product / math.sqrt(float(left) * float(right))


def kendall_loop(X: Matrix, matrix: Any, counts: Any) -> None:
    """Fill `matrix` and `counts`; X is (columns, rows), a column of the data each of its rows."""
    columns, rows = X.shape
    for i in range(columns):
        for j in range(i, columns):
            n, excess, left, right = 0, 0, 0, 0
            for r in range(rows):
                x, y = X[i, r], X[j, r]
                if x != x or y != y:
                    continue
                n += 1
                for s in range(r):
                    u, v = X[i, s], X[j, s]
                    if u == u and v == v:
                        a, b = int(x > u) - int(x < u), int(y > v) - int(y < v)
                        excess += a * b
                        left += a * a
                        right += b * b
            counts[i, j] = counts[j, i] = n
            matrix[i, j] = matrix[j, i] = math.nan
            if left > 0 and right > 0:
                matrix[i, j] = matrix[j, i] = excess / math.sqrt(float(left) * float(right))


def serial_spearman(X: Matrix) -> Answer:
    """Return what `ranks.host_spearman` does, by counting: rows**2 steps for each pair of columns."""
    return _answer(spearman_loop, X)


def serial_kendall(X: Matrix) -> Answer:
    """Return what `ranks.kendall` does, by counting: rows**2 / 2 steps for each pair of columns."""
    return _answer(kendall_loop, X)


def _answer(loop: Any, X: Matrix) -> Answer:
    columns = X.shape[1]
    matrix, counts = np.empty((columns, columns)), np.empty((columns, columns), np.int64)
    loop_of(loop, SIGNATURE)(np.require(X.T, np.float64, WRITEABLE), matrix, counts)
    return np.clip(matrix, -1, 1, out=matrix), counts
