"""What lies around a kernel: the ways of data from the host and back, and the four times of one launch."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from mtbridge.bench.memory_cases import binary
from mtbridge.bench.memory_kernels import in_turn, largest_error
from mtbridge.bench.memory_rows import Row, reason, row
from mtbridge.errors import DeviceError

if TYPE_CHECKING:
    from mtbridge.compute.opencl_memory import MemoryDevice, Trip
    from mtbridge.compute.opencl_profiling import Launch

Say = Callable[[str], None]

SIZES = (1 << 12, 1 << 16, 1 << 20, 1 << 24, 1 << 26)
"""Bytes: 4 KiB to 64 MiB."""

PEER = "copy commands"
LAUNCHES = 101


def way_rows(device: MemoryDevice, say: Say) -> list[Row]:
    """Measure the ways of float32 numbers from the host through a kernel and back, by size."""
    from mtbridge.compute.opencl_memory import WAYS

    rows: list[Row] = []
    kernel = device.kernel("negate", ("memory/negate.cl",), {})
    for size in SIZES:
        case, count = f"there and back, {binary(size)}", size // 4
        say(case)
        numbers = np.random.default_rng(size).random(count, np.float32)
        notes: dict[str, str] = {}
        works: dict[str, Callable[[], Launch]] = {}
        for way in WAYS:
            try:
                trip = device.trip(way, kernel, count, "float32")
                largest_error(trip(numbers)[0], -numbers, 0.0)
            except (ArithmeticError, DeviceError, MemoryError) as failure:
                notes[way] = reason(failure)
            else:
                works[way] = emptied(trip)
        walls, worked = in_turn(works)
        for name in WAYS:
            peer = None if name == PEER else (PEER, walls.get(PEER))
            error = 0.0 if name in works else None
            rows.append(
                row(
                    device,
                    case,
                    "float32",
                    name,
                    walls.get(name),
                    worked.get(name),
                    by_host=True,
                    moved=2 * size,
                    error=error,
                    note=notes.get(name, ""),
                    peer=peer,
                )
            )
    return rows


def emptied(trip: Trip) -> Callable[[], Launch]:
    """Return the trip without numbers, so that what is timed is the way."""
    return lambda: trip(None)[1]


def launch_rows(device: MemoryDevice, say: Say) -> list[Row]:
    """Show the four times of a command once: what passes between QUEUED, SUBMIT, START and END."""
    case, count = "one launch, negate 1 MiB", 1 << 18
    say(case)
    kernel = device.kernel("negate", ("memory/negate.cl",), {})
    data = device.guarded_copy(np.zeros(count, np.float32))
    launches: list[tuple[float, Launch]] = []
    for _ in range(LAUNCHES):
        start = time.perf_counter()
        moments = device.timed(kernel, (count // 64,), (64,), data.inside, np.int32(count))
        launches.append((time.perf_counter() - start, moments))
    # the first includes what a runtime puts off until then
    known = launches[1:]
    spans = {
        "QUEUED to SUBMIT": [launch.submitted for _, launch in known],
        "SUBMIT to START": [launch.started - launch.submitted for _, launch in known],
        "START to END": [launch.ended - launch.started for _, launch in known],
        "the host's wait": [wall for wall, _ in known],
    }
    return [row(device, case, "float32", name, seconds) for name, seconds in spans.items()]
