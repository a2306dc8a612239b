"""Copies through page-locked pieces that are kept, on a processor taken for a device that copies."""

from __future__ import annotations

import gc
import threading
import time
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mtbridge.compute import transfer
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.transfer import SPARE_PIECES, Transfer
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES, Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device
    from mtbridge.compute.opencl_staging import Staging

PIECE = 4096
THREADS = 3
ALL = PIECE * (THREADS + SPARE_PIECES)
SIZES = (1, 2, 7, PIECE - 1, PIECE, PIECE + 1, ALL, ALL + 3, 41 * PIECE - 5)
"""Bytes: less than a piece, a piece and one more or less, as many as there are, and each used often."""


@pytest.fixture
def engine(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenCLEngine]:
    """An engine whose arrays travel in small pieces, however short they are, by all threads."""
    monkeypatch.setattr(transfer, "THREAD_BYTES", 1)
    with open_opencl("cpu") as opened:
        opened.centred_from = 0
        opened._device.host_memory = False
        opened._device.staging = small_pieces(opened._device)
        yield opened


@pytest.fixture
def device(engine: OpenCLEngine) -> Device:
    return engine.kernels_device


def small_pieces(device: Device, **other: int) -> Staging:
    from mtbridge.compute.opencl_staging import Staging

    return Staging(device._context, **{"threads": THREADS, "piece": PIECE, "smallest": 1} | other)


def staging_of(device: Device) -> Staging:
    assert device.staging is not None
    return device.staging


def random_bytes(size: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, 256, size, np.uint8)


class Seen:
    """Calls of a function of the staging by thread, and what it does at one of them.

    Attributes
    ----------
    threads : that called it
    """

    def __init__(self, patch: pytest.MonkeyPatch, name: str) -> None:
        from mtbridge.compute import opencl_staging

        self.threads: list[threading.Thread] = []
        self._inner = getattr(opencl_staging, name)
        patch.setattr(opencl_staging, name, self)

    def __call__(self, *arguments: Any) -> Any:
        self.threads.append(threading.current_thread())
        self.before(len(self.threads))
        return self._inner(*arguments)

    def before(self, count: int) -> None:
        """What is done at call number `count`."""


# what is copied


@pytest.mark.parametrize("size", SIZES)
def test_bytes_go_to_the_device_and_come_back(device: Device, size: int) -> None:
    sent = random_bytes(size)
    buffer = device.uploaded(sent)
    # with other bytes on both sides, and at an odd address
    around = np.full(size + 2 * PIECE, 7, np.uint8)
    found = around[PIECE - 1 : PIECE - 1 + size]
    assert device.downloaded(buffer, found) is found
    assert np.array_equal(found, sent)
    assert (around[: PIECE - 1] == 7).all()
    assert (around[PIECE - 1 + size :] == 7).all()
    assert staging_of(device)._kept.pieces, "it did travel in pieces"


@pytest.mark.parametrize("offset", [1, PIECE - 1, PIECE, 5 * PIECE + 3])
def test_a_part_of_a_buffer_comes_back(device: Device, offset: int) -> None:
    sent = random_bytes(9 * PIECE + 11)
    buffer = device.uploaded(sent)
    found = device.downloaded(buffer, np.zeros(len(sent) - offset - 5, np.uint8), offset=offset)
    assert np.array_equal(found, sent[offset : len(sent) - 5])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (67, 31), (130, 257), (512, 64)])
def test_matrices_in_either_order_and_with_gaps_give_right_products(
    engine: OpenCLEngine, shape: tuple[int, int], dtype: str
) -> None:
    rows, columns = shape
    random = np.random.default_rng(2)
    X = random.standard_normal(shape).astype(dtype)
    wide = X.astype(np.longdouble)
    exact = wide.T @ wide
    bound = rows * np.finfo(dtype).eps * (np.abs(wide).T @ np.abs(wide))
    gapped = np.zeros((rows, 2 * columns), dtype)[:, ::2]
    gapped[...] = X
    for held in (X, np.asfortranarray(X), gapped):
        assert (np.abs(engine.gram(held) - exact) <= bound).all()
        assert (np.abs(engine.multiply(held.T, held) - exact) <= bound).all()


def test_moments_are_those_of_arrays_that_go_straight(engine: OpenCLEngine, device: Device) -> None:
    X = 100 + np.random.default_rng(3).standard_normal((301, 97))
    staged = engine.moments(X)
    device.staging = None
    straight = engine.moments(X)
    assert np.array_equal(staged.comoment, straight.comoment)
    assert np.array_equal(staged.origin, straight.origin)


