"""What a device can do at most, measured in the same run: multiply-adds a second, and bytes a second.

Tensor cores are no part of the first: a family that uses them may pass it.
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mtbridge.bench.memory_cases import LARGE, SMALL, copy_case
from mtbridge.bench.memory_kernels import case_rows

if TYPE_CHECKING:
    from mtbridge.bench.gpu_device import ResidentDevice

Row = dict[str, Any]

ASKED = ("name", "power.limit", "clocks.sm", "clocks.max.sm", "driver_version")
ANSWER_SECONDS = 20


def fma_row(device: ResidentDevice, dtype: str, *, rounds: int) -> Row:
    """Return the row of multiply-adds on registers in one type; there are `device.fp64` alone for float64."""
    import numpy as np

    best = max(device.peak(np.dtype(dtype)) for _ in range(rounds))
    return ceiling("fma", dtype, device) | {
        "gflops": best / 1e9,
        "note": f"kernels/peak.cl, best of {rounds}",
    }


def copy_row(device: ResidentDevice) -> Row:
    """Return the row of copying far more than caches hold, by the fastest of several ways."""
    case = copy_case((SMALL if device.kind == "cpu" else LARGE).copied // 4, 0, "float32")
    together = tuple(one for one in case.contenders if not one.name.startswith("strided"))
    ran = [row for row in case_rows(device, replace(case, contenders=together)) if row["gb_per_s"]]
    blank = ceiling("copy", "float32", device)
    if not ran:
        return blank | {"note": "no way to copy gave the right numbers"}
    best = max(ran, key=lambda row: float(row["gb_per_s"]))
    note = f"{case.name}: {best['contender']}; bytes read and written"
    return blank | {"median_s": best["device_s"], "gb_per_s": best["gb_per_s"], "note": note}


def ceiling(name: str, dtype: str, device: ResidentDevice) -> Row:
    """Return the row of a ceiling without its figure."""
    return blank_row(f"ceiling {name}", dtype, "opencl", device.name)


def blank_row(case: str, dtype: str, contender: str, device: str, note: str = "") -> Row:
    """Return a row of what did not run; the keys are those of every benchmark, and some of this one.

    `fastest_s` and `slowest_s` are of the windows, `wall_s` is what the host waits for one run, `gb_per_s`
    counts bytes of the answer, `shares` maps a ceiling to the part of it that was reached, `bias` is the mean
    relative error of a diagonal.
    """
    return {
        "case": case,
        "dtype": dtype,
        "contender": contender,
        "device": device,
        "threads": None,
        "median_s": None,
        "spread_s": None,
        "fastest_s": None,
        "slowest_s": None,
        "wall_s": None,
        "gflops": None,
        "gb_per_s": None,
        "shares": {},
        "error": None,
        "bias": None,
        "same_bits": None,
        "note": note,
        "versus": {},
    }


def cards() -> list[dict[str, str]]:
    """Return what nvidia-smi says of each card now: its power limit, clocks, driver; nothing without it."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    words = [program, f"--query-gpu={','.join(ASKED)}", "--format=csv,noheader"]
    try:
        # the driver's own program, found on the path
        done = subprocess.run(  # noqa: S603
            words, capture_output=True, text=True, check=True, timeout=ANSWER_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return []
    lines = [line.split(", ") for line in done.stdout.splitlines() if line.strip()]
    return [dict(zip(ASKED, line, strict=True)) for line in lines if len(line) == len(ASKED)]
