"""Benchmarks of X'X and A B: every engine beside its peers, array to array, packing and copies counted."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

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
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES, Matrix

PEERS = ("numpy", "openblas", "clblast")
DEFAULT_PEERS = ("numpy", "openblas")
# Beside squares: tall, wide, a single row, and sizes that no tile divides
ODD_SHAPES: dict[str, tuple[Shape, ...]] = {
    "gram": ((100_000, 50), (60, 5_000), (1, 5_000), (997, 1_003)),
    "multiply": ((100_000, 50, 50), (50, 100_000, 50), (60, 5_000, 60), (1, 5_000, 1_000), (997, 1_003, 991)),
}


def square(operation: str, size: int) -> Shape:
    """Return the shape of a case of square matrices."""
    return (size, size) if operation == "gram" else (size, size, size)


def measure_products(plan: Plan, say: Say) -> list[Row]:
    """Return rows for X'X, whose flops are those of one triangle, or for A B."""
    rows: list[Row] = []
    with Engines(plan.device) as engines:
        for shape in plan.shapes:
            for dtype in DTYPES:
                say(f"{plan.operation} {named(shape)}, {dtype}")
                rows += _case(plan, shape, dtype, engines)
    return rows


def named(shape: Shape) -> str:
    return "x".join(map(str, shape))


def _case(plan: Plan, shape: Shape, dtype: str, engines: Engines) -> list[Row]:
    gram = plan.operation == "gram"
    A = normal((shape[0], shape[1]), dtype, seed=shape[0])
    B = A if gram else normal((shape[1], shape[2]), dtype, seed=shape[0] + 1)
    multiplications = A.size * B.shape[1]
    contenders = [
        engines.contender(
            name,
            multiplications,
            (lambda engine: engine.gram(A)) if gram else (lambda engine: engine.multiply(A, B)),
        )
        for name in ("opencl", "numpy", "serial")
        if name not in PEERS or name in plan.peers
    ]
    if "openblas" in plan.peers:
        contenders.append(
            Contender(
                name="openblas",
                device="OpenBLAS by numpy",
                threads=blas_threads(),
                work=(lambda: A.T @ A) if gram else (lambda: A @ B),
            )
        )
    if "clblast" in plan.peers:
        contenders.append(_clblast(engines, A, None if gram else B))
    left = A.T if gram else A

    def error(found: Matrix, some: NDArray[np.int64]) -> Matrix:
        # as shares of the product of absolute values
        wide = wider(A.dtype)
        exact = left[some].astype(wide) @ B.astype(wide)
        weight = np.abs(left[some]).astype(np.float64) @ np.abs(B).astype(np.float64)
        shares: Matrix = (np.abs(found - exact) / weight).astype(np.float64)
        return shares

    return measured(
        f"{plan.operation} {named(shape)}",
        dtype,
        contenders,
        flops=multiplications * (1 if gram else 2),
        error=error,
        versus=tuple(name for name in ("openblas", "numpy", "clblast") if name in plan.peers),
        rounds=plan.rounds,
    )


def _clblast(engines: Engines, A: Matrix, B: Matrix | None) -> Contender:
    """Return the row of CLBlast for A B, or for A'A where there is no `B`."""
    engine = engines.opencl
    if engine is None:
        return Contender(name="clblast", note=engines.missing["opencl"])
    from mtbridge.compute.opencl_clblast import Clblast

    try:
        peer = Clblast(engine)
    except DeviceError as fault:
        return Contender(name="clblast", note=str(fault))
    return Contender(
        name="clblast",
        device=engine.device,
        threads=engine.host_threads,
        work=(lambda: peer.gram(A)) if B is None else (lambda: peer.multiply(A, B)),
        note="one triangle, not mirrored" if B is None else "",
        triangle=B is None,
    )
