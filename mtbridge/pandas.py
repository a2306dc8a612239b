"""``import mtbridge.pandas`` gives every DataFrame the accessor ``df.mtbridge``.

    import mtbridge.pandas
    returns.mtbridge.correlation()
    returns.mtbridge.rolling(60).correlation(last=True)

The methods are the functions of `mtbridge`, with the DataFrame as their data. It is a module of its own,
since ``import mtbridge`` never imports pandas.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import pandas

from mtbridge import frame


def _method(function: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(function)
    def call(self: Accessor, *arguments: Any, **options: Any) -> Any:
        return function(self._data, *arguments, **options)

    return call


@pandas.api.extensions.register_dataframe_accessor("mtbridge")
class Accessor:
    """The functions of `mtbridge` on one DataFrame."""

    def __init__(self, data: pandas.DataFrame) -> None:
        self._data = data

    covariance = _method(frame.covariance)
    correlation = _method(frame.correlation)
    lagged_covariance = _method(frame.lagged_covariance)
    lagged_correlation = _method(frame.lagged_correlation)
    rolling = _method(frame.rolling)
    expanding = _method(frame.expanding)
    ewm = _method(frame.ewm)
    multiply = _method(frame.multiply)

    def bars_per_year(self) -> tuple[float, str]:
        """Return how many bars a year the index shows, and the sentence that says why."""
        return frame.bars_per_year(self._data.index)
