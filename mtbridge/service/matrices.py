"""One matrix, or one a lag: products, covariance, correlation, ranks and lags."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute import Engine, operations, statistics
from mtbridge.errors import OptionError
from mtbridge.matrix import Matrix, Result
from mtbridge.service import arrays
from mtbridge.wire import (
    Array,
    CorrelationOptions,
    CovarianceOptions,
    LaggedOptions,
    Limits,
    Message,
    Role,
)
from mtbridge.wire.options import Method

# the counts come back too, and take 8 bytes an element
COUNT_BYTES = 8


def multiply(message: Message, engine: Engine, limits: Limits) -> list[Array]:
    """Return the product of two matrices."""
    A, B = arrays.matrix(message, Role.A), arrays.matrix(message, Role.B)
    arrays.check_factors(A, B)
    limits.check_result((len(A), B.shape[1]), A.itemsize)
    return arrays.answer(operations.multiply(A, B, engine=engine), message)


def gram(message: Message, engine: Engine, limits: Limits) -> list[Array]:
    """Return X'X."""
    X = arrays.matrix(message, Role.DATA)
    limits.check_result((X.shape[1], X.shape[1]), X.itemsize)
    return arrays.answer(operations.gram(X, engine=engine), message)


def covariance(
    message: Message, options: CovarianceOptions | CorrelationOptions, engine: Engine, limits: Limits
) -> list[Array]:
    """Return a covariance or a correlation matrix, its counts, and its scalars where they are asked for."""
    X = arrays.matrix(message, Role.DATA)
    rows, columns = X.shape
    limits.check_result((columns, columns), COUNT_BYTES)
    symbols = arrays.symbols(message, columns)
    weights = arrays.row_weights(message, rows)
    if (weights is None) != (options.weight_kind is None):
        raise OptionError(
            f"weight_kind is {options.weight_kind!r} but no array weights came; send one weight a row."
            if weights is None
            else "the weights need a weight_kind: 'frequency' or 'reliability'."
        )
    given: dict[str, Any] = {
        "engine": engine,
        "missing": options.missing,
        "min_periods": options.min_periods,
        "symbols": symbols,
    }
    method: Method = "pearson"
    if isinstance(options, CovarianceOptions):
        given["ddof"] = options.ddof
    else:
        method = options.method
    found = _found(X, method, weights, options.weight_kind, given)
    scalars = [Array(Role.SCALARS, _scalars(found))] if options.scalars else []
    return arrays.answer(found, message) + scalars


def lagged(message: Message, options: LaggedOptions, engine: Engine, limits: Limits) -> list[Array]:
    """Return the matrices of the lags -L to L, and their counts."""
    X = arrays.matrix(message, Role.DATA)
    rows, columns = X.shape
    if options.lags >= rows:
        raise OptionError(
            f"lags is {options.lags} but there are {rows} rows; a lag must leave some in common."
        )
    shape = (2 * options.lags + 1, columns, columns)
    limits.check_result(shape, COUNT_BYTES, mend="use fewer lags or columns")
    found = statistics.lagged(
        X,
        options.lags,
        options.statistic,
        engine=engine,
        ddof=options.ddof,
        min_periods=options.min_periods,
        symbols=arrays.symbols(message, columns),
    )
    return arrays.answer(found, message)


def _found(
    X: Matrix, method: Method, weights: NDArray[Any] | None, kind: str | None, given: dict[str, Any]
) -> Result:
    """Return the covariance, or the correlation by this method, that the options `given` ask for."""
    if method == "spearman" or method == "kendall":
        if weights is not None:
            raise OptionError(f"the weights do not go with the method {method!r}; leave them out.")
        return statistics.rank_correlation(X, method, **given)
    if weights is not None:
        name: Literal["covariance", "correlation"] = "covariance" if "ddof" in given else "correlation"
        return statistics.weighted(X, name, **{**given, str(kind): weights})
    if "ddof" in given:
        return operations.covariance(X, **given)
    return operations.correlation(X, **given)


def _scalars(found: Result) -> NDArray[np.float64]:
    """Return smallest eigenvalue, condition number and effective rows."""
    effective = np.nan if found.effective_rows is None else found.effective_rows
    return np.array([found.smallest_eigenvalue, found.condition_number, effective], np.float64)
