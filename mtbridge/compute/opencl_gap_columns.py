"""What the host is to know of the columns of a matrix with gaps: where values are, how many, what range."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.forms import SQUARE
from mtbridge.compute.moments import Vector
from mtbridge.compute.opencl_moments import SUM, Uncentred

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

WORD = np.dtype(np.int32).itemsize

FACTS = 5
"""Numbers that are known of a column; kernels/pairwise/gap_columns.cl."""


@dataclass(frozen=True, slots=True, eq=False)
class FoundColumns:
    """What is known of the columns of a matrix in which values are missing.

    Attributes
    ----------
    bits : buffer of which values are there, as presence.cl leaves them
    total, low, high : of the values of each column
    counts, leads : rows of each column, and those before its first one
    """

    bits: Any
    total: Vector
    low: Vector
    high: Vector
    counts: NDArray[np.int64]
    leads: NDArray[np.int64]


def found_columns(device: Device, raw: Uncentred, bits: Any) -> FoundColumns:
    """Measure the columns of `raw`, and put which values are there into the buffer `bits`."""
    rows, columns = raw.shape
    chunk = raw.chunk_rows(rows, device)
    chunks = -(-rows // chunk)
    parts = device.buffer("columns", FACTS * chunks * columns * SUM.itemsize)
    target, found = device.result("found columns", (FACTS, columns), SUM)
    down = raw.squares["DOWN"]
    defines = {"SUM_BITS": 8 * SUM.itemsize, "ACROSS": SQUARE, "DOWN": down}
    reading = {**defines, "SOURCE_BITS": 8 * raw.source_dtype.itemsize}
    kernel = device.kernel("gap_columns", ("pairwise/gap_columns.cl",), reading)
    sizes = tuple(np.int32(size) for size in (columns, rows, chunk))
    steps, across = tuple(np.int64(step) for step in raw.steps), -(-columns // SQUARE)
    device.run(kernel, (across, chunks), (SQUARE, down), raw.source, bits, parts, *sizes, *steps)
    kernel = device.kernel("found_columns", ("pairwise/found_columns.cl",), defines)
    sizes = (np.int32(columns), np.int32(chunks))
    device.run(kernel, (across, 1), (SQUARE, down), parts, target, *sizes)
    total, low, high, *numbers = device.receive(target, found)
    counts, leads = (number.astype(np.int64) for number in numbers)
    return FoundColumns(bits, total, low, high, counts, leads)
