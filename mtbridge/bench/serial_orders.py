"""The serial product in all six orders of its loops: r the rows of A, cr the inner index, c the columns of B.

Compiled by numba with vectorising switched off, so that they stay the loops that MQL5 runs; plain Python
where numba is not installed. Each adds to a C of zeros, as the article's do. The sixth, r-cr-c, is
the serial engine's own.
"""

from __future__ import annotations

from functools import cache

from mtbridge.compute.serial import Loop, compiled, multiply_loop
from mtbridge.matrix import Matrix


def r_c_cr(A: Matrix, B: Matrix, C: Matrix) -> None:
    for r in range(A.shape[0]):
        for c in range(B.shape[1]):
            for cr in range(A.shape[1]):
                C[r, c] += A[r, cr] * B[cr, c]


def c_r_cr(A: Matrix, B: Matrix, C: Matrix) -> None:
    for c in range(B.shape[1]):
        for r in range(A.shape[0]):
            for cr in range(A.shape[1]):
                C[r, c] += A[r, cr] * B[cr, c]


def c_cr_r(A: Matrix, B: Matrix, C: Matrix) -> None:
    for c in range(B.shape[1]):
        for cr in range(A.shape[1]):
            for r in range(A.shape[0]):
                C[r, c] += A[r, cr] * B[cr, c]


def cr_c_r(A: Matrix, B: Matrix, C: Matrix) -> None:
    for cr in range(A.shape[1]):
        for c in range(B.shape[1]):
            for r in range(A.shape[0]):
                C[r, c] += A[r, cr] * B[cr, c]


def cr_r_c(A: Matrix, B: Matrix, C: Matrix) -> None:
    for cr in range(A.shape[1]):
        for r in range(A.shape[0]):
            for c in range(B.shape[1]):
                C[r, c] += A[r, cr] * B[cr, c]


ORDERS: dict[str, Loop] = {
    "r-c-cr": r_c_cr,
    "c-r-cr": c_r_cr,
    "c-cr-r": c_cr_r,
    "cr-c-r": cr_c_r,
    "cr-r-c": cr_r_c,
    "r-cr-c": multiply_loop,
}


def numba_is_there() -> bool:
    """Return whether the loops can be compiled."""
    try:
        import numba  # noqa: F401
    except ImportError:
        return False
    return True


@cache
def compiled_order(order: str, dtype: str, *, vectorised: bool = False) -> Loop:
    """Return one order compiled for C-ordered matrices of `dtype`, plain Python where numba is not installed.

    Parameters
    ----------
    order : such as "r-cr-c"
    vectorised : let the compiler use vectors, which no MQL5 loop does
    """
    return compiled(ORDERS[order], (dtype,), vectorised=vectorised) or ORDERS[order]
