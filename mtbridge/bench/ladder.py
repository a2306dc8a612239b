"""The kernel ladder measured: every rung checked, then timed beside the serial loops and OpenBLAS.

A rung's `device_s` is END - START of its profiling events; packing counts where a rung packs. Its `median_s`
is wall time with the copies to and from the device. How B lies (column-major, padded to whole texels) is
prepared before, as the articles prepare it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from mtbridge.bench.ladder_case import REST_SECONDS, Case, Row, Timing, blank
from mtbridge.bench.serial_orders import compiled_order, numba_is_there
from mtbridge.compute import devices
from mtbridge.compute.ladder import LADDER, VARIANTS, Rung, hindrance
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES, Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl_profiling import Launch, ProfilingDevice

Say = Callable[[str], None]

# Sizes past which a serial loop would take longer than all else together
LARGEST_BASELINE, LARGEST_ORDER, LARGEST_PLAIN = 2000, 1000, 128
SMALL_GROUP = 64
"""Items of a group for `register_tiled` on a processor: its compiler takes minutes for the large setting."""


def measure_ladder(
    sizes: Sequence[int],
    dtypes: Sequence[str] = DTYPES,
    device: str | None = None,
    say: Say = lambda words: None,
) -> list[Row]:
    """Return a row for each rung, size and type, for OpenBLAS, and for the device's peak.

    Parameters
    ----------
    sizes : of square matrices
    dtypes : "float32", "float64" or both
    device : which OpenCL device; by default the first GPU, else the first
    say : called with a line when something begins

    Returns
    -------
    list of rows
        As in `mtbridge.bench`, and beside: `device_s` and `device_spread_s`; `device_versus`, as `versus`
        but by device time; `peak_share` of the device's measured peak; `article`; `local_mem_type` of a rung
        that uses local memory; `preferred_vector_width` of one that uses vectors; `moments` of one launch,
        in seconds after it was queued. `gflops` is by device time where there is one. A rung that cannot run
        has no `median_s`, and a note that says why; nor has one whose answer is wrong.

    Raises
    ------
    DeviceError
        If the device that is asked for is not there; without any, the host's rows are measured all the same.
    """
    opened, missing = _opened(device)
    rows: list[Row] = []
    try:
        for dtype in dtypes:
            peaks: list[float] = []
            measured: list[Row] = []
            for size in sizes:
                measured += _measured(Case(size, dtype), opened, missing, peaks, say)
            if opened is not None and peaks:
                rows.append(_peak_row(opened, dtype, max(peaks)))
            for row in measured:
                if row["device_s"] and peaks:
                    row["peak_share"] = 1e9 * row["gflops"] / max(peaks)
            rows += measured
    finally:
        if opened is not None:
            opened.close()
    return rows


def wrong(rows: Sequence[Row]) -> Iterator[str]:
    """Yield a sentence for each row whose answer was wrong."""
    for row in rows:
        if row["note"].startswith("wrong"):
            size = row["case"].removeprefix("ladder ")
            yield f"{row['contender']} in {row['dtype']} at {size} is {row['note']}"


def _opened(wanted: str | None) -> tuple[ProfilingDevice | None, str]:
    try:
        verdict = devices.choose(wanted)
        devices.load(verdict)
        from mtbridge.compute.opencl_profiling import open_profiling

        return open_profiling(verdict), ""
    except DeviceError as error:
        if wanted is not None:
            raise
        return None, f"not run: {error}"


def _measured(
    case: Case, device: ProfilingDevice | None, missing: str, peaks: list[float], say: Say
) -> list[Row]:
    rows = []
    rungs = (*LADDER, *VARIANTS)
    for index, rung in enumerate(rungs, 1):
        say(f"{case.dtype}, N = {case.size}: {rung.name} ({index} of {len(rungs)})")
        row = case.row(rung.name, rung.article)
        if rung.runner == "host":
            row |= _host(case, rung)
        elif device is None:
            row["note"] = missing
        else:
            if case.dtype == np.float32 or device.fp64:
                # again and again, so that another program's busy moment does not lower the ceiling
                peaks.append(device.peak(case.dtype))
            row |= _device(case, rung, device)
        rows.append(row)
    rows.append(case.row("openblas") | _openblas(case))
    _compare(rows)
    return rows


def _peak_row(device: ProfilingDevice, dtype: str, peak: float) -> Row:
    row = blank("multiply-adds on registers", dtype, "peak", "")
    note = "kernels/peak.cl"
    return row | {"device": device.name, "threads": device.units, "gflops": peak / 1e9, "note": note}


def _host(case: Case, rung: Rung) -> Row:
    vectorised = rung.name == "serial_vectorised"
    if numba_is_there():
        how = "one thread, numba" + ("" if vectorised else ", not vectorised")
        most = LARGEST_BASELINE if rung.order == "r-cr-c" else LARGEST_ORDER
    elif vectorised:
        return {"note": "not run: numba is not installed; `pip install mtbridge[bench]` brings it"}
    else:
        how, most = "one thread, plain Python", LARGEST_PLAIN
    found: Row = {"device": how, "threads": 1}
    if case.size > most:
        return found | {"note": f"not run past N = {most}"}
    loop = compiled_order(rung.order, str(case.dtype), vectorised=vectorised)
    C = np.zeros_like(case.A)

    def work() -> Timing:
        C[:] = 0
        start = time.perf_counter()
        loop(case.A, case.B, C)
        return time.perf_counter() - start, None

    # the loop is compiled already, so its first call is as good as any
    first = work()
    return found | case.judged(C, work, first)


def _device(case: Case, rung: Rung, device: ProfilingDevice) -> Row:
    found: Row = {"device": device.name, "threads": device.units}
    if rung.local_elements or rung.name == "register_tiled":
        found["local_mem_type"] = device.local_memory
    if rung.name.startswith("dot"):
        found["preferred_vector_width"] = device.preferred_widths[str(case.dtype)]
    if rung.name == "register_tiled" and device.kind == "cpu":
        found["note"] = "the small setting"
    reason = hindrance(rung, device.able, case.size, case.size, case.dtype)
    if reason:
        return found | {"note": f"not run: {reason}"}
    C = np.full_like(case.A, np.nan)
    launches: list[Launch] = []
    try:
        work = (_kernel if rung.runner == "kernel" else _engine)(case, rung, device, C, launches)
        # the first call builds the kernel, and its answer is the one that is judged
        work()
        found |= case.judged(C, work)
    except (DeviceError, MemoryError) as error:
        return found | {"note": f"not run: {error}"}
    if rung.name == "naive" and found.get("device_s"):
        (launch,) = launches
        found["moments"] = {
            "queued": 0.0,
            "submit": launch.submitted,
            "start": launch.started,
            "end": launch.ended,
        }
    return found


def _kernel(
    case: Case, rung: Rung, device: ProfilingDevice, C: Matrix, launches: list[Launch]
) -> Callable[[], Timing]:
    from mtbridge.compute.opencl_profiling import lying

    placed = device.place(rung, case.sizes, case.dtype)
    second = lying(rung, case.B)

    def work() -> Timing:
        device.taken()
        start = time.perf_counter()
        device.fill(placed, case.A, second)
        device.multiply(placed)
        device.read(placed, C)
        wall = time.perf_counter() - start
        launches[:] = device.taken()
        return wall, running(launches)

    return work


def _engine(
    case: Case, rung: Rung, device: ProfilingDevice, C: Matrix, launches: list[Launch]
) -> Callable[[], Timing]:
    from mtbridge.compute.opencl_engine import OpenCLEngine

    group = SMALL_GROUP if rung.name == "register_tiled" and device.kind == "cpu" else 0
    engine = OpenCLEngine(device, vector_bytes=device.vector_bytes, tiled=group)

    def work() -> Timing:
        device.taken()
        start = time.perf_counter()
        answer = engine.multiply(case.A, case.B)
        wall = time.perf_counter() - start
        C[:] = answer
        launches[:] = device.taken()
        return wall, running(launches)

    return work


def running(launches: Sequence[Launch]) -> float:
    """Return how long launches ran, END - START, added up."""
    return sum(launch.ended - launch.started for launch in launches)


def _openblas(case: Case) -> Row:
    C = np.empty_like(case.A)

    def work() -> Timing:
        start = time.perf_counter()
        np.matmul(case.A, case.B, out=C)
        return time.perf_counter() - start, None

    work()
    found = {"device": "OpenBLAS by numpy"} | case.judged(C, work)
    time.sleep(REST_SECONDS)
    return found


def _compare(rows: list[Row]) -> None:
    """Fill in how many times as fast as the serial loop and as OpenBLAS each row is."""
    medians = {row["contender"]: row["median_s"] for row in rows}
    for row in rows:
        for peer in ("serial", "openblas"):
            theirs = medians[peer]
            if theirs is None or row["median_s"] is None or row["contender"] == peer:
                continue
            row["versus"][peer] = theirs / row["median_s"]
            if row["device_s"]:
                row["device_versus"][peer] = theirs / row["device_s"]
