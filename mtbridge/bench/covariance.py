"""Benchmark of the covariance matrix: arrays beside np.cov, and DataFrames beside DataFrame.cov."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbridge import frame
from mtbridge.bench.contenders import (
    Contender,
    Engines,
    Plan,
    Row,
    Say,
    Shape,
    blas_threads,
    measured,
    normal,
    wider,
)
from mtbridge.matrix import DTYPES, Matrix

DEFAULT_SHAPES: tuple[Shape, ...] = ((2_000, 500),)


def measure_covariance(plan: Plan, say: Say) -> list[Row]:
    """Return rows for the covariance matrix of standard normal numbers.

    The flops are those of one triangle of X'X; the error of an element is a share of the root of the product
    of its two variances.
    """
    rows: list[Row] = []
    with Engines(plan.device) as engines:
        for shape in plan.shapes:
            for dtype in DTYPES:
                say(f"covariance {shape[0]}x{shape[1]}, {dtype}")
                rows += _case(plan, shape, dtype, engines)
    return rows


def _case(plan: Plan, shape: Shape, dtype: str, engines: Engines) -> list[Row]:
    import pandas as pd

    X = normal((shape[0], shape[1]), dtype, seed=shape[0])
    table = pd.DataFrame(X)
    size = f"{shape[0]}x{shape[1]}"
    multiplications = X.size * X.shape[1]
    wide = X.astype(wider(X.dtype))
    wide -= wide.mean(axis=0)
    deviations = np.sqrt((wide**2).sum(axis=0) / (len(X) - 1))

    def error(found: Matrix, some: NDArray[np.int64]) -> Matrix:
        exact = wide[:, some].T @ wide / (len(X) - 1)
        shares: Matrix = np.abs(found - exact) / np.outer(deviations[some], deviations)
        return shares.astype(np.float64)

    arrays = [
        engines.contender(name, multiplications, lambda engine: frame.covariance(X, engine=engine))
        for name in ("opencl", "numpy", "serial")
    ]
    np_cov = Contender(
        name="np.cov",
        device=f"numpy {np.__version__}",
        threads=blas_threads(),
        work=lambda: np.cov(X, rowvar=False, dtype=X.dtype),
    )
    frames = [
        engines.contender(name, multiplications, lambda engine: frame.covariance(table, engine=engine))
        for name in ("opencl", "numpy")
    ]
    pandas = Contender(
        name="pandas",
        device=f"pandas {pd.__version__}",
        threads=blas_threads(),
        work=table.cov,
        note="" if dtype == "float64" else "computes in float64",
    )
    rows = []
    for case, contenders, peers in (
        (f"covariance {size}", [*arrays, np_cov], ("np.cov", "numpy")),
        (f"covariance frame {size}", [*frames, pandas], ("pandas", "numpy")),
    ):
        rows += measured(
            case,
            dtype,
            contenders,
            flops=multiplications,
            error=error,
            versus=peers,
            rounds=plan.rounds,
        )
    return rows
