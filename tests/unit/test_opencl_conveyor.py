"""Rectangles of a matrix on a device, brought to their places in pieces."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from given_several import normal

from mtbridge.compute.opencl import Device
from mtbridge.compute.opencl_conveyor import Answer, Conveyor
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.transfer import Pieces, Transfer
from mtbridge.matrix import DTYPES


@pytest.fixture(scope="module", params=["host", "card"])
def device(request: pytest.FixtureRequest, open_tiled: Callable[[], OpenCLEngine]) -> Iterator[Device]:
    with open_tiled() as engine:
        engine.kernels_device.host_memory = request.param == "host"
        yield engine.kernels_device


def conveyor_of(device: Device, threads: int, piece: int) -> Conveyor:
    pieces = Pieces()
    pieces.prepare(piece, threads, lambda size: device.pinned((size,), np.dtype(np.uint8)))
    return Conveyor(device, pieces, threads)


@pytest.mark.parametrize("piece", [8, 40, 1000, 1 << 16])
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rectangles_come_to_their_places_and_nowhere_else(
    device: Device, dtype: str, threads: int, piece: int
) -> None:
    X = normal(23, 31, dtype)
    buffer = device.uploaded(X)
    out = np.full((60, 50), np.nan, dtype)
    expected = out.copy()
    answers = []
    for down, across, at in (
        (slice(0, 1), slice(0, 1), (0, 0)),
        (slice(2, 23), slice(3, 31), (5, 7)),
        (slice(22, 23), slice(0, 31), (30, 0)),
        (slice(0, 23), slice(30, 31), (33, 49)),
    ):
        place = tuple(
            slice(start, start + part.stop - part.start)
            for start, part in zip(at, (down, across), strict=True)
        )
        expected[place] = X[down, across]
        answers.append(Answer(buffer, 31, (down.start, across.start), out[place]))
    before = threading.active_count()
    with conveyor_of(device, threads, piece) as conveyor:
        for ready in (None, conveyor.mark()):
            deliveries = [conveyor.bring([answer], ready) for answer in answers]
            for delivery in deliveries:
                conveyor.wait(delivery)
            assert np.array_equal(out, expected, equal_nan=True)
            out.fill(np.nan)
    assert threading.active_count() == before


def test_what_waits_when_the_caller_fails_is_not_brought_and_threads_end(device: Device) -> None:
    X = normal(40, 40)
    out = np.full(X.shape, np.nan)
    before = threading.active_count()
    conveyor = conveyor_of(device, 2, 64)
    parts = [Answer(device.uploaded(X), 40, (0, 0), out)]
    deliveries: list[Any] = []

    def fail() -> None:
        with conveyor:
            deliveries.append(conveyor.bring(parts))
            raise InterruptedError

    with pytest.raises(InterruptedError):
        fail()
    assert threading.active_count() == before
    # whoever waits for it does so no longer
    assert deliveries[0].done.is_set()
    assert np.array_equal(out[~np.isnan(out)], X[~np.isnan(out)])


def test_a_failure_is_raised_where_a_delivery_is_waited_for(device: Device) -> None:
    out = np.zeros((4, 4))
    with conveyor_of(device, 1, 64) as conveyor:
        delivery = conveyor.bring([Answer(device.uploaded(out), 4, (10**6, 0), out)])
        with pytest.raises(Exception, match="INVALID_VALUE"):
            conveyor.wait(delivery)


def test_nothing_to_bring_is_brought_at_once(device: Device) -> None:
    with conveyor_of(device, 1, 64) as conveyor:
        conveyor.wait(conveyor.bring([]))


@pytest.mark.parametrize("most", [0, 2])
def test_where_threads_cannot_be_had_fewer_copy(
    device: Device, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    start, started = threading.Thread.start, []

    def some(thread: threading.Thread) -> None:
        if len(started) == 1 + most:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    X = normal(40, 40)
    out = np.full(X.shape, np.nan)
    monkeypatch.setattr(threading.Thread, "start", some)
    with conveyor_of(device, 4, 64) as conveyor:
        conveyor.wait(conveyor.bring([Answer(device.uploaded(X), 40, (0, 0), out)]))
    assert np.array_equal(out, X)
    assert len(started) == 1 + most
    assert not any(thread.is_alive() for thread in started)


def test_a_copy_that_fails_is_raised_where_its_delivery_is_waited_for(
    device: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = normal(40, 40)
    out = np.full(X.shape, np.nan)
    copy = Transfer._copy

    def failing(one: Transfer, target: Any, source: Any) -> Any:
        if target.ctypes.data == out.ctypes.data:
            return copy(one, target, np.zeros(3, "V3"))
        return copy(one, target, source)

    monkeypatch.setattr(Transfer, "_copy", failing)
    before = threading.active_count()
    with conveyor_of(device, 2, 64) as conveyor:
        first = conveyor.bring([Answer(device.uploaded(X), 40, (0, 0), out)])
        with pytest.raises((TypeError, ValueError)):
            conveyor.wait(first)
        # whoever comes later is told, too
        second = conveyor.bring([Answer(device.uploaded(X), 40, (0, 0), out[20:])])
        with pytest.raises((TypeError, ValueError)):
            conveyor.wait(second)
    assert threading.active_count() == before
