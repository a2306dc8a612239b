"""A benchmark on all threads, on one, or on both.

How many threads an OpenCL device on the processor has is settled when its runtime starts. So the rows of one
thread come from a child process: it is given one core and told so, and the same holds for the BLAS there.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any, Literal

import msgspec

from mtbridge.bench.contenders import Plan, Row, Say
from mtbridge.errors import DeviceError
from mtbridge.sources import PACKAGE

ONE_THREAD = dict.fromkeys(
    (
        "POCL_MAX_PTHREAD_COUNT",
        "OPENBLAS_NUM_THREADS",
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "VECLIB_MAXIMUM_THREADS",
    ),
    "1",
)


def measure(plan: Plan, threads: Literal["1", "all", "both"], say: Say) -> list[Row]:
    """Return the rows of a plan; with both, those of one thread stand behind the others of their case.

    Raises
    ------
    DeviceError
        If the child process ends before its time.
    """
    rows: list[Row] = [] if threads == "1" else measure_here(plan, say)
    if threads != "all":
        say("the same on one thread")
        rows += measure_in_child(plan)
    cases: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        cases.setdefault((row["case"], row["dtype"]), []).append(row)
    return [row for case in cases.values() for row in case]


def measure_here(plan: Plan, say: Say) -> list[Row]:
    """Return the rows of a plan, measured in this process."""
    if plan.operation == "covariance":
        from mtbridge.bench.covariance import measure_covariance

        return measure_covariance(plan, say)
    from mtbridge.bench.products import measure_products

    return measure_products(plan, say)


def measure_in_child(plan: Plan) -> list[Row]:
    """Return the rows of a plan on one thread; what the child says goes to stderr."""
    # as for the probe of a device: no package from the current folder, but this one if it is a checkout
    home = os.pathsep.join(filter(None, (str(PACKAGE.parent), os.environ.get("PYTHONPATH"))))
    # our own module, with a plan that we made
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-P", "-m", "mtbridge.bench.one_thread", msgspec.json.encode(plan).decode()],
        stdout=subprocess.PIPE,
        check=False,
        env={**os.environ, **ONE_THREAD, "PYTHONPATH": home},
    )
    if done.returncode:
        raise DeviceError(
            f"measuring on one thread ended with code {done.returncode}; --threads all goes without it."
        )
    rows: list[dict[str, Any]] = msgspec.json.decode(done.stdout.splitlines()[-1])
    for row in rows:
        if row["threads"] != 1:
            alone = f"this runtime still uses {row['threads']} threads"
            row["note"] = f"{row['note']}; {alone}" if row["note"] else alone
    return rows


def main() -> None:
    """Measure the plan in the first argument and print the rows as one line of JSON."""
    plan = msgspec.json.decode(sys.argv[1], type=Plan)
    rows = measure_here(plan, lambda text: print(f"{text}, one thread", file=sys.stderr, flush=True))
    print(msgspec.json.encode(rows).decode())


def keep_one_core() -> None:
    """Give this process one core, where the system lets it choose; runtimes that start later count cores."""
    if sys.platform != "win32" and hasattr(os, "sched_setaffinity"):
        # the first core is the one that most interrupts go to
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


if __name__ == "__main__":
    keep_one_core()
    main()
