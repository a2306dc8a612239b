"""Matrices in, matrices out: what a user of a worker calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from mtbridge.client.calls import encoded, sendable
from mtbridge.client.windows import WindowCalls
from mtbridge.compute.operations import Missing, counted
from mtbridge.errors import ShapeError
from mtbridge.frame.joined import gathered
from mtbridge.frame.matrices import Method, WeightKind, row_weights
from mtbridge.frame.options import at_least
from mtbridge.frame.tables import (
    factors,
    names,
    product_table,
    square,
    table,
    without_level,
)
from mtbridge.matrix import Result
from mtbridge.wire import (
    Array,
    Operation,
    Role,
    encode_options,
    make_options,
)


class Client(WindowCalls):
    """Sends matrices to a worker and returns what it answers. For one thread at a time.

    Each call waits at most `timeout` seconds; the first large one as long again, since it asks for the
    worker's limits before it sends. A call after a failed one works again as soon as there is a
    worker: nothing has to be made anew.

    Parameters
    ----------
    endpoint : where the worker listens
    timeout : seconds that a call may take

    Raises
    ------
    EndpointError
        If `endpoint` is no address.
    OptionError
        If `timeout` is not a positive number of seconds.
    """

    @overload
    def multiply(self, A: Any, B: Any, *, full: Literal[True]) -> Result: ...
    @overload
    def multiply(self, A: Any, B: Any, *, full: bool = False) -> Any: ...
    def multiply(self, A: Any, B: Any, *, full: bool = False) -> Any:
        """Return the product of `A` and `B`.

        Parameters
        ----------
        A : float array or DataFrame of shape (rows, inner)
        B : float array or DataFrame of shape (inner, columns)
            Two float32 matrices give a float32 product, all else float64.
        full : return a `Result` with engine, device and the seconds of the round trip

        Returns
        -------
        float array of shape (rows, columns)
            NaN as in IEEE arithmetic. A DataFrame if `A` or `B` is one, with the labels that there are.

        Raises
        ------
        ShapeError
            If the inner labels of two DataFrames differ.
        RemoteError
            If the worker refuses: its `status` and its sentence say why.
        NoReplyError
            If there is no worker, or it does not answer in time.
        """
        left, right = factors(A, B)
        arrays = [Array(Role.A, sendable(left, "A")), Array(Role.B, sendable(right, "B"))]
        found = self._compute(Operation.MULTIPLY, arrays, rows=len(left), symbols=None, full=full)
        return found if full else product_table(found.matrix, A, B)

    @overload
    def gram(self, X: Any, *, full: Literal[True]) -> Result: ...
    @overload
    def gram(self, X: Any, *, full: bool = False) -> Any: ...
    def gram(self, X: Any, *, full: bool = False) -> Any:
        """Return X'X, of shape (columns, columns), for `X` of shape (rows, columns); not centred.

        Symmetric bit for bit; in the dtype of `X`; NaN as in IEEE arithmetic. Else as `multiply`.
        """
        matrix, labels = table(X)
        arrays = [Array(Role.DATA, sendable(matrix, "data"))]
        found = self._compute(Operation.GRAM, arrays, rows=len(matrix), symbols=names(labels), full=full)
        return found if full else square(found, labels)

    @overload
    def covariance(
        self,
        X: Any,
        *,
        ddof: int = ...,
        missing: Missing = ...,
        min_periods: int | None = ...,
        weights: Any = ...,
        weight_kind: WeightKind = ...,
        symbols: Sequence[str] | None = ...,
        full: Literal[True],
    ) -> Result: ...
    @overload
    def covariance(
        self,
        X: Any,
        *,
        ddof: int = ...,
        missing: Missing = ...,
        min_periods: int | None = ...,
        weights: Any = ...,
        weight_kind: WeightKind = ...,
        symbols: Sequence[str] | None = ...,
        full: bool = ...,
    ) -> Any: ...
    def covariance(
        self,
        X: Any,
        *,
        ddof: int = 1,
        missing: Missing = "pairwise",
        min_periods: int | None = None,
        weights: Any = None,
        weight_kind: WeightKind = "reliability",
        symbols: Sequence[str] | None = None,
        full: bool = False,
    ) -> Any:
        """Return the covariance matrix of the columns of `X`.

        Parameters
        ----------
        X : float array or DataFrame of shape (rows, columns), or Series that are joined by their times
            Rows are bars, the oldest first.
        ddof : taken from the rows in the divisor; 0 or more
        missing : what NaN does
            "pairwise": each pair is computed on the rows that both columns have, its means and variances too.
            "drop": a row with a NaN is left out of everything. "error": the worker refuses NaN.
        min_periods : rows that a pair must have in common, else its element is NaN; 1 by default
        weights : one number for each row, 0 or more; a Series must have the index of `X`
            NaN in a row that has a weight is then refused, unless `missing` is "drop".
        weight_kind : what a weight is, as in numpy.cov
            "frequency": how often the row was observed, a whole number; "reliability": how much it counts
            beside the others.
        symbols : names of the columns, for messages and the `Result`; a DataFrame brings its own
        full : return a `Result` with counts, engine, device and the seconds of the round trip

        Returns
        -------
        float array of shape (columns, columns)
            In the dtype of `X`; NaN where a pair has ``ddof`` rows or fewer. A DataFrame, labelled on both
            sides, if `X` is one.

        Raises
        ------
        RemoteError
            If the worker refuses: its `status` and its sentence say why.
        NoReplyError
            If there is no worker, or it does not answer in time.
        """
        given = {"ddof": counted("ddof", ddof), "missing": missing, "min_periods": at_least(min_periods)}
        return self._statistic(Operation.COVARIANCE, X, given, weights, weight_kind, symbols, full)

    @overload
    def correlation(
        self,
        X: Any,
        *,
        method: Method = ...,
        missing: Missing = ...,
        min_periods: int | None = ...,
        weights: Any = ...,
        weight_kind: WeightKind = ...,
        symbols: Sequence[str] | None = ...,
        full: Literal[True],
    ) -> Result: ...
    @overload
    def correlation(
        self,
        X: Any,
        *,
        method: Method = ...,
        missing: Missing = ...,
        min_periods: int | None = ...,
        weights: Any = ...,
        weight_kind: WeightKind = ...,
        symbols: Sequence[str] | None = ...,
        full: bool = ...,
    ) -> Any: ...
    def correlation(
        self,
        X: Any,
        *,
        method: Method = "pearson",
        missing: Missing = "pairwise",
        min_periods: int | None = None,
        weights: Any = None,
        weight_kind: WeightKind = "reliability",
        symbols: Sequence[str] | None = None,
        full: bool = False,
    ) -> Any:
        """Return the correlation matrix of the columns of `X`; NaN for a column that never changes.

        Parameters, result and errors as for `covariance`.

        Parameters
        ----------
        method : "pearson"; "spearman", the correlation of ranks; "kendall", tau-b
            Each pair is ranked on the rows that both columns have. Ranks take no weights.
        """
        given = {"method": method, "missing": missing, "min_periods": at_least(min_periods)}
        return self._statistic(Operation.CORRELATION, X, given, weights, weight_kind, symbols, full)

    def _statistic(
        self,
        operation: Operation,
        X: Any,
        given: dict[str, Any],
        weights: Any,
        weight_kind: str,
        symbols: Sequence[str] | None,
        full: bool,
    ) -> Any:
        data = gathered(X)
        matrix, labels = table(without_level(data))
        arrays = [Array(Role.DATA, sendable(matrix, "data"))]
        known = names(labels) if symbols is None else tuple(symbols)
        if known is not None:
            arrays.append(Array(Role.SYMBOLS, encoded(known, matrix.shape[1])))
        if weights is not None:
            # only the worker knows how many rows the weights make
            given = {**given, "weight_kind": weight_kind, "scalars": full}
            held = row_weights(weights, data)
            arrays.append(Array(Role.WEIGHTS, _wire_weights(held, len(matrix))))
        options = encode_options(make_options(operation, given))
        found, reply = self._answered(
            operation, arrays, rows=len(matrix), symbols=known, full=full, options=options
        )
        scalars = reply.find(Role.SCALARS)
        if scalars is not None:
            found = replace(found, effective=float(scalars[2]))
        return found if full else square(found, labels)


def _wire_weights(weights: NDArray[Any], rows: int) -> NDArray[Any]:
    """Return the weights of the rows as the wire has them: int64 if they are whole numbers, else float64."""
    with np.errstate(over="ignore"):
        held: NDArray[Any] = weights.astype(np.int64 if weights.dtype.kind in "iub" else np.float64)
    if held.shape != (rows,):
        raise ShapeError(f"the weights have the shape {held.shape} but there are {rows} rows; give one each.")
    return held
