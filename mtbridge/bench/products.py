"""Benchmarks of X'X and A B: every engine beside OpenBLAS, array to array, packing and copies counted."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np

from mtbridge.bench.measure import interleaved, spread
from mtbridge.compute import Engine, open_engine
from mtbridge.compute.serial import SerialEngine
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES, Matrix

Say = Callable[[str], None]
# The serial loop is the baseline; past these sizes it would take longer than all else together.
LARGEST_COMPILED, LARGEST_PLAIN = 1000, 128
# Rows of the result that are compared with a float64 (float32 work) or long double (float64 work) reference
CHECKED_ROWS = 16


def measure_gram(sizes: list[int], *, device: str | None, say: Say) -> list[dict[str, Any]]:
    """Return rows for X'X of square matrices; flops are N^3, those of one triangle."""
    return _measure("gram", sizes, device, say)


def measure_multiply(sizes: list[int], *, device: str | None, say: Say) -> list[dict[str, Any]]:
    """Return rows for A B of square matrices; flops are 2 N^3."""
    return _measure("multiply", sizes, device, say)


def _measure(operation: str, sizes: list[int], device: str | None, say: Say) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    engines, missing = _engines(device)
    try:
        for size in sizes:
            for dtype in DTYPES:
                say(f"{operation}, N = {size}, {dtype}")
                rows += _case(operation, size, dtype, engines, missing)
    finally:
        for engine in engines.values():
            engine.close()
    return rows


def _engines(device: str | None) -> tuple[dict[str, Engine], dict[str, str]]:
    engines, missing = {}, {}
    for name in ("opencl", "numpy", "serial"):
        try:
            engines[name] = open_engine(name, device=device)
        except DeviceError as error:
            missing[name] = str(error)
    return engines, missing


def _case(
    operation: str, size: int, dtype: str, engines: dict[str, Engine], missing: dict[str, str]
) -> list[dict[str, Any]]:
    random = np.random.default_rng(size)
    A = random.standard_normal((size, size)).astype(dtype)
    B = random.standard_normal((size, size)).astype(dtype)
    notes = dict(missing)
    works: dict[str, Callable[[], Matrix]] = {}
    for name, engine in engines.items():
        if isinstance(engine, SerialEngine) and size > largest(engine):
            notes[name] = f"not run past N = {largest(engine)} ({engine.device})"
        else:
            works[name] = _engine_work(operation, engine, A, B)
    works["openblas"] = (lambda: A.T @ A) if operation == "gram" else (lambda: A @ B)
    errors = {name: _error(operation, A, B, work()) for name, work in works.items()}
    seconds = interleaved(works)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    flops = size**3 * (1 if operation == "gram" else 2)
    shape = f"{size}x{size}" if operation == "gram" else f"{size}x{size}x{size}"
    rows = []
    for name in ("opencl", "numpy", "serial", "openblas"):
        if name == "openblas":
            where, threads = "OpenBLAS by numpy", _blas_threads()
        else:
            where = engines[name].device if name in engines else ""
            threads = 1 if name == "serial" else os.cpu_count() or 1
        ran = name in medians
        rows.append(
            {
                "case": f"{operation} {shape}",
                "dtype": dtype,
                "contender": name,
                "device": where,
                "threads": threads,
                "median_s": medians[name] if ran else None,
                "spread_s": spread(seconds[name]) if ran else None,
                "gflops": flops / medians[name] / 1e9 if ran else None,
                "error": errors.get(name),
                "note": notes.get(name, ""),
                "versus": {
                    peer: medians[peer] / medians[name]
                    for peer in ("openblas", "numpy")
                    if ran and peer != name and peer in medians
                },
            }
        )
    return rows


def largest(engine: SerialEngine) -> int:
    return LARGEST_COMPILED if engine.compiled else LARGEST_PLAIN


def _engine_work(operation: str, engine: Engine, A: Matrix, B: Matrix) -> Callable[[], Matrix]:
    if operation == "gram":
        return lambda: engine.gram(A)
    return lambda: engine.multiply(A, B)


def _error(operation: str, A: Matrix, B: Matrix, C: Matrix) -> float:
    """Return the largest error of some rows of `C`, as a share of the product of absolute values."""
    wide = np.float64 if A.dtype == np.float32 else np.longdouble
    left = A.T if operation == "gram" else A
    right = A if operation == "gram" else B
    some = np.linspace(0, len(C) - 1, min(CHECKED_ROWS, len(C))).astype(int)
    exact = left[some].astype(wide) @ right.astype(wide)
    scale = np.abs(left[some]).astype(np.float64) @ np.abs(right).astype(np.float64)
    return float((np.abs(C[some] - exact) / scale).max())


def _blas_threads() -> int:
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return os.cpu_count() or 1
    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)
