"""A device, its queue, its programs and its buffers. pyopencl is imported here and in a few opencl_*.py."""

from __future__ import annotations

import math
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray
from pyopencl.tools import ImmediateAllocator, MemoryPool

from mtbridge.compute import opencl_ptx
from mtbridge.compute.aligned import ALIGNMENT, aligned_empty
from mtbridge.compute.embedded import name_the_processor
from mtbridge.compute.nvidia import capability
from mtbridge.compute.opencl_failures import failures_named
from mtbridge.compute.opencl_staging import pinned_array, staging_of
from mtbridge.compute.waiting import Waiting
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix
from mtbridge.sources import program_text

POOLED_BYTES = 1 << 28
"""Results up to this size get a kept buffer; above, the time to allocate one does not matter."""

MOST_SENT = 16
"""Arrays that are waited for at a time; `receive` mostly comes long before."""

# what is done with warnings is the process's, so one thread builds at a time
BUILDING = threading.Lock()


@dataclass(frozen=True, slots=True)
class Found:
    """A device as the loader lists it."""

    platform: str
    version: str
    name: str
    driver: str
    kind: str
    handle: cl.Device

    @property
    def key(self) -> str:
        """What a verdict on the device is kept under: another driver is another device."""
        return " | ".join((self.platform, self.version, self.name, self.driver))


def enumerate_devices() -> list[Found]:
    """Return every device of every platform, in the loader's order; none where there is no platform."""
    try:
        platforms = cl.get_platforms()
    except cl.LogicError:
        return []
    found = []
    for platform in platforms:
        try:
            handles = platform.get_devices()
        except cl.Error:
            continue
        for handle in handles:
            kind = next(
                (
                    name
                    for name in ("gpu", "cpu", "accelerator")
                    if handle.type & getattr(cl.device_type, name.upper())
                ),
                "other",
            )
            found.append(
                Found(
                    platform=platform.name.strip(),
                    version=platform.version.strip(),
                    name=handle.name.strip(),
                    driver=handle.driver_version.strip(),
                    kind=kind,
                    handle=handle,
                )
            )
    return found


def built(context: cl.Context, text: str, *, cache: str | None = None) -> cl.Program:
    """Build a program; `cache` is the folder where it is kept, by default pyopencl's own."""
    program: cl.Program = cl.Program(context, text).build(cache_dir=cache)
    return program


@dataclass(slots=True)
class Kernel:
    """A kernel of a program; once `typed`, pyopencl knows the types of its arguments and tries no others."""

    name: str
    handle: cl.Kernel
    typed: bool = False


