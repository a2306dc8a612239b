"""Arrays that start on a boundary which every device can read from where they lie."""

from __future__ import annotations

import math
import operator
import sys
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.errors import OptionError, ShapeError
from mtbridge.matrix import DTYPES

ALIGNMENT = 128
"""Bytes: more than any device asks of a host pointer here, and two cache lines."""


def aligned_empty(shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return an uninitialised C-ordered array that starts on a boundary of ALIGNMENT."""
    size = math.prod(shape) * dtype.itemsize
    if size > sys.maxsize - ALIGNMENT:
        # numpy would call this a wrong value
        raise MemoryError(f"an array of shape {shape} is larger than any memory")
    raw = np.empty(size + ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % ALIGNMENT
    return raw[start : start + size].view(dtype).reshape(shape)


def checked_lengths(shape: int | tuple[int, ...]) -> tuple[int, ...]:
    """Return `shape` as a tuple; ShapeError if it holds anything but whole numbers from 0."""
    try:
        lengths = tuple(operator.index(length) for length in np.atleast_1d(np.asarray(shape, object)))
    except TypeError:
        lengths = (-1,)
    if any(length < 0 for length in lengths):
        raise ShapeError(f"shape is {shape!r}; it needs whole numbers, none of them negative.")
    return lengths


def checked_dtype(dtype: Any) -> np.dtype[Any]:
    """Return `dtype` as numpy's; OptionError if it is neither float32 nor float64 of this machine."""
    for name in DTYPES:
        with suppress(TypeError, ValueError):
            if np.dtype(dtype) == np.dtype(name):
                return np.dtype(name)
    raise OptionError(f"dtype is {dtype!r}; it can be 'float32' or 'float64'.")
