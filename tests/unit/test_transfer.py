"""Copies through pieces by threads, with a device that is made of Python and does all as late as it can."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mtbridge.compute.pages import Bytes, Pages
from mtbridge.compute.transfer import (
    SPARE_PIECES,
    THREAD_BYTES,
    Part,
    Pieces,
    Transfer,
    threads_for,
)

PIECE = 64
THREADS = 3
PLACES = THREADS + SPARE_PIECES


class Copy:
    """An event that does its copy where it is waited for, and all those before it."""

    def __init__(self, device: Device, work: Callable[[], None]) -> None:
        self._device, self.work = device, work
        self.done = False

    def wait(self) -> None:
        self._device.until(self)


class Device:
    """Memory, and a queue of copies from and to it that are done as late as can be.

    Attributes
    ----------
    threads : that made calls
    fails : the number of the call that fails when it is made, and of the event that fails
    """

    def __init__(self, memory: Bytes) -> None:
        self.memory = memory
        self.threads: set[threading.Thread] = set()
        self.calls = 0
        self.fails: tuple[int, int] = (-1, -1)
        self._queue: list[Copy] = []

    def until(self, event: Copy) -> None:
        self.threads.add(threading.current_thread())
        while not event.done:
            first = self._queue.pop(0)
            first.done = True
            first.work()

    def write(self, at: int, piece: Bytes) -> Copy:
        return self._queued(lambda: np.copyto(self.memory[at : at + len(piece)], piece))

    def read(self, at: int, piece: Bytes) -> Copy:
        return self._queued(lambda: np.copyto(piece, self.memory[at : at + len(piece)]))

    def _queued(self, work: Callable[[], None]) -> Copy:
        self.threads.add(threading.current_thread())
        number, self.calls = self.calls, self.calls + 1
        if number == self.fails[0]:
            raise OSError("refused")

        def failing() -> None:
            raise OSError("lost")

        event = Copy(self, failing if number == self.fails[1] else work)
        self._queue.append(event)
        return event


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(THREADS) as threads:
        yield threads


@pytest.fixture
def kept() -> Pieces:
    pieces = Pieces()
    pieces.prepare(PIECE, THREADS, lambda size: np.zeros(size, np.uint8))
    return pieces


def random_bytes(size: int) -> Bytes:
    return np.random.default_rng(size).integers(0, 256, size, np.uint8)


def parts(array: Bytes, travel: Callable[[int, Bytes], Any], size: int = PIECE) -> Iterator[Part]:
    return (Part(array[at : at + size], partial(travel, at)) for at in range(0, len(array), size))


def following(given: Iterator[Part]) -> Callable[[bool], Part | None]:
    return lambda _: next(given, None)


@pytest.mark.parametrize("threads", [0, 1, THREADS])
@pytest.mark.parametrize("count", [0, 1, PLACES - 1, PLACES, PLACES + 1, 10 * PLACES + 3])
def test_all_parts_travel_both_ways_and_one_thread_makes_all_calls(
    kept: Pieces, pool: ThreadPoolExecutor, count: int, threads: int
) -> None:
    sent = random_bytes(count * PIECE)[: max(count * PIECE - 5, 0)]
    device = Device(np.zeros(len(sent), np.uint8))
    for _ in range(2):
        passing = sent.copy()
        with Transfer(kept, pool, threads) as one:
            one.send(parts(passing, device.write))
        # it is free; what is queued later sees all that travels
        passing[:] = 0
        found = np.zeros_like(sent)
        with Transfer(kept, pool, threads) as one:
            one.receive(following(parts(found, device.read)))
        assert np.array_equal(found, sent)
        assert np.array_equal(device.memory, sent)
        device.memory[:] = 0
    assert device.threads <= {threading.current_thread()}
    assert len(kept.pieces) == PLACES


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (8, 8), (1, 7)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_parts_may_have_gaps_and_any_type(
    kept: Pieces, pool: ThreadPoolExecutor, shape: tuple[int, int], dtype: str
) -> None:
    pieces = Pieces()
    pieces.prepare(8 * PIECE, THREADS, lambda size: np.zeros(size, np.uint8))
    whole = np.full((20, 30), 7, dtype)
    right = whole.copy()
    target = whole[2 : 2 + shape[0], 5 : 5 + 3 * shape[1] : 3]
    values = random_bytes(target.nbytes)
    right[2 : 2 + shape[0], 5 : 5 + 3 * shape[1] : 3] = values.view(dtype).reshape(shape)
    device = Device(values)
    with Transfer(pieces, pool, 1) as one:
        one.receive(following(iter([Part(target, partial(device.read, 0))])))
    assert whole.tobytes() == right.tobytes()
    device.memory = np.zeros_like(values)
    with Transfer(pieces, pool, 1) as one:
        one.send([Part(target, partial(device.write, 0))])
    pieces.release()
    assert device.memory.tobytes() == values.tobytes()


def test_every_part_that_is_filled_is_told(kept: Pieces, pool: ThreadPoolExecutor) -> None:
    told = []
    found = np.zeros(20 * PIECE, np.uint8)
    device = Device(random_bytes(len(found)))

    def done(at: int, failure: BaseException | None) -> None:
        told.append((at, failure, np.array_equal(found[at : at + PIECE], device.memory[at : at + PIECE])))

    given = (
        Part(part.array, part.travel, partial(done, at * PIECE))
        for at, part in enumerate(parts(found, device.read))
    )
    with Transfer(kept, pool, THREADS) as one:
        one.receive(following(given))
    assert sorted(told) == [(at * PIECE, None, True) for at in range(20)]


@pytest.mark.parametrize("threads", [0, THREADS])
@pytest.mark.parametrize("fails", [(0, -1), (PLACES + 2, -1), (19, -1), (-1, 0), (-1, 5), (-1, 18)])
@pytest.mark.parametrize("way", ["send", "receive"])
def test_a_call_that_fails_is_raised_and_the_next_transfer_is_right(
    kept: Pieces, pool: ThreadPoolExecutor, way: str, fails: tuple[int, int], threads: int
) -> None:
    array = random_bytes(20 * PIECE)
    device = Device(array.copy())
    device.fails = fails

    def transferred() -> None:
        with Transfer(kept, pool, threads) as one:
            if way == "send":
                one.send(parts(array, device.write))
            else:
                one.receive(following(parts(np.zeros_like(array), device.read)))
        if kept.travelling:
            kept.travelling[-1][1].wait()

    with pytest.raises(OSError, match="refused" if fails[0] >= 0 else "lost"):
        transferred()
    device.fails = (-1, -1)
    found = np.zeros_like(array)
    with Transfer(kept, pool, threads) as one:
        one.receive(following(parts(found, device.read)))
    assert np.array_equal(found, array)
    assert len(kept.pieces) == PLACES


@pytest.mark.parametrize("way", ["send", "receive"])
@pytest.mark.parametrize("threads", [0, THREADS])
def test_a_copy_that_fails_is_raised_by_the_thread_that_drives(
    kept: Pieces, pool: ThreadPoolExecutor, way: str, threads: int
) -> None:
    array: NDArray[Any] = random_bytes(30 * PIECE)
    device = Device(array.copy())
    # a copy to it is refused, and one from it is of another kind than bytes are made of
    broken = array.copy()
    broken.flags.writeable = False
    given = list(parts(array, device.write if way == "send" else device.read))
    wrong = broken[:PIECE] if way == "receive" else np.array([object()] * 8)
    given[9] = Part(wrong, given[9].travel)
    with pytest.raises((ValueError, TypeError)), Transfer(kept, pool, threads) as one:
        _ = one.send(given) if way == "send" else one.receive(following(iter(given)))
    assert one.failure is None, "it would keep the arrays"


@pytest.mark.parametrize("way", ["send", "receive"])
def test_after_an_interrupt_nobody_copies_and_a_second_one_is_raised_at_once(
    kept: Pieces, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    array = random_bytes(30 * PIECE)
    device = Device(array.copy())
    stuck, free = threading.Event(), threading.Event()
    copy = Transfer._copy

    def sticking(one: Transfer, target: Any, source: Any) -> Any:
        stuck.set()
        free.wait(60)
        return copy(one, target, source)

    def interrupted(*_: Any, **__: Any) -> Any:
        stuck.wait(60)
        raise KeyboardInterrupt

    monkeypatch.setattr(Transfer, "_copy", sticking)
    # the first while a piece is waited for, the second while the thread is that is at it
    monkeypatch.setattr(Transfer, "_next", interrupted)
    monkeypatch.setattr("mtbridge.shared_work.wait", interrupted)
    begin = time.monotonic()
    found = np.zeros_like(array)
    with pytest.raises(KeyboardInterrupt), Transfer(kept, pool, THREADS) as one:
        _ = (
            one.send(parts(array, device.write))
            if way == "send"
            else one.receive(following(parts(found, device.read)))
        )
    assert time.monotonic() - begin < 50
    assert not kept.pieces, "a thread is still at one"
    free.set()
    pool.shutdown()
    assert not found.any(), "nothing is copied afterwards"


@pytest.mark.parametrize("counted", [False, True])
def test_an_interrupt_while_threads_begin_leaves_none_waiting(
    kept: Pieces, monkeypatch: pytest.MonkeyPatch, counted: bool
) -> None:
    pool = ThreadPoolExecutor(THREADS)
    submit, calls = pool.submit, []

    def interrupted(*arguments: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 2:
            if not counted:
                submit(*arguments)
            raise KeyboardInterrupt
        return submit(*arguments)

    array = random_bytes(20 * PIECE)
    monkeypatch.setattr(pool, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt), Transfer(kept, pool, THREADS) as one:
        one.send(parts(array, Device(array).write))
    pool.shutdown()
    assert len(kept.pieces) == PLACES


def test_few_parts_wake_up_few_threads(kept: Pieces, pool: ThreadPoolExecutor) -> None:
    array = random_bytes(2 * PIECE)
    with Transfer(kept, pool, THREADS) as one:
        one.send(parts(array, Device(array).write))
    assert len(one._workers) == 2


def test_without_a_thread_the_one_that_drives_copies(kept: Pieces) -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    array = random_bytes(50 * PIECE)
    device, found = Device(np.zeros_like(array)), np.zeros_like(array)
    with Transfer(kept, pool, THREADS) as one:
        one.send(parts(array, device.write))
    with Transfer(kept, pool, THREADS) as one:
        one.receive(following(parts(found, device.read)))
    assert np.array_equal(found, array)


def test_pages_are_made_until_the_first_part_comes_and_not_later(
    kept: Pieces, pool: ThreadPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pages that are made again and again: whatever came before the end would be lost."""
    found = np.zeros(30 * PIECE, np.uint8)
    device = Device(random_bytes(len(found)))
    made = threading.Event()

    class Endless(Pages):
        def __init__(self) -> None:
            super().__init__()
            self.wanted = True
            self._parts = self._again()

        def _again(self) -> Iterator[Bytes]:
            while True:
                made.set()
                yield found

    class Slow(Device):
        def until(self, event: Copy) -> None:
            made.wait(60)
            super().until(event)

    device = Slow(device.memory)
    monkeypatch.setattr("mtbridge.compute.pages.PAGE_BYTES", 1)
    with Transfer(kept, pool, THREADS, Endless()) as one:
        one.receive(following(parts(found, device.read)))
    assert made.is_set()
    assert np.array_equal(found, device.memory)


