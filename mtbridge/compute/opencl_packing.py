"""The kernel that centres a matrix on its way into panels, or scales it (kernels/packing.clh)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mtbridge.compute.blocks import padded
from mtbridge.compute.forms import HALVES, MEASURING, SCALING, SQUARE, planes

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device
    from mtbridge.compute.opencl_moments import Uncentred

SPAN_BYTES = 256
"""Of a column, as it is read by a GPU at a time."""


def queue_packing(
    device: Device,
    raw: Uncentred,
    slab: slice,
    chunk: int,
    tables: tuple[Any, Any],
    *,
    measured: int = 0,
    looking: bool = False,
    ordinary: bool = False,
) -> tuple[Any, int]:
    """Queue the packing of a slab of rows, a `chunk` of them a group.

    Parameters
    ----------
    tables : what columns are centred by, or what is `measured` of them in so many chunks, and the place for
        what is found
    looking : each group looks at all rows of its columns, in chunks of so many `measured`
    ordinary : a float32 matrix, which is scaled only; the tables are those of kernels/scaling.clh

    Returns
    -------
    panels : their buffer
    depth : their padded inner size
    """
    form, size = raw.form, raw.dtype.itemsize
    rows = slab.stop - slab.start
    depth = padded(rows, form.inner)
    panels = device.buffer(f"{raw.slot} panels", raw.width * depth * size)
    defines = {
        "SOURCE_BITS": 8 * raw.source_dtype.itemsize,
        "REAL_BITS": 8 * size,
        "SUM_BITS": 64,
        "PANEL": form.right,
    }
    if raw.missing:
        defines["MISSING"] = 1
    headers: tuple[str, ...] = ()
    if form.squares:
        file = f"moments/pack_centred_{'halves' if form.halves else 'squares'}.cl"
        across, headers = SQUARE, ("centring.clh", "packing.clh")
        # of as many bytes under way, float32 has twice the rows
        defines |= {**raw.squares, "SPAN": SPAN_BYTES // raw.source_dtype.itemsize}
        local = (SQUARE, defines["DOWN"])
        if not device.subnormals:
            defines["FLUSHES"] = 1
    else:
        file, local, across = "moments/pack_centred.cl", (1, 1), form.right
    if looking:
        defines["LOOKING"] = 1
        headers = (MEASURING, *headers)
    if ordinary:
        defines["ORDINARY"] = 1
        headers = (SCALING, *headers)
    if form.halves:
        defines |= planes(form)
        headers = (form.headers[0], HALVES, *headers)
    kernel = device.kernel("pack_centred", (*headers, file), defines)
    # a processor's kernel is always given origins and scales
    looked = (measured, raw.shape[0]) if form.squares else ()
    more = slab.start > 0
    sizes = tuple(np.int32(size) for size in (raw.shape[1], rows, depth, chunk, *looked, more))
    steps = (np.int64(raw.steps[0]), np.int64(raw.steps[1]))
    groups = (raw.width // across, -(-depth // chunk))
    device.run(kernel, groups, local, raw.source, panels, *tables, *sizes, *steps, offset=(0, slab.start))
    return panels, depth
