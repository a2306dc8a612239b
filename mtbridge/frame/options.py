"""Options that several functions take, checked the same way."""

from __future__ import annotations

from typing import Any

from mtbridge.compute.operations import refuse_count
from mtbridge.errors import OptionError
from mtbridge.matrix import DTYPES

MOST_ROWS = 2**31 - 1
"""No table has more; what asks for more is out of reach all the same, and this fits every kernel."""


def checked(dtype: str | None) -> str | None:
    if dtype is not None and dtype not in DTYPES:
        raise OptionError(f"dtype is {dtype!r}; it can be 'float32' or 'float64'.")
    return dtype


def checked_ddof(ddof: Any) -> int:
    refuse_count("ddof", ddof)
    return min(int(ddof), MOST_ROWS)


def at_least(min_periods: Any) -> int:
    """Return the rows that a pair needs, at least 1; None is 1."""
    if min_periods is None:
        return 1
    refuse_count("min_periods", min_periods)
    return max(1, min(int(min_periods), MOST_ROWS))
