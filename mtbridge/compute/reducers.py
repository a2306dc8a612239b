"""Reducers: the mean correlation, chosen pairs, the largest, the largest eigenvalue, a portfolio's variance.

`reduced` keeps of each matrix of a sequence what one of these wants. One row of every matrix needs none:
open the sequence with ``Wanted(left=(b,))``, whose matrices are that row alone, of shape (1, columns).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mtbridge.allowed import is_whole, refuse_other, short
from mtbridge.compute.reduced import Largest, Reducer, reduced
from mtbridge.compute.sequence import MatrixSequence, Wanted
from mtbridge.errors import InputError, OptionError, ShapeError

Places = NDArray[np.intp]

KEPT_COLUMNS = 1000
"""Up to so many, the places of the elements of a triangle are kept from block to block: a few MB."""


@dataclass(frozen=True, slots=True)
class MeanOffDiagonal(Reducer[NDArray[np.float64]]):
    """The mean over the pairs i < j of the elements that are not NaN: float64 of shape (count,).

    NaN where there is none. Sums are float64, row by row: off by at most ``columns * eps`` of the mean of
    the absolute values.
    """

    def wanted(self, wanted: Wanted) -> Wanted:
        return triangle(wanted)

    def check(self, sequence: MatrixSequence) -> None:
        symmetric(sequence, "the mean of the pairs")

    def empty(self, sequence: MatrixSequence) -> NDArray[np.float64]:
        return np.full(sequence.count - sequence.done, np.nan)

    def fill(
        self, answer: NDArray[np.float64], at: slice, block: NDArray[Any], sequence: MatrixSequence
    ) -> None:
        values = upper(block, sequence, 1).astype(np.float64)
        missing = np.isnan(values)
        values[missing] = 0.0
        counts = values.shape[1] - missing.sum(axis=1)
        with np.errstate(invalid="ignore", over="ignore"):
            answer[at] = values.sum(axis=1) / np.where(counts, counts, np.nan)


@dataclass(frozen=True, slots=True)
class Pairs(Reducer[NDArray[Any]]):
    """Chosen elements (i, j) of each matrix: shape (count, pairs), of the dtype of the sequence.

    Only the rows `i` are computed where the sequence is opened with `wanted`. NaN stays NaN.

    Parameters
    ----------
    i, j : columns of the history, as many of the one as of the other; kept as tuples
    """

    i: Sequence[int]
    j: Sequence[int]

    def __post_init__(self) -> None:
        for name in ("i", "j"):
            given = np.asarray(getattr(self, name))
            if given.ndim != 1 or not given.size or given.dtype.kind not in "iu":
                raise ShapeError(f"{name} of the pairs is no list of column numbers, such as [0, 3].")
            object.__setattr__(self, name, tuple(given.tolist()))
        if len(self.i) != len(self.j):
            raise ShapeError(f"there are {len(self.i)} left columns but {len(self.j)} right ones.")

    def wanted(self, wanted: Wanted) -> Wanted:
        return replace(wanted, left=tuple(sorted(set(self.i))), packed=False)

    def check(self, sequence: MatrixSequence) -> None:
        for number in (*self.i, *self.j):
            if not 0 <= number < sequence.columns:
                raise OptionError(f"there is no column {number}; they are 0 to {sequence.columns - 1}.")
        left = sequence.wanted.left
        for number in self.i:
            if left is not None and number not in left:
                raise OptionError(f"the sequence has no row {number}; open it with `reducer.wanted(...)`.")

    def places(self, sequence: MatrixSequence) -> NDArray[np.int64]:
        """Where each pair lies in a matrix of `sequence`, in elements from its start."""
        i, j = np.array(self.i, np.int64), np.array(self.j, np.int64)
        if sequence.wanted.packed:
            i, j = np.minimum(i, j), np.maximum(i, j)
            return i * sequence.columns - i * (i + 1) // 2 + j
        left = sequence.wanted.left
        if left is not None:
            rows = {number: row for row, number in enumerate(left)}
            i = np.array([rows[number] for number in self.i], np.int64)
        return i * sequence.columns + j

    def empty(self, sequence: MatrixSequence) -> NDArray[Any]:
        return np.full((sequence.count - sequence.done, len(self.i)), np.nan, sequence.wanted.dtype)

    def fill(self, answer: NDArray[Any], at: slice, block: NDArray[Any], sequence: MatrixSequence) -> None:
        np.take(block.reshape(len(block), -1), self.places(sequence), axis=1, out=answer[at], mode="clip")


@dataclass(frozen=True, slots=True)
class TopPairs(Reducer[Largest]):
    """The `k` largest pairs i < j of each matrix, the largest first; of equal ones the lowest (i, j) first.

    NaN is never chosen; where fewer pairs are left the values end with NaN and the pairs with -1.

    Parameters
    ----------
    k : 1 or more, at most the number of pairs
    by : "absolute" compares magnitudes, "value" the values; the values come with their signs in either case
    """

    k: int
    by: Literal["absolute", "value"] = "absolute"

    def __post_init__(self) -> None:
        if not is_whole(self.k) or self.k < 1:
            raise OptionError(f"k is {short(self.k)}; it is a whole number of pairs, 1 or more.")
        refuse_other("by", self.by, ("absolute", "value"))

    def wanted(self, wanted: Wanted) -> Wanted:
        return triangle(wanted)

    def check(self, sequence: MatrixSequence) -> None:
        symmetric(sequence, "the largest pairs")
        most = sequence.columns * (sequence.columns - 1) // 2
        if self.k > most:
            raise OptionError(f"k is {self.k}, but {sequence.columns} columns have {most} pairs.")

    def empty(self, sequence: MatrixSequence) -> Largest:
        shape = (sequence.count - sequence.done, int(self.k))
        return Largest(np.full(shape, np.nan, sequence.wanted.dtype), np.full((*shape, 2), -1, np.int32))

    def fill(self, answer: Largest, at: slice, block: NDArray[Any], sequence: MatrixSequence) -> None:
        i, j, _ = triangle_places(sequence.columns, 1, sequence.wanted.packed)
        for place, values in zip(range(at.start, at.stop), upper(block, sequence, 1), strict=True):
            keys = np.where(np.isnan(values), -np.inf, self.keys(values))
            least = np.partition(keys, len(keys) - self.k)[len(keys) - self.k]
            chosen = np.flatnonzero((keys >= least) & ~np.isnan(values))
            # whatever lies before another one of the same key comes first
            chosen = chosen[np.argsort(-keys[chosen], kind="stable")][: self.k]
            answer.values[place, : len(chosen)] = values[chosen]
            answer.pairs[place, : len(chosen), 0] = i[chosen]
            answer.pairs[place, : len(chosen), 1] = j[chosen]

    def keys(self, values: NDArray[Any]) -> NDArray[Any]:
        """What is compared: NaN where the value is NaN."""
        return np.abs(values) if self.by == "absolute" else values

    def order(self, answer: Largest) -> None:
        """Put the pairs of each matrix, found in any order, into theirs."""
        keys = -self.keys(answer.values)
        order = np.lexsort((answer.pairs[..., 1], answer.pairs[..., 0], keys, np.isnan(keys)), axis=-1)
        answer.values[...] = np.take_along_axis(answer.values, order, axis=1)
        answer.pairs[...] = np.take_along_axis(answer.pairs, order[..., np.newaxis], axis=1)


@dataclass(frozen=True, slots=True)
class LargestEigenvalue(Reducer[NDArray[np.float64]]):
    """The largest (not the largest in magnitude) eigenvalue of each symmetric matrix: float64 of (count,).

    NaN where an element is NaN or infinite: leave a column without data out first. Found to within 1e-10 of
    itself, if it is not itself lost in ``columns * eps`` of the largest magnitude: a residual bounds the
    error, and a matrix that does not meet the bound soon is solved whole.
    """

    def wanted(self, wanted: Wanted) -> Wanted:
        return triangle(wanted)

    def check(self, sequence: MatrixSequence) -> None:
        symmetric(sequence, "the largest eigenvalue")

    def empty(self, sequence: MatrixSequence) -> NDArray[np.float64]:
        return np.full(sequence.count - sequence.done, np.nan)

    def fill(
        self, answer: NDArray[np.float64], at: slice, block: NDArray[Any], sequence: MatrixSequence
    ) -> None:
        if not sequence.columns:
            return
        full = np.zeros((len(block), sequence.columns, sequence.columns))
        rows, columns, _ = triangle_places(sequence.columns, 0, sequence.wanted.packed)
        full[:, rows, columns] = upper(block, sequence, 0)
        finite = np.isfinite(full).all(axis=(1, 2))
        answer[at][finite] = np.linalg.eigvalsh(full[finite], UPLO="U")[:, -1]


@dataclass(frozen=True, slots=True, eq=False)
class QuadraticForm(Reducer[NDArray[np.float64]]):
    """w'Cw of each matrix C, the variance of a portfolio if C is a covariance: float64 of shape (count,).

    NaN where an element between two weights that are not 0 is NaN; what has weight 0 does not matter. Sums
    are float64, row by row: off by at most ``columns * eps`` of the sum of the absolute terms.

    Parameters
    ----------
    weights : of shape (columns,), or (count, columns) with one row for each matrix of the sequence; finite
    """

    weights: NDArray[np.float64]

    def __post_init__(self) -> None:
        given = np.asarray(self.weights)
        if given.dtype.kind not in "fiu":
            raise InputError(f"the weights are {given.dtype}; they are real numbers.")
        if given.ndim not in (1, 2):
            raise ShapeError(f"the weights have {given.ndim} dimensions; give a row of them, or rows.")
        weights = np.ascontiguousarray(given, np.float64)
        if not np.isfinite(weights).all():
            raise InputError("a weight is NaN or infinite; 0 leaves a column out.")
        object.__setattr__(self, "weights", weights)

    def wanted(self, wanted: Wanted) -> Wanted:
        return triangle(wanted)

    def check(self, sequence: MatrixSequence) -> None:
        symmetric(sequence, "w'Cw")
        if self.weights.shape[-1] != sequence.columns:
            raise ShapeError(f"there are {self.weights.shape[-1]} weights but {sequence.columns} columns.")
        if self.weights.ndim == 2 and len(self.weights) != sequence.count:
            raise ShapeError(f"there are {len(self.weights)} rows of weights but {sequence.count} matrices.")

    def empty(self, sequence: MatrixSequence) -> NDArray[np.float64]:
        return np.full(sequence.count - sequence.done, np.nan)

    def fill(
        self, answer: NDArray[np.float64], at: slice, block: NDArray[Any], sequence: MatrixSequence
    ) -> None:
        i, j, _ = triangle_places(sequence.columns, 0, sequence.wanted.packed)
        weights = self.weights
        if weights.ndim == 2:
            # the block has been taken, so it ends where the sequence has arrived
            weights = weights[sequence.done - len(block) : sequence.done]
        left, right = np.take(weights, i, axis=-1), np.take(weights, j, axis=-1)
        with np.errstate(invalid="ignore", over="ignore"):
            terms = left * upper(block, sequence, 0).astype(np.float64) * right
            terms[:, i != j] *= 2.0
            terms[np.broadcast_to((left == 0) | (right == 0), terms.shape)] = 0.0
            answer[at] = terms.sum(axis=1)


def triangle(wanted: Wanted) -> Wanted:
    """`wanted` with one triangle for each symmetric matrix."""
    return replace(wanted, packed=True) if wanted.left is None and wanted.statistic != "beta" else wanted


def symmetric(sequence: MatrixSequence, what: str) -> None:
    """Refuse matrices that are not whole, or not symmetric."""
    if sequence.wanted.statistic == "beta":
        raise OptionError(f"{what} is of a symmetric matrix; betas are not: take covariances.")
    if sequence.wanted.left is not None:
        raise OptionError(f"{what} is of whole matrices; leave left out.")


def upper(block: NDArray[Any], sequence: MatrixSequence, above: int) -> NDArray[Any]:
    """The upper triangle from diagonal `above` on, 0 or 1, row by row: shape (matrices, elements)."""
    *_, places = triangle_places(sequence.columns, above, sequence.wanted.packed)
    found: NDArray[Any] = np.take(block.reshape(len(block), int(np.prod(sequence.shape))), places, axis=1)
    return found


def triangle_places(columns: int, above: int, packed: bool) -> tuple[Places, Places, Places]:
    """The rows and columns of the upper triangle from diagonal `above` on, and where its elements lie."""
    if columns > KEPT_COLUMNS:
        return made_places(columns, above, packed)
    return kept_places(columns, above, packed)


def made_places(columns: int, above: int, packed: bool) -> tuple[Places, Places, Places]:
    i, j = np.triu_indices(columns, above)
    return i, j, i * columns - i * (i + 1) // 2 + j if packed else i * columns + j


kept_places = lru_cache(maxsize=2)(made_places)


__all__ = [
    "Largest",
    "LargestEigenvalue",
    "MeanOffDiagonal",
    "Pairs",
    "QuadraticForm",
    "Reducer",
    "TopPairs",
    "reduced",
]