class Device:
    """One device with a context and an in-order queue of its own.

    Buffers are kept by slot name and grow only, tables and kernels by what they were made from: a repeated
    call allocates nothing and builds nothing. Large arrays go to a device with memory of its own, and come
    from it, through its staging; what `pinned` returned goes straight.
    One thread at a time.
    """

    def __init__(self, found: Found) -> None:
        self.name = found.name
        self.platform = found.platform
        self.kind = found.kind
        self.target = (
            name_the_processor(found.handle.int_ptr, found.driver) if "PoCL" in found.version else None
        )
        with failures_named(f"opening {found.name}"):
            self._context = cl.Context([found.handle])
            self._queue = cl.CommandQueue(self._context)
        self.largest_buffer = int(found.handle.max_mem_alloc_size)
        self.native_bytes = 4 * int(found.handle.native_vector_width_float)
        self.fp64 = "cl_khr_fp64" in found.handle.extensions
        self.subnormals = bool(found.handle.single_fp_config & cl.device_fp_config.DENORM)
        self.host_memory = found.kind == "cpu"
        # Intel's runtime copies an array that starts off its boundary, which takes ten times as long as a
        # copy of ours; PoCL reads it where it lies, whatever it says of itself
        self._boundary = 1 if "PoCL" in found.version else int(found.handle.mem_base_addr_align) // 8
        self.largest_group = int(found.handle.max_work_group_size)
        self.units = int(found.handle.max_compute_units)
        self.local_bytes = int(found.handle.local_mem_size)
        self.capability = capability(found.platform, found.handle)
        self._pool = MemoryPool(ImmediateAllocator(self._queue))
        self._kernels: dict[tuple[Any, ...], Kernel] = {}
        self._slots: dict[str, Any] = {}
        self._tables: dict[tuple[Any, ...], tuple[Any, int]] = {}
        self._sent: list[cl.Event] = []
        self._waiting: Waiting | None = None
        self.staging = None if self.host_memory else staging_of(self._context, found.handle)

    def failures_named(self, what: str) -> AbstractContextManager[None]:
        """Turn an error of the runtime into one of ours that begins with `what` (opencl_failures.py)."""
        return failures_named(what, self._queue)

    @property
    def queue(self) -> cl.CommandQueue:
        """The queue itself, for a library that works on it beside our kernels."""
        return self._queue

    def kernel(self, name: str, files: tuple[str, ...], defines: Mapping[str, int]) -> Kernel:
        """Return kernel `name` of a program; it is built once a process, and kept on disk by pyopencl."""
        key = (name, files, tuple(defines.items()))
        kept = self._kernels.get(key)
        if kept is None:
            what = f"building {files[-1]} for {self.name}"
            with BUILDING, self.failures_named(what), warnings.catch_warnings():
                # a compiler's remarks about its own options are not the caller's concern
                warnings.simplefilter("ignore", cl.CompilerWarning)
                text = program_text(files, defines)
                build = opencl_ptx.build if defines.get(opencl_ptx.ROUTE) else built
                try:
                    program = build(self._context, text)
                except (cl.Error, DeviceError):
                    raise
                except (RuntimeError, OSError):
                    # pyopencl's cache on disk: the lock of a process that was killed, or a full disk
                    with tempfile.TemporaryDirectory() as passing:
                        program = build(self._context, text, cache=passing)
                kept = self._kernels[key] = Kernel(name, cl.Kernel(program, name))
        return kept

    def buffer(self, slot: str, size: int) -> Any:
        """Return the kept buffer of `slot`, of at least `size` bytes."""
        kept = self._slots.get(slot)
        if kept is None or kept.size < size:
            with self.failures_named(f"a buffer of {size} bytes on {self.name}"):
                if kept is not None:
                    # they may be given what is released here
                    self._enqueue_waiting()
                    self._queue.finish()
                    del self._slots[slot]
                    kept.release()
                kept = cl.Buffer(self._context, cl.mem_flags.READ_WRITE, max(size, ALIGNMENT))
            self._slots[slot] = kept
        return kept

    @staticmethod
    def local(size: int) -> Any:
        """Return what stands for `size` bytes of local memory among a kernel's arguments."""
        return cl.LocalMemory(size)

    def table(self, key: tuple[Any, ...], make: Callable[[], np.ndarray[Any, Any]]) -> tuple[Any, int]:
        """Return a buffer with the array of `make`, and its length; made once for a `key`."""
        if key not in self._tables:
            if len(self._tables) > 64:
                self._tables.clear()
            array = make()
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
            with self.failures_named(f"a table on {self.name}"):
                self._tables[key] = cl.Buffer(self._context, flags, hostbuf=array), len(array)
        return self._tables[key]

    def send(self, slot: str, array: NDArray[Any]) -> Any:
        """Return a buffer with the bytes of `array`, which is contiguous, and stays as it is until `receive`.

        A CPU device reads the array where it lies, if it starts on a boundary that suits its runtime. Kernels
        read what is sent element by element, so for PoCL that of an element is enough. Others are copied.
        """
        boundary = max(self._boundary, array.itemsize)
        if self.host_memory and array.ctypes.data % boundary == 0 and array.size:
            flags = cl.mem_flags.READ_ONLY | cl.mem_flags.USE_HOST_PTR
            with self.failures_named(f"an array on {self.name}"):
                return cl.Buffer(self._context, flags, hostbuf=array)
        target = self.buffer(slot, array.nbytes)
        if array.size:
            with self.failures_named(f"copying to {self.name}"):
                if self.staging is not None and self.staging.send(self._queue, target, array):
                    return target
                # an event that is let go waits, and keeps every thread of Python waiting with it
                self._sent.append(cl.enqueue_copy(self._queue, target, array, is_blocking=False))
                # it begins to travel while the host prepares what follows
                self._queue.flush()
                if len(self._sent) > MOST_SENT:
                    self._sent.pop(0).wait()
        return target

    def result(self, slot: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Any, Matrix]:
        """Return a buffer to write `shape` into and the array that `receive` fills from it."""
        array = aligned_empty(shape, dtype)
        if self.host_memory and array.size:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
            with self.failures_named(f"an array on {self.name}"):
                return cl.Buffer(self._context, flags, hostbuf=array), array
        return self.buffer(slot, array.nbytes), array

    def over(self, slot: str, array: NDArray[Any]) -> Any:
        """Return a buffer that `receive` reads into the C-ordered `array`; a CPU device writes there."""
        if self.host_memory:
            flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
            with self.failures_named(f"an array on {self.name}"):
                return cl.Buffer(self._context, flags, hostbuf=array)
        return self.buffer(slot, array.nbytes)

    def receive(self, source: Any, array: NDArray[Any]) -> NDArray[Any]:
        """Wait for the queue and return `array` with what `source` holds."""
        with self.failures_named(f"reading from {self.name}"):
            if self.host_memory and array.size:
                # mapping is what makes a USE_HOST_PTR buffer visible to the host
                view, _ = cl.enqueue_map_buffer(
                    self._queue, source, cl.map_flags.READ, 0, array.shape, array.dtype
                )
                view.base.release(self._queue)
                self._queue.finish()
                self._settle()
            elif array.size:
                self._read(source, array, 0)
        return array

    def allocate(self, size: int) -> Any:
        """Return a buffer of `size` bytes, free for another result when it is no longer held."""
        with self.failures_named(f"a buffer of {size} bytes on {self.name}"):
            # the queue works in order, so whoever gets the memory next writes to it after its last reader
            if size <= POOLED_BYTES:
                return self._pool.allocate(max(size, ALIGNMENT))
            return cl.Buffer(self._context, cl.mem_flags.READ_WRITE, size)

    def uploaded(self, array: NDArray[Any]) -> Any:
        """Return a new buffer with a copy of the C-ordered `array`."""
        buffer = self.allocate(array.nbytes)
        self.put(buffer, array)
        return buffer

    def put(self, buffer: Any, array: NDArray[Any]) -> None:
        """Copy the C-ordered `array` to the start of `buffer`; it is free again on return."""
        if array.size:
            with self.failures_named(f"copying to {self.name}"):
                if self.staging is None or not self.staging.send(self._queue, buffer, array):
                    cl.enqueue_copy(self._queue, buffer, array)

    def pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        """Return an uninitialised array that is copied to and from the device without a copy on the way.

        A device with memory of its own copies straight from pages that its driver holds in place; it gets
        them by mapping a buffer. The array is valid for as long as it lives, also after `close`.
        """
        size = math.prod(shape) * dtype.itemsize
        if self.host_memory or not size:
            return aligned_empty(shape, dtype)
        with self.failures_named(f"{size} bytes of pinned memory for {self.name}"):
            return pinned_array(self._context, self._queue, shape, dtype)

    def downloaded(self, buffer: Any, array: NDArray[Any], *, offset: int = 0) -> NDArray[Any]:
        """Return `array`, which is C-ordered, with what `buffer` holds from byte `offset` on."""
        if array.size:
            with self.failures_named(f"reading from {self.name}"):
                self._read(buffer, array, offset)
        return array

    def _read(self, buffer: Any, array: NDArray[Any], offset: int) -> None:
        if self.staging is None or not self.staging.receive(self._queue, buffer, array, offset=offset):
            cl.enqueue_copy(self._queue, array, buffer, src_offset=offset)
        self._settle()

    def _settle(self) -> None:
        """Let go of what was sent, once the queue is past it."""
        failure: cl.Error | None = None
        while self._sent:
            try:
                self._sent[0].wait()
            except cl.Error as error:
                # the arrays of the others may still be read
                failure = failure or error
            self._sent.pop(0)
        if failure is not None:
            raise failure

    def finish(self) -> None:
        """Wait until everything queued is done."""
        with self.failures_named(f"work on {self.name}"):
            self._queue.finish()
            self._settle()

    def run(
        self,
        kernel: Kernel,
        groups: tuple[int, ...],
        local: tuple[int, ...],
        *arguments: Any,
        offset: tuple[int, ...] | None = None,
    ) -> Any:
        """Queue `kernel` on `groups` work-groups of `local` items, from `offset` on; return its event."""
        with self.failures_named(f"{kernel.name} on {self.name}"):
            if not kernel.typed:
                scalars = [value if isinstance(value, np.generic) else None for value in arguments]
                kernel.handle.set_arg_types([getattr(value, "dtype", None) for value in scalars])
                kernel.typed = True
            sizes = tuple(g * n for g, n in zip(groups, local, strict=True))
            if self._waiting is not None:
                self._waiting.add(kernel, arguments, sizes, local, offset)
                return None
            kernel.handle.set_args(*arguments)
            return self._enqueue(kernel, sizes, local, offset)

    def _enqueue(
        self, kernel: Kernel, sizes: tuple[int, ...], local: tuple[int, ...], offset: tuple[int, ...] | None
    ) -> Any:
        return cl.enqueue_nd_range_kernel(self._queue, kernel.handle, sizes, local, offset)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Queue the launches of the block at its end, one right after the other; they return no events.

        A GPU has done a short one before the host, which prepares what follows, queues the next.
        """
        self._waiting = Waiting()
        try:
            yield
            self._enqueue_waiting()
        finally:
            self._waiting = None

    def _enqueue_waiting(self) -> None:
        if self._waiting:
            with self.failures_named(f"work on {self.name}"):
                self._waiting.queue(self._enqueue)

    def release_kept(self) -> None:
        """Give back the memory that is kept for repeated calls, once the device is done with it."""
        with suppress(cl.Error):
            self._queue.finish()
            self._settle()
        if self.staging is not None:
            self.staging.release()
        for kept in (*self._slots.values(), *(table for table, _ in self._tables.values())):
            # on a device that failed this fails too
            with suppress(cl.Error):
                kept.release()
        self._slots.clear()
        self._tables.clear()
        self._pool.free_held()

    def close(self) -> None:
        """Release every buffer; may be called twice."""
        self.release_kept()
        self._kernels.clear()
        self._pool.stop_holding()
        if self.staging is not None:
            self.staging.close()
