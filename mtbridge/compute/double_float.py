"""X'X of float32 on a device without float64: sums of a few rows in float32, added up in pairs of floats."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import padded, spans
from mtbridge.compute.forms import WIDE_SUM, Form
from mtbridge.compute.host import mirrored
from mtbridge.compute.slices import ADDERS

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

FLOAT = np.dtype(np.float32)

PARTIAL_BYTES = 1 << 24
"""Bytes of the results of slices of WIDE_SUM rows, which are added up before the next ones are computed."""


def slab_rows(form: Form, shape: tuple[int, int], limit: int) -> int:
    """Return how many rows of a (rows, columns) matrix are done at a time; 0 where buffers are too small."""
    rows, columns = shape
    square = columns * columns * FLOAT.itemsize
    slices = min(limit, max(PARTIAL_BYTES, square)) // square
    depth = min(slices, limit // (padded(columns, form.right) * WIDE_SUM * FLOAT.itemsize)) * WIDE_SUM
    fits = max(2 * square, rows * columns * FLOAT.itemsize) <= limit
    return depth if fits else 0


def gram_in_double_floats(
    device: Device,
    form: Form,
    shape: tuple[int, int],
    *,
    pack: Callable[[slice], tuple[Any, int]],
    blocks: tuple[Any, int],
    defines: Mapping[str, int],
    slab: int,
) -> NDArray[np.float64]:
    """Return X'X, float64 of shape (columns, columns) and symmetric bit for bit, for `X` of `shape`, float32.

    Parameters
    ----------
    pack : queues the packing of a slab of rows; returns its panels and their padded inner size
    blocks : table of the blocks of the upper triangle, and their number
    defines : macros of the form for float32
    slab : rows of a slab, from `slab_rows`
    """
    rows, columns = shape
    size = columns * columns
    table, groups = blocks
    macros = {**defines, "BLOCK_INNER": WIDE_SUM, "SLICED": 1}
    gram = device.kernel("gram", (*form.headers, f"gram/{form.file}.cl"), macros)
    adder = device.kernel("add_double_float", ("moments/add_double_float.cl",), {"GROUP": ADDERS})
    target, pairs = device.result("pairs", (2 * columns, columns), FLOAT)
    for part in spans(rows, slab):
        panels, depth = pack(part)
        # as many slices as there are units of WIDE_SUM rows, so each is one of them
        slices = -(-depth // WIDE_SUM)
        partial = device.buffer("slices", slices * size * FLOAT.itemsize)
        sizes = (np.int32(columns), np.int32(depth), np.int32(columns))
        device.run(gram, (groups, slices), (form.group, 1), panels, partial, *sizes, table)
        counts = (np.int32(size), np.int32(slices), np.int32(part.start > 0))
        device.run(adder, (-(-size // ADDERS),), (ADDERS,), partial, target, *counts)
    found = device.receive(target, pairs).astype(np.float64)
    with np.errstate(invalid="ignore"):
        # below the diagonal a form may have left anything
        total = found[:columns] + found[columns:]
        mirrored(total)
    return total
