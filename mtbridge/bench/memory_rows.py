"""A row of the memory experiments, and the rows as lines of text."""

from __future__ import annotations

import os
import statistics
from itertools import groupby
from typing import TYPE_CHECKING, Any, TypeAlias

from mtbridge.bench.measure import spread

if TYPE_CHECKING:
    from mtbridge.compute.opencl_memory import MemoryDevice

Row: TypeAlias = dict[str, Any]


def row(
    device: MemoryDevice,
    case: str,
    dtype: str,
    contender: str,
    seconds: list[float] | None,
    worked: list[float] | None = None,
    *,
    by_host: bool = False,
    moved: int | None = None,
    error: float | None = None,
    note: str = "",
    peer: tuple[str, list[float] | None] | None = None,
) -> Row:
    """Return one row; without `seconds` it was not run, and `note` says why.

    It is judged by the seconds that the device worked, or, `by_host`, by those that the host waited.
    """
    judged = statistics.median(seconds if by_host or not worked else worked) if seconds else None
    versus = {}
    if judged and peer is not None and peer[1]:
        versus = {peer[0]: statistics.median(peer[1]) / judged}
    return {
        "case": case,
        "dtype": dtype,
        "contender": contender,
        "device": device.name,
        "threads": os.cpu_count() or 1,
        "median_s": statistics.median(seconds) if seconds else None,
        "spread_s": spread(seconds) if seconds else None,
        "gflops": None,
        "error": error,
        "note": note,
        "versus": versus,
        "gb_per_s": 1e-9 * moved / judged if judged and moved is not None else None,
        "device_s": statistics.median(worked) if worked else None,
    }


def reason(failure: Exception) -> str:
    """Return what went wrong, without what a caller of products could do about it."""
    return str(failure).removesuffix("; try --engine numpy.")


def table(rows: list[Row]) -> str:
    """Return a heading a case and a line a contender; a peer's ratio above 1 means faster than it."""
    lines = []
    for (case, dtype), group in groupby(rows, key=lambda row: (row["case"], row["dtype"])):
        lines += ["", f"{case}, {dtype}", f"  {'':26} {'device us':>11} {'wall us':>11} {'GB/s':>8}  versus"]
        lines += [line(row) for row in group]
    return "\n".join(lines[1:])


def line(row: Row) -> str:
    if row["median_s"] is None:
        return f"  {row['contender']:26} not run: {row['note']}"
    device = "" if row["device_s"] is None else f"{1e6 * row['device_s']:.1f}"
    speed = "" if row["gb_per_s"] is None else f"{row['gb_per_s']:.1f}"
    versus = ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in row["versus"].items())
    note = f"  ({row['note']})" if row["note"] else ""
    figures = f"{device:>11} {1e6 * row['median_s']:11.1f} {speed:>8}"
    return f"  {row['contender']:26} {figures}  {versus}{note}".rstrip()
