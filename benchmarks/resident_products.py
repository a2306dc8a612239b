"""Products of matrices that already lie on a device, beside cuBLAS by torch in the same process.

    python benchmarks/resident_products.py OUT.json

Everything after the input is on the device is counted: packing, the product, the mirror. First each shape's
answer is compared with a float64 reference on awkward sizes, then with torch's float64 product at full size.
A row has the shape of `mtbridge bench`; torch is left out where it, or its device, is not there.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mtbridge.bench.report import table, write_json
from mtbridge.compute import operations
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl

AWKWARD = ((1, 1, 1), (2, 3, 1), (31, 37, 11), (127, 129, 65), (255, 257, 129), (1000, 7, 1000), (7, 1000, 7))
SIZES = (1000, 2048, 4096, 8192)
ROUNDS = 7


def check(engine: OpenCLEngine) -> None:
    """Compare with float64 (float32 work) or long double (float64 work); raise where a bound is passed."""
    random = np.random.default_rng(1)
    for rows, inner, columns in AWKWARD:
        for dtype, wide in ((np.float32, np.float64), (np.float64, np.longdouble)):
            A = random.standard_normal((rows, inner)).astype(dtype)
            B = random.standard_normal((inner, columns)).astype(dtype)
            for left in (A, np.asfortranarray(A)):
                bound = inner * np.finfo(dtype).eps * (np.abs(A).astype(wide) @ np.abs(B).astype(wide))
                error = np.abs(engine.multiply(left, B) - A.astype(wide) @ B.astype(wide))
                assert (error <= bound).all(), (rows, inner, columns, dtype)
                bound = rows * np.finfo(dtype).eps * (np.abs(A.T).astype(wide) @ np.abs(A).astype(wide))
                gram = engine.gram(left)
                assert (np.abs(gram - A.T.astype(wide) @ A.astype(wide)) <= bound).all(), (rows, inner, dtype)
                assert (gram == gram.T).all()
            if rows > 2:
                level = A * dtype(1e-3) + dtype(1e5)
                found = operations.correlation(level, engine=engine).matrix
                exact = np.corrcoef(level.astype(np.float64), rowvar=False)
                assert np.allclose(found, exact, rtol=0, atol=1e-6, equal_nan=True)
    print("awkward sizes agree", flush=True)


def seconds(work: Callable[[], object], finish: Callable[[], object]) -> list[float]:
    """Return wall seconds of `ROUNDS` calls, each waited for, after two that warm up."""
    times = []
    for _ in range(ROUNDS + 2):
        finish()
        start = time.perf_counter()
        work()
        finish()
        times.append(time.perf_counter() - start)
    return times[2:]


def case(engine: OpenCLEngine, operation: str, size: int, dtype: str, torch: Any) -> list[dict[str, Any]]:
    random = np.random.default_rng(size)
    A, B = (random.standard_normal((size, size)).astype(dtype) for _ in range(2))
    a, b = engine.upload(A), engine.upload(B)
    work = (lambda: engine.gram(a)) if operation == "gram" else (lambda: engine.multiply(a, b))
    ours = seconds(work, engine.finish)
    found = engine.download(work())
    found_error, peer_times = None, None
    if torch is not None:
        ta, tb = torch.from_numpy(A).cuda(), torch.from_numpy(B).cuda()
        peer = (lambda: ta.T @ ta) if operation == "gram" else (lambda: ta @ tb)
        peer_times = seconds(peer, torch.cuda.synchronize)
        left, right = (ta.T if operation == "gram" else ta), (ta if operation == "gram" else tb)
        exact = left.double() @ right.double()
        scale = left.double().abs() @ right.double().abs()
        error = ((torch.from_numpy(found).cuda().double() - exact).abs() / scale).max()
        found_error = float(error)
    flops = size**3 * (1 if operation == "gram" else 2)
    shape = f"{size}x{size}" if operation == "gram" else f"{size}x{size}x{size}"
    rows = []
    for name, times in (("opencl", ours), ("cublas", peer_times)):
        if times is None:
            continue
        median = statistics.median(times)
        versus = {}
        if name == "opencl" and peer_times is not None:
            versus = {"cublas": statistics.median(peer_times) / median}
        rows.append(
            {
                "case": f"{operation} {shape}",
                "dtype": dtype,
                "contender": name,
                "device": engine.device,
                "threads": None,
                "median_s": median,
                "spread_s": (max(times) - min(times)) / 2,
                "gflops": flops / median / 1e9,
                "error": found_error if name == "opencl" else None,
                "note": "resident, tiled form" if name == "opencl" else "torch matmul, N^3 flops counted for gram",
                "versus": versus,
            }
        )
    return rows


def main() -> None:
    try:
        import torch

        torch.backends.cuda.matmul.allow_tf32 = False
        if not torch.cuda.is_available():
            torch = None
    except ImportError:
        torch = None
    rows = []
    with open_opencl("gpu") as engine:
        check(engine)
        for operation in ("multiply", "gram"):
            for dtype in ("float32", "float64"):
                for size in SIZES:
                    rows += case(engine, operation, size, dtype, torch)
                    print(table(rows[-2:]).splitlines()[-2:], flush=True)
    write_json(rows, Path(sys.argv[1]))
    print(table(rows))


if __name__ == "__main__":
    main()
