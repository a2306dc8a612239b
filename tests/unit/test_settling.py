"""Copies that were queued are waited for, each of them, whatever became of the others."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import open_opencl
from mtbridge.errors import DeviceError

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device


@pytest.fixture
def device(verdict: Verdict) -> Iterator[Device]:
    with open_opencl("cpu") as opened:
        yield opened.kernels_device


class Sent:
    """An event of a copy that was queued, and what waiting for it raises."""

    def __init__(self, fail: Any = None) -> None:
        self.waits = 0
        self.fail = fail

    def wait(self) -> None:
        self.waits += 1
        if self.fail is not None:
            self.fail()


def test_each_copy_is_waited_for_though_one_before_it_failed(device: Device) -> None:
    import pyopencl as cl

    def lost() -> None:
        # far outside of the buffer: the runtime refuses it
        cl.enqueue_copy(device.queue, np.zeros(1), device.buffer("small", 8), src_offset=1 << 40)

    sent: list[Any] = [Sent(), Sent(lost), Sent(lost), Sent()]
    device._sent = list(sent)
    with pytest.raises(DeviceError, match="work on"):
        device.finish()
    assert [event.waits for event in sent] == [1, 1, 1, 1]
    assert not device._sent


def test_a_copy_that_was_not_waited_for_to_the_end_is_kept(device: Device) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    sent: list[Any] = [Sent(), Sent(interrupt), Sent()]
    device._sent = list(sent)
    with pytest.raises(KeyboardInterrupt):
        device.finish()
    assert device._sent == sent[1:]
    device._sent = []
