"""Which values of a matrix are there, a bit each: what a processor begins with where there are gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mtbridge.compute.opencl_moments import Uncentred

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

BITS = 32
"""Rows of a word."""

COLUMNS = 64
"""Columns of a group."""


def queue_presence(device: Device, raw: Uncentred, target: Any) -> None:
    """Queue which values of `raw` are there into the buffer `target`, uint32 of (words, columns)."""
    rows, columns = raw.shape
    defines = {"SOURCE_BITS": 8 * raw.source_dtype.itemsize, "COLUMNS": COLUMNS}
    kernel = device.kernel("presence", ("pairwise/presence.cl",), defines)
    sizes = (np.int32(columns), np.int32(rows), np.int64(raw.steps[0]), np.int64(raw.steps[1]))
    groups = (-(-columns // COLUMNS), -(-rows // BITS))
    device.run(kernel, groups, (1, 1), raw.source, target, *sizes)
