"""Copies between arrays and a device through page-locked pieces: one thread drives the device, others copy.

A driver serves one thread at a time, and whoever waits for it spins. So one thread makes all calls of a
transfer, in order, and keeps the bus busy; those that copy between pieces and arrays know no device, and
until something comes they make the pages of a new array (pages.py).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, Protocol, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.pages import Bytes, Pages
from mtbridge.shared_work import ended

MOST_THREADS = 12
"""That copy for one device: more do not use memory better."""

THREAD_BYTES = 1 << 23
"""Bytes of an array for each thread but one: of a small one more would wake up too late."""

PIECE_BYTES = 1 << 22
"""Bytes of a piece, a power of two: larger ones leave the cache, and between two of smaller ones threads wait
for their turn in Python."""

SPARE_PIECES = 4
"""Of a device, beside one for each thread: they travel while all threads copy."""

Failure: TypeAlias = BaseException | None
Job: TypeAlias = Callable[[], Callable[[], None]]
"""Copies, and returns what tells so when nothing is held of an array any more: else it might be freed by the
thread that copied, for which all others would wait."""

Taken = TypeVar("Taken")


class Event(Protocol):
    """A copy by the device that is queued."""

    def wait(self) -> Any:
        """Return when it is done; raise what failed."""


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """A part of an array, of no more bytes than a piece.

    Attributes
    ----------
    array : from or to which bytes are copied, C-ordered or with gaps
    travel : queues the copy between the device and as many bytes of a piece
    done : called by a thread that filled `array`, or with its failure
    """

    array: NDArray[Any]
    travel: Callable[[Bytes], Event]
    done: Callable[[Failure], None] | None = None


@dataclass(slots=True, eq=False)
class Pieces:
    """Page-locked memory that is kept from one transfer to the next, and which of it may still travel."""

    pieces: list[Bytes] = field(default_factory=list)
    travelling: deque[tuple[int, Event]] = field(default_factory=deque)

    def prepare(self, piece: int, threads: int, allocate: Callable[[int], Bytes]) -> None:
        """Have pieces of `piece` bytes or more, enough for so many threads; raises what `allocate` does."""
        count = threads + SPARE_PIECES
        if len(self.pieces) < count or len(self.pieces[0]) < piece:
            self.release()
            whole = allocate(count * piece)
            self.pieces = [whole[at : at + piece] for at in range(0, len(whole), piece)]

    def release(self) -> None:
        """Give the memory back, once nothing travels."""
        while self.travelling:
            # what failed has been reported where it was waited for
            with suppress(Exception):
                self.travelling[0][1].wait()
            self.travelling.popleft()
        self.pieces = []


class Transfer:
    """One use of `kept` pieces by the thread that drives the device, in `with`; then nobody copies any more.

    Parameters
    ----------
    pool : of the threads that copy; where it has none to give, the thread that drives copies too
    threads : as many at most, fewer for a few parts
    pages : of what is received, which they make until the first part has come

    Attributes
    ----------
    closed : nothing more is copied
    failure : what went wrong first in a thread that copies
    """

    def __init__(
        self, kept: Pieces, pool: ThreadPoolExecutor, threads: int, pages: Pages | None = None
    ) -> None:
        self.closed = False
        self.failure: Failure = None
        self._kept, self._pool, self._threads = kept, pool, threads
        self._pages = pages or Pages()
        self._workers: list[Future[None]] = []
        # what threads are to do; None, which stays, is the end
        self._line: SimpleQueue[Job | None] = SimpleQueue()
        # pieces: that nobody needs, that are to be emptied or were filled by threads, and that are read into
        self._free: SimpleQueue[int] = SimpleQueue()
        self._emptying: set[int] = set()
        self._filling = 0
        self._filled: SimpleQueue[tuple[int, Part]] = SimpleQueue()
        self._reading: deque[tuple[int, Part, Event]] = deque()

    def __enter__(self) -> Self:
        # not given back where the end is interrupted: a thread may still be at one
        self._pieces, self._kept.pieces = self._kept.pieces, []
        self._travelling, self._kept.travelling = self._kept.travelling, deque()
        for place in set(range(len(self._pieces))) - {place for place, _ in self._travelling}:
            self._free.put(place)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.closed = True
        # there may be one more than were counted, where an interrupt came in between
        for _worker in range(len(self._workers) + 1):
            self._line.put(None)
        self._pages.end()
        if kind is not None:
            ended(self._workers, interrupted=issubclass(kind, KeyboardInterrupt))
        while self._reading:
            with suppress(Exception):
                self._reading[0][2].wait()
            self._reading.popleft()
        # it would keep the frames that it came through, and those the arrays
        self.failure = None
        self._kept.pieces, self._kept.travelling = self._pieces, self._travelling

    def send(self, parts: Iterable[Part]) -> None:
        """Copy parts to the device. Their arrays are free on return; the last pieces may still travel."""
        for part in parts:
            while (filled := taken(self._filled)) is not None:
                self._write(*filled)
            while (place := self._place(wait=False)) is None:
                self._write(*self._next(self._filled))
            piece = held(self._pieces[place], part.array)
            self._give(partial(self._fill, part, piece, place))
            self._filling += 1
        while self._filling:
            self._write(*self._next(self._filled, helping=True))

    def receive(self, following: Callable[[bool], Part | None]) -> None:
        """Fill the arrays of parts from the device.

        `following` returns the next part, or None: there is none yet, or, told to wait, that was the last.
        """
        if self._pages.wanted:
            while len(self._workers) < self._threads:
                self._hire()
        part: Part | None = None
        while not self.closed:
            self._check()
            part = part or following(not self._reading)
            place = None if part is None else self._place(wait=not self._reading)
            if part is not None and place is not None:
                event = part.travel(self._pieces[place][: part.array.nbytes])
                self._reading.append((place, part, event))
                part = None
            elif self._reading:
                self._take()
            else:
                break
        while self._emptying:
            self._emptying.discard(self._next(self._free, helping=True))

    def _place(self, *, wait: bool) -> int | None:
        """A piece that nobody needs; None where there is none yet."""
        place = taken(self._free)
        if place is None and self._travelling:
            place, event = self._travelling[0]
            # an event that is let go waits too, but keeps every thread of Python waiting with it
            event.wait()
            self._travelling.popleft()
        elif place is None and wait:
            place = self._next(self._free)
        if place is not None:
            self._emptying.discard(place)
        return place

    def _write(self, place: int, part: Part) -> None:
        """Let a piece that is filled travel to the device."""
        self._filling -= 1
        self._travelling.append((place, part.travel(self._pieces[place][: part.array.nbytes])))

    def _take(self) -> None:
        """Wait for the piece that comes first, and have it copied to where it belongs."""
        place, part, event = self._reading[0]
        event.wait()
        self._reading.popleft()
        self._pages.end()
        self._emptying.add(place)
        self._give(partial(self._empty, part, held(self._pieces[place], part.array), place))

    def _give(self, job: Job) -> None:
        """Let a thread do a job, one more with each as long as there are any; without one do it here."""
        if len(self._workers) < self._threads:
            self._hire()
        if self._workers:
            self._line.put(job)
        else:
            job()()

    def _hire(self) -> None:
        try:
            self._workers.append(self._pool.submit(self._serve))
        except RuntimeError:
            # when Python ends no thread is to be had
            self._threads = len(self._workers)

    def _next(self, places: SimpleQueue[Taken], *, helping: bool = False) -> Taken:
        """What threads put in a queue next; this one does jobs meanwhile if it is `helping`."""
        place = taken(places)
        while helping and place is None and (job := taken(self._line)) is not None:
            job()()
            place = taken(places)
        if place is None:
            place = places.get()
        self._check()
        return place

    def _check(self) -> None:
        if self.failure is not None:
            raise self.failure

    # what threads do

    def _serve(self) -> None:
        # a page that cannot be made is made, or told of, where it is copied to
        with suppress(Exception):
            self._pages.make()
        while not self.closed and (job := self._line.get()) is not None:
            done = job()
            del job
            done()
        # for another one
        self._line.put(None)

    def _fill(self, part: Part, piece: NDArray[Any], place: int) -> Callable[[], None]:
        self._copy(piece, part.array)
        return partial(self._filled.put, (place, part))

    def _empty(self, part: Part, piece: NDArray[Any], place: int) -> Callable[[], None]:
        failure = self._copy(part.array, piece)
        if part.done is not None:
            part.done(failure)
        return partial(self._free.put, place)

    def _copy(self, target: NDArray[Any], source: NDArray[Any]) -> Failure:
        try:
            if not self.closed and self.failure is None:
                np.copyto(target, source)
        except BaseException as failure:
            self.failure = self.failure or failure
            return failure
        return None


def taken(queue: SimpleQueue[Taken]) -> Taken | None:
    """Return what comes first in a queue; None where nothing is there now."""
    try:
        return queue.get_nowait()
    except Empty:
        return None


def held(piece: Bytes, array: NDArray[Any]) -> NDArray[Any]:
    """Return a C-ordered array like `array` in a piece."""
    return piece[: array.nbytes].view(array.dtype).reshape(array.shape)


def threads_for(size: int, most: int) -> int:
    """Return how many threads copy an array of `size` bytes."""
    return min(1 - -size // THREAD_BYTES, most)