@pytest.mark.parametrize(
    ("size", "threads"), [(1, 2), (THREAD_BYTES, 2), (THREAD_BYTES + 1, 3), (16_000_000, 3), (1 << 40, 7)]
)
def test_a_small_array_wakes_up_few_threads(size: int, threads: int) -> None:
    assert threads_for(size, 7) == threads
    assert threads_for(size, 1) == 1


def test_pieces_are_made_anew_for_larger_parts_and_for_more_threads(kept: Pieces) -> None:
    for piece, threads in ((PIECE, THREADS + 1), (2 * PIECE, 1)):
        kept.prepare(piece, threads, lambda size: np.zeros(size, np.uint8))
        assert [len(one) for one in kept.pieces] == [piece] * (threads + SPARE_PIECES)


def test_pieces_are_given_back_once_nothing_travels(pool: ThreadPoolExecutor, kept: Pieces) -> None:
    def fail(size: int) -> Bytes:
        raise MemoryError(f"{size} bytes, though there are enough")

    array = random_bytes(3 * PIECE)
    device = Device(np.zeros_like(array))
    with Transfer(kept, pool, THREADS) as one:
        one.send(parts(array, device.write))
    assert len(kept.travelling) == 3
    kept.prepare(PIECE // 2, THREADS - 1, fail)
    kept.release()
    assert np.array_equal(device.memory, array)
    assert not kept.pieces
    assert not kept.travelling
