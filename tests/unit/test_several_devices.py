"""What each of the devices that share a matrix does: its thread, what it is sent, and how it fails."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from given_several import KINDS, LEAST, among, assert_product, normal, prices, three_engines

from mtbridge.compute import opencl_conveyor, several, several_work
from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.several import SeveralEngine
from mtbridge.compute.several_stripes import stripes_of_triangle
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix


@pytest.fixture(scope="module", params=KINDS)
def engines(
    request: pytest.FixtureRequest, verdict: Verdict, open_tiled: Callable[[], OpenCLEngine]
) -> Iterator[list[OpenCLEngine]]:
    opened = three_engines(request.param, open_tiled)
    yield opened
    for engine in opened:
        engine.close()


WIDE = 1_300
"""Columns of as many stripes as there are at most."""


class Watched:
    """What was sent to a device, and by which threads."""

    def __init__(self, engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: set[int] = set()
        self.sent: list[tuple[int, ...]] = []
        device = engine.kernels_device
        send = device.send

        def watched(slot: str, array: Matrix) -> Any:
            self.threads.add(threading.get_ident())
            self.sent.append(array.shape)
            return send(slot, array)

        monkeypatch.setattr(device, "send", watched)


def test_each_device_has_one_thread_of_its_own_and_is_sent_a_matrix_once(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [Watched(engine, monkeypatch) for engine in engines]
    before = threading.active_count()
    X = normal(50, WIDE)
    among(engines, 3).gram(X)
    assert threading.active_count() == before
    assert all(watched.sent == [X.shape] for watched in seen)
    assert all(len(watched.threads) == 1 for watched in seen)
    used = set().union(*(watched.threads for watched in seen))
    assert len(used) == len(seen)
    assert threading.get_ident() not in used


def test_every_stripe_is_done_by_one_device_and_counted(engines: list[OpenCLEngine]) -> None:
    shared = among(engines, 3)
    shared.gram(normal(5, WIDE))
    numbers = [int(word.rstrip(",")) for word in shared.why.split() if word.rstrip(",").isdigit()]
    stripes, devices, *pairs = numbers
    assert devices == 3
    assert pairs[::2] == [0, 1, 2]
    assert sum(pairs[1::2]) == stripes > 8


class Failing:
    """Lets a device's `buffer`, of which it takes all that it keeps, fail from a call on."""

    def __init__(
        self,
        engine: OpenCLEngine,
        monkeypatch: pytest.MonkeyPatch,
        error: Exception,
        *,
        first: int,
        last: int,
    ) -> None:
        self.calls = 0
        device = engine.kernels_device
        buffer = device.buffer

        def failing(slot: str, size: int) -> Any:
            self.calls += 1
            if first <= self.calls <= last:
                # a new one each time: an exception that is kept keeps what its frames hold
                raise type(error)(*error.args)
            return buffer(slot, size)

        monkeypatch.setattr(device, "buffer", failing)


def assert_nothing_is_left(engines: list[OpenCLEngine], threads: int) -> None:
    assert threading.active_count() == threads
    for engine in engines:
        assert engine.kernels_device._pool.active_blocks == 0


