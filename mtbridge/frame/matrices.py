"""`covariance` and `correlation`: one matrix of all rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, TypeAlias, get_args, overload

import numpy as np

from mtbridge.allowed import refuse_other
from mtbridge.compute import operations, statistics
from mtbridge.compute.engine import Engine
from mtbridge.compute.operations import Missing
from mtbridge.errors import OptionError, ShapeError
from mtbridge.frame.annual import factor
from mtbridge.frame.batches import batch_of, is_batch, refuse_for_batches
from mtbridge.frame.engines import opened
from mtbridge.frame.joined import gathered
from mtbridge.frame.objects import weight_numbers
from mtbridge.frame.options import at_least, checked, refuse_no_flags
from mtbridge.frame.say import say
from mtbridge.frame.tables import Table, is_frame, is_series, names, square, table, without_level
from mtbridge.matrix import Matrix, Result, narrowed

Method: TypeAlias = Literal["pearson", "spearman", "kendall"]
WeightKind: TypeAlias = Literal["frequency", "reliability"]
METHODS: tuple[Method, ...] = get_args(Method)
WEIGHT_KINDS: tuple[WeightKind, ...] = get_args(WeightKind)


@overload
def covariance(
    data: Table,
    *,
    ddof: int = ...,
    missing: Missing = ...,
    min_periods: int | None = ...,
    weights: Any = ...,
    weight_kind: WeightKind = ...,
    annualise: bool | float = ...,
    engine: str | Engine = ...,
    device: str | None = ...,
    dtype: str | None = ...,
    full: Literal[False] = ...,
) -> Table: ...
@overload
def covariance(
    data: Table,
    *,
    ddof: int = ...,
    missing: Missing = ...,
    min_periods: int | None = ...,
    weights: Any = ...,
    weight_kind: WeightKind = ...,
    annualise: bool | float = ...,
    engine: str | Engine = ...,
    device: str | None = ...,
    dtype: str | None = ...,
    full: Literal[True],
) -> Result: ...
def covariance(
    data: Table,
    *,
    ddof: int = 1,
    missing: Missing = "pairwise",
    min_periods: int | None = None,
    weights: Any = None,
    weight_kind: WeightKind = "reliability",
    annualise: bool | float = False,
    engine: str | Engine = "auto",
    device: str | None = None,
    dtype: str | None = None,
    full: bool = False,
) -> Table:
    """Return the covariance matrix of the columns of `data`.

    Parameters
    ----------
    data : array or DataFrame of numbers, of shape (rows, symbols); rows are bars
        Or a dict or list of Series, which are joined by their times (docs/statistics.md). An array of shape
        (…, rows, symbols) is a batch of matrices, such as sessions, each with an answer of its own.
    ddof : the divisor is ``rows - ddof``; 1 as in pandas
    missing : what NaN does
        "pairwise": each pair is computed on the rows that both columns have, its means and variances too.
        "drop": a row with a NaN is left out of everything. "error": a NaN is refused.
    min_periods : rows that a pair must have in common, else its element is NaN; 1 by default
    weights : one number for each row, 0 or more; a Series is matched by its index
    weight_kind : what a weight is, as in numpy.cov
        "frequency": how often the row was observed, a whole number; "reliability": how much it counts beside
        the others.
    annualise : True multiplies by the bars a year that the time stamps show, and says on stderr how many and
        why; a number multiplies by that number
    engine : "auto", "opencl", "numpy", "serial", or an engine that `open_engine` returned
        By name, one engine is kept open for each thread. `auto` takes numpy or OpenCL, whichever is faster
        for the shape by a measurement that is made once, at the first call that is large enough to matter.
    device : which OpenCL device: an index of `mtbridge devices`, a part of a name, "gpu" or "cpu"
    dtype : "float32" or "float64"; by default that of `data`, and float64 for all but float32
        In float32 products are taken in float32 and added up so over parts of the rows; centring and all
        other sums stay in float64.
    full : return a `Result`, which also has the counts, the engine, the device, the time, the eigenvalues

    Returns
    -------
    DataFrame if `data` has labels, else array; of shape (…, symbols, symbols), symmetric bit for bit
        NaN where a pair has ``ddof`` rows or fewer. A pair with inf in its common rows is NaN, no other.

    Raises
    ------
    MissingValueError
        If there is a NaN and `missing` is "error".
    InputError
        If a column does not hold numbers, or a weight is wrong, or bars a year cannot be told.
    DeviceError
        If OpenCL is asked for and no device is usable.
    """
    refuse_no_flags(full=full)
    refuse_other("weight_kind", weight_kind, WEIGHT_KINDS)
    data = gathered(data)
    if is_batch(data):
        refuse_for_batches(weights=weights is not None, annualise=annualise is not False)
        own: dict[str, Any] = {"ddof": ddof, "missing": missing, "min_periods": at_least(min_periods)}
        found = batch_of(data, "covariance", opened(engine, device), dtype=checked(dtype), **own)
        return found if full else found.matrix
    times, notes = factor(annualise, _rows(data))
    X, labels = table(without_level(data))
    given: dict[str, Any] = {
        "engine": opened(engine, device),
        "ddof": ddof,
        "missing": missing,
        "min_periods": at_least(min_periods),
        "symbols": names(labels),
        "dtype": checked(dtype),
    }
    if weights is None:
        result = operations.covariance(X, **given)
    else:
        held = {weight_kind: row_weights(weights, data)}
        result = statistics.weighted(X, "covariance", **held, **given)
    if times != 1.0:
        with np.errstate(over="ignore"):
            scaled: Matrix = result.matrix.astype(np.float64, copy=False) * times
        scaled = narrowed(scaled, result.matrix.dtype, what="a covariance of a year")
        result = replace(result, matrix=scaled, notes=(*result.notes, *notes))
    if full:
        return result
    say(*notes)
    return square(result, labels)


@overload
def correlation(
    data: Table,
    *,
    method: Method = ...,
    missing: Missing = ...,
    min_periods: int | None = ...,
    weights: Any = ...,
    weight_kind: WeightKind = ...,
    engine: str | Engine = ...,
    device: str | None = ...,
    dtype: str | None = ...,
    full: Literal[False] = ...,
) -> Table: ...
@overload
def correlation(
    data: Table,
    *,
    method: Method = ...,
    missing: Missing = ...,
    min_periods: int | None = ...,
    weights: Any = ...,
    weight_kind: WeightKind = ...,
    engine: str | Engine = ...,
    device: str | None = ...,
    dtype: str | None = ...,
    full: Literal[True],
) -> Result: ...
def correlation(
    data: Table,
    *,
    method: Method = "pearson",
    missing: Missing = "pairwise",
    min_periods: int | None = None,
    weights: Any = None,
    weight_kind: WeightKind = "reliability",
    engine: str | Engine = "auto",
    device: str | None = None,
    dtype: str | None = None,
    full: bool = False,
) -> Table:
    """Return the correlation matrix of the columns of `data`; parameters and errors as for `covariance`.

    Parameters
    ----------
    method : "pearson"; "spearman", the correlation of ranks; "kendall", tau-b
        Each pair is ranked on the rows that both columns have. Ranks take no weights.

    Returns
    -------
    DataFrame if `data` has labels, else array; of shape (…, symbols, symbols), symmetric bit for bit
        Never outside [-1, 1]; the diagonal is exactly 1. NaN for a pair of which one side never changes on
        the rows that both have, or holds inf there; ranks take an inf as an ordinary, outermost value.
    """
    refuse_no_flags(full=full)
    refuse_other("method", method, METHODS)
    refuse_other("weight_kind", weight_kind, WEIGHT_KINDS)
    data = gathered(data)
    if is_batch(data):
        refuse_for_batches(weights=weights is not None, method=method != "pearson")
        own: dict[str, Any] = {"missing": missing, "min_periods": at_least(min_periods)}
        found = batch_of(data, "correlation", opened(engine, device), dtype=checked(dtype), **own)
        return found if full else found.matrix
    X, labels = table(without_level(data))
    given: dict[str, Any] = {
        "engine": opened(engine, device),
        "missing": missing,
        "min_periods": at_least(min_periods),
        "symbols": names(labels),
        "dtype": checked(dtype),
    }
    if method != "pearson":
        if weights is not None:
            raise OptionError(f"method is {method!r}, which takes no weights; leave weights out.")
        result = statistics.rank_correlation(X, method, **given)
    elif weights is None:
        result = operations.correlation(X, **given)
    else:
        held = {weight_kind: row_weights(weights, data)}
        result = statistics.weighted(X, "correlation", **held, **given)
    return result if full else square(result, labels)


def row_weights(weights: Any, data: Table) -> Any:
    """Return the weights of the rows of `data` as numbers, once their labels are known to be the same."""
    labelled = is_series(weights) and is_frame(data)
    if labelled and not (data.index.is_unique and weights.index.equals(data.index)):
        raise ShapeError(
            "the weights and the rows have different labels; give one weight for each row, in its order."
        )
    return weight_numbers(weights)


def _rows(data: Table) -> Any:
    return data.index if is_frame(data) else None
