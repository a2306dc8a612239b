"""Benchmark cases of the statistics: made-up histories, our functions, and the same work by peers.

Histories are standard normal with a factor that all share, float64, with gaps where a case is about them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.bench import statistic_peers as peers
from mtbridge.bench import statistic_references as exact
from mtbridge.compute import Engine

Array = NDArray[Any]
Work = Callable[[], Any]

WINDOW = SPAN = 60
LAGS = 5
GAPS = 0.05
PEERS = ("pandas", "numbagg", "polars", "numpy")


@dataclass(frozen=True, slots=True)
class Case:
    """One case on one history.

    Attributes
    ----------
    X : the history, float64 of shape (rows, symbols)
    ours : our work on a history and an engine; an array gives an array, a DataFrame a DataFrame
    peers : the work of each peer by name; the first word is the package
    exact : one row, window or lag of the exact answer, by its number
    stacked : whether there is a matrix for each window or lag
    scaled : whether errors are shares of the root of the product of two variances
    counted : whether the serial loop ranks by counting, which takes rows**2 steps a pair
    """

    X: Array
    ours: Callable[[Any, Engine], Any]
    peers: dict[str, Work]
    exact: Callable[[int], Array]
    stacked: bool = False
    scaled: bool = False
    counted: bool = False


def history(shape: tuple[int, int], *, gaps: float = 0.0) -> Array:
    """Return normal columns that share a factor, with a share of `gaps` missing."""
    noise = np.random.default_rng(sum(shape))
    X = noise.standard_normal(shape) + noise.standard_normal((shape[0], 1))
    if gaps:
        X[noise.random(shape) < gaps] = np.nan
    return X


def pairwise(shape: tuple[int, int], *, correlated: bool) -> Case:
    """The covariance or correlation matrix of a history with gaps."""
    import pandas as pd

    import mtbridge

    X = history(shape, gaps=GAPS)
    frame, symbols_first = pd.DataFrame(X), np.ascontiguousarray(X.T)
    ours = mtbridge.correlation if correlated else mtbridge.covariance
    name = "nancorrmatrix" if correlated else "nancovmatrix"
    return Case(
        X,
        lambda data, engine: ours(data, engine=engine),
        {
            "pandas": frame.corr if correlated else frame.cov,
            "numbagg": lambda: numbagg_function(name)(symbols_first),
            "numpy masked": lambda: peers.masked_products(X, correlated=correlated),
        },
        lambda i: np.array([exact.pair(X[:, i], column, correlated=correlated) for column in X.T]),
        scaled=not correlated,
    )


def rolling(shape: tuple[int, int]) -> Case:
    """The correlation matrix of every window of 60 rows."""
    import pandas as pd

    import mtbridge

    X = history(shape)
    frame, columns = pd.DataFrame(X), polars_frame(X)
    return Case(
        X,
        lambda data, engine: mtbridge.rolling(data, WINDOW, engine=engine).correlation(),
        {
            "pandas": lambda: frame.rolling(WINDOW).corr(),
            "numbagg": lambda: numbagg_function("move_corrmatrix")(X, window=WINDOW),
            "polars": lambda: peers.rolling_by_polars(columns, WINDOW),
            "numpy products": lambda: peers.rolling_correlations(X, WINDOW),
        },
        lambda row: (
            absent(shape[1]) if row + 1 < WINDOW else exact.window_correlation(X[row + 1 - WINDOW : row + 1])
        ),
        stacked=True,
    )


def ewm(shape: tuple[int, int]) -> Case:
    """The exponentially weighted covariance matrix at every row, of a span of 60 rows."""
    import pandas as pd

    import mtbridge

    X = history(shape)
    frame, alpha = pd.DataFrame(X), 2 / (SPAN + 1)
    return Case(
        X,
        lambda data, engine: mtbridge.ewm(data, span=SPAN, engine=engine).covariance(),
        {
            "pandas": lambda: frame.ewm(span=SPAN).cov(),
            "numbagg": lambda: numbagg_function("move_exp_nancovmatrix")(X, alpha=alpha),
            "numpy updates": lambda: peers.decayed_updates(X, alpha),
        },
        lambda row: exact.decayed_covariance(X[: row + 1], alpha) if row else absent(shape[1]),
        stacked=True,
        scaled=True,
    )


def spearman(shape: tuple[int, int]) -> Case:
    """Spearman's rank correlations of a history with gaps."""
    import pandas as pd

    import mtbridge

    X = history(shape, gaps=GAPS)
    frame = pd.DataFrame(X)
    return Case(
        X,
        lambda data, engine: mtbridge.correlation(data, method="spearman", engine=engine),
        {"pandas": lambda: frame.corr(method="spearman")},
        lambda i: np.array([exact.ranked_pair(X[:, i], column) for column in X.T]),
        counted=True,
    )


def lags(shape: tuple[int, int]) -> Case:
    """The correlations of all pairs at lags -5 to 5."""
    import pandas as pd

    import mtbridge

    X = history(shape)
    frame = pd.DataFrame(X)
    return Case(
        X,
        lambda data, engine: mtbridge.lagged_correlation(data, LAGS, engine=engine),
        {
            "pandas": lambda: peers.lagged_by_pandas(frame, LAGS),
            "numpy products": lambda: peers.lagged_by_numpy(X, LAGS),
        },
        lambda number: exact.lagged_correlation(X, number - LAGS),
        stacked=True,
    )


CASES: dict[str, tuple[tuple[int, int], Callable[[tuple[int, int]], Case]]] = {
    "pairwise cov": ((2_000, 500), lambda shape: pairwise(shape, correlated=False)),
    "pairwise corr": ((2_000, 500), lambda shape: pairwise(shape, correlated=True)),
    "rolling corr": ((2_000, 50), rolling),
    "ewm cov": ((2_000, 50), ewm),
    "spearman": ((2_000, 100), spearman),
    "lags": ((2_000, 50), lags),
}
"""The usual shape of each case, rows and symbols, and what makes it."""


def absent(columns: int) -> Array:
    """Return the matrix of a window that has not all its rows yet."""
    return np.full((columns, columns), np.nan)


def numbagg_function(name: str) -> Callable[..., Array]:
    """Return a function of numbagg, which is imported, and compiled, when it is first needed."""
    found: Callable[..., Array] = getattr(import_module("numbagg"), name)
    return found


def polars_frame(X: Array) -> Any:
    """Return the columns as a polars DataFrame, None where polars is not installed."""
    try:
        import polars as pl
    except ImportError:
        return None
    return pl.DataFrame({str(number): column for number, column in enumerate(X.T)})
