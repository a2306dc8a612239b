"""The `numpy` engine: the host's BLAS, through numpy."""

from __future__ import annotations

import platform

import numpy as np

from mtbridge.compute.engine import Engine
from mtbridge.compute.forms import WIDE_SUM
from mtbridge.matrix import Matrix

MIRROR_BLOCK = 128


class NumpyEngine(Engine):
    """Products by numpy's matmul, which takes the SYRK path for X'X."""

    name = "numpy"

    def __init__(self) -> None:
        self.device = platform.processor() or platform.machine() or "host"

    def _product(self, A: Matrix, B: Matrix) -> Matrix:
        with np.errstate(all="ignore"):
            product: Matrix = A @ B
        return product

    def _gram(self, X: Matrix, *, wide: bool) -> Matrix:
        with np.errstate(all="ignore"):
            if wide and X.dtype == np.float32:
                total = np.zeros((X.shape[1], X.shape[1]))
                for start in range(0, X.shape[0], WIDE_SUM):
                    block = X[start : start + WIDE_SUM]
                    total += block.T @ block
                return mirrored(total)
            return mirrored(X.T @ X)


def mirrored(C: Matrix) -> Matrix:
    """Copy the upper triangle of `C` onto the lower one, in place; BLAS may differ between the two."""
    for start in range(0, len(C), MIRROR_BLOCK):
        end = start + MIRROR_BLOCK
        C[start:end, :start] = C[:start, start:end].T
        corner = C[start:end, start:end]
        corner[...] = np.triu(corner) + np.triu(corner, 1).T
    return C
