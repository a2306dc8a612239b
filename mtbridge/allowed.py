"""What an option may be, asked in a way that no value breaks: arrays, pandas' NA and time spans come too."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from mtbridge.errors import OptionError

_SHORT: Final = reprlib.Repr()
_SHORT.maxother = _SHORT.maxstring = _SHORT.maxlong = 60


def is_whole(value: Any) -> bool:
    """Whether this is a whole number; True and False are none, nor is a timedelta64, though numpy says so."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_number(value: Any) -> bool:
    """Whether this is a real number of Python's or numpy's."""
    return is_whole(value) or isinstance(value, float | np.floating)


def refuse_other(name: str, value: Any, words: Sequence[str]) -> None:
    """Raise OptionError if `value` is none of these words.

    A value that is no text is not compared: an array would answer with an array.
    """
    if not isinstance(value, str) or value not in words:
        shown = ", ".join(map(repr, words[:-1])) + f" or {words[-1]!r}"
        raise OptionError(f"{name} is {short(value)}; it can be {shown}.")


def short(value: Any) -> str:
    """Return a value as a message shows it: on one line, and not long."""
    if isinstance(value, np.generic):
        value = value.item() if value.dtype.kind in "iufb" else str(value)
    try:
        return " ".join(_SHORT.repr(value).split())
    except ValueError:
        # Python writes no whole number of more than 4,300 digits
        return f"a {type(value).__name__} of thousands of digits"
