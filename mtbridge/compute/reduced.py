"""`reduced`: a few numbers of each matrix of a sequence, without the array of all of them.

Block after block of a `MatrixSequence` is taken, and only what a reducer wants of it is kept (reducers.py).
Memory is one block and the answer, however long the history. On an OpenCL device the block stays where
kernels wrote it, and other kernels reduce it there (opencl_reducers.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.opencl_sequence import OpenCLSequence
from mtbridge.compute.sequence import MatrixSequence, Wanted
from mtbridge.errors import OptionError

Answer = TypeVar("Answer")
Progress = Callable[[int, int], None]

HOST_BLOCK_BYTES = 1 << 21
"""A block on the host: numpy makes a few arrays of its size, and those of this size stay in cache."""


class Reducer(ABC, Generic[Answer]):
    """What is kept of each matrix; `reduced` drives it."""

    @abstractmethod
    def wanted(self, wanted: Wanted) -> Wanted:
        """Return what a sequence should be opened with, so that it computes no more than is reduced."""

    @abstractmethod
    def check(self, sequence: MatrixSequence) -> None:
        """Raise an `InputError` where the reducer does not fit the matrices of `sequence`."""

    @abstractmethod
    def empty(self, sequence: MatrixSequence) -> Answer:
        """Return the answer for the matrices that are left of `sequence`, not filled in yet."""

    @abstractmethod
    def fill(self, answer: Answer, at: slice, block: NDArray[Any], sequence: MatrixSequence) -> None:
        """Write into ``answer[at]`` what is kept of the matrices of `block`, the last that were taken."""


class Largest(NamedTuple):
    """The largest pairs of each matrix, the largest first.

    Attributes
    ----------
    values : float array of shape (count, k), of the dtype of the sequence; NaN where pairs ran out
    pairs : int32 array of shape (count, k, 2), the columns i < j of each; -1 where pairs ran out
    """

    values: NDArray[Any]
    pairs: NDArray[np.int32]


def reduced(
    sequence: MatrixSequence,
    reducer: Reducer[Answer],
    *,
    block_bytes: int | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Return what `reducer` keeps of each matrix that is left of `sequence`, which ends with it.

    Parameters
    ----------
    sequence : opened with ``reducer.wanted(wanted)`` it computes the least; whole matrices and packed
        triangles, float64 and float32 are all reduced
    block_bytes : of the matrices that exist at a time, one of them at least; by default 16 MiB, or up to
        1 GiB in the memory of a graphics card. The answer is the same bit for bit, whatever it is.
    progress : called with the matrices done and those to do, after each block

    Returns
    -------
    what the reducer says: an array with one entry a matrix, or `Largest`

    Raises
    ------
    OptionError, ShapeError
        If the reducer does not fit the matrices.
    """
    if block_bytes is not None and block_bytes < 1:
        raise OptionError(f"block_bytes is {block_bytes}; a block holds 1 byte or more.")
    reducer.check(sequence)
    if isinstance(sequence, OpenCLSequence) and sequence.count > sequence.done and sequence.columns:
        from mtbridge.compute.opencl_reducers import reduced_on_device

        return reduced_on_device(sequence, reducer, block_bytes=block_bytes, progress=progress)
    return reduced_on_host(sequence, reducer, block_bytes=block_bytes, progress=progress)


def reduced_on_host(
    sequence: MatrixSequence,
    reducer: Reducer[Answer],
    *,
    block_bytes: int | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Return what `reduced` returns, by numpy."""
    answer = reducer.empty(sequence)
    left = sequence.count - sequence.done
    size = max(1, int(np.prod(sequence.shape)) * sequence.wanted.dtype.itemsize)
    step = max(1, min(left, min(block_bytes or HOST_BLOCK_BYTES, HOST_BLOCK_BYTES) // size))
    kept = aligned_empty((step, *sequence.shape), sequence.wanted.dtype)
    for first in range(0, left, step):
        block = kept[: min(step, left - first)]
        sequence.write(block)
        reducer.fill(answer, slice(first, first + len(block)), block, sequence)
        if progress is not None:
            progress(first + len(block), left)
    return answer
