"""compute/opencl_failures.py: what is too little memory and what is a device that failed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyopencl as cl
import pytest

from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.opencl_failures import failures_named, works
from mtbridge.errors import DeviceError


def out_of_resources() -> cl.Error:
    record = cl._cl._ErrorRecord("", cl.status_code.OUT_OF_RESOURCES, "clEnqueueNDRangeKernel")
    return cl.RuntimeError(record)


def invalid_queue() -> cl.Error:
    return cl.LogicError(cl._cl._ErrorRecord("", cl.status_code.INVALID_COMMAND_QUEUE, "clFinish"))


class FailedQueue:
    """As NVIDIA's is after a kernel that wrote where nothing is."""

    asked = 0

    def finish(self) -> None:
        self.asked += 1
        raise invalid_queue()


def test_a_launch_that_wants_too_much_of_a_sound_device_lacks_memory(
    tiled_engine: OpenCLEngine,
) -> None:
    device = tiled_engine.kernels_device
    assert works(device.queue)
    with pytest.raises(MemoryError, match="OUT_OF_RESOURCES"), device.failures_named("a launch"):
        raise out_of_resources()
    with pytest.raises(MemoryError, match="a launch"), failures_named("a launch"):
        raise out_of_resources()
    buffer = device.uploaded(np.arange(4))
    assert np.array_equal(device.downloaded(buffer, np.empty(4, int)), np.arange(4))


@pytest.mark.parametrize("error", [out_of_resources(), invalid_queue()], ids=["copy", "wait"])
def test_what_a_failed_device_says_is_no_lack_of_memory(error: cl.Error) -> None:
    queue: Any = FailedQueue()
    with (
        pytest.raises(DeviceError, match="reading failed: a kernel before it has failed") as raised,
        failures_named("reading", queue),
    ):
        raise error
    assert str(raised.value).endswith("try --engine numpy.")
    assert "\n" not in str(raised.value)
    assert queue.asked == 1


def test_other_errors_do_not_ask_the_queue(tiled_engine: OpenCLEngine) -> None:
    queue: Any = FailedQueue()
    context = tiled_engine.kernels_device._context
    with (
        pytest.raises(DeviceError, match="building failed: "),
        failures_named("building", queue),
    ):
        cl.Program(context, "no kernel").build()
    with pytest.raises(MemoryError, match="a buffer: "), failures_named("a buffer", queue):
        cl.Buffer(context, cl.mem_flags.READ_WRITE, 1 << 60)
    assert queue.asked == 0
