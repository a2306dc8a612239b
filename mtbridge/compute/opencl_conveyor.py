"""Brings answers from a device to where they belong while the device computes others.

A card has a queue of its own for copies, so that none waits for a kernel behind it, and a thread that drives
it (transfer.py). Parts of answers wait in one line for it: so neither the bus nor the memory waits at the end
of an answer, nor for the next one.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import pyopencl as cl

from mtbridge.compute.blocks import spans
from mtbridge.compute.pages import Bytes, Pages
from mtbridge.compute.transfer import Failure, Part, Pieces, Transfer, taken
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device


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
    """Answers that are under way together; `done` is set when all are in their places, or cannot be."""

    left: int
    done: threading.Event = field(default_factory=threading.Event)


class Conveyor:
    """The threads that bring answers from one device; used in `with`, after which none of them is left.

    Parameters
    ----------
    kept : pieces of one size, for so many `threads` that copy
    pages : of an array that is new, which they make until the first answer comes

    Attributes
    ----------
    failure : what went wrong first in a thread
    """

    def __init__(self, device: Device, kept: Pieces, threads: int, pages: Pages | None = None) -> None:
        self.failure: Failure = None
        self._device = device
        self._piece = len(kept.pieces[0])
        self._queue = cl.CommandQueue(device.queue.context)
        self._line: SimpleQueue[Part | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._under_way: set[Delivery] = set()
        self._ended = False
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="mtbridge-copies")
        self._transfer = Transfer(kept, self._pool, threads, pages)
        self._thread = threading.Thread(target=self._serve, name="mtbridge-conveyor")

    def __enter__(self) -> Conveyor:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._transfer.closed = self._transfer.closed or kind is not None
        self._line.put(None)
        self._thread.join()
        self._pool.shutdown()

    def mark(self) -> Any:
        """Return an event that has ended when the device is past what is in its queue of kernels by now."""
        return mark(self._device)

    def bring(self, answers: Iterable[Answer], ready: Any = None) -> Delivery:
        """Let answers be brought when the event `ready`, if any, has ended; return at once."""
        parts = [part for answer in answers for part in answer.cut(self._piece)]
        delivery = Delivery(len(parts))
        with self._lock:
            if self._ended or not parts:
                delivery.done.set()
                return delivery
            self._under_way.add(delivery)
        done = partial(self._placed, delivery)
        for part in parts:
            # the others are behind the first in the queue
            after, ready = None if ready is None else [ready], None
            self._line.put(Part(part.target, partial(self._read, part, after), done))
        return delivery

    def wait(self, delivery: Delivery) -> None:
        """Wait until all of a delivery is in its place; raise what failed, of this or of another one."""
        delivery.done.wait()
        if self.failure is not None:
            raise self.failure

    def _serve(self) -> None:
        failure: Failure = None
        try:
            with self._transfer as transfer:
                transfer.receive(self._following)
        except BaseException as error:
            failure = error
        with self._lock:
            self.failure = self.failure or failure
            self._ended = True
            # nothing more of these comes
            for delivery in self._under_way:
                delivery.done.set()

    def _following(self, wait: bool) -> Part | None:
        """The next part of the line; None at its end, or where nobody waits and there is none."""
        return self._line.get() if wait else taken(self._line)

    def _read(self, answer: Answer, after: list[Any] | None, piece: Bytes) -> Any:
        """Queue the copy of an answer to a piece."""
        (rows, columns), size = answer.target.shape, answer.target.itemsize
        # the types that come with pyopencl lack this way of copying
        event = cl.enqueue_copy(  # type: ignore[call-overload]
            self._queue,
            piece,
            answer.source,
            buffer_origin=(answer.first[1] * size, answer.first[0], 0),
            host_origin=(0, 0, 0),
            region=(columns * size, rows, 1),
            buffer_pitches=(answer.columns * size, 0),
            host_pitches=(columns * size, 0),
            wait_for=after,
            is_blocking=False,
        )
        self._queue.flush()
        return event

    def _placed(self, delivery: Delivery, failure: Failure) -> None:
        """Count a part of a delivery that has been dealt with."""
        with self._lock:
            self.failure = self.failure or failure
            delivery.left -= 1
            if not delivery.left:
                self._under_way.discard(delivery)
                delivery.done.set()


def mark(device: Device) -> Any:
    """Return an event that has ended when `device` is past what is in its queue of kernels by now."""
    event = cl.enqueue_marker(device.queue)
    device.queue.flush()
    return event


def read_beside(device: Device, buffer: Any, array: Matrix, offset: int, after: Any) -> None:
    """Fill `array` from byte `offset` of `buffer` on when `after` has ended, beside kernels that run then."""
    with device.failures_named(f"reading from {device.name}"):
        queue = cl.CommandQueue(device.queue.context)
        # one that blocks keeps every thread of Python waiting with it
        event = cl.enqueue_copy(queue, array, buffer, src_offset=offset, wait_for=[after], is_blocking=False)
        queue.flush()
        event.wait()
