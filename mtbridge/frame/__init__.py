"""Statistics and products of arrays and DataFrames: what `import mtbridge` offers.

A DataFrame in gives a DataFrame out, with its labels; rows are bars, columns are symbols, as in pandas.
pandas itself is never imported for an array: whoever holds a DataFrame has it already.
"""

from __future__ import annotations

from mtbridge.frame.annual import bars_per_year
from mtbridge.frame.engines import opened
from mtbridge.frame.lags import lagged_correlation, lagged_covariance
from mtbridge.frame.matrices import correlation, covariance
from mtbridge.frame.moving import DecayingWindows, RowWindows, ewm, expanding, rolling
from mtbridge.frame.options import checked
from mtbridge.frame.products import empty_pinned, multiply
from mtbridge.frame.tables import (
    Table,
    factors,
    is_frame,
    names,
    product_table,
    square,
    table,
    without_level,
)
from mtbridge.frame.windows import Windows

__all__ = [
    "DecayingWindows",
    "RowWindows",
    "Table",
    "Windows",
    "bars_per_year",
    "checked",
    "correlation",
    "covariance",
    "empty_pinned",
    "ewm",
    "expanding",
    "factors",
    "is_frame",
    "lagged_correlation",
    "lagged_covariance",
    "multiply",
    "names",
    "opened",
    "product_table",
    "rolling",
    "square",
    "table",
    "without_level",
]
