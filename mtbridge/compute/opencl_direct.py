"""Products in one launch: kernels that read matrices where they lie, and write all of the result.

They (kernels/dmma.clh) read either order of a matrix whose rows, or columns, begin on a boundary of 16 bytes.
Another is packed into panels before, slab by slab; and so is one that is centred on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import padded, spans
from mtbridge.compute.forms import Form
from mtbridge.compute.pieces import MOST_PARTS, pieces_of
from mtbridge.compute.quarters import gram_quarters, product_quarters, within
from mtbridge.compute.slices import slab_depth

if TYPE_CHECKING:
    from mtbridge.compute.finish import Finish
    from mtbridge.compute.opencl import Device

ROWS, COLUMNS = range(2)

BOUNDARY = 16
"""Bytes that are copied at a time, and on whose multiples they lie."""


class Place(NamedTuple):
    """Where a slab of an operand lies, as `struct operand` of kernels/dmma.clh says, and in what."""

    buffer: Any
    start: int
    panel_step: int
    row_step: int
    lies: int


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """An operand of a product, and how a kernel comes to it.

    Attributes
    ----------
    source : buffer with the matrix
    steps : elements of the source from one inner index to the next, and from one strip to the next
    width : strips of a panel
    pack : queues the packing of a slab; returns its panels and their padded inner size
    size : bytes of an element
    """

    source: Any
    steps: tuple[int, int]
    width: int
    pack: Callable[[slice], tuple[Any, int]]
    size: int

    @property
    def packed(self) -> bool:
        """Whether the matrix must be packed; one with steps of 0 is always."""
        return 1 not in self.steps or max(self.steps) * self.size % BOUNDARY != 0

    def ready(self, slab: slice) -> Reading:
        """Return the operand for products of this slab alone, which is packed now if it must be."""
        if not self.packed:
            return self
        panels = self.pack(slab)
        return replace(self, pack=lambda _: panels)

    def place(self, slab: slice) -> Place:
        """Return where the slab lies, once it is packed if it must be."""
        if self.packed:
            panels, deep = self.pack(slab)
            return Place(panels, 0, deep * self.width, self.width, ROWS)
        inner, strip = self.steps
        if strip == 1:
            return Place(self.source, slab.start * inner, self.width, inner, ROWS)
        return Place(self.source, slab.start, self.width * strip, strip, COLUMNS)


def queue_pieces(
    device: Device,
    form: Form,
    operands: tuple[Reading, ...],
    shape: tuple[int, int, int],
    files: tuple[str, ...],
    defines: dict[str, int],
    target: Any,
    limit: int,
    *,
    mirrored: bool = True,
    finish: Finish | None = None,
    stripe: slice | None = None,
) -> None:
    """Queue the product of two operands, or X'X of one, into the buffer `target`.

    Parameters
    ----------
    shape : (rows, inner, columns) of the product, none of them 0
    files, defines : of the kernel
    limit : bytes that the parts of blocks may have together
    mirrored : X'X is to have both triangles; else the lower one may be left out
    finish : the covariances that the last slab makes of all sums, in place of a result in `target`
    stripe : rows of the upper triangle that are wanted, all by default; from a multiple of a panel to
        another, or to the last. Their bits are the same.
    """
    rows, inner, columns = shape
    name = "gram" if len(operands) == 1 else "multiply"
    part = form.rows * form.columns * operands[0].size
    most = min(limit // part, MOST_PARTS * device.units)
    depth = inner
    if any(operand.packed for operand in operands):
        depth = slab_depth(form, shape, size=operands[0].size, units=device.units)
        if not all(operand.packed for operand in operands):
            # slabs begin where a matrix that is read where it lies has a boundary
            depth = min(inner, padded(depth, form.inner))
    marks, _ = device.table(
        ("marks", MOST_PARTS * device.units), lambda: np.zeros(MOST_PARTS * device.units, np.int32)
    )
    for slab in spans(inner, depth):
        places = [operand.place(slab) for operand in operands]
        thickness = slab.stop - slab.start
        steps = -(-thickness // form.inner)
        ends = (stripe.start, stripe.stop) if stripe else (0, rows)
        key = (name, rows, columns, steps, device.units, most, *ends)
        pieces, count = _plan(*key)
        table, groups = device.table(("pieces", *key), pieces.copy)
        # no part is written where no block is cut
        parts = device.buffer("parts", count * part) if count else target
        given = {"LEFT_LIES": places[0].lies, "RIGHT_LIES": places[-1].lies}
        last = finish if slab.stop == inner else None
        made, made_of = (last.defines, last.queue(device)) if last else ({}, ())
        kernel = device.kernel(name, files, {**defines, **given, **made})
        extent = (columns,) if name == "gram" else (rows, columns)
        sizes = (np.int32(size) for size in (*extent, thickness, columns))
        strides = (np.int64(number) for place in places for number in place[1:4])
        flags = [np.int32(slab.start > 0)]
        if name == "gram":
            flags.insert(0, np.int32(mirrored or last is not None))
        buffers = (*(place.buffer for place in places), target)
        shared = (table, parts, marks, *flags, *made_of)
        device.run(kernel, (groups,), (form.group,), *buffers, *sizes, *strides, *shared)


@lru_cache(maxsize=64)
def _plan(
    name: str, rows: int, columns: int, steps: int, units: int, most: int, start: int, stop: int
) -> tuple[NDArray[np.int32], int]:
    """The table of the pieces of the rows `start` to `stop` of a product, and how many parts they leave."""
    blocks = gram_quarters(columns) if name == "gram" else product_quarters(rows, columns)
    pieces, parts = pieces_of(blocks, steps, units=units, most=most)
    return (pieces, parts) if (start, stop) == (0, rows) else (within(pieces, start, stop), parts)
