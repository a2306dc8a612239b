"""A device as `mtbridge bench gpu` needs it: the time of work of many launches, and memory full of NaN.

To be imported after `devices.load`, as everything that imports pyopencl.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl import Device, Found
from mtbridge.compute.opencl_memory import AROUND_SOURCE, MemoryDevice
from mtbridge.compute.opencl_profiling import found_again
from mtbridge.matrix import Matrix

GROUP, GROUPS_PER_UNIT = 256, 8
WORD = np.dtype(np.float32)
POISON: np.float32 = np.frombuffer(AROUND_SOURCE.tobytes(), np.float32)[0]
"""NaN as float32, and twice in a row as float64 too; the usual NaN of float32 is no float64 one."""


@dataclass(frozen=True, slots=True)
class Spent:
    """Seconds by the device's clock.

    Attributes
    ----------
    whole : from the START of the first launch to the END of the last, waits between them counted
    kernels : END - START of each launch, added up
    """

    whole: float
    kernels: float


class ResidentDevice(MemoryDevice):
    """A device that times whole pieces of work.

    Attributes
    ----------
    memory_bytes : CL_DEVICE_GLOBAL_MEM_SIZE
    poisoning : memory for an answer is full of NaN when it is handed out
    """

    def __init__(self, found: Found, *, vector_bytes: int = 0) -> None:
        super().__init__(found)
        self.vector_bytes = vector_bytes
        self.memory_bytes = int(found.handle.global_mem_size)
        self.poisoning = False

    def allocate(self, size: int) -> Any:
        """Return a buffer of `size` bytes as `Device.allocate` does."""
        buffer = super().allocate(size)
        if self.poisoning:
            self.write_all(buffer, size)
        return buffer

    def result(self, slot: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Any, Matrix]:
        """Return a buffer and an array as `Device.result` does."""
        buffer, array = super().result(slot, shape, dtype)
        if self.poisoning and array.size:
            self.write_all(buffer, array.nbytes)
        return buffer, array

    def write_all(self, buffer: Any, size: int, value: np.float32 = POISON) -> None:
        """Queue what `write_all` does on this device."""
        write_all(self, buffer, size, value)

    def spent(self, work: Callable[[], object]) -> Spent:
        """Do `work`, wait for what it queued, and return the time of its launches."""
        self.taken()
        work()
        self.finish()
        events, self._events = self._events, []
        moments = [(event.profile.start, event.profile.end) for event in events]
        if not moments:
            return Spent(0.0, 0.0)
        whole = max(end for _, end in moments) - min(start for start, _ in moments)
        return Spent(1e-9 * whole, 1e-9 * sum(end - start for start, end in moments))

    def lines(
        self, buffer: Any, some: NDArray[np.int64], shape: tuple[int, ...], dtype: np.dtype[Any]
    ) -> NDArray[Any]:
        """Return the lines `some`, ascending, of an answer that lies in `buffer` line after line.

        Returns
        -------
        array of `dtype` and of shape (len(some), *shape)
            `shape` is that of one line.
        """
        found = np.empty((len(some), *shape), dtype)
        size = found.nbytes // max(len(some), 1)
        if len(some) and some[-1] - some[0] + 1 == len(some):
            self.downloaded(buffer, found, offset=int(some[0]) * size)
        else:
            for line, place in zip(found, some.tolist(), strict=True):
                self.downloaded(buffer, line, offset=place * size)
        return found


def write_all(device: Device, buffer: Any, size: int, value: np.float32 = POISON) -> None:
    """Queue a kernel that writes float32 `value` to the first `size` bytes of `buffer`, whole words."""
    count = size // WORD.itemsize
    kernel = device.kernel("fill", ("memory/fill.cl",), {})
    group = min(GROUP, device.largest_group)
    groups = min(GROUPS_PER_UNIT * device.units, max(-(-count // group), 1))
    device.run(kernel, (groups,), (group,), buffer, value, np.uint64(count))


def open_resident(verdict: Verdict) -> ResidentDevice:
    """Open the device of `verdict`, after `devices.load`; errors as of `found_again`."""
    return ResidentDevice(found_again(verdict), vector_bytes=verdict.vector_bytes)
