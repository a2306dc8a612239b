"""Reducers on an OpenCL device: a block is written into one buffer, and kernels/reduce reads it there.

Blocks are queued one behind the other, and the small answers fetched at the end. A CPU device takes one
work-item for a matrix or a slice of it, any other a group.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import spans
from mtbridge.compute.reduced import Answer, Largest, Progress, Reducer, reduced_on_host
from mtbridge.compute.reducers import LargestEigenvalue, MeanOffDiagonal, Pairs, QuadraticForm, TopPairs
from mtbridge.compute.sequence import FLOAT64
from mtbridge.errors import DeviceError

if TYPE_CHECKING:
    from mtbridge.compute.opencl_sequence import OpenCLSequence

HOST_BLOCK, DEVICE_BLOCK = 1 << 24, 1 << 30
"""Bytes of a block: little, and what keeps every unit of a graphics card busy; a quarter of its buffers."""

GROUP, TOP_GROUP, STRIP, SMALL_GROUP = 256, 1024, 32, 64
"""Items of a group, and those that read along one row; the small one is for small devices, and tests."""

SLICE = {"cpu": 1 << 16, "gpu": 1 << 14}
"""Elements above which a matrix is summed in slices by several groups."""
MOST_SLICES = 64

STEPS, STARTS = 64, 2
SCRATCH_BYTES = {"cpu": 1 << 24, "gpu": 1 << 28}
"""For the vectors of the matrices whose eigenvalues are sought at a time."""

ORDERED = 1 << 16
"""Pairs that are put in order at a time: numpy makes some arrays of that length."""

LARGEST_PLACE = 1 << 16
"""Columns from which a pair's place does not fit in 32 bits."""


