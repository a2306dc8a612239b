"""How the inner size of a product is cut: into slabs packed in turn, and slices summed side by side.

The gram matrix of 1,000,000 x 50 has one or two blocks, so one or two work-groups would do all of it, from
panels as large as the data. Slabs share one buffer of panels, which on a processor stays in its cache. Slices
give every compute unit work: each is summed into a partial result of its own, and multiply/add_slices.cl adds
those up in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtbridge.compute.blocks import padded
from mtbridge.compute.forms import Form

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

# Groups for each compute unit that slices aim at: so that units end together, and a GPU hides its waits
BUSY = 4
# Inner indices of the thinnest slice or slab: adding up its result stays a few hundredths of the work
THINNEST = 512
# Bytes of panels of a slab, for each compute unit and at most
UNIT_BYTES = 1 << 21
MOST_BYTES = 1 << 28
# A slab is so many times as deep as the shorter side of the result: that is small beside the slab's panels
DEEPER = 16
# Items of a group that add up slices
ADDERS = 64


def slab_depth(form: Form, shape: tuple[int, int, int], *, size: int, units: int) -> int:
    """Return how many inner indices of a product are packed at a time: all of them, but for tall factors.

    Parameters
    ----------
    shape : (rows, inner, columns) of the product, none of them 0
    size : bytes of an element of the factors
    units : compute units of the device
    """
    rows, inner, columns = shape
    width = max(padded(rows, form.left), padded(columns, form.right))
    fitting = min(units * UNIT_BYTES, MOST_BYTES) // (width * size)
    deepest = max(fitting, THINNEST, DEEPER * min(rows, columns))
    slabs = -(-inner // deepest)
    return -(-inner // slabs)


def slice_count(
    form: Form, shape: tuple[int, int, int], *, groups: int, units: int, total: int, limit: int
) -> int:
    """Return into how many slices an inner size is cut; 1 is not at all.

    A slice is never thinner than the shorter side of the result. So square products are not cut, and all
    partial results together have no more elements than the larger factor.

    Parameters
    ----------
    shape : (rows, inner, columns) of the product, none of them 0
    groups : work-groups of the whole result
    units : compute units of the device
    total : bytes of an element of the result
    limit : bytes that the partial results may have
    """
    rows, inner, columns = shape
    thinnest = max(THINNEST, min(rows, columns), form.defines.get("BLOCK_INNER", 0))
    wanted = -(-BUSY * units // groups)
    return max(1, min(wanted, inner // thinnest, limit // (rows * columns * total)))


@dataclass(frozen=True, slots=True)
class Sums:
    """A product of panels, which its kernel sums up in `target`, a slab of the inner size after the other.

    Attributes
    ----------
    name, files, defines : the kernel and its program
    form : how the product is cut up
    shape : (rows, inner, columns) of the whole product
    blocks, groups : table of the blocks of the result, and their number
    total : dtype of the result
    target : buffer of the result, (rows, columns)
    limit : bytes that the partial results may have
    """

    name: str
    files: tuple[str, ...]
    defines: Mapping[str, int]
    form: Form
    shape: tuple[int, int, int]
    blocks: Any
    groups: int
    total: np.dtype[Any]
    target: Any
    limit: int

    def queue(
        self, device: Device, panels: tuple[Any, ...], sizes: tuple[np.generic, ...], slab: slice
    ) -> None:
        """Queue the kernel on the packed `panels` of a slab; the first slab must come first."""
        rows, inner, columns = self.shape
        thickness = slab.stop - slab.start
        slices = slice_count(
            self.form,
            (rows, thickness, columns),
            groups=self.groups,
            units=device.units,
            total=self.total.itemsize,
            limit=self.limit,
        )
        group = self.form.group
        if slices == 1 and thickness == inner:
            kernel = device.kernel(self.name, self.files, self.defines)
            device.run(kernel, (self.groups,), (group,), *panels, self.target, *sizes, self.blocks)
            return
        elements = rows * columns
        partial = device.buffer("slices", slices * elements * self.total.itemsize)
        kernel = device.kernel(self.name, self.files, {**self.defines, "SLICED": 1})
        device.run(kernel, (self.groups, slices), (group, 1), *panels, partial, *sizes, self.blocks)
        add_slices(device, partial, self.target, elements, slices, self.total, more=slab.start > 0)


def add_slices(
    device: Device,
    partial: Any,
    target: Any,
    elements: int,
    slices: int,
    total: np.dtype[Any],
    *,
    more: bool = False,
) -> None:
    """Queue the sum of `slices` results of `elements` each into `target`, or with `more` to what it holds."""
    defines = {"REAL_BITS": 8 * total.itemsize, "GROUP": ADDERS}
    adder = device.kernel("add_slices", ("multiply/add_slices.cl",), defines)
    counts = (np.int32(elements), np.int32(slices), np.int32(more))
    device.run(adder, (-(-elements // ADDERS),), (ADDERS,), partial, target, *counts)
