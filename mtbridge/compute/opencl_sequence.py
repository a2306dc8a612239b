"""A sequence of matrices on an OpenCL device: kernels write blocks of it, into an array or a buffer."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.sequence import MatrixSequence, Wanted

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

STAGED_BYTES = 1 << 26
"""A device with memory of its own computes blocks of this size before they are copied to the host."""


class OpenCLSequence(MatrixSequence):
    """Blocks are queued one behind the other; a CPU device writes them where the caller wants them.

    Parameters
    ----------
    device : where it is computed
    limit : bytes of the largest buffer
    """

    def __init__(self, device: Device, wanted: Wanted, columns: int, count: int, *, limit: int) -> None:
        super().__init__(wanted, columns, count)
        self.device = device
        self.limit = limit

    @property
    def matrix_bytes(self) -> int:
        """Bytes of one matrix."""
        return int(np.prod(self.shape)) * self.wanted.dtype.itemsize

    def take(self, target: Any, count: int) -> None:
        """Queue the next `count` matrices into the buffer `target`, where they stay on the device."""
        self._queue(target, self.done, count)
        self.done += count

    def _write(self, out: NDArray[Any], start: int) -> None:
        block = max(
            1, min(self.limit, self.limit if self.device.host_memory else STAGED_BYTES) // self.matrix_bytes
        )
        for first in range(0, len(out), block):
            part = out[first : first + block]
            target = self.device.over("sequence", part)
            self._queue(target, start + first, len(part))
            self.device.receive(target, part)

    @abstractmethod
    def _queue(self, target: Any, start: int, count: int) -> None:
        """Queue the kernels that write matrices `start` to `start + count` from the start of `target` on.

        `start` always is where the last block ended, so what a recurrence carries may stay on the device.
        """
