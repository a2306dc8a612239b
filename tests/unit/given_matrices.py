"""Matrices that tests are given: in any layout, served as a sequence, and reduced in each way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mtbridge.compute.opencl_reducers import reduced_on_device
from mtbridge.compute.opencl_sequence import OpenCLSequence
from mtbridge.compute.reduced import Reducer, reduced
from mtbridge.compute.sequence import MatrixSequence, Wanted
from mtbridge.matrix import Matrix

Reduce = Callable[..., Any]
WAYS = ("host", "device", "device in groups")


def lying(X: Matrix, order: str) -> Matrix:
    """`X` with its rows or its columns in memory order, or neither."""
    if order == "strided":
        return np.repeat(X, 2, axis=1)[:, ::2]
    return np.asarray(X, order=order)  # type: ignore[call-overload, no-any-return]


class Given(MatrixSequence):
    """Serves the whole symmetric matrices it is given, (count, columns, columns), as they are wanted."""

    def __init__(self, matrices: np.ndarray[Any, Any], wanted: Wanted) -> None:
        super().__init__(wanted, matrices.shape[2], len(matrices))
        self.served = served(matrices, wanted)

    def _write(self, out: np.ndarray[Any, Any], start: int) -> None:
        out[...] = self.served[start : start + len(out)]


class GivenOnDevice(OpenCLSequence):
    """The same, uploaded block by block."""

    def __init__(self, device: Any, matrices: np.ndarray[Any, Any], wanted: Wanted) -> None:
        super().__init__(device, wanted, matrices.shape[2], len(matrices), limit=device.largest_buffer)
        self.served = served(matrices, wanted)

    def _queue(self, target: Any, start: int, count: int) -> None:
        import pyopencl as cl

        cl.enqueue_copy(self.device.queue, target, self.served[start : start + count])


def served(matrices: np.ndarray[Any, Any], wanted: Wanted) -> np.ndarray[Any, Any]:
    if wanted.packed:
        i, j = np.triu_indices(matrices.shape[2])
        matrices = matrices[:, i, j]
    elif wanted.left is not None:
        matrices = matrices[:, list(wanted.left)]
    return np.ascontiguousarray(matrices, wanted.dtype)


def reduce_by(way: str, device: Any) -> Reduce:
    """Return a function that reduces whole symmetric matrices in one of the `WAYS`."""

    def made(matrices: np.ndarray[Any, Any], reducer: Reducer[Any], **options: Any) -> Any:
        keywords = {name: options.pop(name) for name in ("block_bytes", "progress") if name in options}
        wanted = Wanted(**{"packed": True, **options})
        if way == "host":
            return reduced(Given(matrices, wanted), reducer, **keywords)
        sequence = GivenOnDevice(device, matrices, wanted)
        reducer.check(sequence)
        return reduced_on_device(sequence, reducer, grouped=way == "device in groups", **keywords)

    return made


def correlations(count: int, columns: int, *, missing: bool = False) -> np.ndarray[Any, Any]:
    """Symmetric matrices like correlations; where `missing`, some of the pairs are NaN, all in the last."""
    random = np.random.default_rng(columns)
    parts = random.standard_normal((count, columns, 40)) + random.standard_normal((count, 1, 40))
    parts /= np.sqrt((parts**2).sum(axis=2, keepdims=True))
    found: np.ndarray[Any, Any] = parts @ parts.transpose(0, 2, 1)
    found = (found + found.transpose(0, 2, 1)) / 2
    if missing:
        gone = np.triu(random.random(found.shape) < 0.2)
        found[gone | gone.transpose(0, 2, 1)] = np.nan
        found[-1] = np.nan
    return found
