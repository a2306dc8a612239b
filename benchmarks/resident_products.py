"""Products of matrices that already lie on a device, beside cuBLAS by torch in the same process.

    python benchmarks/resident_products.py OUT.json

Everything after the input is on the device is counted: packing, the product, the mirror. First answers are
compared with a wider reference on awkward sizes, then with float64 products of torch at full size.
A row has the shape of `mtbridge bench`; torch, and cuBLAS's own X'X by cupy, which fills one triangle only,
are left out where they, or their device, are not there.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from mtbridge.bench.report import Row, table, write_json
from mtbridge.compute import operations
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl

AWKWARD = ((1, 1, 1), (2, 3, 1), (31, 37, 11), (127, 129, 65), (255, 257, 129), (1000, 7, 1000), (7, 1000, 7))
SIZES = (1000, 2048, 4096, 8192)
# Rows and columns of further X'X in float64: many rows, and many columns
FURTHER = ((1_000_000, 200), (2500, 20_000))
# Rows and columns whose crossings are checked
CHECKED = 24
WARM_UPS, ROUNDS = 3, 9
CENTRE = 1000


def check(engine: OpenCLEngine, rows: int, inner: int, columns: int, dtype: type[Any]) -> None:
    """Compare one size's answers with float64 (float32 work) or long double (float64 work).

    Raises
    ------
    ArithmeticError
        If an error passes ``terms * eps * (|A| |B|)``, a gram is not symmetric, or a correlation is wrong.
    """
    random = np.random.default_rng(1)
    wide = np.float64 if dtype is np.float32 else np.longdouble
    A: Any = random.standard_normal((rows, inner)).astype(dtype)
    B: Any = random.standard_normal((inner, columns)).astype(dtype)
    exact, size = A.astype(wide) @ B.astype(wide), np.abs(A).astype(wide) @ np.abs(B).astype(wide)
    square, weight = A.T.astype(wide) @ A.astype(wide), np.abs(A.T).astype(wide) @ np.abs(A).astype(wide)
    eps = np.finfo(dtype).eps
    for left in (A, np.asfortranarray(A)):
        gram = engine.gram(left)
        level = left + dtype(CENTRE)
        checks = {
            "multiply": (np.abs(engine.multiply(left, B) - exact) <= inner * eps * size).all(),
            "gram": (np.abs(gram - square) <= rows * eps * weight).all(),
            "symmetry": np.array_equal(gram, gram.T),
            # with one row there is none, and numpy warns where it says so
            "correlation": rows < 2
            or np.allclose(
                operations.correlation(level, engine=engine).matrix,
                np.corrcoef(level.astype(np.float64), rowvar=False),
                rtol=0,
                atol=1e-6,
            ),
        }
        wrong = [name for name, holds in checks.items() if not holds]
        if wrong:
            raise ArithmeticError(f"{', '.join(wrong)} wrong at {rows}x{inner}x{columns} {dtype.__name__}")


def seconds(work: Callable[[], object], finish: Callable[[], object]) -> list[float]:
    """Return wall seconds of `ROUNDS` calls, each waited for, after some that warm up."""
    times = []
    for _ in range(WARM_UPS + ROUNDS):
        finish()
        start = time.perf_counter()
        work()
        finish()
        times.append(time.perf_counter() - start)
    return times[WARM_UPS:]


def case(engine: OpenCLEngine, operation: str, rows: int, columns: int, dtype: str, torch: Any) -> list[Row]:
    """Return the rows of one operation at one size: ours and, with torch, cuBLAS.

    The products are (rows, columns) by (columns, columns), and X'X of (rows, columns).
    """
    random = np.random.default_rng(columns)
    gram = operation == "gram"
    A = random.standard_normal((rows, columns)).astype(dtype)
    B = A if gram else random.standard_normal((columns, columns)).astype(dtype)
    a: Any = engine.upload(A)
    b: Any = engine.upload(B)
    row = {
        "case": f"gram {rows}x{columns}" if gram else f"multiply {rows}x{columns}x{columns}",
        "dtype": dtype,
        "device": engine.device,
        "threads": None,
    }
    flops = rows * columns**2 * (1 if gram else 2)

    def ours() -> Any:
        return engine.gram(a) if gram else engine.multiply(a, b)

    mine = measured(seconds(ours, engine.finish), flops)
    mine |= {"contender": "opencl", "note": "resident", "versus": {}}
    mine["error"] = largest_error(A.T if gram else A, A if gram else B, engine.download(ours()))
    if torch is None:
        return [row | mine]

    first, second = torch.from_numpy(A).cuda(), torch.from_numpy(B).cuda()
    left, right = (first.T, first) if gram else (first, second)
    peer = measured(seconds(lambda: left @ right, torch.cuda.synchronize), flops)
    peer |= {"contender": "cublas", "versus": {}}
    peer["error"] = largest_error(A.T if gram else A, A if gram else B, (left @ right).cpu().numpy())
    peer["note"] = "torch matmul, N^3 flops counted for gram" if gram else "torch matmul"
    mine["versus"] = {"cublas": peer["median_s"] / mine["median_s"]}
    found = [row | mine, row | peer]
    if gram and (triangle := one_triangle(torch, first)) is not None:
        half = measured(seconds(triangle, torch.cuda.synchronize), flops)
        half |= {"contender": "cublas syrk", "note": "by cupy, one triangle only", "versus": {}}
        C = triangle()
        half["error"] = largest_error(A.T, A, (torch.tril(C) + torch.tril(C, -1).T).cpu().numpy())
        mine["versus"]["cublas syrk"] = half["median_s"] / mine["median_s"]
        found.append(row | half)
    return found


def one_triangle(torch: Any, X: Any) -> Callable[[], Any] | None:
    """Return what computes the lower triangle of X'X by cuBLAS's syrk; None without cupy."""
    try:
        from cupy.cuda.device import get_cublas_handle
        from cupy_backends.cuda.libs import cublas
    except ImportError:
        return None
    inner, columns = X.shape
    syrk = cublas.ssyrk if X.dtype == torch.float32 else cublas.dsyrk
    C = torch.zeros((columns, columns), dtype=X.dtype, device="cuda")
    one, zero = (np.array(value, str(X.dtype).removeprefix("torch.")) for value in (1, 0))
    handle = get_cublas_handle()

    def work() -> Any:
        # column by column, as cuBLAS reads it, X is its transpose, and the upper triangle is our lower one
        upper, straight = 1, 0
        factors = (one.ctypes.data, X.data_ptr(), columns, zero.ctypes.data, C.data_ptr(), columns)
        syrk(handle, upper, straight, columns, inner, *factors)
        return C

    return work


def largest_error(left: Any, right: Any, found: Any) -> float:
    """Return the largest error of a grid of elements, as a share of the products' absolute values.

    The reference is float64 for float32 work and long double for float64 work.
    """
    wide = np.float64 if found.dtype == np.float32 else np.longdouble
    rows, columns = (np.linspace(0, length - 1, CHECKED).astype(int) for length in found.shape)
    some, others = left[rows].astype(wide), right[:, columns].astype(wide)
    error = np.abs(found[np.ix_(rows, columns)] - some @ others)
    return float((error / (np.abs(some) @ np.abs(others))).max())


def measured(times: list[float], flops: int) -> Row:
    median = statistics.median(times)
    return {"median_s": median, "spread_s": (max(times) - min(times)) / 2, "gflops": flops / median / 1e9}


def torch_with_device() -> Any:
    """Return torch, with float32 products in float32, or None where there is no device for it."""
    try:
        import torch
    except ImportError:
        return None
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch if torch.cuda.is_available() else None


def main() -> None:
    """Check, measure, print the table and write it to the file named on the command line."""
    torch = torch_with_device()
    rows: list[Row] = []
    with open_opencl("gpu") as engine:
        for sizes in AWKWARD:
            for dtype in (np.float32, np.float64):
                check(engine, *sizes, dtype)
        print(f"{engine.device}: all answers right at {len(AWKWARD)} awkward sizes", flush=True)
        for operation in ("multiply", "gram"):
            for name in ("float32", "float64"):
                for size in SIZES:
                    rows += case(engine, operation, size, size, name, torch)
        for tall, wide in FURTHER:
            rows += case(engine, "gram", tall, wide, "float64", torch)
    write_json(rows, Path(sys.argv[1]))
    print(table(rows))


if __name__ == "__main__":
    main()
