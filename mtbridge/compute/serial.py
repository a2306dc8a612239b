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
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.engine import Engine
from mtbridge.compute.host import mirrored
from mtbridge.matrix import DTYPES, Matrix

if TYPE_CHECKING:
    from mtbridge.compute.decay import Decay
    from mtbridge.compute.pair_moments import PairMoments
    from mtbridge.compute.sequence import MatrixSequence, Wanted
    from mtbridge.compute.windows import Rolling

# the compiled loops take no other arrays
WRITEABLE: tuple[Literal["C", "W"], ...] = ("C", "W")

NUMBA_VECTORS = ("NUMBA_LOOP_VECTORIZE", "NUMBA_SLP_VECTORIZE")
# the settings are the process's, so one thread compiles at a time
COMPILING = threading.Lock()

Loop = Callable[[Matrix, Matrix, Matrix], None]
Function = TypeVar("Function", bound=Callable[..., Any])


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

    def pair_moments(self, X: Matrix, *, dtype: np.dtype[Any] | None = None) -> PairMoments:
        from mtbridge.compute.masked import holds_missing
        from mtbridge.compute.pair_moments import PairMoments
        from mtbridge.compute.serial_pairs import serial_pair_moments

        return serial_pair_moments(X, X) if holds_missing(X) else PairMoments.of(self.moments(X, dtype=dtype))

    def lagged_moments(
        self, X: Matrix, lags: Sequence[int], *, dtype: np.dtype[Any] | None = None
    ) -> list[PairMoments]:
        from mtbridge.compute.serial_pairs import serial_pair_moments

        return [
            serial_pair_moments(X[: max(len(X) - lag, 0)], X[lag:])
            if lag
            else self.pair_moments(X, dtype=dtype)
            for lag in lags
        ]

    def sequence(self, X: Matrix, plan: Rolling | Decay, wanted: Wanted) -> MatrixSequence:
        from mtbridge.compute.serial_decay import SerialDecay
        from mtbridge.compute.serial_rolling import SerialRolling
        from mtbridge.compute.windows import Rolling

        if isinstance(plan, Rolling):
            return SerialRolling(X, plan, wanted)
        return SerialDecay(X, plan, wanted)

    def spearman(self, X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        from mtbridge.compute.serial_ranks import serial_spearman

        return serial_spearman(X)

    def kendall(self, X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        from mtbridge.compute.serial_ranks import serial_kendall

        return serial_kendall(X)

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


@cache
def loop_of(function: Any, *signatures: str) -> Any:
    """Return `function` compiled for these signatures, or itself if there is no numba; once a process."""
    return compiled_as(function, signatures) or function


def compiled(loop: Loop, dtypes: tuple[str, ...] = DTYPES, *, vectorised: bool = False) -> Loop | None:
    """Return `loop` compiled by numba for C-ordered matrices of `dtypes`, None where numba is not installed.

    `vectorised` lets the compiler use vectors, which no MQL5 loop does.
    """
    signatures = [f"void({', '.join([f'{dtype}[:, ::1]'] * 3)})" for dtype in dtypes]
    return compiled_as(loop, signatures, vectorised=vectorised)


def compiled_as(
    function: Function, signatures: Sequence[str], *, vectorised: bool = False
) -> Function | None:
    """Return `function` compiled by numba for these signatures in its notation, as `compiled` does a loop."""
    try:
        import numba
        from numba.core import config
    except ImportError:
        return None
    with COMPILING:
        before = {name: os.environ.get(name) for name in NUMBA_VECTORS}
        try:
            # numba reads its settings from the environment again when it compiles
            os.environ.update(dict.fromkeys(NUMBA_VECTORS, str(int(vectorised))))
            config.reload_config()  # type: ignore[no-untyped-call]
            fast: Any = numba.njit(list(signatures), nogil=True, error_model="numpy")(function)
        finally:
            for name, value in before.items():
                if value is None:
                    os.environ.pop(name, None)
                else:
                    os.environ[name] = value
            config.reload_config()  # type: ignore[no-untyped-call]
    return cast(Function, fast)
