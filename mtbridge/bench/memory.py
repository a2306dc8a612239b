"""The memory experiments on one device: `mtbridge bench memory`.

A row has the keys of every benchmark (see `mtbridge.bench`), and two more: `device_s`, the seconds from START
to END of the command, and `gb_per_s`, the bytes that the question needs by those seconds. `versus` compares
them too. The ways from the host and back are judged by the host's clock instead, `median_s`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from mtbridge.bench.memory_cases import LARGE, SMALL, Sizes, cases
from mtbridge.bench.memory_kernels import case_rows
from mtbridge.bench.memory_rows import Row
from mtbridge.bench.memory_ways import launch_rows, way_rows
from mtbridge.compute import devices
from mtbridge.matrix import DTYPES

if TYPE_CHECKING:
    from mtbridge.compute.opencl_memory import MemoryDevice


def measure_memory(
    device: str | None, say: Callable[[str], None], *, sizes: Sizes | None = None
) -> list[Row]:
    """Return the rows of every experiment on one device.

    Parameters
    ----------
    device : which device, as `devices.choose` takes it
    say : called with a line when something begins
    sizes : how large the experiments are; by default past the caches of the device's kind

    Raises
    ------
    DeviceError
        If no device is usable. What a usable one cannot do is a row whose note says why.
    """
    with open_memory(device) as there:
        chosen = sizes or (SMALL if there.kind == "cpu" else LARGE)
        rows = [*launch_rows(there, say), *way_rows(there, say)]
        for dtype in DTYPES:
            for case in cases(chosen, dtype):
                say(f"{case.name}, {dtype}")
                rows += case_rows(there, case)
    return rows


def open_memory(wanted: str | None = None) -> MemoryDevice:
    """Open the device that is meant (see `devices.choose`), with a queue that takes times."""
    verdict = devices.choose(wanted)
    # before pyopencl is imported
    devices.load(verdict)
    from mtbridge.compute.opencl_memory import MemoryDevice
    from mtbridge.compute.opencl_profiling import found_again

    return MemoryDevice(found_again(verdict))
