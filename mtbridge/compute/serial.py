"""The `serial` engine: the loop that MQL5 would run, kept as the baseline.

Row, inner, column, accumulating in the element type: the first step of the kernel ladder. Every
kernel must equal it and every benchmark table starts with it. Compiled by numba where it is
installed, with vectorising switched off, so that it stays the loop that a terminal runs (vectorised,
it is seven times as fast and no such loop); plain Python loops otherwise.
"""

from __future__ import annotations

import os
import platform
import threading
from collections.abc import Callable
from functools import cache
from typing import Literal

import numpy as np

from mtbridge.compute.engine import Engine
from mtbridge.compute.host import mirrored
from mtbridge.matrix import DTYPES, Matrix

# the compiled loops take no other arrays
WRITEABLE: tuple[Literal["C", "W"], ...] = ("C", "W")

NUMBA_VECTORS = ("NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE")
# the settings are the process's, so one thread compiles at a time
COMPILING = threading.Lock()

Loop = Callable[[Matrix, Matrix, Matrix], None]


def multiply_loop(A: Matrix, B: Matrix, C: Matrix) -> None:
    """C += A B; shapes (rows, inner), (inner, columns), (rows, columns)."""
    for r in range(A.shape[0]):
        for i in range(A.shape[1]):
            for c in range(B.shape[1]):
                C[r, c] += A[r, i] * B[i, c]


def gram_loop(X: Matrix, _unused: Matrix, C: Matrix) -> None:
    """C += X'X in the upper triangle; shapes (rows, columns), any, (columns, columns)."""
    for r in range(X.shape[1]):
        for i in range(X.shape[0]):
            for c in range(r, X.shape[1]):
                C[r, c] += X[i, r] * X[i, c]


class SerialEngine(Engine):
    """Three plain loops; `compiled` where numba is installed, else some hundred times as slow."""

    name = "serial"

    def __init__(self) -> None:
        self.multiply_loop, self.gram_loop, self.compiled = compiled_loops()
        how = "numba, not vectorised" if self.compiled else "plain Python"
        self.device = f"{platform.processor() or platform.machine() or 'host'}, one thread, {how}"

    def _product(self, A: Matrix, B: Matrix) -> Matrix:
        C = np.zeros((A.shape[0], B.shape[1]), A.dtype)
        with np.errstate(all="ignore"):
            self.multiply_loop(
                np.require(A, requirements=WRITEABLE), np.require(B, requirements=WRITEABLE), C
            )
        return C

    def _gram(self, X: Matrix, *, wide: bool) -> Matrix:
        C = np.zeros((X.shape[1], X.shape[1]), np.float64 if wide else X.dtype)
        Z = np.require(X, C.dtype, WRITEABLE)
        with np.errstate(all="ignore"):
            self.gram_loop(Z, Z, C)
        return mirrored(C)


@cache
def compiled_loops() -> tuple[Loop, Loop, bool]:
    """The two loops, and whether numba compiled them; once a process."""
    multiply, gram = compiled(multiply_loop), compiled(gram_loop)
    if multiply is None or gram is None:
        return multiply_loop, gram_loop, False
    return multiply, gram, True


def compiled(loop: Loop, dtypes: tuple[str, ...] = DTYPES, *, vectorised: bool = False) -> Loop | None:
    """Return `loop` compiled by numba for C-ordered matrices of `dtypes`, None where numba is not installed.

    `vectorised` lets the compiler use vectors, which no MQL5 loop does.
    """
    try:
        import numba
        from numba.core import config
    except ImportError:
        return None
    signatures = [(getattr(numba.types, dtype)[:, ::1],) * 3 for dtype in dtypes]
    with COMPILING:
        before = {name: os.environ.get(name) for name in NUMBA_VECTORS}
        try:
            # numba reads its settings from the environment again when it compiles
            os.environ.update(dict.fromkeys(NUMBA_VECTORS, str(int(vectorised))))
            config.reload_config()  # type: ignore[no-untyped-call]
            fast: Loop = numba.njit(signatures, nogil=True, error_model="numpy")(loop)
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            config.reload_config()  # type: ignore[no-untyped-call]
    return fast
