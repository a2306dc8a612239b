"""Arrays of more than two dimensions: a batch of matrices, each with an answer of its own."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from mtbridge.compute.batch_statistics import batch_statistic
from mtbridge.compute.engine import Engine
from mtbridge.errors import OptionError
from mtbridge.frame.objects import as_numbers
from mtbridge.matrix import Result, as_matrix


def is_batch(data: Any) -> bool:
    """Whether `data` is an array of matrices."""
    return isinstance(data, np.ndarray) and data.ndim > 2


def refuse_for_batches(**given: bool) -> None:
    """Refuse options, by their names, that there are for one matrix alone.

    Raises
    ------
    OptionError
        If one of them is given.
    """
    for name, there in given.items():
        if there:
            raise OptionError(f"{name} is for one matrix; leave it out for a batch, or call for each matrix.")


def batch_of(
    data: Any,
    statistic: Literal["covariance", "correlation"],
    engine: Engine,
    *,
    dtype: str | None,
    **options: Any,
) -> Result:
    """Return the statistic of each matrix of `data`, of shape (…, rows, symbols); see `batch_statistic`."""
    return batch_statistic(
        as_matrix(as_numbers(data), batch=True), statistic, engine=engine, dtype=dtype, **options
    )
