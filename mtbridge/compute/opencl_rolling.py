"""Rolling matrices on an OpenCL device, in the form that suits it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mtbridge.compute.host_rolling import check_rolling
from mtbridge.compute.opencl_rolling_cpu import RollingLanes
from mtbridge.compute.opencl_rolling_gpu import RollingTiles
from mtbridge.compute.opencl_sequence import OpenCLSequence
from mtbridge.compute.sequence import FLOAT64, Wanted
from mtbridge.compute.windows import Rolling
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device


class OpenCLRolling(OpenCLSequence):
    """The matrices of the windows of `plan` over `X`, in float64 sums.

    Parameters
    ----------
    X : float32 or float64 of shape (rows, columns), at least one of each, NaN where missing
        Not to be changed while the sequence is in use.
    plan : its windows lie within the rows
    limit : bytes of the largest buffer
    gpu : take the kernels for graphics cards; by default where the device is no processor

    Raises
    ------
    ShapeError
        If the plan has a window behind the last row.
    OptionError
        If `ddof` is negative, or one of the left columns does not exist.
    """

    def __init__(
        self, device: Device, X: Matrix, plan: Rolling, wanted: Wanted, *, limit: int, gpu: bool | None = None
    ) -> None:
        check_rolling(X, plan, wanted)
        super().__init__(device, wanted, X.shape[1], len(plan), limit=limit)
        values = np.ascontiguousarray(X, FLOAT64)
        self._form: RollingLanes | RollingTiles
        if device.kind != "cpu" if gpu is None else gpu:
            self._form = RollingTiles(device, values, plan, wanted, limit=limit)
        else:
            self._form = RollingLanes(device, values, plan, wanted)

    def _queue(self, target: Any, start: int, count: int) -> None:
        self._form.queue(target, start, count)
