"""`newest_matrix`: the last matrix of a plan alone, with no more work than it takes.

A live program wants the matrix of now, and not that of every bar before it: thousands of times less work.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.decay import Decay
from mtbridge.compute.engine import Engine
from mtbridge.compute.host_decay import check_decay
from mtbridge.compute.sequence import FLOAT64, MatrixSequence, Wanted
from mtbridge.compute.weights import weighted_correlation, weighted_covariance
from mtbridge.compute.windows import Rolling
from mtbridge.matrix import Matrix

BLOCK_BYTES = 1 << 24
"""Where all matrices have to be gone through, so much is held of them."""


def newest_matrix(X: Matrix, plan: Rolling | Decay, wanted: Wanted, engine: Engine) -> NDArray[Any]:
    """Return the last of the matrices that ``engine.sequence(X, plan, wanted)`` writes; `plan` has one.

    A rolling one is that of the rows of its window, an expanding one that of all rows, and one with weights
    that of weighted rows, where nothing is missing. Only weights beside missing values, and betas, need the
    matrices before.
    """
    if isinstance(plan, Rolling):
        X, plan = newest_rows(X, plan)
    else:
        check_decay(X, plan, wanted)
    if wanted.left is not None or wanted.statistic == "beta":
        return _last(engine.sequence(X, plan, wanted))
    if isinstance(plan, Rolling) or plan.counted:
        pairs = engine.pair_moments(X, dtype=FLOAT64)
        if wanted.statistic == "covariance":
            return _as_wanted(pairs.covariance(wanted.ddof, wanted.min_periods), wanted)
        return _as_wanted(pairs.correlation(wanted.min_periods), wanted)
    if np.isnan(X).any():
        return _last(engine.sequence(X, plan, wanted))
    weights = weights_of(plan)
    if len(X) < wanted.min_periods:
        return np.full(wanted.shape(X.shape[1]), np.nan, wanted.dtype)
    if wanted.statistic == "covariance":
        matrix, _ = weighted_covariance(
            X, engine=engine, reliability=weights, ddof=wanted.ddof, dtype=FLOAT64
        )
    else:
        matrix, _ = weighted_correlation(X, engine=engine, reliability=weights, dtype=FLOAT64)
    return _as_wanted(matrix, wanted)


def newest_rows(X: Matrix, plan: Rolling) -> tuple[Matrix, Rolling]:
    """Return the rows of the last window, and the plan of that window alone."""
    first, last = int(plan.first[-1]), int(plan.last[-1])
    return X[first : last + 1], Rolling(np.zeros(1, np.int64), np.full(1, last - first, np.int64))


def weights_of(plan: Decay) -> NDArray[np.float64]:
    """Return the weight that each row has in the last matrix, where no row is missing."""
    fresh = np.full(len(plan), plan.weight)
    # without adjust the weights sum to 1 after each row, the first one has all of it
    fresh[:1] = 1.0
    with np.errstate(under="ignore"):
        fresh[:-1] *= np.cumprod(plan.factor[:0:-1])[::-1]
    return fresh


def _as_wanted(matrix: NDArray[Any], wanted: Wanted) -> NDArray[Any]:
    if wanted.packed:
        matrix = matrix[np.triu_indices(len(matrix))]
    with np.errstate(over="ignore"):
        return matrix.astype(wanted.dtype, copy=False)


def _last(sequence: MatrixSequence) -> NDArray[Any]:
    """The last matrix of a sequence, the others a block at a time."""
    each = max(1, int(np.prod(sequence.shape)) * sequence.wanted.dtype.itemsize)
    block = aligned_empty(
        (max(1, min(sequence.count, BLOCK_BYTES // each)), *sequence.shape), sequence.wanted.dtype
    )
    while sequence.done < sequence.count:
        part = block[: sequence.count - sequence.done]
        sequence.write(part)
    last: NDArray[Any] = part[-1].copy()
    return last
