"""Our work in the cases of `mtbridge bench gpu`: its input lies on the device, and its answer stays there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.bench.gpu_data import Case, Lines
from mtbridge.bench.gpu_device import ResidentDevice
from mtbridge.bench.gpu_families import centred_form
from mtbridge.bench.gpu_trial import Trial
from mtbridge.compute.blocks import spans
from mtbridge.compute.centre import ordinary_centre
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.launches import Launches
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.opencl_moments import SUM, Uncentred
from mtbridge.compute.pair_moments import PairMoments
from mtbridge.compute.slices import slab_depth
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix


def copies_of(engine: OpenCLEngine, case: Case, count: int) -> list[tuple[DeviceMatrix, ...]]:
    """Return `count` copies of the inputs of a case on the device."""
    # what an engine of a device uploads is a DeviceMatrix
    uploaded: Any = [tuple(engine.upload(X) for X in case.inputs) for _ in range(count)]
    found: list[tuple[DeviceMatrix, ...]] = uploaded
    return found


class ProductTrial(Trial):
    """A B, or X'X, by the methods of an engine."""

    def __init__(
        self,
        device: ResidentDevice,
        engine: OpenCLEngine,
        case: Case,
        copies: Sequence[tuple[DeviceMatrix, ...]],
    ) -> None:
        self._device, self._engine, self._case, self._copies = device, engine, case, copies
        self._answer: Any = None

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        operands: Any = self._copies[turn % len(self._copies)]
        # its memory goes back before the next one is allocated
        self._answer = None
        self._device.poisoning = poisoned

        def work() -> None:
            many = len(operands) > 1
            self._answer = self._engine.multiply(*operands) if many else self._engine.gram(*operands)

        try:
            return self._device.spent(work).whole
        finally:
            self._device.poisoning = False

    def lines(self, some: Lines) -> NDArray[Any]:
        return self._device.lines(self._answer.buffer, some, self._case.shape, self._case.dtype)


class CovarianceTrial(Trial):
    """The sums of products of centred columns: measured, centred, packed and multiplied on the device.

    The host looks at the sums of the columns on the way, which is waited for and counted. Dividing by the
    rows, which it does when it has the matrix, is not. `kernels_only` leaves out the waits too.
    """

    def __init__(
        self,
        device: ResidentDevice,
        engine: OpenCLEngine,
        case: Case,
        copies: Sequence[tuple[DeviceMatrix, ...]],
        *,
        kernels_only: bool = False,
    ) -> None:
        if not device.fp64:
            raise DeviceError(f"{device.name} has no float64, in which columns are centred")
        self._device, self._case, self._copies = device, case, copies
        self._kernels_only = kernels_only
        self._form = centred_form(engine, case.dtype.name)
        self._launches = Launches(device)
        columns = case.count
        self._target = device.allocate(columns * columns * SUM.itemsize)
        self._mean, self._exponent = np.zeros(columns), np.zeros(columns, np.int64)

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        (X,) = self._copies[turn % len(self._copies)]
        if poisoned:
            self._device.write_all(self._target, self._case.count**2 * SUM.itemsize)
        spent = self._device.spent(lambda: self._queue(X))
        return spent.kernels if self._kernels_only else spent.whole

    def _queue(self, X: DeviceMatrix) -> None:
        device, form, (rows, columns) = self._device, self._form, X.shape
        raw = Uncentred(X.buffer, X.shape, X.steps, X.dtype, X.dtype, form)
        chosen = ordinary_centre(*raw.measured(device), rows=rows, dtype=X.dtype)
        if chosen is None:
            raise DeviceError("a column is not an ordinary one, and would be centred on the host")
        depth = slab_depth(form, (columns, rows, columns), size=X.itemsize, units=device.units)
        centring = raw.centred(device, *chosen, spans(rows, depth))
        self._launches.gram(form, centring, SUM, self._target, device.largest_buffer)
        self._exponent, self._mean = chosen[1], centring.mean(device)

    def lines(self, some: Lines) -> NDArray[Any]:
        rows = self._case.terms
        products = self._device.lines(self._target, some, self._case.shape, SUM)
        products -= rows * np.outer(self._mean[some], self._mean)
        exponent = self._exponent.astype(np.int32)
        found: NDArray[Any] = np.ldexp(products / (rows - 1), exponent[some][:, np.newaxis] + exponent)
        return found.astype(self._case.dtype)


class PairwiseTrial(Trial):
    """Covariances of pairs of columns on their common rows, from array to array; kernels alone are timed."""

    def __init__(self, device: ResidentDevice, engine: OpenCLEngine, case: Case) -> None:
        self._device, self._engine, self._case = device, engine, case
        self._moments: PairMoments | None = None
        self._covariances: Matrix | None = None

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        self._device.poisoning = poisoned
        self._moments = self._covariances = None

        def work() -> None:
            self._moments = self._engine.pair_moments(self._case.inputs[0])

        try:
            return self._device.spent(work).kernels
        finally:
            self._device.poisoning = False

    def lines(self, some: Lines) -> NDArray[Any]:
        if self._covariances is None:
            if self._moments is None:
                raise ValueError("nothing was run yet")
            self._covariances = self._moments.covariance().astype(self._case.dtype)
        return self._covariances[some]