def reduced_on_device(
    sequence: OpenCLSequence,
    reducer: Reducer[Answer],
    *,
    block_bytes: int | None = None,
    progress: Progress | None = None,
    grouped: bool | None = None,
) -> Answer:
    """Return what `reduced` returns; a reducer without kernels has its blocks copied to the host.

    `grouped` takes the GPU's form of the kernels on a CPU device too, or the CPU's on a GPU.
    """
    made = REDUCTIONS.get(type(reducer))
    if made is None or sequence.columns >= LARGEST_PLACE:
        return reduced_on_host(sequence, reducer, block_bytes=block_bytes, progress=progress)
    device, count = sequence.device, sequence.count - sequence.done
    usual = HOST_BLOCK if device.host_memory else min(DEVICE_BLOCK, sequence.limit // 4)
    step = max(1, min(count, min(block_bytes or usual, sequence.limit) // sequence.matrix_bytes))
    answer = reducer.empty(sequence)
    reduction = made(sequence, reducer, answer, device.kind != "cpu" if grouped is None else grouped)
    try:
        block = device.buffer("reduced block", step * sequence.matrix_bytes)
        for span in spans(count, step):
            start = sequence.done
            sequence.take(block, span.stop - span.start)
            reduction.queue(block, span, start)
            if progress is not None:
                device.finish()
                progress(span.stop, count)
        reduction.collect()
    except BaseException:
        # the device may read arrays that are about to be freed
        with suppress(DeviceError, MemoryError):
            device.finish()
        raise
    return answer


class Reduction(ABC):
    """What a reducer queues behind each block, and fetches at the end.

    Parameters
    ----------
    sequence : of which matrices are taken
    reducer, answer : of `Reducer.empty`, to be filled in
    grouped : one group of items a matrix, as a GPU wants it, instead of one item
    """

    def __init__(self, sequence: OpenCLSequence, reducer: Any, answer: Any, grouped: bool) -> None:
        self.sequence = sequence
        self.device = sequence.device
        self.reducer = reducer
        self.answer = answer
        self.form = "gpu" if grouped else "cpu"
        large = self.device.kind != "cpu" and self.device.largest_group >= GROUP
        self.group = 1 if not grouped else GROUP if large else SMALL_GROUP
        self.columns = sequence.columns
        self.count = sequence.count - sequence.done

    @property
    def defines(self) -> dict[str, int]:
        """Macros that the kernels of every reducer have in common."""
        lanes = max(2, min(16, self.device.native_bytes // FLOAT64.itemsize))
        return {
            "REAL_BITS": 8 * self.sequence.wanted.dtype.itemsize,
            "SUM_BITS": 64,
            "PACKED": int(self.sequence.wanted.packed),
            "GROUP": self.group,
            "STRIP": STRIP if self.group > 1 else 1,
            "LANES": 1 if self.group > 1 else lanes,
        }

    @property
    def size(self) -> np.uint64:
        """Elements of a matrix."""
        return np.uint64(np.prod(self.sequence.shape))

    @property
    def slices(self) -> int:
        """Groups that share a matrix: the same for every block, so that sums are the same."""
        return min(MOST_SLICES, -(-self.columns * self.columns // 2 // SLICE[self.form]))

    def run(self, name: str, groups: tuple[int, ...], *arguments: Any, file: str = "") -> None:
        """Queue kernel `name`."""
        headers = ("reduce/matrices.clh", "reduce/lanczos.clh")[: 2 if name == "largest_eigenvalue" else 1]
        kernel = self.device.kernel(name, (*headers, f"reduce/{file or name}.cl"), self.defines)
        local = (self.group, *(1 for _ in groups[1:]))
        self.device.run(kernel, groups, local, *arguments)

    @abstractmethod
    def queue(self, block: Any, span: slice, start: int) -> None:
        """Queue the reduction of matrices `start` and on of the sequence to ``answer[span]``."""

    @abstractmethod
    def collect(self) -> None:
        """Fetch the answer."""


class MeanReduction(Reduction):
    def __init__(self, sequence: OpenCLSequence, reducer: Any, answer: Any, grouped: bool) -> None:
        super().__init__(sequence, reducer, answer, grouped)
        self.partial = self.device.buffer("reduced", self.count * self.slices * 16)

    def queue(self, block: Any, span: slice, start: int) -> None:
        numbers = (np.int32(self.columns), self.size, np.int32(span.start))
        self.run("mean_pairs", (span.stop - span.start, self.slices), block, self.partial, *numbers)

    def collect(self) -> None:
        parts = self.device.downloaded(self.partial, np.empty((self.count, self.slices, 2)))
        sums, counts = parts[..., 0].sum(axis=1), parts[..., 1].sum(axis=1)
        with np.errstate(invalid="ignore"):
            self.answer[...] = sums / np.where(counts, counts, np.nan)


class QuadraticReduction(Reduction):
    def __init__(self, sequence: OpenCLSequence, reducer: Any, answer: Any, grouped: bool) -> None:
        super().__init__(sequence, reducer, answer, grouped)
        self.partial = self.device.buffer("reduced", self.count * self.slices * 8)
        self.weights: NDArray[np.float64] = reducer.weights
        self.sent = self.device.send("weights", self.weights) if self.weights.ndim == 1 else None

    def queue(self, block: Any, span: slice, start: int) -> None:
        matrices = span.stop - span.start
        sent, step = self.sent, 0
        if sent is None:
            sent, step = self.device.send("weights", self.weights[start : start + matrices]), self.columns
        numbers = (np.int32(self.columns), self.size, np.int32(step), np.int32(span.start))
        self.run("quadratic_form", (matrices, self.slices), block, sent, self.partial, *numbers)

    def collect(self) -> None:
        parts = self.device.downloaded(self.partial, np.empty((self.count, self.slices)))
        with np.errstate(invalid="ignore", over="ignore"):
            self.answer[...] = parts.sum(axis=1)


class PairsReduction(Reduction):
    def __init__(self, sequence: OpenCLSequence, reducer: Any, answer: Any, grouped: bool) -> None:
        super().__init__(sequence, reducer, answer, grouped)
        # kept here, since the device may copy it later
        self.table = reducer.places(sequence).astype(np.uint64)
        self.places = self.device.send("places", self.table)
        self.out = self.device.buffer("reduced", answer.nbytes)

    def queue(self, block: Any, span: slice, start: int) -> None:
        pairs = self.answer.shape[1]
        groups = (-(-pairs // self.group), span.stop - span.start)
        numbers = (self.size, np.int32(pairs), np.int32(span.start))
        self.run("pairs", groups, block, self.places, self.out, *numbers)

    def collect(self) -> None:
        self.device.downloaded(self.out, self.answer)


class TopReduction(Reduction):
    answer: Largest

    def __init__(self, sequence: OpenCLSequence, reducer: Any, answer: Any, grouped: bool) -> None:
        super().__init__(sequence, reducer, answer, grouped)
        if self.group == GROUP and self.device.largest_group >= TOP_GROUP:
            self.group = TOP_GROUP
        self.values = self.device.buffer("reduced", answer.values.nbytes)
        self.pairs = self.device.buffer("reduced pairs", answer.pairs.nbytes)

    @property
    def defines(self) -> dict[str, int]:
        lanes = self.device.native_bytes // self.sequence.wanted.dtype.itemsize
        return {
            **super().defines,
            "ABSOLUTE": int(self.reducer.by == "absolute"),
            "LANES": max(2, min(16, lanes)) if self.group == 1 else 1,
        }

    def queue(self, block: Any, span: slice, start: int) -> None:
        numbers = (np.int32(self.columns), self.size, np.int32(self.reducer.k), np.int32(span.start))
        file = "top_pairs" if self.group == 1 else "top_pairs_group"
        groups = (span.stop - span.start,)
        self.run("top_pairs", groups, block, self.values, self.pairs, *numbers, file=file)

    def collect(self) -> None:
        self.device.downloaded(self.values, self.answer.values)
        self.device.downloaded(self.pairs, self.answer.pairs)
        if self.group > 1:
            for span in spans(self.count, max(1, ORDERED // self.reducer.k)):
                self.reducer.order(Largest(self.answer.values[span], self.answer.pairs[span]))


class EigenvalueReduction(Reduction):
    def __init__(self, sequence: OpenCLSequence, reducer: Any, answer: Any, grouped: bool) -> None:
        super().__init__(sequence, reducer, answer, grouped)
        self.out = self.device.buffer("reduced", self.count * 16)
        # kept here, since the device may copy it later
        self.table = starting_vectors(self.columns)
        self.starts = self.device.send("starts", self.table)
        each = (STEPS + 1) * self.columns * FLOAT64.itemsize
        room = min(SCRATCH_BYTES[self.form], sequence.limit)
        self.groups = max(1, min(self.count, room // each))
        self.scratch = self.device.buffer("reduced scratch", self.groups * each)

    @property
    def defines(self) -> dict[str, int]:
        return {**super().defines, "STEPS": STEPS, "STARTS": STARTS}

    def queue(self, block: Any, span: slice, start: int) -> None:
        matrices = span.stop - span.start
        for part in spans(matrices, self.groups):
            numbers = (np.int32(self.columns), self.size, np.uint64(part.start), np.int32(span.start))
            groups = (part.stop - part.start,)
            self.run("largest_eigenvalue", groups, block, self.starts, self.scratch, self.out, *numbers)
        # what the kernel is not sure of is solved while the block is there
        found = self.device.downloaded(self.out, np.empty((matrices, 2)), offset=16 * span.start)
        self.answer[span] = found[:, 0]
        for place in np.flatnonzero(found[:, 1] == 0):
            matrix = np.empty((1, *self.sequence.shape), self.sequence.wanted.dtype)
            self.device.downloaded(block, matrix, offset=int(place) * matrix.nbytes)
            at = span.start + int(place)
            self.reducer.fill(self.answer, slice(at, at + 1), matrix, self.sequence)

    def collect(self) -> None:
        """Every block has been."""


REDUCTIONS: dict[type, Callable[..., Reduction]] = {
    MeanOffDiagonal: MeanReduction,
    QuadraticForm: QuadraticReduction,
    Pairs: PairsReduction,
    TopPairs: TopReduction,
    LargestEigenvalue: EigenvalueReduction,
}


def starting_vectors(columns: int) -> NDArray[np.float64]:
    """Return vectors of length 1, of shape (STARTS, columns): the same ever, and like no matrix's own."""
    with np.errstate(over="ignore"):
        # the mixing of splitmix64, by which neighbouring numbers lose every likeness
        bits = np.arange(1, STARTS * columns + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    even = (bits >> np.uint64(11)).astype(np.float64).reshape(STARTS, columns) * 2.0**-52 - 1.0
    # away from 0, so that every column has its share
    vectors = even + np.copysign(0.25, even)
    found: NDArray[np.float64] = vectors / np.sqrt((vectors**2).sum(axis=1, keepdims=True))
    return found
