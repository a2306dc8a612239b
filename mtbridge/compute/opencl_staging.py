"""Page-locked memory, and copies of ordinary arrays through pieces of it that are kept.

A card moves page-locked memory at the speed of its bus. Ordinary memory its driver first copies itself, in
one thread, and the pages of an array that is new are made on the way, one after the other. Here the caller's
thread drives the card, and several others copy (transfer.py).
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from mtbridge.compute.pages import Bytes, Pages, cut
from mtbridge.compute.transfer import (
    MOST_THREADS,
    PIECE_BYTES,
    Event,
    Part,
    Pieces,
    Transfer,
    threads_for,
)

STAGED_BYTES = 1 << 23
"""From this size on several threads copy sooner than the driver's one: they take a while to wake up."""


class Staging:
    """Pieces and threads for copies of one device; made with the first copy, so that an idle one has none.

    Parameters
    ----------
    threads : that copy, beside the caller's
    piece : bytes of a piece, a power of two
    smallest : bytes of the smallest array that is copied this way

    Attributes
    ----------
    usable : False once there was no page-locked memory to have, until `release`
    """

    def __init__(
        self,
        context: cl.Context,
        *,
        threads: int,
        piece: int = PIECE_BYTES,
        smallest: int = STAGED_BYTES,
    ) -> None:
        self.usable = True
        self.threads, self.piece, self.smallest = threads, piece, smallest
        self._context = context
        # a thread starts with the first copy that has work for it
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="mtbridge-staging")
        self._kept = Pieces()

    def send(self, queue: cl.CommandQueue, buffer: cl.Buffer, array: NDArray[Any]) -> bool:
        """Copy `array` to the start of `buffer`; False, and nothing is done, where another way suits it.

        The array is free again on return. The last pieces may still travel: what is queued next waits.
        """
        if not self._suits(queue, array):
            return False
        with self._transfer(array) as transfer:
            transfer.send(parts(array, self.piece, partial(write, queue, buffer)))
        return True

    def receive(
        self, queue: cl.CommandQueue, buffer: cl.Buffer, array: NDArray[Any], *, offset: int = 0
    ) -> bool:
        """Fill `array` from byte `offset` of `buffer` on; False as for `send`."""
        if not self._suits(queue, array):
            return False
        given = parts(array, self.piece, partial(read, queue, buffer, offset))
        with self._transfer(array, Pages(array)) as transfer:
            transfer.receive(lambda _: next(given, None))
        return True

    def release(self) -> None:
        """Give back the page-locked memory, once nothing travels; the next copy takes some again."""
        self._kept.release()
        self.usable = True

    def close(self) -> None:
        """Release all and end the threads; arrays go in other ways from now on. May be called twice."""
        self.release()
        self.usable = False
        self._pool.shutdown()

    def _transfer(self, array: NDArray[Any], pages: Pages | None = None) -> Transfer:
        return Transfer(self._kept, self._pool, threads_for(array.nbytes, self.threads), pages)

    def _suits(self, queue: cl.CommandQueue, array: NDArray[Any]) -> bool:
        """Whether `array` is large, lies in one piece of ordinary memory, and there are pieces to copy to."""
        if (
            not self.usable
            or array.nbytes < self.smallest
            or not array.flags.c_contiguous
            or is_pinned(array)
        ):
            return False
        try:
            self._kept.prepare(self.piece, self.threads, partial(pinned_bytes, self._context, queue))
        except (cl.Error, MemoryError):
            self.usable = False
        return self.usable


def parts(array: NDArray[Any], piece: int, travel: Callable[[int, Bytes], Event]) -> Iterator[Part]:
    """Cut a C-ordered array at the multiples of a piece, so that a page of it is made by one thread.

    `travel` queues the copy of a piece of which the first byte in the array is given.
    """
    at = 0
    for part in cut(array, piece):
        yield Part(part, partial(travel, at))
        at += part.nbytes


def write(queue: cl.CommandQueue, buffer: cl.Buffer, at: int, piece: Bytes) -> cl.Event:
    """Queue a copy of a piece to `buffer`, from byte `at` on; it begins to travel now."""
    event = cl.enqueue_copy(queue, buffer, piece, dst_offset=at, is_blocking=False)
    queue.flush()
    return event


def read(queue: cl.CommandQueue, buffer: cl.Buffer, offset: int, at: int, piece: Bytes) -> cl.Event:
    """Queue a copy to a piece from byte `offset` + `at` of `buffer` on; it begins to travel now."""
    event = cl.enqueue_copy(queue, piece, buffer, src_offset=offset + at, is_blocking=False)
    queue.flush()
    return event


def pinned_bytes(context: cl.Context, queue: cl.CommandQueue, size: int) -> Bytes:
    """Return so many bytes of `pinned_array`."""
    return pinned_array(context, queue, (size,), np.dtype(np.uint8))


def pinned_array(
    context: cl.Context, queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return an uninitialised array, not empty, in memory that the driver holds in place.

    It is a buffer that is mapped: the array keeps the map, and the map the buffer until it goes.
    """
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
    buffer = cl.Buffer(context, flags, math.prod(shape) * dtype.itemsize)
    access: Any = cl.map_flags.READ | cl.map_flags.WRITE
    array: NDArray[Any]
    array, _ = cl.enqueue_map_buffer(queue, buffer, access, 0, shape, dtype)
    return array


def is_pinned(array: NDArray[Any]) -> bool:
    """Whether `array` lies in memory that `pinned_array` returned: it, or a view of it."""
    base: Any = array
    while base is not None and not isinstance(base, cl.MemoryMap):
        base = getattr(base, "base", None)
    return base is not None


def staging_of(context: cl.Context, device: cl.Device) -> Staging | None:
    """Return the staging of a device with memory of its own; None where it shares the host's.

    Half of the processors copy, as others have work too; None also where that is one.
    """
    try:
        shared = bool(device.host_unified_memory)
    except cl.Error:
        # it is asked for no longer since OpenCL 2
        shared = False
    threads = min(MOST_THREADS, (os.cpu_count() or 1) // 2)
    return Staging(context, threads=threads) if threads > 1 and not shared else None
