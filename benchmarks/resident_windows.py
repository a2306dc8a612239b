"""Rolling correlation of 500 symbols on a graphics card, beside the time to write the answer and torch.

    python benchmarks/resident_windows.py OUT.json

The history lies on the device and the matrices stay there; what each window needs to know of each column
is counted. `floor` is a kernel that only writes as many bytes: a ratio to it of 1 would be an answer for the
price of its bytes. Reducers are timed from the history to their numbers on the host.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl

from mtbridge.bench.report import Row, table, write_json
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.reducers import (
    LargestEigenvalue,
    MeanOffDiagonal,
    Pairs,
    QuadraticForm,
    TopPairs,
    reduced,
)
from mtbridge.compute.sequence import Wanted
from mtbridge.compute.windows import Rolling

SYMBOLS, ROWS, WINDOW = 500, 5000, 60
CASE = f"rolling corr {SYMBOLS}x{ROWS}x{WINDOW}"
ROUNDS, TOGETHER = 7, 4
CHECKED = 6

FLOOR = """
__kernel void floor_of(__global float4 *answer, const float value, const ulong count)
{
    for (ulong k = get_global_id(0); k < count; k += get_global_size(0))
        answer[k] = (float4)(value);
}
"""


def prices() -> Any:
    """Return price levels near 1.1 that share five factors, float64 of shape (ROWS, SYMBOLS)."""
    random = np.random.default_rng(5)
    shared = random.standard_normal((ROWS, 5)) @ random.standard_normal((5, SYMBOLS))
    steps = 1e-3 * (0.3 * shared + random.standard_normal((ROWS, SYMBOLS)))
    return 1.1 * np.exp(np.cumsum(steps, axis=0))


def timed(ready: Callable[[], Callable[[], object]], finish: Callable[[], object], together: int) -> Row:
    """Return the median seconds of a call, some of them queued together and made ready before the clock."""
    found = []
    for _ in range(ROUNDS + 1):
        calls = [ready() for _ in range(together)]
        finish()
        start = time.perf_counter()
        for call in calls:
            call()
        finish()
        found.append((time.perf_counter() - start) / together)
    found = found[1:]
    return {"median_s": statistics.median(found), "spread_s": (max(found) - min(found)) / 2}


def largest_error(engine: OpenCLEngine, X: Any, plan: Rolling, wanted: Wanted, target: Any) -> float:
    """Return the largest distance of some windows in `target` from their correlations in long double."""
    worst = 0.0
    size = int(np.prod(wanted.shape(SYMBOLS)))
    found = np.empty(size, wanted.dtype)
    for window in np.linspace(0, len(plan) - 1, CHECKED).astype(int):
        engine.kernels_device.downloaded(target, found, offset=int(window) * found.nbytes)
        Z = X[plan.first[window] : plan.last[window] + 1].astype(np.longdouble)
        Z = Z - Z.mean(axis=0)
        Z = Z / np.sqrt((Z * Z).sum(axis=0))
        exact = Z.T @ Z
        exact = exact[np.triu_indices(SYMBOLS)] if wanted.packed else exact.ravel()
        error = float(np.abs(found - exact).max())
        worst = max(worst, np.inf if np.isnan(error) else error)
    return worst


def main() -> None:
    """Check, measure, print the table and write it to the file named on the command line."""
    X, count = prices(), ROWS - WINDOW + 1
    plan = Rolling(np.arange(count), np.arange(count) + WINDOW - 1)
    rows: list[Row] = []
    with open_opencl("gpu") as engine:
        device = engine.kernels_device
        context = device.queue.context
        target = cl.Buffer(context, cl.mem_flags.READ_WRITE, count * SYMBOLS * SYMBOLS * 8)
        kernel = cl.Kernel(cl.Program(context, FLOOR).build(), "floor_of")
        for dtype in (np.dtype(np.float64), np.dtype(np.float32)):
            for packed in (False, True):
                wanted = Wanted("correlation", packed=packed, dtype=dtype)
                size = count * int(np.prod(wanted.shape(SYMBOLS))) * dtype.itemsize

                def fill(size: int = size) -> Callable[[], object]:
                    numbers = np.float32(np.nan), np.uint64(size // 16)
                    return lambda: kernel(device.queue, (132 * 2048,), (256,), target, *numbers)

                def write(wanted: Wanted = wanted) -> Callable[[], object]:
                    sequence: Any = engine.sequence(X, plan, wanted)
                    return lambda: (sequence.take(target, count), sequence)

                floor = timed(fill, engine.finish, TOGETHER)
                ours = timed(write, engine.finish, TOGETHER)
                error = largest_error(engine, X, plan, wanted, target)
                name = "opencl packed" if packed else "opencl"
                bare = {"contender": f"floor of {name}", "error": None, "versus": {}, "note": ""}
                mine = {"contender": name, "error": error, "note": "resident"}
                mine["versus"] = {"floor": floor["median_s"] / ours["median_s"]}
                for row in (floor | bare, ours | mine):
                    rows.append({"case": CASE, "dtype": dtype.name, "device": engine.device, **row})
        target.release()
        weights = np.full(SYMBOLS, 1 / SYMBOLS)
        for name, reducer in (
            ("mean", MeanOffDiagonal()),
            ("pairs", Pairs((0, 1), (2, 3))),
            ("variance", QuadraticForm(weights)),
            ("top 10", TopPairs(10)),
            ("eigenvalue", LargestEigenvalue()),
        ):
            one: Any = reducer

            def reduce(one: Any = one) -> Callable[[], object]:
                sequence = engine.sequence(X, plan, Wanted("correlation"))
                return lambda: reduced(sequence, one)

            found = timed(reduce, engine.finish, 1)
            found |= {
                "contender": f"opencl {name}",
                "error": None,
                "versus": {},
                "note": "to numbers on the host",
            }
            rows.append({"case": CASE, "dtype": "float64", "device": engine.device, **found})
    rows += by_torch(X)
    for row in rows:
        row |= {"threads": None, "gflops": None}
    peers = {row["dtype"]: row["median_s"] for row in rows if row["contender"] == "torch"}
    for row in rows:
        if row["contender"] == "opencl" and row["dtype"] in peers:
            row["versus"]["torch"] = peers[row["dtype"]] / row["median_s"]
    write_json(rows, Path(sys.argv[1]))
    print(table(rows))


def by_torch(X: Any) -> list[Row]:
    """Return rows of the same matrices by torch: windows unfolded, normalised, and multiplied in a batch."""
    try:
        import torch
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    torch.backends.cuda.matmul.allow_tf32 = False
    rows = []
    for name in ("float64", "float32"):
        centred = torch.from_numpy(X - X.mean(axis=0)).cuda().to(getattr(torch, name))

        def work(centred: Any = centred) -> object:
            Z = centred.unfold(0, WINDOW, 1)
            Z = Z - Z.mean(2, keepdim=True)
            Z = Z / Z.norm(dim=2, keepdim=True)
            return torch.bmm(Z, Z.transpose(1, 2))

        found = timed(lambda work=work: work, torch.cuda.synchronize, 1)
        found |= {"contender": "torch", "device": torch.cuda.get_device_name(), "error": None, "versus": {}}
        rows.append({"case": CASE, "dtype": name, "note": "unfold and bmm", **found})
    return rows


if __name__ == "__main__":
    main()
