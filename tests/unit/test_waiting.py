"""Launches that are queued together, at the end of a block."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.waiting import Waiting


class Handle:
    def __init__(self, log: list[Any], name: str) -> None:
        self.log, self.name, self.handle = log, name, self

    def set_args(self, *arguments: Any) -> None:
        self.log.append((self.name, arguments))


def test_arguments_are_set_before_anything_is_queued_but_for_a_kernel_that_comes_again() -> None:
    log: list[Any] = []
    first, again = Handle(log, "first"), Handle(log, "again")
    waiting = Waiting()
    waiting.add(again, (1,), "a")
    waiting.add(first, (2,), "b")
    waiting.add(again, (3,), "c")
    waiting.queue(lambda kernel, place: log.append((kernel.name, place)))
    assert log == [
        ("first", (2,)),
        ("again", (1,)),
        ("again", "a"),
        ("first", "b"),
        ("again", (3,)),
        ("again", "c"),
    ]
    assert not len(waiting)


def add_slices(engine: OpenCLEngine, source: Any, target: Any, count: int) -> None:
    device = engine.kernels_device
    kernel = device.kernel("add_slices", ("multiply/add_slices.cl",), {"REAL_BITS": 64, "GROUP": 64})
    device.run(kernel, (1,), (64,), source, target, np.int32(8), np.int32(count), np.int32(0))


def test_launches_of_a_block_run_in_their_order_at_its_end(opencl_engine: OpenCLEngine) -> None:
    device = opencl_engine.kernels_device
    one, two, three = (device.uploaded(np.full(16, value)) for value in (1.0, 7.0, 9.0))
    found = np.empty(8)
    with device.together():
        add_slices(opencl_engine, one, two, 2)
        add_slices(opencl_engine, two, three, 1)
        assert (device.downloaded(three, found) == 9).all()
    assert (device.downloaded(three, found) == 2).all()


def test_memory_that_is_exchanged_for_more_was_used_before(opencl_engine: OpenCLEngine) -> None:
    device = opencl_engine.kernels_device
    one, two = (device.uploaded(np.full(16, value)) for value in (1.0, 7.0))
    device.put(device.buffer("for this test", 128), np.full(16, 5.0))
    with device.together():
        add_slices(opencl_engine, device.buffer("for this test", 128), two, 2)
        device.buffer("for this test", 1 << 16)
        add_slices(opencl_engine, two, one, 1)
    found = np.empty(8)
    assert (device.downloaded(one, found) == 10).all()


def test_a_block_that_fails_queues_nothing_and_leaves_the_device_as_it_was(
    opencl_engine: OpenCLEngine,
) -> None:
    device = opencl_engine.kernels_device
    one, two = (device.uploaded(np.full(16, value)) for value in (1.0, 7.0))

    def failing() -> None:
        with device.together():
            add_slices(opencl_engine, one, two, 2)
            raise ValueError("failed")

    with pytest.raises(ValueError, match="failed"):
        failing()
    found = np.empty(8)
    assert (device.downloaded(two, found) == 7).all()
    add_slices(opencl_engine, one, two, 2)
    assert (device.downloaded(two, found) == 2).all()
