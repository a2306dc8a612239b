"""What each of several devices does of a product that they share, in a thread of its own.

The threads live as long as the product. Pairs of blocks wait in one line, the largest first, and whoever is
free takes the next; so a device that is busy with other work does fewer. What a device was sent it keeps for
its next pairs. An answer comes to page-locked memory, and a thread of the host puts it where it belongs while
the device is at the next pair: a card delivers faster than one thread fills memory that is new.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from traceback import clear_frames
from types import TracebackType
from typing import Any, Self, TypeAlias

from numpy.typing import NDArray

from mtbridge.compute.blocks import block_sizes, spans
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.several_blocks import Pair
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix

Factor: TypeAlias = Callable[[int], Matrix]
"""Returns a block of columns of a factor by its number; waits for it where it is still being made."""

HOST_THREADS = 4
"""Threads of the host for each device, as far as there are processors: one alone is slower than a card."""

POLL_SECONDS = 0.2
"""So often the caller's thread wakes up: on Windows, Ctrl-C is not seen by a thread that waits."""

TURNED = 64
"""Side of the squares in which a block is transposed: two of them stay in a processor's cache."""


@dataclass(frozen=True, slots=True, eq=False)
class SharedProduct:
    """A product L'R that is computed in pairs of blocks.

    Attributes
    ----------
    pairs : the largest first
    left, right : blocks of L and of R, (inner, columns); the same function for X'X
    out : the answer, of the dtype in which products are summed
    host : threads that put blocks where they belong
    """

    pairs: Sequence[Pair]
    left: Factor
    right: Factor
    out: Matrix
    host: ThreadPoolExecutor

    def computed_by(self, engines: dict[int, OpenCLEngine]) -> dict[int, int]:
        """Compute it by these engines, under their devices' numbers; return how many pairs each one did.

        Raises
        ------
        DeviceError
            If a device fails, or has too little memory for a block; then every thread has ended.
        """
        line = Line(self, list(engines))
        threads = [
            threading.Thread(target=line.serve, args=(number, engine), name=f"mtbridge-device-{number}")
            for number, engine in engines.items()
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                while thread.is_alive():
                    thread.join(POLL_SECONDS)
        finally:
            # Ctrl-C, too, ends each of them after the pair that it is at
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
        return line.counts


class Line:
    """Where pairs wait for whoever is free; a failure ends it for all.

    Attributes
    ----------
    counts : how many pairs each device has computed
    stop : nobody takes another pair
    failure : what went wrong first
    """

    def __init__(self, product: SharedProduct, numbers: list[int]) -> None:
        self.counts = dict.fromkeys(numbers, 0)
        self.stop = threading.Event()
        self.failure: BaseException | None = None
        self._product = product
        self._pairs: SimpleQueue[Pair] = SimpleQueue()
        for pair in product.pairs:
            self._pairs.put(pair)

    def serve(self, number: int, engine: OpenCLEngine) -> None:
        """Compute pairs on one device, in this thread, until none waits."""
        try:
            with Share(number, engine, self._product) as share, suppress(Empty):
                while not self.stop.is_set():
                    share.compute(self._pairs.get_nowait())
                    self.counts[number] += 1
        except BaseException as failure:
            # the caller's thread raises it
            self.failure = self.failure or failure
            self.stop.set()


class Share:
    """What one device does of a product; it holds what the device was sent until the end of `with`.

    Buffers are as large as the device allows at first: what a shortage of memory leaves of that may differ
    from device to device, and with it where sums are cut.
    """

    def __init__(self, number: int, engine: OpenCLEngine, product: SharedProduct) -> None:
        self._number = number
        self._engine = engine
        self._device = engine.kernels_device
        self._product = product
        self._total = product.out.dtype
        self._kept: OrderedDict[tuple[Factor, int], DeviceMatrix] = OrderedDict()
        # the answer of one pair is put in its place while that of the next one comes
        self._answers: list[NDArray[Any]] = []
        self._placing: list[Future[None]] = []

    def __enter__(self) -> Self:
        largest = max(pair.shape[0] * pair.shape[1] for pair in self._product.pairs)
        with self._failures_named():
            self._answers = [self._device.pinned((largest,), self._total) for _ in range(2)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        wait(self._placing)
        self._kept.clear()
        self._answers.clear()
        if error is not None:
            # an error keeps the frames that it came through, and those the buffers of their variables
            cause: BaseException | None = error
            while cause is not None:
                clear_frames(cause.__traceback__)
                cause = cause.__cause__ or cause.__context__
            with suppress(DeviceError, MemoryError):
                self._device.release_kept()
            return
        for placing in self._placing:
            placing.result()

    def compute(self, pair: Pair) -> None:
        """Compute one block of the answer and have it put in its place."""
        product = self._product
        left, right = product.left(pair.left), product.right(pair.right)
        if len(self._placing) == len(self._answers):
            self._placing.pop(0).result()
        answer = self._answers[0]
        self._answers.reverse()
        with self._failures_named():
            block = self._computed(pair, left, right, answer)
        self._placing.append(product.host.submit(place, product.out, block, pair))

    def _computed(self, pair: Pair, left: Matrix, right: Matrix, answer: NDArray[Any]) -> Matrix:
        engine, (rows, columns) = self._engine, pair.shape
        if self._fits(pair, right):
            with suppress(MemoryError):
                return self._on_device(pair, left, right, answer[: rows * columns].reshape(rows, columns))
            # what is kept of other blocks may be the very memory that is missing
            self._kept.clear()
            self._device.release_kept()
        # the engine's own blocks, which become smaller until there is memory
        if pair.half:
            return engine._gram_in_blocks(right, self._total)
        return engine._product_in_blocks(left.T, right, self._total)

    def _fits(self, pair: Pair, right: Matrix) -> bool:
        """Whether a pair needs no buffer that is larger than the engine's largest."""
        engine, (rows, columns) = self._engine, pair.shape
        whole = (rows, len(right), columns)
        fitting = block_sizes(
            engine.form_in_use(right.dtype.name),
            whole,
            size=right.itemsize,
            total=self._total.itemsize,
            limit=engine._full_limit,
            square=pair.half,
        )
        return fitting == whole

    def _on_device(self, pair: Pair, left: Matrix, right: Matrix, out: Matrix) -> Matrix:
        engine, product = self._engine, self._product
        form, launches = engine.form_in_use(right.dtype.name), engine._launches
        with engine._settled():
            target = self._device.over("product", out)
            there = self._sent(product.right, pair.right, right)
            if pair.half:
                launches.gram(form, there, self._total, target, engine._full_limit)
            else:
                beside = self._sent(product.left, pair.left, left)
                launches.product(form, beside.transposed, there, self._total, target, engine._full_limit)
            return self._device.receive(target, out)

    def _sent(self, factor: Factor, number: int, block: Matrix) -> DeviceMatrix:
        """Return a block on the device: sent once, as long as all of them fit the engine's largest buffer.

        That is a quarter of the memory of most devices; past it, the block that was used longest ago goes.
        """
        key = factor, number
        if key not in self._kept:
            held = block.nbytes + sum(kept.nbytes for kept in self._kept.values())
            while self._kept and held > self._engine._full_limit:
                _, gone = self._kept.popitem(last=False)
                held -= gone.nbytes
            self._kept[key] = self._engine.upload(block)
        self._kept.move_to_end(key)
        return self._kept[key]

    @contextmanager
    def _failures_named(self) -> Iterator[None]:
        """Say in one sentence which of the devices failed."""
        try:
            yield
        except MemoryError as error:
            raise DeviceError(
                f"device {self._number} ({self._engine.device}) has too little memory for its share of a "
                f"matrix ({error}); free some of it, name fewer devices, or use --engine numpy."
            ) from error
        except DeviceError as error:
            raise DeviceError(f"device {self._number} of those that share a matrix: {error}") from error


def place(out: Matrix, block: Matrix, pair: Pair) -> None:
    """Put a block of the answer in its place, and its transpose on the other side of the diagonal."""
    out[pair.down, pair.across] = block
    if not pair.mirrored:
        return
    mirror = out[pair.across, pair.down]
    for rows in spans(block.shape[0], TURNED):
        for columns in spans(block.shape[1], TURNED):
            mirror[columns, rows] = block[rows, columns].T


def host_threads(devices: int) -> int:
    """Return how many threads of the host serve so many devices."""
    return min(HOST_THREADS * devices, os.cpu_count() or 1)
