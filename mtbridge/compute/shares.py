"""How blocks are shared out among the compute units of a GPU so that all of them end together.

A gram matrix of 2048 columns has 136 blocks of 128 x 128: each of 132 units does one, then four do another
while the rest wait, and it takes twice the time. So only as many blocks are done whole as give every unit the
same number. The inner sizes of those left over are cut into slices, each a task of its own in the same
launch, and multiply/add_parts.cl adds up their results in a fixed order. So it is with kernels that read
panels of halves or of digits; those that read matrices where they lie are given pieces (pieces.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mtbridge.compute.blocks import padded
from mtbridge.compute.forms import FINISH
from mtbridge.compute.slices import Sums

if TYPE_CHECKING:
    from typing import Any

    from mtbridge.compute.finish import Finish
    from mtbridge.compute.opencl import Device

# Inner indices of the thinnest slice
THINNEST = 128
# What a slice costs beside its products, what adding up costs, and each part of it; and what the host takes
# to queue one kernel more, for which the device waits if there are no whole blocks. All in inner indices of a
# block, which take 80 ns each on a unit of an H200.
BEGINNING = 64
ADDING = 64
PART = 0.5
QUEUING = 384
# Bytes of a sum that a group keeps (kernels/split_put.clh)
KEPT_BYTES = 4
# Side of the squares in which parts are added up
SQUARE = 16


def shares(blocks: int, inner: int, *, units: int, most: int, pace: int = 1) -> tuple[int, int]:
    """Return how many blocks are done whole, and into how many slices each of the others is cut.

    Parameters
    ----------
    blocks : blocks of the result
    inner : inner indices of each
    units : compute units of the device, which do a block at a time
    most : parts that there is memory for
    pace : inner indices that a unit does in 80 ns; all that costs beside them stays as it is
    """
    rest = blocks % units
    if not rest:
        return blocks, 1

    def cost(slices: int) -> float:
        rounds = -(-rest * slices // units)
        adding = ADDING + PART * rest * slices + QUEUING * (rest == blocks) if slices > 1 else 0
        return rounds * (inner / slices + pace * BEGINNING) + pace * adding

    slices = min(range(1, max(1, min(inner // THINNEST, most // rest, units)) + 1), key=cost)
    return (blocks, 1) if slices == 1 else (blocks - rest, slices)


@dataclass(frozen=True, slots=True)
class SharedSums(Sums):
    """`Sums` whose kernel shares out the blocks itself.

    kernels/split_put.clh and int8_tile.clh say how.

    Attributes
    ----------
    finish : the covariances that the last slab makes of all sums, in place of a result in `target`
    cut : how many blocks are done whole, and into how many slices others are cut; by default shared out here
    """

    finish: Finish | None = None
    cut: tuple[int, int] | None = None

    def shared_out(self, inner: int, units: int) -> tuple[int, int]:
        """Return how many blocks of so many inner indices are done whole, and the slices of the others."""
        part = self.form.rows * self.form.columns * self.total.itemsize
        return shares(self.groups, inner, units=units, most=self.limit // part, pace=self.form.pace)

    def queue(
        self, device: Device, panels: tuple[Any, ...], sizes: tuple[np.generic, ...], slab: slice
    ) -> None:
        rows, _, columns = self.shape
        form = self.form
        part = form.rows * form.columns * self.total.itemsize
        deep = padded(slab.stop - slab.start, form.inner)
        whole, slices = self.cut or self.shared_out(deep, device.units)
        left = self.groups - whole
        # no part is written where no block is cut
        parts = device.buffer("parts", left * slices * part) if left else self.target
        more = np.int32(slab.start > 0)
        last = self.finish if slab.stop == self.shape[1] else None
        made, made_of = (last.defines, last.queue(device)) if last else ({}, ())
        kernel = device.kernel(self.name, self.files, {**self.defines, **made})
        tasks = whole + left * slices
        shared: tuple[Any, ...] = (parts, np.int32(whole), np.int32(slices), more)
        groups = tasks
        if form.lasting:
            groups = min(tasks, device.units)
            kept = groups * form.rows * form.columns * form.kept(deep) * KEPT_BYTES
            shared += (np.int32(tasks), device.buffer("kept", kept) if kept else parts, *made_of)
        device.run(kernel, (groups,), (form.group,), *panels, self.target, *sizes, self.blocks, *shared)
        if not left:
            return
        defines = {
            "REAL_BITS": 8 * self.total.itemsize,
            "DEEP": form.rows,
            "WIDE": form.columns,
            "SQUARE": SQUARE,
        }
        if self.name == "gram" and form.mirrors:
            defines["SYMMETRIC"] = 1
        adder = device.kernel("add_parts", (FINISH, "multiply/add_parts.cl"), {**defines, **made})
        counts = (np.int32(whole), np.int32(slices), more)
        extent = (np.int32(rows), np.int32(columns), np.int32(columns))
        squares = (form.rows // SQUARE) * (form.columns // SQUARE)
        local = (SQUARE, SQUARE)
        device.run(adder, (squares, left), local, parts, self.target, *extent, self.blocks, *counts, *made_of)
