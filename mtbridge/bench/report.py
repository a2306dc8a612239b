"""Rows of a benchmark as a table, and as JSON beside the machine's description."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from mtbridge.compute.devices import survey
from mtbridge.sources import PACKAGE

Row = dict[str, Any]

GIT_SECONDS = 30.0


def machine() -> dict[str, Any]:
    """Return what the figures were measured on."""
    model = platform.processor()
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        model = next(
            line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")
        )
    except (OSError, StopIteration):
        pass
    packages = (
        "mtbridge",
        "numpy",
        "pyopencl",
        "pyzmq",
        "numba",
        "numbagg",
        "pandas",
        "polars",
        "pocl-binary-distribution",
        "intel-opencl-rt",
        "torch",
        "cupy-cuda12x",
        "cupy-cuda13x",
    )
    versions = {}
    for package in packages:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    drivers = sorted({verdict.key for verdict in survey().verdicts if verdict.ok})
    return {
        "processor": model,
        "drivers": drivers,
        "commit": commit(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "packages": versions,
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def commit() -> str:
    """Return the commit of the checkout that runs, marked if it was changed; empty for an installed one.

    Empty too where git cannot be run or does not answer in time.
    """
    if not (PACKAGE.parent / ".git").exists() or not (git := shutil.which("git")):
        return ""
    words = [git, "-C", str(PACKAGE.parent), "describe", "--always", "--dirty", "--abbrev=12"]
    try:
        # git itself, asked about the folder of this package
        done = subprocess.run(  # noqa: S603
            words, capture_output=True, text=True, check=False, timeout=GIT_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return ""
    return done.stdout.strip()


def write_json(rows: list[Row], path: Path, **more: Any) -> None:
    """Write ``{"machine": ..., "rows": [...]}``; `more` is what else is known of the machine."""
    text = msgspec.json.format(msgspec.json.encode({"machine": {**machine(), **more}, "rows": rows}))
    path.write_bytes(text + b"\n")


def table(rows: list[Row]) -> str:
    """Return the rows as lines of text; a peer's ratio above 1 means that we are faster."""
    lines = [
        f"{'case':28} {'dtype':8} {'contender':10} {'threads':>7} {'median ms':>10} {'GFLOP/s':>8} "
        f"{'error':>8}  versus"
    ]
    for row in rows:
        if row["median_s"] is None:
            lines.append(f"{row['case']:28} {row['dtype']:8} {row['contender']:10} not run: {row['note']}")
            continue
        speed = "" if row["gflops"] is None else f"{row['gflops']:.1f}"
        error = "" if row["error"] is None else f"{row['error']:.0e}"
        versus = ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in row["versus"].items())
        extra = f"  ({row['note']})" if row["note"] else ""
        threads = "" if row["threads"] is None else row["threads"]
        lines.append(
            f"{row['case']:28} {row['dtype']:8} {row['contender']:10} {threads:>7} "
            f"{1e3 * row['median_s']:10.3f} "
            f"{speed:>8} {error:>8}  {versus}{extra}"
        )
    return "\n".join(lines)
