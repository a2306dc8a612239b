"""The kernels of the memory experiments: checked, then timed, one contender after the other in turn."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from mtbridge.bench.memory_cases import Case, Contender, Vector
from mtbridge.bench.memory_rows import Row, reason, row
from mtbridge.errors import DeviceError

if TYPE_CHECKING:
    from mtbridge.compute.opencl_memory import Guarded, MemoryDevice
    from mtbridge.compute.opencl_profiling import Launch

ROUNDS = 7
SHORTEST_WINDOW = 0.01


def case_rows(device: MemoryDevice, case: Case) -> list[Row]:
    """Check and time every contender of a case."""
    notes = {contender.name: unable(device, case, contender) for contender in case.contenders}
    errors: dict[str, float] = {}
    works: dict[str, Callable[[], Launch]] = {}
    able = [contender for contender in case.contenders if not notes[contender.name]]
    try:
        sources = {place: device.guarded_copy(case.sources[place]) for place in {c.source for c in able}}
        target = device.guarded(case.expected.size * np.dtype(case.dtype).itemsize)
    except (DeviceError, MemoryError) as failure:
        notes |= {contender.name: reason(failure) for contender in able}
        able = []
    for contender in able:
        try:
            work = launch_of(device, case, contender, sources[contender.source], target)
            errors[contender.name] = checked(device, case, work, target)
        except (ArithmeticError, DeviceError, MemoryError) as failure:
            notes[contender.name] = reason(failure)
            continue
        works[contender.name] = work
        if contender.local_elements:
            notes[contender.name] = f"CL_DEVICE_LOCAL_MEM_TYPE is {device.local_memory.upper()}"
    walls, worked = in_turn(works)
    return [
        row(
            device,
            case.name,
            case.dtype,
            contender.name,
            walls.get(contender.name),
            worked.get(contender.name),
            moved=case.moved,
            error=errors.get(contender.name),
            note=notes[contender.name],
            peer=None if contender.name == case.peer else (case.peer, worked.get(case.peer)),
        )
        for contender in case.contenders
    ]


def unable(device: MemoryDevice, case: Case, contender: Contender) -> str:
    """Say why the device cannot run a contender; empty where it can."""
    size = np.dtype(case.dtype).itemsize
    local, source = contender.local_elements * size, case.sources[contender.source].nbytes
    items = int(np.prod(contender.group))
    if case.dtype == "float64" and not device.fp64:
        return "the device has no float64"
    if items > device.largest_group:
        return f"needs groups of {items} items, the device has at most {device.largest_group}"
    if local > device.local_bytes:
        return f"needs {local} bytes of local memory, the device has {device.local_bytes}"
    if contender.constant and source > device.constant_bytes:
        return f"needs {source} bytes of constant memory, the device has {device.constant_bytes}"
    needed = max(source, case.expected.size * size) + 2 * device.alignment
    if needed > device.largest_buffer:
        return f"needs a buffer of {needed} bytes, the device has at most {device.largest_buffer}"
    return ""


def launch_of(
    device: MemoryDevice, case: Case, contender: Contender, source: Guarded, target: Guarded
) -> Callable[[], Launch]:
    """Return what runs a contender once, from `source` into `target`."""
    size = np.dtype(case.dtype).itemsize
    if not contender.file:
        count, offset = case.scalars
        return lambda: device.driver_copy(source.inside, target.inside, count * size, skipped=offset * size)
    defines = {**contender.defines, "REAL_BITS": 8 * size, "SUM_BITS": 8 * size}
    kernel = device.kernel(contender.kernel, (f"memory/{contender.file}.cl",), defines)
    groups = tuple(-(-extent // block) for extent, block in zip(case.extent, contender.block, strict=True))
    scalars = [np.int32(value) for value in case.scalars]
    return lambda: device.timed(kernel, groups, contender.group, source.inside, target.inside, *scalars)


def checked(device: MemoryDevice, case: Case, work: Callable[[], Launch], target: Guarded) -> float:
    """Run a contender once, into an output of NaN, and return the largest error of its answer.

    Raises
    ------
    ArithmeticError
        If its answer is wrong, or it wrote outside of it.
    """
    device.poison(target)
    work()
    answer = device.inside(target, case.dtype).reshape(case.expected.shape)
    return largest_error(answer, case.expected, case.tolerance)


def largest_error(answer: Vector, expected: Vector, tolerance: Vector | float) -> float:
    """Return how far `answer` is from `expected` at most.

    Raises
    ------
    ArithmeticError
        If a number is farther away than its tolerance, or NaN.
    """
    # where it must be the same one pass will do; NaN differs from everything
    exact = isinstance(tolerance, float) and tolerance == 0
    distance = np.zeros(1) if exact else np.abs(answer - expected)
    wrong = np.count_nonzero(answer != expected if exact else ~(distance <= tolerance))
    if wrong:
        raise ArithmeticError(f"wrong: {wrong} of {answer.size} numbers are not what they should be")
    return float(distance.max(initial=0.0))


def in_turn(
    works: Mapping[str, Callable[[], Launch]],
) -> tuple[dict[str, list[float]], dict[str, list[float]]]:
    """Return wall and device seconds of each contender: the medians of ROUNDS windows, taken in turn."""
    walls: dict[str, list[float]] = {name: [] for name in works}
    worked: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(ROUNDS):
        for name, work in works.items():
            window: list[tuple[float, float]] = []
            start = now = time.perf_counter()
            while not window or now - start < SHORTEST_WINDOW:
                before, moments = now, work()
                now = time.perf_counter()
                window.append((now - before, moments.ended - moments.started))
            walls[name].append(statistics.median(wall for wall, _ in window))
            worked[name].append(statistics.median(seconds for _, seconds in window))
    return walls, worked
