"""Engines that share matrices, and the matrices that they are given."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from given_matrices import lying

from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.several import SeveralEngine
from mtbridge.matrix import Matrix

LEAST = 24
"""Columns from which on matrices are shared in tests: those of 150 are cut into two stripes or more."""

KINDS = ("packed", "tiled", "card")
"""With a processor's kernels, with a card's, and with a card's way of copying too."""


def three_engines(kind: str, open_tiled: Callable[[], OpenCLEngine]) -> list[OpenCLEngine]:
    """Open three engines of one of the `KINDS` on the processor's device, each with a queue of its own."""
    opened = [open_opencl("cpu") if kind == "packed" else open_tiled() for _ in range(3)]
    for engine in opened:
        engine.kernels_device.host_memory = kind != "card"
    return opened


def among(engines: list[OpenCLEngine], count: int = 2) -> SeveralEngine:
    """The first `count` engines as one; not closed, for the next test takes them again."""
    return SeveralEngine(dict(enumerate(engines[:count])), least=LEAST)


def normal(rows: int, columns: int, dtype: str = "float64", order: str = "C") -> Matrix:
    random = np.random.default_rng(1000 * rows + columns)
    return lying(random.standard_normal((rows, columns)).astype(dtype), order)


def prices(rows: int, columns: int, dtype: str = "float64") -> Matrix:
    return (2000 + normal(rows, columns).cumsum(axis=0)).astype(dtype)


def assert_product(C: Matrix, A: Matrix, B: Matrix) -> None:
    """Within ``inner * eps * |A| |B|`` of the product in long double."""
    right = A.astype(np.longdouble) @ B.astype(np.longdouble)
    bound = A.shape[1] * np.finfo(A.dtype).eps * (np.abs(A.astype(np.float64)) @ np.abs(B.astype(np.float64)))
    assert C.dtype == A.dtype
    assert (np.abs(C - right) <= bound).all()
