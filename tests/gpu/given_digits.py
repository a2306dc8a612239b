"""What tests of float64 in digits of 8 bits share: engines that take them, data, and what is right."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from given_engines import opened

from mtbridge.compute.forms import Form
from mtbridge.compute.int8_mma import SMALL_GROUP
from mtbridge.compute.int8_products import SUM, Digits, centred_digits, queue_dense
from mtbridge.compute.moments import Moments
from mtbridge.compute.nvidia import FIRST_CAPABILITY
from mtbridge.compute.opencl import Device
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.matrix import Matrix

EPS = 2.0**-52


@dataclass(frozen=True)
class Bench:
    """An engine that takes float64 in digits, whatever the size."""

    engine: OpenCLEngine

    @property
    def device(self) -> Device:
        return self.engine.kernels_device

    @property
    def form(self) -> Form:
        assert self.engine._digits is not None
        return self.engine._digits

    def digits(self, X: Matrix) -> Digits | None:
        limit = self.device.largest_buffer
        return centred_digits(self.device, self.engine._launches, self.form, X, limit=limit)

    def moments(self, X: Matrix) -> Moments:
        assert self.digits(X) is not None
        return self.engine.moments(X, dtype=SUM)

    def dense(self, *operands: Matrix) -> Matrix | None:
        """A B of A turned and B, or X'X; None where they are not dense."""
        shape = (operands[0].shape[1], operands[-1].shape[1])
        target, out = self.device.result("product", shape, SUM)
        limit, launches = self.device.largest_buffer, self.engine._launches
        if not queue_dense(self.device, launches, self.form, operands, target, limit=limit):
            return None
        return self.device.receive(target, out).copy()


@contextmanager
def in_digits(way: str) -> Iterator[Bench]:
    """Open an engine of one of WAYS, or skip the test where there is no device for it."""
    with opened(way, lambda capability: capability >= FIRST_CAPABILITY, tiled=SMALL_GROUP) as engine:
        engine.form_in_use("float64")
        engine.use_int8(engine.kernels_device.capability if way == "nvidia" else 0, least=0)
        yield Bench(engine)


def data(rows: int, columns: int, seed: int = 1) -> Matrix:
    random = np.random.default_rng(seed)
    return 1000 + random.standard_normal((rows, columns)) * np.exp(3 * random.standard_normal(columns))


def comoment_of(X: Matrix, exponent: Any) -> Any:
    """The co-moments in long double, and the products of the norms."""
    Z = np.asarray(X, np.longdouble)
    Z = np.ldexp(Z - Z.mean(axis=0), -exponent.astype(np.int32))
    exact = Z.T @ Z
    norms = np.sqrt(np.diagonal(exact))
    return exact, np.outer(norms, norms)


def right(found: Moments, X: Matrix, share: float = 2.1) -> bool:
    """Whether every co-moment is within ``share * rows * eps`` of its norms, and one rounding of it.

    Beside it there is what float64 loses in ``x - origin`` where the level is large.
    """
    exact, norms = comoment_of(X, found.exponent)
    reach = np.ldexp(np.abs(X).max(axis=0, initial=0), -found.exponent.astype(np.int32))
    lost = np.sqrt(len(X)) * reach * EPS
    scale = np.sqrt(np.diagonal(exact))
    near = share * len(X) * EPS * norms + np.outer(lost, scale) + np.outer(scale, lost)
    symmetric = np.array_equal(found.comoment, found.comoment.T)
    return symmetric and bool((np.abs(found.comoment - exact) <= near + EPS * norms).all())


def within(found: Matrix, turned: Matrix, B: Matrix) -> bool:
    left, right = turned.T.astype(np.longdouble), B.astype(np.longdouble)
    bound = len(B) * EPS * (np.abs(left) @ np.abs(right))
    return bool((np.abs(found - left @ right) <= bound).all())
