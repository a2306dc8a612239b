"""Brings answers from a device to where they belong, in several threads, while the device computes others.

A card has a queue of its own for copies, so that none waits for a kernel behind it. Parts of an answer wait
in one line; a thread takes one, which travels to page-locked memory while the thread puts the one before in
its place. So neither the bus nor the memory waits at the end of an answer, nor for the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl
from numpy.typing import NDArray

from mtbridge.compute.blocks import spans
from mtbridge.compute.opencl_staging import PIECES
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

PIECE_BYTES = 1 << 22
"""Of page-locked memory; each thread has PIECES of them."""


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """A rectangle of a matrix on a device, and where it goes.

    Attributes
    ----------
    source : buffer with a C-ordered matrix of the dtype of `target`
    columns : of that matrix
    first : row and column there of the first element of the rectangle
    target : where it goes, a matrix whose rows lie in one piece each
    """

    source: Any
    columns: int
    first: tuple[int, int]
    target: Matrix

    def cut(self, size: int) -> Iterator[Answer]:
        """Cut it into rectangles of at most `size` bytes, of whole rows where one is no larger."""
        (rows, columns), (row, column) = self.target.shape, self.first
        wide = max(min(columns, size // self.target.itemsize), 1)
        deep = max(size // (wide * self.target.itemsize), 1)
        for across in spans(columns, wide):
            for down in spans(rows, deep):
                first = row + down.start, column + across.start
                yield Answer(self.source, self.columns, first, self.target[down, across])


@dataclass(slots=True, eq=False)
class Delivery:
    """Answers that are under way together; `done` is set when all of them are in their places."""

    left: int
    done: threading.Event = field(default_factory=threading.Event)


class Conveyor:
    """The threads that bring answers from one device; used in `with`, after which none of them is left.

    Parameters
    ----------
    pieces : page-locked memory of `room`, which is kept from one use to the next

    Attributes
    ----------
    failure : what went wrong first in a thread
    """

    def __init__(self, device: Device, pieces: list[NDArray[np.uint8]]) -> None:
        self.failure: BaseException | None = None
        self._device = device
        self._pieces = pieces
        self._queue = cl.CommandQueue(device.queue.context)
        self._line: SimpleQueue[tuple[Answer, Delivery] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._threads = [
            threading.Thread(target=self._serve, args=(pieces[at : at + PIECES],), name="mtbridge-conveyor")
            for at in range(0, len(pieces), PIECES)
        ]

    def __enter__(self) -> Conveyor:
        try:
            for thread in self._threads:
                thread.start()
        except BaseException as failure:
            # those that did start would wait for ever, and Python for them
            self.__exit__(type(failure))
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._closed = kind is not None
        started = [thread for thread in self._threads if thread.ident is not None]
        for _thread in started:
            self._line.put(None)
        for thread in started:
            thread.join()

    def mark(self) -> Any:
        """Return an event that has ended when the device is past what is in its queue of kernels by now."""
        event = cl.enqueue_marker(self._device.queue)
        self._device.queue.flush()
        return event

    def bring(self, answers: list[Answer]) -> Delivery:
        """Have answers brought that the device has computed."""
        parts = [part for answer in answers for part in answer.cut(self._pieces[0].nbytes)]
        delivery = Delivery(len(parts))
        if not parts:
            delivery.done.set()
        for part in parts:
            self._line.put((part, delivery))
        return delivery

    def wait(self, delivery: Delivery) -> None:
        """Wait until all of a delivery is in its place; raise what failed, of this or of another one."""
        delivery.done.wait()
        if self.failure is not None:
            raise self.failure

    def _serve(self, pieces: list[NDArray[np.uint8]]) -> None:
        turn, before = 0, None
        while True:
            taken = self._next(wait=before is None)
            now = None
            if taken is not None:
                now = self._begun(*taken, pieces[turn % len(pieces)])
                turn += 1
            if before is not None:
                self._end(*before)
            elif taken is None:
                return
            before = now

    def _next(self, *, wait: bool) -> tuple[Answer, Delivery] | None:
        """The next answer of the line; None at its end, or where nobody waits and there is none."""
        with suppress(Empty):
            taken = self._line.get(wait)
            if taken is None and not wait:
                # the end, which is met again when there is nothing else left to do
                self._line.put(None)
            return taken
        return None

    def _begun(
        self, answer: Answer, delivery: Delivery, piece: NDArray[np.uint8]
    ) -> tuple[Answer, Delivery, Matrix, Any]:
        """Let an answer travel to a piece; without an event where it does not, after a failure."""
        target = answer.target
        (rows, columns), size = target.shape, target.itemsize
        held = piece[: rows * columns * size]
        event = None
        if not self._closed and self.failure is None:
            try:
                # the types that come with pyopencl lack this way of copying
                event = cl.enqueue_copy(  # type: ignore[call-overload]
                    self._queue,
                    held,
                    answer.source,
                    buffer_origin=(answer.first[1] * size, answer.first[0], 0),
                    host_origin=(0, 0, 0),
                    region=(columns * size, rows, 1),
                    buffer_pitches=(answer.columns * size, 0),
                    host_pitches=(columns * size, 0),
                    is_blocking=False,
                )
                self._queue.flush()
            except BaseException as failure:
                self._fail(failure)
        return answer, delivery, held.view(target.dtype).reshape(rows, columns), event

    def _end(self, answer: Answer, delivery: Delivery, held: Matrix, event: Any) -> None:
        """Put an answer in its place when it has come."""
        if event is not None:
            try:
                event.wait()
                if not self._closed:
                    np.copyto(answer.target, held)
            except BaseException as failure:
                self._fail(failure)
        with self._lock:
            delivery.left -= 1
            if not delivery.left:
                delivery.done.set()

    def _fail(self, failure: BaseException) -> None:
        with self._lock:
            self.failure = self.failure or failure


def room(device: Device, threads: int, piece: int = PIECE_BYTES) -> list[NDArray[np.uint8]]:
    """Return page-locked memory of a device for a conveyor of so many threads.

    Raises
    ------
    MemoryError, DeviceError
        If there is none.
    """
    whole = device.pinned((PIECES * threads * piece,), np.dtype(np.uint8))
    return [whole[at : at + piece] for at in range(0, len(whole), piece)]
