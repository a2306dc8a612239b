"""Covariances of many small matrices in `mtbridge bench gpu`, one by one.

In one launch they are a `CovarianceTrial`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.bench.gpu_data import BatchCovariance, Lines
from mtbridge.bench.gpu_device import ResidentDevice
from mtbridge.bench.gpu_trial import Trial
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.errors import DeviceError

FEW = 100
"""Matrices that are done one by one: thousands would take seconds a run."""


class OneByOneTrial(Trial):
    """Covariances of some matrices of a batch, each by launches of its own; the time is reckoned for all."""

    def __init__(
        self, device: ResidentDevice, engine: OpenCLEngine, few: BatchCovariance, count: int
    ) -> None:
        if not device.fp64:
            raise DeviceError(f"{device.name} has no float64, in which columns are centred")
        self._device, self._engine, self._few = device, engine, few
        self._share = count / few.count
        # what an engine of a device uploads is a DeviceMatrix
        uploaded: Any = [engine.upload(X) for X in few.inputs[0]]
        self._matrices: list[DeviceMatrix] = uploaded
        self._answers: list[DeviceMatrix] = []

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        self._answers = []
        self._device.poisoning = poisoned

        def work() -> None:
            self._answers = [self._engine.covariance_on_device(X) for X in self._matrices]

        try:
            return self._device.spent(work).whole * self._share
        finally:
            self._device.poisoning = False

    def lines(self, some: Lines) -> NDArray[Any]:
        return np.stack([self._engine.download(self._answers[at]) for at in some])
