"""Matrices of one shape where they lie in memory, overlapping or not: one flat array and steps in it.

A device is sent the memory from the first element to the last, once: the windows of a moving window share
nearly all of it, and as copies would take as many times the memory as a window has rows.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.matrix import Matrix

SPARSE = 2
"""Memory of more than so many times the elements is not sent; they are copied instead."""


@dataclass(frozen=True, slots=True, eq=False)
class Strided:
    """Element (m, r, c) of a stack of matrices is ``flat[begin + dot((m, r, c), steps)]``.

    Attributes
    ----------
    flat : array of one dimension, without gaps, that is not to be written to
    begin : where the first element of the first matrix lies in it
    steps : elements from one matrix to the next, from one row to the next, from one column to the next
    """

    flat: NDArray[Any]
    begin: int
    steps: tuple[int, int, int]

    @classmethod
    def of(cls, X: Matrix, *, sparse: int = SPARSE) -> Strided:
        """Return the stack `X`, of shape (count, rows, columns), none of them 0.

        It is copied if its memory holds more than `sparse` times its elements, or lies at odd addresses.
        """
        steps = _element_steps(X)
        if steps is not None:
            low = sum((length - 1) * min(step, 0) for length, step in zip(X.shape, steps, strict=True))
            high = sum((length - 1) * max(step, 0) for length, step in zip(X.shape, steps, strict=True))
            extent = high - low + 1
            if extent <= sparse * X.size:
                # from the lowest address on: all of it lies between elements of one array
                lowest = X[tuple(slice(None, None, -1 if step < 0 else 1) for step in steps)]
                flat = np.lib.stride_tricks.as_strided(lowest, (extent,), (X.itemsize,), writeable=False)
                return cls(flat, -low, steps)
        return cls(np.ascontiguousarray(X).reshape(-1), 0, dense_steps(X.shape))


def stacked(X: Matrix) -> Matrix:
    """Return `X`, (…, rows, columns), as (count, rows, columns): a view where its steps allow it."""
    return X if X.ndim == 3 else X.reshape(math.prod(X.shape[:-2]), *X.shape[-2:])


def dense_steps(shape: tuple[int, ...]) -> tuple[int, int, int]:
    """Return the steps of a C-ordered batch of `shape`, (…, rows, columns)."""
    return shape[-2] * shape[-1], shape[-1], 1


def _element_steps(X: Matrix) -> tuple[int, int, int] | None:
    """The steps of `X` in elements, 0 where there is nothing to step to; None if they are no whole ones."""
    if not X.flags.aligned or any(step % X.itemsize for step in X.strides):
        return None
    matrix, row, column = (
        step // X.itemsize if length > 1 else 0 for length, step in zip(X.shape, X.strides, strict=True)
    )
    return matrix, row, column
