"""Our work in the cases of `mtbridge bench gpu`: its input lies on the device, and its answer stays there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from mtbridge.bench.gpu_data import Case, Lines
from mtbridge.bench.gpu_device import ResidentDevice
from mtbridge.bench.gpu_trial import Trial
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.errors import DeviceError


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
    """A covariance matrix by the method of an engine that leaves it on the device.

    `gaps` takes the method for values that are missing; `kernels_only` leaves out the waits between kernels.
    """

    def __init__(
        self,
        device: ResidentDevice,
        engine: OpenCLEngine,
        case: Case,
        copies: Sequence[tuple[DeviceMatrix, ...]],
        *,
        gaps: bool = False,
        kernels_only: bool = False,
    ) -> None:
        if not device.fp64:
            raise DeviceError(f"{device.name} has no float64, in which columns are centred")
        self._device, self._engine, self._case, self._copies = device, engine, case, copies
        self._gaps, self._kernels_only = gaps, kernels_only
        self._answer: Any = None

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        (X,) = self._copies[turn % len(self._copies)]
        # its memory goes back before the next one is allocated
        self._answer = None
        self._device.poisoning = poisoned

        def work() -> None:
            engine = self._engine
            method = engine.pair_covariance_on_device if self._gaps else engine.covariance_on_device
            self._answer = method(X)

        try:
            spent = self._device.spent(work)
        finally:
            self._device.poisoning = False
        return spent.kernels if self._kernels_only else spent.whole

    def lines(self, some: Lines) -> NDArray[Any]:
        return self._device.lines(self._answer.buffer, some, self._case.shape, self._case.dtype)
