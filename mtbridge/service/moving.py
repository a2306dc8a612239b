"""Rolling, expanding and exponentially weighted matrices, and what is kept of each of them.

All sizes are known from the options and the shape of the data, and held against the limits before
anything is computed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute import Engine, reducers, statistics
from mtbridge.compute.decay import Decay, alpha_of
from mtbridge.compute.sequence import MatrixSequence, Wanted
from mtbridge.compute.windows import Rolling
from mtbridge.errors import OptionError
from mtbridge.matrix import Matrix, Result, narrowed
from mtbridge.service import arrays
from mtbridge.wire import (
    Array,
    EwmOptions,
    ExpandingOptions,
    Limits,
    Message,
    MovingOptions,
    Role,
    RollingOptions,
)

MEND = "use last, reduce, packed, the dtype float32, a larger step or fewer columns"


@dataclass(frozen=True, slots=True)
class Windows:
    """Which windows there are, and what holds for each of them: as in `Wanted`."""

    plan: Rolling | Decay
    ddof: int
    min_periods: int


class GivenMatrix(MatrixSequence):
    """A sequence of the one matrix that is known already, for a reducer."""

    def __init__(self, matrix: Matrix, wanted: Wanted, columns: int) -> None:
        super().__init__(wanted, columns, 1)
        self._matrix = matrix

    def _write(self, out: NDArray[Any], start: int) -> None:
        out[:] = self._matrix


def answer(
    message: Message, options: MovingOptions, engine: Engine, limits: Limits
) -> tuple[list[Array], str]:
    """Return the arrays of the reply, and its sentence where something is to be said.

    Raises
    ------
    InputError, ProtocolError
        What the request gets wrong, its sizes among it.
    """
    X = arrays.matrix(message, Role.DATA)
    rows, columns = X.shape
    _check_columns(options, columns)
    step = options.step if isinstance(options, RollingOptions) else 1
    count = 1 if options.last else -(-rows // step)
    dtype = np.dtype(options.dtype or X.dtype)
    _check_size(options, count, columns, dtype, limits)
    arrays.symbols(message, columns)
    reducer = _reducer(message, options, count, columns)
    windows = _windows(message, options, rows)
    wanted = Wanted(
        statistic=options.statistic,
        ddof=windows.ddof,
        min_periods=windows.min_periods,
        left=(options.column,) if options.column is not None else None,
        packed=options.packed,
        # what is computed of whole matrices is narrowed at its end alone
        dtype=np.dtype(np.float64) if options.reduce in ("mean", "eigenvalue", "variance") else dtype,
    )
    if options.last:
        found = _newest(X, windows.plan, wanted, reducer, engine)
    else:
        found = statistics.moving(X, windows.plan, wanted, engine=engine, reducer=reducer)
    kept = found.matrix[:, 0] if options.column is not None else found.matrix
    indices = []
    if found.pairs is not None:
        indices = [Array(Role.INDICES, arrays.gapless(found.pairs.astype(np.int64)))]
    kept = narrowed(kept, dtype, what="a number of the result")
    reply = [Array(Role.RESULT, arrays.gapless(kept)), *indices]
    return reply + arrays.echoed(message), " ".join(found.notes)


def _newest(
    X: Matrix, plan: Rolling | Decay, wanted: Wanted, reducer: reducers.Reducer[Any] | None, engine: Engine
) -> Result:
    """Return the one matrix of the newest window, or what is kept of it."""
    if reducer is None:
        found = statistics.newest(X, plan, wanted, engine=engine)
        return replace(found, matrix=found.matrix[np.newaxis])
    wanted = reducer.wanted(wanted)
    found = statistics.newest(X, plan, wanted, engine=engine)
    kept = reducers.reduced(GivenMatrix(found.matrix, wanted, X.shape[1]), reducer)
    if isinstance(kept, reducers.Largest):
        return replace(found, matrix=kept.values, pairs=kept.pairs)
    return replace(found, matrix=kept)


def _check_columns(options: MovingOptions, columns: int) -> None:
    """Refuse columns and pairs that the data do not have."""
    named = [] if options.column is None else [options.column]
    named += [column for pair in options.pairs or () for column in pair]
    for column in named:
        if column >= columns:
            raise OptionError(f"column {column} is named but there are {columns}, numbered from 0.")
    pairs = columns * (columns - 1) // 2
    if options.top is not None and options.top > pairs:
        raise OptionError(f"top is {options.top} but {columns} columns have only {pairs} pairs.")


def _check_size(
    options: MovingOptions, count: int, columns: int, dtype: np.dtype[Any], limits: Limits
) -> None:
    """Refuse an answer past the limits, and a reducer whose single matrices are."""
    shape: tuple[int, ...]
    item_bytes = dtype.itemsize
    if options.column is not None:
        shape = (columns,)
    elif options.reduce == "none":
        shape = (columns * (columns + 1) // 2,) if options.packed else (columns, columns)
    else:
        shape, height = (), columns
        if options.pairs is not None:
            shape, height = (len(options.pairs),), len({left for left, _ in options.pairs})
        elif options.top is not None:
            # two whole numbers for each value
            shape, item_bytes = (options.top, 2), 8
        # one matrix at a time is there, and looked at in float64
        limits.check_result((height, columns), 8)
    limits.check_result((count, *shape), item_bytes, mend=MEND)


def _windows(message: Message, options: MovingOptions, rows: int) -> Windows:
    """Return the windows that the options of one of the three operations name."""
    moments = arrays.times(message, rows)
    span: float | None = getattr(options, "span_ms", None) or getattr(options, "halflife_ms", None)
    if (span is None) != (moments is None):
        raise OptionError(
            "the times are for span_ms and halflife_ms alone: leave them out."
            if span is None
            else "span_ms and halflife_ms are in the times of the rows: send an int64 array times."
        )
    least = options.min_periods or 1
    if isinstance(options, RollingOptions):
        if options.window is not None:
            rolling = Rolling.by_rows(rows, options.window, options.step)
            return Windows(rolling, options.ddof, options.min_periods or options.window)
        rolling = Rolling.by_time(moments, options.span_ms or 0, options.step)
        return Windows(rolling, options.ddof, least)
    if isinstance(options, EwmOptions):
        # 0 is the biased covariance, 1 the unbiased one
        ddof = 0 if options.bias else 1
        if span is not None and moments is not None:
            return Windows(Decay.by_time(moments, span, ignore_na=options.ignore_na), ddof, least)
        alpha = alpha_of(com=options.com, span=options.span, halflife=options.halflife, alpha=options.alpha)
        decay = Decay.exponential(rows, alpha, adjust=options.adjust, ignore_na=options.ignore_na)
        return Windows(decay, ddof, least)
    ddof = options.ddof if isinstance(options, ExpandingOptions) else 1
    # the newest of all windows is that of all rows, and needs none before it
    plan = Rolling.by_rows(rows, rows) if options.last else Decay.expanding(rows)
    return Windows(plan, ddof, least)


def _reducer(
    message: Message, options: MovingOptions, count: int, columns: int
) -> reducers.Reducer[Any] | None:
    """Return what is kept of each matrix, None for all of it or one row."""
    weights = arrays.portfolio_weights(message, count, columns)
    if (weights is None) == (options.reduce == "variance"):
        raise OptionError(
            "reduce 'variance' needs an array weights, those of the symbols in the portfolio."
            if weights is None
            else "the weights are for reduce 'variance' alone: leave them out."
        )
    if weights is not None:
        return reducers.QuadraticForm(weights)
    if options.pairs is not None:
        left, right = zip(*options.pairs, strict=True)
        return reducers.Pairs(left, right)
    if options.top is not None:
        return reducers.TopPairs(options.top, by=options.by or "absolute")
    if options.reduce == "mean":
        return reducers.MeanOffDiagonal()
    return reducers.LargestEigenvalue() if options.reduce == "eigenvalue" else None
