"""A device as the memory experiments need it: guarded buffers, and ways from the host and back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np
import pyopencl as cl

from mtbridge.compute.opencl import Found, Kernel
from mtbridge.compute.opencl_profiling import Launch, ProfilingDevice

Vector: TypeAlias = np.ndarray[Any, Any]

Trip: TypeAlias = Callable[[Vector | None], tuple[Vector, Launch]]
"""Takes numbers through a kernel and back; returns what came back and the kernel's moments.

Without numbers it takes those that are there, and what comes back need not be looked at.
"""

WAYS = (
    "copy commands",
    "COPY_HOST_PTR",
    "ALLOC_HOST_PTR, mapped",
    "USE_HOST_PTR, mapped",
    "USE_HOST_PTR, off by one",
)
PAGE = 4096
"""Bytes: some runtimes share an array with the device only from a boundary of a page on."""

SMALLEST_GUARD = 128
FLAGS = cl.mem_flags

# Both are NaN in either type; they differ, so that what is copied from around a source shows around a result
AROUND_SOURCE = np.uint32(0xFFFFFFFF)
AROUND_RESULT = np.uint32(0xFFFA5A5A)


@dataclass(frozen=True, slots=True)
class Guarded:
    """A part of a buffer, `inside`, between two guards of `guard` bytes, made of the word `mark`."""

    whole: Any
    inside: Any
    guard: int
    mark: np.uint32


class MemoryDevice(ProfilingDevice):
    """A device that takes times, and what it says of its memory.

    Attributes
    ----------
    alignment : bytes, CL_DEVICE_MEM_BASE_ADDR_ALIGN
    constant_bytes : the largest buffer that a kernel may take as __constant
    """

    def __init__(self, found: Found) -> None:
        super().__init__(found)
        self.alignment = max(int(found.handle.mem_base_addr_align) // 8, SMALLEST_GUARD)
        self.constant_bytes = int(found.handle.max_constant_buffer_size)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def timed(
        self, kernel: Kernel, groups: tuple[int, ...], group: tuple[int, ...], *arguments: Any
    ) -> Launch:
        """Run `kernel` on `groups` work-groups of `group` items, to the end."""
        self.run(kernel, groups, group, *arguments)
        return self.taken()[-1]

    def driver_copy(self, source: Any, target: Any, size: int, *, skipped: int = 0) -> Launch:
        """Copy `size` bytes behind the first `skipped` from buffer to buffer, as the driver does it."""
        with self.failures_named(f"copying on {self.name}"):
            event = cl.enqueue_copy(self._queue, target, source, byte_count=size, src_offset=skipped)
            self._events.append(event)
        return self.taken()[-1]

    def guarded(self, size: int, mark: np.uint32 = AROUND_RESULT) -> Guarded:
        """Return `size` bytes, a multiple of 4, between guards; NaN inside too."""
        # a part of a buffer must begin on a boundary of the device
        guard = self.alignment
        with self.failures_named(f"a buffer of {size} bytes on {self.name}"):
            whole = cl.Buffer(self._context, FLAGS.READ_WRITE, size + 2 * guard)
            made = Guarded(whole, whole.get_sub_region(guard, size), guard, mark)
        self.poison(made)
        return made

    def guarded_copy(self, array: Vector) -> Guarded:
        """Return a copy of `array` between guards, so that what is read outside of it is NaN."""
        made = self.guarded(array.nbytes, AROUND_SOURCE)
        with self.failures_named(f"copying to {self.name}"):
            cl.enqueue_copy(self._queue, made.inside, array)
        return made

    def poison(self, made: Guarded) -> None:
        """Make `made` NaN, inside too."""
        with self.failures_named(f"filling a buffer on {self.name}"):
            cl.enqueue_fill_buffer(self._queue, made.whole, np.array([made.mark]), 0, made.whole.size)

    def inside(self, made: Guarded, dtype: str) -> Vector:
        """Return what lies between the guards.

        Raises
        ------
        ArithmeticError
            If a guard was written to.
        """
        raw = np.empty(made.whole.size // 4, np.uint32)
        with self.failures_named(f"reading from {self.name}"):
            cl.enqueue_copy(self._queue, raw, made.whole)
        guard = made.guard // 4
        if (raw[:guard] != made.mark).any() or (raw[-guard:] != made.mark).any():
            raise ArithmeticError("wrong: it wrote outside of its result")
        return raw[guard:-guard].view(dtype)

    def trip(self, way: str, kernel: Kernel, count: int, dtype: str) -> Trip:
        """Return one of WAYS for `count` numbers from the host through `kernel`, in place, and back."""
        size = count * np.dtype(dtype).itemsize
        boundary = max(self.alignment, PAGE)
        if way == "copy commands":
            return self._copied(kernel, count, dtype)
        if way == "COPY_HOST_PTR":
            return self._made_from_host(kernel, count, dtype)
        if way == "ALLOC_HOST_PTR, mapped":
            buffer = self._buffer_of(FLAGS.ALLOC_HOST_PTR, size, None)
        elif way == "USE_HOST_PTR, mapped":
            buffer = self._buffer_of(FLAGS.USE_HOST_PTR, 0, placed(count, dtype, boundary))
        else:
            buffer = self._buffer_of(FLAGS.USE_HOST_PTR, 0, placed(count + 1, dtype, boundary)[1:])
        return self._by_mapping(kernel, count, dtype, buffer)

    def _copied(self, kernel: Kernel, count: int, dtype: str) -> Trip:
        source, result = placed(count, dtype, PAGE), placed(count, dtype, PAGE)
        buffer = self._buffer_of(FLAGS.READ_WRITE, source.nbytes, None)

        def trip(numbers: Vector | None) -> tuple[Vector, Launch]:
            if numbers is not None:
                source[:] = numbers
            with self.failures_named(f"a trip to {self.name}"):
                cl.enqueue_copy(self._queue, buffer, source, is_blocking=False)
                self._over(kernel, count, buffer)
                cl.enqueue_copy(self._queue, result, buffer, is_blocking=False)
            return result, self.taken()[-1]

        return trip

    def _made_from_host(self, kernel: Kernel, count: int, dtype: str) -> Trip:
        source, result = placed(count, dtype, PAGE), placed(count, dtype, PAGE)

        def trip(numbers: Vector | None) -> tuple[Vector, Launch]:
            if numbers is not None:
                source[:] = numbers
            buffer = self._buffer_of(FLAGS.COPY_HOST_PTR, 0, source)
            with self.failures_named(f"a trip to {self.name}"):
                self._over(kernel, count, buffer)
                cl.enqueue_copy(self._queue, result, buffer, is_blocking=False)
                # let go while it is in use: the standard keeps it until the commands queued are done
                buffer.release()
            return result, self.taken()[-1]

        return trip

    def _by_mapping(self, kernel: Kernel, count: int, dtype: str, buffer: Any) -> Trip:
        nothing = np.empty(0, dtype)

        def trip(numbers: Vector | None) -> tuple[Vector, Launch]:
            with self.failures_named(f"a trip to {self.name}"):
                with self._mapped(buffer, (count,), np.dtype(dtype), write=True) as view:
                    if numbers is not None:
                        view[:] = numbers
                self._over(kernel, count, buffer)
                with self._mapped(buffer, (count,), np.dtype(dtype), write=False) as view:
                    # a view ends with its mapping
                    result = nothing if numbers is None else view.copy()
            return result, self.taken()[-1]

        return trip

    def _over(self, kernel: Kernel, count: int, buffer: Any) -> None:
        group = min(64, self.largest_group)
        self.run(kernel, (-(-count // group),), (group,), buffer, np.int32(count))

    def _buffer_of(self, flags: int, size: int, host: Vector | None) -> Any:
        with self.failures_named(f"a buffer on {self.name}"):
            return cl.Buffer(self._context, FLAGS.READ_WRITE | flags, size, hostbuf=host)


def placed(count: int, dtype: str, boundary: int) -> Vector:
    """Return a vector of zeros that starts on a multiple of `boundary` bytes."""
    size = count * np.dtype(dtype).itemsize
    raw = np.zeros(size + boundary, np.uint8)
    start = -raw.ctypes.data % boundary
    return raw[start : start + size].view(dtype)
