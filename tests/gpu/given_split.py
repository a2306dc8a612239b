"""Ordinary float32 matrices for products in halves, and what these may be wrong by."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.matrix import Matrix

CHOICES = [("split_mma", "split"), ("split_mma", "single"), ("split_wgmma", "split")]
BITS = {"split": 22, "single": 11}


Open = Callable[[str, str], OpenCLEngine]


def bound(A: Matrix, B: Matrix, bits: int) -> Matrix:
    """What a product may be wrong by, float64 of its shape.

    Both numbers lose a unit of their last bit, and lo lo is that of one; nothing is kept below 2**-35 of the
    largest of a row or column. Three products of 32 inner indices are added up in float32, then those sums.
    """
    left, right = A.astype(np.float64), B.astype(np.float64)
    norms = np.outer(np.linalg.norm(left, axis=1), np.linalg.norm(right, axis=0))
    inner = A.shape[1]
    share = 3 * 2.0**-bits + (96 + inner / 32) * 2.0**-24 + 2 * inner**0.5 * 2.0**-35
    return share * norms


def far_apart(rows: int, columns: int, axis: int, seed: int = 1, spread: float = 8) -> Matrix:
    """float32 whose rows (axis 0) or columns (1) differ by orders of magnitude; one has a heavy tail."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, columns))
    X[0] = random.standard_t(2, columns)
    sizes = np.exp(spread * random.standard_normal((rows, columns)[axis]))
    return (X * (sizes[:, np.newaxis] if axis == 0 else sizes)).astype(np.float32)