def test_what_was_sent_may_change_at_once_and_pieces_are_not_filled_while_they_travel(device: Device) -> None:
    arrays = [random_bytes(30 * PIECE + 17, seed) for seed in range(8)]
    buffers = [device.allocate(arrays[0].nbytes) for _ in arrays]
    for buffer, array in zip(buffers, arrays, strict=True):
        passing = array.copy()
        device.put(buffer, passing)
        passing[:] = 0
    for buffer, array in zip(buffers, arrays, strict=True):
        assert np.array_equal(device.downloaded(buffer, np.empty_like(array)), array)


def test_hostile_numbers_keep_their_bits(device: Device) -> None:
    sent = np.tile([np.nan, -np.nan, np.inf, -np.inf, -0.0, 5e-324, 1e-170, 1e200], 700)
    found = device.downloaded(device.uploaded(sent), np.empty_like(sent))
    assert found.tobytes() == sent.tobytes()


# which way


def test_the_caller_alone_drives_the_device_and_others_copy(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    copying: list[threading.Thread] = []
    copy = Transfer._copy

    def seen(one: Transfer, target: Any, source: Any) -> Any:
        thread = threading.current_thread()
        if thread not in copying and thread is not threading.main_thread():
            # nobody goes on before each has a piece, however late it wakes up
            barrier.wait(60)
        copying.append(thread)
        return copy(one, target, source)

    monkeypatch.setattr(Transfer, "_copy", seen)
    for name in ("write", "read"):
        barrier = threading.Barrier(THREADS)
        copying.clear()
        calls = Seen(monkeypatch, name)
        array = random_bytes(20 * PIECE)
        buffer = device.uploaded(array)
        if name == "read":
            barrier = threading.Barrier(THREADS)
            copying.clear()
            device.downloaded(buffer, array)
        assert len(calls.threads) == len(copying) == 20 + (array.ctypes.data % PIECE > 0)
        assert set(calls.threads) == {threading.main_thread()}
        assert len(set(copying) - {threading.main_thread()}) == THREADS


def test_an_answer_that_nobody_holds_is_freed_at_once(device: Device) -> None:
    """Not by a thread that waits for its next piece: to free much memory takes long, and stops all others."""
    sent = random_bytes(50 * PIECE)
    buffer = device.uploaded(sent)
    for _ in range(50):
        found = np.empty_like(sent)
        gone = weakref.ref(found)
        device.downloaded(buffer, found)
        del found
        assert gone() is None


def test_pinned_arrays_and_their_views_go_straight(
    engine: OpenCLEngine, device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes, reads = Seen(monkeypatch, "write"), Seen(monkeypatch, "read")
    X = engine.empty_pinned((64, 64))
    X[...] = np.random.default_rng(4).standard_normal(X.shape)
    for held in (X, X[16:], X.T, X.reshape(-1).view(np.uint8)):
        flat = held if held.flags.c_contiguous else held.T
        out = engine.empty_pinned(flat.nbytes // 8).view(np.uint8)
        buffer = device.uploaded(flat)
        device.send("held", flat)
        assert device.downloaded(buffer, out).tobytes() == flat.tobytes()
        assert device.receive(buffer, out).tobytes() == flat.tobytes()
    assert not writes.threads
    assert not reads.threads
    device.uploaded(X.copy())
    assert writes.threads, "a copy is an ordinary array"


def test_small_arrays_and_those_with_gaps_go_straight(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    device.staging = small_pieces(device, smallest=1000)
    seen = Seen(monkeypatch, "write")
    device.uploaded(random_bytes(999))
    device.uploaded(np.asfortranarray(np.ones((50, 60))))
    assert not seen.threads
    device.uploaded(random_bytes(1000))
    assert seen.threads


def test_a_processor_and_a_machine_of_few_processors_have_no_staging(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mtbridge.compute import opencl_staging
    from mtbridge.compute.opencl import Device, enumerate_devices

    found = next(found for found in enumerate_devices() if found.key == verdict.key)
    device = Device(found)
    assert device.staging is None
    device.close()

    class Handle:
        host_unified_memory = False

    for processors, threads in ((1, None), (3, None), (4, 2), (64, transfer.MOST_THREADS)):
        monkeypatch.setattr(opencl_staging.os, "cpu_count", lambda count=processors: count)
        made = opencl_staging.staging_of(device._context, Handle())  # type: ignore[arg-type]
        assert (made and made.threads) == threads
    Handle.host_unified_memory = True
    assert opencl_staging.staging_of(device._context, Handle()) is None  # type: ignore[arg-type]


# what fails


def test_without_page_locked_memory_arrays_go_straight_until_some_is_given_back(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mtbridge.compute import opencl_staging

    def none(*_: Any) -> Any:
        raise MemoryError("no page-locked memory")

    inner = opencl_staging.pinned_array
    monkeypatch.setattr(opencl_staging, "pinned_array", none)
    seen = Seen(monkeypatch, "write")
    array = random_bytes(10 * PIECE)
    assert np.array_equal(device.downloaded(device.uploaded(array), np.zeros_like(array)), array)
    assert not staging_of(device).usable
    assert not seen.threads
    monkeypatch.setattr(opencl_staging, "pinned_array", inner)
    device.uploaded(array)
    assert not seen.threads, "it is not tried again for each array"
    device.release_kept()
    assert np.array_equal(device.downloaded(device.uploaded(array), np.zeros_like(array)), array)
    assert seen.threads


@pytest.mark.parametrize("name", ["write", "read"])
@pytest.mark.parametrize("failing", [1, 2, 9])
def test_a_copy_that_fails_is_an_error_and_lets_go_of_the_array(
    device: Device, monkeypatch: pytest.MonkeyPatch, name: str, failing: int
) -> None:
    import pyopencl as cl

    array = random_bytes(30 * PIECE)
    buffer = device.uploaded(array)
    with monkeypatch.context() as patch:

        class Failing(Seen):
            def before(self, count: int) -> None:
                if count == failing:
                    cl.Buffer(device._context, cl.mem_flags.READ_WRITE, 0)

        Failing(patch, name)
        passing = array.copy()
        gone = weakref.ref(passing)
        with pytest.raises((DeviceError, MemoryError), match=r"copying to|reading from"):
            _ = device.put(buffer, passing) if name == "write" else device.downloaded(buffer, passing)
        del passing
    gc.collect()
    assert gone() is None
    device.put(buffer, array)
    assert np.array_equal(device.downloaded(buffer, np.zeros_like(array)), array)


@pytest.mark.parametrize("name", ["write", "read"])
def test_nobody_touches_an_array_after_an_interrupt(
    device: Device, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    array = random_bytes(30 * PIECE)
    buffer = device.uploaded(array)
    begun, ended = [], []
    copy = Transfer._copy

    def slow(one: Transfer, target: Any, source: Any) -> Any:
        begun.append(one)
        time.sleep(0.1)
        found = copy(one, target, source)
        ended.append(one)
        return found

    class Interrupted(Seen):
        def before(self, count: int) -> None:
            # all pieces are read into before one is copied
            if count == (2 if name == "write" else THREADS + SPARE_PIECES + 1):
                raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Transfer, "_copy", slow)
        Interrupted(patch, name)
        with pytest.raises(KeyboardInterrupt):
            _ = device.put(buffer, array) if name == "write" else device.downloaded(buffer, array)
        count = len(begun)
        assert 0 < count == len(ended) < 30
        time.sleep(0.3)
        assert len(begun) == count, "and nobody took another one"
    assert np.array_equal(device.downloaded(device.uploaded(array), np.zeros_like(array)), array)


def test_an_idle_device_has_no_pieces_and_a_closed_one_no_threads(verdict: Verdict) -> None:
    def running() -> set[str]:
        return {thread.name for thread in threading.enumerate() if "mtbridge-staging" in thread.name}

    before = running()
    with open_opencl("cpu") as engine:
        device = engine.kernels_device
        device.host_memory = False
        device.staging = small_pieces(device)
        assert not device.staging._kept.pieces
        assert running() == before
        array = random_bytes(50 * PIECE)
        device.uploaded(array)
        assert running() - before
        device.release_kept()
        assert not device.staging._kept.pieces
    assert running() == before
    assert np.array_equal(device.downloaded(device.uploaded(array), np.zeros_like(array)), array)
    device.close()


def test_arrays_that_are_sent_are_let_go_when_an_answer_came(engine: OpenCLEngine, device: Device) -> None:
    device.staging = None
    X: Matrix = np.random.default_rng(5).standard_normal((40, 30))
    gone = weakref.ref(X)
    engine.gram(X)
    assert not device._sent
    del X
    assert gone() is None
