"""Batches that tests are given, in any layout, the engines that take them, and what is right.

The tolerance of a product is ``inner * eps * (|A| |B|)``, as the contract of `Engine.multiply` says. That of
a co-moment is ``(terms + 4) * eps`` of the root of the product of the two sums of squares: `terms` products
are added up in the type of eps, at most 64 of float32, and two factors and a product are rounded before.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mtbridge.compute import Moments
from mtbridge.compute.batch_plan import Card
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.matrix import Matrix
from tests.conftest import DEVICE

ORDERS = ["C", "Fortran", "windows", "reversed", "apart", "shared"]
KERNELS = ["processor", "card", "tensor"]
LARGE_GROUP = 256


@pytest.fixture(scope="module")
def tensor_engine(verdict: Any) -> Iterator[OpenCLEngine]:
    """An engine that takes batches by the kernels for tensor cores, in plain OpenCL C."""
    with open_opencl(DEVICE, tiled=LARGE_GROUP) as engine:
        engine.batch_plans = Card(engine.limits, tensor=0)
        yield engine


@pytest.fixture(params=KERNELS)
def batches(request: pytest.FixtureRequest) -> OpenCLEngine:
    """The engine of this machine's device with each family of kernels for batches in turn."""
    name = {"processor": "opencl_engine", "card": "tiled_engine", "tensor": "tensor_engine"}[request.param]
    found: OpenCLEngine = request.getfixturevalue(name)
    return found


def batch(shape: tuple[int, ...], dtype: str, order: str = "C", *, level: float = 3.0) -> Matrix:
    """Random matrices that lie in memory in one of the `ORDERS`."""
    random = np.random.default_rng(list(shape))
    count, rows, columns = shape
    if order == "windows":
        table = (random.standard_normal((rows + count - 1, columns)) + level).astype(dtype)
        return np.lib.stride_tricks.sliding_window_view(table, rows, axis=0).swapaxes(1, 2)
    X: Matrix = (random.standard_normal(shape) + level).astype(dtype)
    if order == "Fortran":
        return np.ascontiguousarray(X.swapaxes(1, 2)).swapaxes(1, 2)
    if order == "reversed":
        return np.ascontiguousarray(X[::-1, ::-1, ::-1])[::-1, ::-1, ::-1]
    if order == "apart":
        large = np.full((count, rows * 3, columns * 2 + 1), np.nan, dtype)
        large[:, ::3, 1::2] = X
        return large[:, ::3, 1::2]
    if order == "shared":
        return np.broadcast_to(X[0], shape)
    return X


def assert_products(found: Matrix, A: Matrix, B: Matrix) -> None:
    exact = A.astype(np.longdouble) @ B.astype(np.longdouble)
    bound = A.shape[-1] * np.finfo(A.dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
    assert found.dtype == A.dtype
    assert found.shape == exact.shape
    assert (np.abs(found - exact) <= bound).all()


def assert_moments(found: Moments, X: Matrix, dtype: str) -> None:
    """The moments of ordinary columns that change."""
    wide = X.astype(np.longdouble)
    Z = wide - wide.mean(axis=-2, keepdims=True)
    exact = Z.swapaxes(-1, -2) @ Z
    root = np.sqrt(np.einsum("...ii->...i", exact))
    scaled = np.ldexp(found.comoment, (found.exponent[..., np.newaxis] + found.exponent[..., np.newaxis, :]))
    terms = X.shape[-2] if dtype == "float64" else min(X.shape[-2], 64)
    bound = (terms + 4) * np.finfo(dtype).eps * root[..., np.newaxis] * root[..., np.newaxis, :]
    assert found.n == X.shape[-2]
    assert (np.abs(scaled - exact) <= bound).all()
    assert np.array_equal(found.comoment, found.comoment.swapaxes(-1, -2))
    means = found.origin + np.ldexp(found.mean, found.exponent)
    spread = X.shape[-2] * np.finfo(float).eps * np.abs(wide).max(axis=-2)
    assert (np.abs(means - wide.mean(axis=-2)) <= spread).all()


def bits(found: Moments) -> list[bytes]:
    return [
        np.ascontiguousarray(one).tobytes()
        for one in (found.origin, found.exponent, found.mean, found.comoment)
    ]
