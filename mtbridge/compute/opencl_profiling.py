"""A device whose queue keeps the time of every launch, and on it the rungs of the kernel ladder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
from pyopencl.tools import ImmediateAllocator, MemoryPool

from mtbridge.compute import devices
from mtbridge.compute.devices import Verdict
from mtbridge.compute.ladder import TEXEL_BYTES, Abilities, Rung
from mtbridge.compute.opencl import Device, Found, Kernel, enumerate_devices
from mtbridge.compute.opencl_failures import failures_named
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix

PEAK_SECONDS = 0.03
PEAK_ROUNDS = 3
PEAK_CHAINS = 8
LONGEST_VECTOR = 64
"""Bytes of the longest registers."""


@dataclass(frozen=True, slots=True)
class Launch:
    """When a launch was submitted, started and ended, in seconds after it was queued."""

    submitted: float
    started: float
    ended: float


def open_profiling(verdict: Verdict) -> ProfilingDevice:
    """Open the device of `verdict`, after `devices.load`; errors as of `found_again`."""
    return ProfilingDevice(found_again(verdict), vector_bytes=verdict.vector_bytes)


def found_again(verdict: Verdict) -> Found:
    """Return the device of `verdict` as the loader lists it now.

    Raises
    ------
    DeviceError
        If it is gone since it was last seen.
    """
    twins = [found for found in enumerate_devices() if found.key == verdict.key]
    if verdict.twin < len(twins):
        return twins[verdict.twin]
    devices.survey(fresh=True)
    raise DeviceError(f"the OpenCL device {verdict.name} is gone since it was last seen; try again.")


class ProfilingDevice(Device):
    """A `Device` that remembers the event of each launch until `taken` is called.

    Attributes
    ----------
    able : what the rungs of the ladder may need
    local_memory : "local" where local memory is a memory of its own, "global" where it is a part of the cache
    preferred_widths : the device's preferred vector width, in elements, by dtype
    """

    def __init__(self, found: Found, *, vector_bytes: int = 0) -> None:
        super().__init__(found)
        handle = found.handle
        with failures_named(f"opening {found.name}"):
            self._queue = cl.CommandQueue(
                self._context, properties=cl.command_queue_properties.PROFILING_ENABLE
            )
        self._pool = MemoryPool(ImmediateAllocator(self._queue))
        self._events: list[cl.Event] = []
        self.vector_bytes = vector_bytes
        self.units = int(handle.max_compute_units)
        image = (int(handle.image2d_max_width), int(handle.image2d_max_height))
        self.able = Abilities(
            kind=found.kind,
            fp64=self.fp64,
            largest_group=self.largest_group,
            local_bytes=self.local_bytes,
            largest_image=image if handle.image_support else (0, 0),
        )
        own = handle.local_mem_type == cl.device_local_mem_type.LOCAL
        self.local_memory = "local" if own else "global"
        self.preferred_widths = {
            "float32": int(handle.preferred_vector_width_float),
            "float64": int(handle.preferred_vector_width_double),
        }

    def _enqueue(
        self, kernel: Kernel, sizes: tuple[int, ...], local: tuple[int, ...], offset: tuple[int, ...] | None
    ) -> Any:
        """Queue `kernel` as `Device` does, and keep its event."""
        event = super()._enqueue(kernel, sizes, local, offset)
        self._events.append(event)
        return event

    def taken(self) -> list[Launch]:
        """Return the moments of the launches since the last call, in their order; waits for them."""
        self.finish()
        events, self._events = self._events, []
        return [
            Launch(
                *(
                    1e-9 * (moment - event.profile.queued)
                    for moment in (event.profile.submit, event.profile.start, event.profile.end)
                )
            )
            for event in events
        ]

    def seconds(self) -> float:
        """Return how long the launches since the last call ran, END - START, added up."""
        return sum(launch.ended - launch.started for launch in self.taken())

    def launch(
        self,
        rung: Rung,
        sizes: tuple[int, int, int],
        dtype: np.dtype[Any],
        buffers: tuple[Any, Any, Any],
        *,
        local: tuple[int, ...] | None = None,
        defines: Mapping[str, int] | None = None,
    ) -> None:
        """Queue a rung's kernel on buffers (or an image) for A, B and C.

        Parameters
        ----------
        sizes : rows, inner, columns; each at least 1
        buffers : A row-major, B as `rung.second` says, C row-major
        local : another local size than the rung's
        defines : macros beside the rung's, for tests
        """
        rows, inner, columns = sizes
        macros = {**rung.macros(rows, inner, columns, dtype), **(defines or {})}
        kernel = self.kernel("multiply", (*rung.headers, rung.file), macros)
        side = local or rung.local_size(self.largest_group)
        groups = rung.groups(rows, columns, dtype.itemsize, side)
        self.run(kernel, groups, side, *buffers, *(np.int32(size) for size in sizes))

    def place(self, rung: Rung, sizes: tuple[int, int, int], dtype: np.dtype[Any]) -> Placed:
        """Return memory on the device for a rung's A, B and C; C is full of NaN."""
        rows, inner, columns = sizes
        flags = cl.mem_flags.READ_WRITE | (cl.mem_flags.ALLOC_HOST_PTR if rung.mapped else 0)
        with self.failures_named(f"memory for {rung.name} on {self.name}"):

            def buffer(elements: int) -> cl.Buffer:
                return cl.Buffer(self._context, flags, elements * dtype.itemsize)

            if rung.second == "image":
                texels = cl.ImageFormat(cl.channel_order.RGBA, cl.channel_type.UNSIGNED_INT32)
                shape = (texels_across(columns, dtype), inner)
                second: Any = cl.create_image(self._context, cl.mem_flags.READ_ONLY, texels, shape=shape)
            else:
                second = buffer(inner * columns)
            third = buffer(rows * columns)
            nan = dtype.type(np.nan)
            cl.enqueue_fill_buffer(self._queue, third, nan, 0, rows * columns * dtype.itemsize)
            return Placed(rung, sizes, dtype, buffer(rows * inner), second, third)

    def fill(self, placed: Placed, A: Matrix, B: Matrix) -> None:
        """Bring A, and B as `lying` returned it, to the device: by copies, or into mapped buffers."""
        for target, array in ((placed.first, A), (placed.second, B)):
            with self.failures_named(f"copying to {self.name}"):
                if isinstance(target, cl.Image):
                    region = (array.shape[1] * array.itemsize // TEXEL_BYTES, array.shape[0])
                    cl.enqueue_copy(self._queue, target, array, origin=(0, 0), region=region)
                elif placed.rung.mapped:
                    with self._mapped(target, array.shape, array.dtype, write=True) as view:
                        np.copyto(view, array)
                else:
                    cl.enqueue_copy(self._queue, target, array, is_blocking=False)

    def multiply(self, placed: Placed) -> None:
        """Queue the kernel of a rung on what it was filled with."""
        self.launch(placed.rung, placed.sizes, placed.dtype, (placed.first, placed.second, placed.third))

    def read(self, placed: Placed, C: Matrix) -> None:
        """Bring the result to `C`, of shape (rows, columns), and wait for it."""
        with self.failures_named(f"reading from {self.name}"):
            if placed.rung.mapped:
                with self._mapped(placed.third, C.shape, C.dtype, write=False) as view:
                    np.copyto(C, view)
            else:
                cl.enqueue_copy(self._queue, C, placed.third)

    @contextmanager
    def _mapped(
        self, buffer: Any, shape: tuple[int, ...], dtype: np.dtype[Any], *, write: bool
    ) -> Iterator[Matrix]:
        flags = cl.map_flags.WRITE_INVALIDATE_REGION if write else cl.map_flags.READ
        view, _ = cl.enqueue_map_buffer(self._queue, buffer, flags, 0, shape, dtype)
        try:
            yield view
        finally:
            view.base.release(self._queue)

    def peak(self, dtype: np.dtype[Any]) -> float:
        """Return the most operations a second that multiply-adds on registers reach (kernels/peak.cl)."""
        # a processor of unknown registers gets vectors that its compiler cuts up; a lane of a GPU is a scalar
        registers = (self.vector_bytes or LONGEST_VECTOR) if self.kind == "cpu" else 2 * dtype.itemsize
        width = max(registers // dtype.itemsize, 2)
        local = 1 if self.kind == "cpu" else min(self.largest_group, 256)
        groups = self.units * (1 if self.kind == "cpu" else 32)
        kernel = self.kernel(
            "peak", ("peak.cl",), {"REAL_BITS": 8 * dtype.itemsize, "WIDTH": width, "CHAINS": PEAK_CHAINS}
        )
        out = self.buffer("peak", groups * local * dtype.itemsize)
        scale, shift = dtype.type(0.9375), dtype.type(0.0625)
        self.taken()
        count, best = 1000, 0.0
        for _ in range(PEAK_ROUNDS + 1):
            self.run(kernel, (groups,), (local,), out, scale, shift, np.int32(count))
            seconds = self.seconds()
            best = max(best, 2 * PEAK_CHAINS * width * count * groups * local / seconds)
            # the first call finds how many steps take a while
            count = min(max(int(count * PEAK_SECONDS / seconds), 1), 10**8)
        return best


@dataclass(frozen=True, slots=True)
class Placed:
    """Memory on the device for one product by one rung."""

    rung: Rung
    sizes: tuple[int, int, int]
    dtype: np.dtype[Any]
    first: Any
    second: Any
    third: Any


def texels_across(columns: int, dtype: np.dtype[Any]) -> int:
    """Return the width of an image that holds rows of `columns` elements."""
    return -(-columns // (TEXEL_BYTES // dtype.itemsize))


def lying(rung: Rung, B: Matrix) -> Matrix:
    """Return `B` as the kernel of `rung` reads it: row-major, column-major, or with rows of whole texels."""
    if rung.second == "columns":
        return np.ascontiguousarray(B.T)
    if rung.second == "image":
        wide = texels_across(B.shape[1], B.dtype) * (TEXEL_BYTES // B.itemsize)
        padded = np.zeros((B.shape[0], wide), B.dtype)
        padded[:, : B.shape[1]] = B
        return padded
    return np.ascontiguousarray(B)