@pytest.mark.parametrize("first", [1, 2])
def test_a_device_that_fails_is_named_the_others_end_and_no_buffer_is_left(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    X, shared, before = normal(50, WIDE), among(engines, 3), threading.active_count()
    right = shared.gram(X)
    answers: list[weakref.ref[Matrix]] = []

    def seen(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Matrix:
        made = aligned_empty(shape, dtype)
        answers.append(weakref.ref(made))
        return made

    with monkeypatch.context() as patched:
        Failing(engines[1], patched, DeviceError("gram on Voodoo failed: lost."), first=first, last=99)
        patched.setattr(several, "aligned_empty", seen)
        with pytest.raises(DeviceError) as raised:
            shared.gram(X)
    assert str(raised.value) == "device 1 of those that share a matrix: gram on Voodoo failed: lost."
    # whoever keeps the error keeps no memory of a device with it
    assert_nothing_is_left(engines, before)
    assert not engines[1].kernels_device._slots
    assert not shared._members[1].pieces.pieces
    del raised
    assert answers[-1]() is None
    assert shared.gram(X).tobytes() == right.tobytes()


def test_a_device_short_of_memory_for_a_moment_gives_the_same_bits(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, shared, before = normal(50, 333), among(engines, 1), threading.active_count()
    right = shared.gram(X)
    with monkeypatch.context() as patched:
        device = engines[0].kernels_device
        failing = Failing(engines[0], patched, MemoryError("a buffer of 9 bytes"), first=2, last=2)
        released = []
        release = device.release_kept
        patched.setattr(device, "release_kept", lambda: (released.append(True), release()))
        assert shared.gram(X).tobytes() == right.tobytes()
    # what was kept of other matrices may have been the memory that was missing
    assert released
    assert failing.calls > 2
    assert_nothing_is_left(engines, before)


def test_a_product_short_of_memory_waits_for_the_stripes_under_way(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    A, B, shared, before = normal(WIDE, 9), normal(9, 70), among(engines, 1), threading.active_count()
    right, device, held = shared.multiply(A, B), engines[0].kernels_device, []
    allocate = device.allocate

    def scarce(size: int) -> Any:
        held.append(device._pool.active_blocks)
        if held[-1] > 1:
            raise MemoryError("a buffer of 9 bytes")
        return allocate(size)

    with monkeypatch.context() as patched:
        patched.setattr(device, "allocate", scarce)
        assert shared.multiply(A, B).tobytes() == right.tobytes()
    assert max(held) == 2
    assert_nothing_is_left(engines, before)


def test_a_device_without_memory_is_named_in_one_sentence(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, before = among(engines, 1), threading.active_count()
    with monkeypatch.context() as patched:
        Failing(engines[0], patched, MemoryError("a buffer of 9 bytes"), first=1, last=999)
        with pytest.raises(DeviceError, match=r"^device 0 .*too little memory .*9 bytes.*--engine numpy\.$"):
            shared.gram(normal(50, 53))
    assert_nothing_is_left(engines, before)


def test_memory_that_the_host_lacks_is_no_fault_of_a_device(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(*_: object) -> Any:
        raise MemoryError("Unable to allocate 5 GiB")

    before = threading.active_count()
    monkeypatch.setattr(several, "aligned_empty", without)
    with pytest.raises(MemoryError, match="5 GiB"):
        among(engines).moments(prices(20, 53))
    assert_nothing_is_left(engines, before)


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself SIGINT alone there")
def test_an_interrupt_ends_the_threads_and_leaves_the_engines_usable(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, shared, before = normal(50, WIDE), among(engines), threading.active_count()
    done: list[slice] = []
    queue = several_work.Triangle.queue

    def interrupted(work: several_work.Triangle, stripe: slice) -> Any:
        if not done:
            os.kill(os.getpid(), signal.SIGINT)
        done.append(stripe)
        # time for the caller's thread to see it, which is at the end of this stripe at the latest
        time.sleep(0.05)
        return queue(work, stripe)

    with monkeypatch.context() as patched:
        patched.setattr(several_work.Triangle, "queue", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shared.gram(X)
    assert_nothing_is_left(engines, before)
    assert len(done) < len(stripes_of_triangle(WIDE, 72)), "all was done before it ended"
    assert_product(shared.gram(X), X.T, X)


def test_an_answer_that_cannot_be_brought_is_an_error_of_its_device(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its place on the device is far outside of the buffer: the runtime refuses it, in a thread of ours."""
    X, shared, before = normal(50, WIDE), among(engines, 1), threading.active_count()
    cut = opencl_conveyor.Answer.cut

    def astray(answer: opencl_conveyor.Answer, size: int) -> Iterator[opencl_conveyor.Answer]:
        for part in cut(answer, size):
            yield replace(part, first=(10**6, 0))

    with monkeypatch.context() as patched:
        patched.setattr(opencl_conveyor.Answer, "cut", astray)
        with pytest.raises(DeviceError, match=r"^device 0 of those that share .* failed: ") as raised:
            shared.gram(X)
    assert "\n" not in str(raised.value)
    assert_nothing_is_left(engines, before)
    assert_product(shared.gram(X), X.T, X)


def test_a_kernel_that_fails_on_the_device_itself_is_named_and_leaves_nothing(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Groups of another size than a kernel is made for: the runtime refuses them, some calls below ours."""
    shared, before, device = among(engines, 1), threading.active_count(), engines[0].kernels_device
    run = device.run

    def refused(kernel: Any, groups: Any, local: tuple[int, ...], *rest: Any, **more: Any) -> Any:
        return run(kernel, groups, tuple(7 * side for side in local), *rest, **more)

    with monkeypatch.context() as patched:
        patched.setattr(device, "run", refused)
        with pytest.raises(DeviceError, match=r"^device 0 of those that share .* failed: ") as raised:
            shared.gram(normal(50, 53))
    assert "\n" not in str(raised.value)
    assert_nothing_is_left(engines, before)


def test_a_device_that_cannot_be_opened_closes_those_before_it(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = []

    def opening(wanted: str, **options: str) -> OpenCLEngine:
        if opened:
            raise DeviceError("it is gone.")
        opened.append(open_opencl("cpu"))
        opened[0].gram(np.ones((30, 30)))
        opened[0].upload(np.ones((30, 30)))
        return opened[0]

    monkeypatch.setattr(several, "open_opencl", opening)
    monkeypatch.setattr(several.devices, "choose_all", lambda _: {0: verdict, 1: verdict})
    with pytest.raises(DeviceError, match="it is gone"):
        several.open_devices("0+1")
    assert not opened[0].kernels_device._slots
    assert opened[0].kernels_device._pool.held_blocks == 0


def test_closing_closes_every_device_and_may_be_done_twice(verdict: Verdict) -> None:
    opened = [open_opencl("cpu") for _ in range(2)]
    shared = SeveralEngine(dict(enumerate(opened)), least=LEAST)
    shared.gram(normal(30, 40))
    assert repr(shared).startswith("SeveralEngine(2 x ")
    shared.close()
    shared.close()
    for engine in opened:
        assert not engine.kernels_device._slots
        assert engine.kernels_device._pool.held_blocks == 0
