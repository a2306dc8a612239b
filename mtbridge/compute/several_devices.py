"""How several devices share a product: each in a thread of its own, stripe by stripe.

The threads live as long as the product. Stripes wait in one line, and whoever is free takes the next; so a
device that is busy with other work does fewer. It computes one while those before are on their way back.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from traceback import clear_frames
from typing import TYPE_CHECKING

import numpy as np

from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.pages import Pages
from mtbridge.compute.several_work import Work
from mtbridge.compute.transfer import MOST_THREADS, PIECE_BYTES, Pieces
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix
from mtbridge.shared_work import POLL_SECONDS

if TYPE_CHECKING:
    from mtbridge.compute.opencl_conveyor import Conveyor, Delivery

SHARED_PIECE = 2 * PIECE_BYTES
"""Bytes of a piece: the threads of all devices wait for their turn in Python."""

UNDER_WAY = 3
"""Stripes of a device that are computed but not in their places yet, at most: each has a buffer."""


@dataclass(slots=True, eq=False)
class Member:
    """One of the devices that share.

    Attributes
    ----------
    number : in `mtbridge devices`
    engine : of the device
    pieces : for its answers, kept from one product to the next
    """

    number: int
    engine: OpenCLEngine
    pieces: Pieces = field(default_factory=Pieces)

    def prepare(self, threads: int) -> None:
        """Have pieces for answers that so many threads bring; raises what `Device.pinned` does."""
        device = self.engine.kernels_device
        self.pieces.prepare(SHARED_PIECE, threads, lambda size: device.pinned((size,), np.dtype(np.uint8)))

    def release(self) -> None:
        """Give back what is kept for the next product."""
        self.pieces.release()
        with suppress(DeviceError, MemoryError):
            self.engine.kernels_device.release_kept()

    @contextmanager
    def failures_named(self) -> Iterator[None]:
        """Say in one sentence which of the devices failed."""
        try:
            with self.engine.kernels_device.failures_named(f"an answer from {self.engine.device}"):
                yield
        except MemoryError as error:
            raise DeviceError(
                f"device {self.number} ({self.engine.device}) has too little memory for its share of a "
                f"matrix ({error}); free some of it, name fewer devices, or use --engine numpy."
            ) from error
        except DeviceError as error:
            raise DeviceError(f"device {self.number} of those that share a matrix: {error}") from error


def computed(
    stripes: Sequence[slice], works: Mapping[int, Work], members: Sequence[Member], new: Matrix | None = None
) -> Line:
    """Compute stripes; `works` are what the devices do, by their numbers, and `new` the answer if it is new.

    Raises
    ------
    DeviceError
        If a device fails, or has too little memory; then every thread has ended.
    """
    line = Line(stripes, [member.number for member in members], Pages(new))
    threads = [
        threading.Thread(
            target=line.serve, args=(member, works[member.number]), name=f"mtbridge-device-{member.number}"
        )
        for member in members
    ]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            # on Windows, an interrupt is not seen by a thread that waits
            while thread.is_alive():
                thread.join(POLL_SECONDS)
    finally:
        # Ctrl-C, too, ends each of them after the stripe that it is at
        line.stop.set()
        for thread in threads:
            # a thread whose start was interrupted may not be there yet, and cannot be joined before
            while thread in threading.enumerate():
                with suppress(RuntimeError):
                    thread.join(POLL_SECONDS)
    if line.failure is not None:
        try:
            raise line.failure
        finally:
            # else it would keep itself, and the answer, until the next collection of garbage
            line.failure = None
    return line


class Line:
    """Where stripes wait for whoever is free; a failure ends it for all.

    Attributes
    ----------
    counts : how many stripes each device has computed
    stop : nobody takes another stripe
    possible : False where a device found that the work cannot be done so
    failure : what went wrong first
    """

    def __init__(self, stripes: Sequence[slice], numbers: list[int], pages: Pages) -> None:
        self.counts = dict.fromkeys(numbers, 0)
        self.stop = threading.Event()
        self.possible = True
        self.failure: BaseException | None = None
        self._pages = pages
        self._stripes: SimpleQueue[slice] = SimpleQueue()
        for stripe in stripes:
            self._stripes.put(stripe)

    def serve(self, member: Member, work: Work) -> None:
        """Compute stripes on one device, in this thread, until none waits."""
        from mtbridge.compute.opencl_conveyor import Conveyor

        engine, threads = member.engine, host_threads(len(self.counts))
        try:
            with member.failures_named(), engine._settled():
                if not begun(member, work, threads):
                    self.possible = False
                    self.stop.set()
                    return
                # pages are made from now on: what was sent came from the same memory
                with Conveyor(engine.kernels_device, member.pieces, threads, self._pages) as conveyor:
                    share = Share(work, conveyor)
                    for stripe in self._taken():
                        share.compute(stripe)
                        self.counts[member.number] += 1
                    share.finish()
        except BaseException as failure:
            self._end(member, failure)

    def _taken(self) -> Iterator[slice]:
        with suppress(Empty):
            while not self.stop.is_set():
                yield self._stripes.get_nowait()

    def _end(self, member: Member, failure: BaseException) -> None:
        # an error keeps the frames that it came through, and those the buffers of their variables
        cause: BaseException | None = failure
        while cause is not None:
            clear_frames(cause.__traceback__)
            cause = cause.__cause__ or cause.__context__
        member.release()
        # the caller's thread raises it
        self.failure = self.failure or failure
        self.stop.set()


class Share:
    """What one device does of a product: a stripe is computed while others are under way."""

    def __init__(self, work: Work, conveyor: Conveyor) -> None:
        self._work = work
        self._conveyor = conveyor
        self._under_way: deque[Delivery] = deque()

    def compute(self, stripe: slice) -> None:
        """Queue the kernels of a stripe, and let it be brought when they are done."""
        if len(self._under_way) == UNDER_WAY:
            self._conveyor.wait(self._under_way.popleft())
        try:
            answers = self._work.queue(stripe)
        except MemoryError:
            # those before may hold the very memory that is missing
            self.finish()
            answers = self._work.queue(stripe)
        self._under_way.append(self._conveyor.bring(answers, self._conveyor.mark()))

    def finish(self) -> None:
        """Wait until all is in its place."""
        while self._under_way:
            self._conveyor.wait(self._under_way.popleft())


def begun(member: Member, work: Work, threads: int) -> bool:
    """Begin with what a device does; where memory is short, once more without what is kept.

    `threads` are to bring its answers.
    """
    for last in (False, True):
        try:
            member.prepare(threads)
            return work.begin()
        except MemoryError:
            if last:
                raise
        member.release()
    return False


def host_threads(devices: int) -> int:
    """Return how many threads of the host serve each of so many devices; some are left for all else."""
    return max(min((os.cpu_count() or 1) * 3 // 4 // devices, MOST_THREADS), 1)
