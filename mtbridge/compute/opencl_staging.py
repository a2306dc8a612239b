"""Page-locked memory, and copies of ordinary arrays by several threads through pieces of it that are kept.

A card moves page-locked memory at the speed of its bus. Ordinary memory its driver first copies itself, in
one thread, and the pages of an array that is new are made on the way, one after the other. Here several
threads copy. Each has two pieces of page-locked memory: one travels while the thread is at the other.
"""

from __future__ import annotations

import math
import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from mtbridge.shared_work import Job, Parts, share

Bytes: TypeAlias = NDArray[np.uint8]

STAGED_BYTES = 1 << 23
"""From this size on several threads copy sooner than the driver's one: they take a while to wake up."""

PIECE_BYTES = 1 << 22
"""Bytes of a piece, a power of two: between two of them a thread waits for its turn in Python."""

MOST_THREADS = 6
"""More do not read memory faster."""

PIECES = 2
"""Of each thread."""


class Staging:
    """Pieces and threads for copies of one device; made with the first copy, so that an idle one has none.

    Parameters
    ----------
    threads : that copy, the caller's among them
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
        self._pool = ThreadPoolExecutor(max(threads - 1, 1), thread_name_prefix="mtbridge-staging")
        self._pieces: list[Bytes] = []
        # the last copy from or to each piece
        self._travelling: list[cl.Event | None] = []

    def send(self, queue: cl.CommandQueue, buffer: cl.Buffer, array: NDArray[Any]) -> bool:
        """Copy `array` to the start of `buffer`; False, and nothing is done, where another way suits it.

        The array is free again on return. The last pieces may still travel: what is queued next waits.
        """
        if not self._suits(queue, array):
            return False
        source, spans = flat(array), self.spans(0, array.nbytes)

        def job(parts: Parts, number: int) -> None:
            for turn, at in enumerate(parts):
                place, span = PIECES * number + turn % PIECES, spans[at]
                piece = self._free(place)[: span.stop - span.start]
                np.copyto(piece, source[span])
                self._travelling[place] = write(queue, buffer, piece, span.start)

        self._share(job, len(spans))
        return True

    def receive(
        self, queue: cl.CommandQueue, buffer: cl.Buffer, array: NDArray[Any], *, offset: int = 0
    ) -> bool:
        """Fill `array` from byte `offset` of `buffer` on; False as for `send`."""
        if not self._suits(queue, array):
            return False
        # a page is made by one thread
        target, spans = flat(array), self.spans(array.ctypes.data, array.nbytes)

        def take(place: int, span: slice) -> None:
            np.copyto(target[span], self._free(place)[: span.stop - span.start])

        def job(parts: Parts, number: int) -> None:
            before: tuple[int, slice] | None = None
            for turn, at in enumerate(parts):
                place, span = PIECES * number + turn % PIECES, spans[at]
                piece = self._free(place)[: span.stop - span.start]
                self._travelling[place] = read(queue, buffer, piece, offset + span.start)
                if before is not None:
                    take(*before)
                before = place, span
            if before is not None and not parts.closed:
                take(*before)

        self._share(job, len(spans))
        return True

    def release(self) -> None:
        """Give back the page-locked memory, once nothing travels; the next copy takes some again."""
        for place in range(len(self._pieces)):
            # what failed has been reported where it was waited for
            with suppress(cl.Error):
                self._free(place)
        self._pieces, self._travelling = [], []
        self.usable = True

    def close(self) -> None:
        """Release all and end the threads; arrays go in other ways from now on. May be called twice."""
        self.release()
        self.usable = False
        self._pool.shutdown()

    def _suits(self, queue: cl.CommandQueue, array: NDArray[Any]) -> bool:
        """Whether `array` is large, lies in one piece of ordinary memory, and there are pieces to copy to."""
        if (
            not self.usable
            or array.nbytes < self.smallest
            or not array.flags.c_contiguous
            or is_pinned(array)
        ):
            return False
        if not self._pieces:
            count = PIECES * self.threads
            try:
                whole = pinned_array(self._context, queue, (count * self.piece,), np.dtype(np.uint8))
            except (cl.Error, MemoryError):
                self.usable = False
                return False
            self._pieces = [whole[at : at + self.piece] for at in range(0, len(whole), self.piece)]
            self._travelling = [None] * count
        return True

    def spans(self, address: int, size: int) -> list[slice]:
        """Cut `size` bytes, the first of which has an address, at the multiples of a piece."""
        edges = [0, *range(self.piece - address % self.piece, size, self.piece), size]
        return [slice(start, stop) for start, stop in pairwise(edges)]

    def _share(self, job: Job, pieces: int) -> None:
        """Do a job in so many threads that each has two pieces, about: more would wake up too late."""
        share(job, pieces, threads=min(self.threads, 1 + pieces // PIECES), pool=self._pool)

    def _free(self, place: int) -> Bytes:
        """Return a piece once it no longer travels."""
        event, self._travelling[place] = self._travelling[place], None
        if event is not None:
            # an event that is let go waits too, but keeps every thread of Python waiting with it
            event.wait()
        return self._pieces[place]


def write(queue: cl.CommandQueue, buffer: cl.Buffer, piece: Bytes, at: int) -> cl.Event:
    """Queue a copy of a piece to `buffer`, from byte `at` on; it begins to travel now."""
    event = cl.enqueue_copy(queue, buffer, piece, dst_offset=at, is_blocking=False)
    queue.flush()
    return event


def read(queue: cl.CommandQueue, buffer: cl.Buffer, piece: Bytes, at: int) -> cl.Event:
    """Queue a copy to a piece from byte `at` of `buffer` on; it begins to travel now."""
    event = cl.enqueue_copy(queue, piece, buffer, src_offset=at, is_blocking=False)
    queue.flush()
    return event


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


def flat(array: NDArray[Any]) -> Bytes:
    """Return the bytes of a C-ordered array, not copied."""
    return array.reshape(-1).view(np.uint8)


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
