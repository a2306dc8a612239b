"""Options that several functions take, checked the same way."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbridge.allowed import refuse_other, short
from mtbridge.compute.operations import counted
from mtbridge.errors import OptionError
from mtbridge.matrix import DTYPES


def checked(dtype: str | None) -> str | None:
    if isinstance(dtype, np.dtype):
        dtype = dtype.name
    if dtype is not None:
        refuse_other("dtype", dtype, DTYPES)
    return dtype


def refuse_no_flags(**flags: Any) -> None:
    """Raise OptionError if one of these options is neither True nor False."""
    for name, value in flags.items():
        if not isinstance(value, bool | np.bool_):
            raise OptionError(f"{name} is {short(value)}; it can be True or False.")


def at_least(min_periods: Any) -> int:
    """Return the rows that a pair needs, at least 1; None is 1."""
    return 1 if min_periods is None else max(1, counted("min_periods", min_periods))
