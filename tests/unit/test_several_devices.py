"""What each of the devices that share a matrix does: its thread, what it is sent, and how it fails."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from given_several import BLOCK, KINDS, among, assert_product, normal, prices, three_engines

from mtbridge.compute import several
from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.several import SeveralEngine
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


class Watched:
    """What was uploaded to an engine, and by which threads."""

    def __init__(self, engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch) -> None:
        self.threads: set[int] = set()
        self.uploads = 0
        upload = engine.upload

        def watched(X: Matrix) -> Any:
            self.threads.add(threading.get_ident())
            self.uploads += 1
            return upload(X)

        monkeypatch.setattr(engine, "upload", watched)


def test_each_device_has_one_thread_of_its_own_and_is_sent_a_block_once(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [Watched(engine, monkeypatch) for engine in engines]
    before = threading.active_count()
    columns = 7 * BLOCK + 1
    among(engines, 3).gram(normal(50, columns))
    assert threading.active_count() == before
    assert all(watched.uploads <= -(-columns // BLOCK) for watched in seen)
    assert all(len(watched.threads) <= 1 for watched in seen)
    used = [watched.threads for watched in seen if watched.threads]
    assert len(set().union(*used)) == len(used)
    assert threading.get_ident() not in set().union(*used)


class Failing:
    """Lets a device's `allocate` fail, of which uploads are made, from a call on."""

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
        allocate = device.allocate

        def failing(size: int) -> Any:
            self.calls += 1
            if first <= self.calls <= last:
                # a new one each time: an exception that is kept keeps what its frames hold
                raise type(error)(*error.args)
            return allocate(size)

        monkeypatch.setattr(device, "allocate", failing)


def assert_nothing_is_left(engines: list[OpenCLEngine], threads: int) -> None:
    assert threading.active_count() == threads
    for engine in engines:
        assert engine.kernels_device._pool.active_blocks == 0


@pytest.mark.parametrize("first", [1, 2])
def test_a_device_that_fails_is_named_the_others_end_and_no_buffer_is_left(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch, first: int
) -> None:
    X, shared, before = normal(50, 10 * BLOCK), among(engines, 3), threading.active_count()
    right = shared.gram(X)
    answers: list[weakref.ref[Matrix]] = []

    def seen(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Matrix:
        made = aligned_empty(shape, dtype)
        answers.append(weakref.ref(made))
        return made

    def again_and_again() -> None:
        # until it had a turn, however quick the others are
        for _ in range(100):
            shared.gram(X)

    with monkeypatch.context() as patched:
        Failing(engines[1], patched, DeviceError("gram on Voodoo failed: lost."), first=first, last=99)
        patched.setattr(several, "aligned_empty", seen)
        with pytest.raises(DeviceError) as raised:
            again_and_again()
    assert str(raised.value) == "device 1 of those that share a matrix: gram on Voodoo failed: lost."
    # whoever keeps the error keeps no memory of a device with it
    assert_nothing_is_left(engines, before)
    del raised
    assert answers[-1]() is None
    assert shared.gram(X).tobytes() == right.tobytes()


def test_a_device_short_of_memory_for_a_moment_gives_the_same_bits(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, shared, before = normal(50, 10 * BLOCK), among(engines, 1), threading.active_count()
    right = shared.gram(X)
    with monkeypatch.context() as patched:
        failing = Failing(engines[0], patched, MemoryError("a buffer of 9 bytes"), first=2, last=5)
        device, held = engines[0].kernels_device, []
        result = device.result

        def watched(*arguments: Any) -> Any:
            held.append(device._pool.active_blocks)
            return result(*arguments)

        # where a block is computed without what was sent before
        patched.setattr(device, "result", watched)
        assert shared.gram(X).tobytes() == right.tobytes()
    assert failing.calls > 5
    assert set(held) == {0}
    assert_nothing_is_left(engines, before)


def test_a_device_without_memory_is_named_in_one_sentence(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    shared, before = among(engines, 1), threading.active_count()

    def scarce(*_: object, **__: object) -> Any:
        raise MemoryError("a buffer of 9 bytes")

    with monkeypatch.context() as patched:
        Failing(engines[0], patched, MemoryError("a buffer of 9 bytes"), first=1, last=999)
        patched.setattr(engines[0].kernels_device, "result", scarce)
        with pytest.raises(DeviceError, match=r"^device 0 .*too little memory .*9 bytes.*--engine numpy\.$"):
            shared.gram(normal(50, 53))
    assert_nothing_is_left(engines, before)


def test_memory_that_the_host_lacks_is_no_fault_of_a_device(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(*_: object) -> Any:
        raise MemoryError("Unable to allocate 5 GiB")

    before = threading.active_count()
    monkeypatch.setattr("mtbridge.compute.several.centre", without)
    with pytest.raises(MemoryError, match="5 GiB"):
        among(engines).moments(prices(20, 53))
    assert_nothing_is_left(engines, before)


@pytest.mark.skipif(sys.platform == "win32", reason="a process cannot send itself SIGINT alone there")
def test_an_interrupt_ends_the_threads_and_leaves_the_engines_usable(
    engines: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    X, shared, before = normal(50, 40 * BLOCK), among(engines), threading.active_count()
    sent: list[Matrix] = []
    upload = engines[0].upload

    def interrupted(block: Matrix) -> Any:
        if not sent:
            os.kill(os.getpid(), signal.SIGINT)
        sent.append(block)
        # time for the caller's thread to see it, which is at the end of this pair at the latest
        time.sleep(0.05)
        return upload(block)

    with monkeypatch.context() as patched:
        for engine in engines[:2]:
            patched.setattr(engine, "upload", interrupted)
        with pytest.raises(KeyboardInterrupt):
            shared.gram(X)
    assert_nothing_is_left(engines, before)
    assert len(sent) < 40, "all was done before it ended"
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

    def opening(wanted: str) -> OpenCLEngine:
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
    shared = SeveralEngine(dict(enumerate(opened)), block=BLOCK)
    shared.gram(normal(30, 40))
    assert repr(shared).startswith("SeveralEngine(2 x ")
    shared.close()
    shared.close()
    for engine in opened:
        assert not engine.kernels_device._slots
        assert engine.kernels_device._pool.held_blocks == 0
