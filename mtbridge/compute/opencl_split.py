"""Float32 products in halves on tensor cores: of ordinary matrices, where asked for, and of centred ones.

An ordinary matrix has a power of two for each of its strips, the rows of A and the columns of B, by which the
largest |x| of the strip becomes the largest that halves are made for. So elements far below that one lose
digits, and the error is one of norms: a few 2**-22 of |a_i| |b_j| with precision "split", a few 2**-11 with
"single", instead of a bound for each element. That is why neither is ever chosen unasked. Centred columns are
within 1, where the bound of norms is the natural one, and need no powers.

`queue_products` sums up the products of any operands that pack themselves into panels of halves (`Panels`):
a `Centring`, or others. A right one that is exact in hi alone, such as a mask of 0 and 1, is for
``with_products(form, 2)``: its panels have a plane of hi alone (kernels/split_panels.clh). With
``with_products(form, 1)`` both operands have one plane.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from mtbridge.compute.blocks import padded, spans
from mtbridge.compute.forms import HALVES, SCALING, SQUARE, Form
from mtbridge.compute.opencl_moments import CHUNK_ROWS, SUM, Centring, Uncentred
from mtbridge.compute.opencl_packing import queue_packing
from mtbridge.compute.shares import SharedSums
from mtbridge.compute.slices import slab_depth

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

SIZE = 4
"""Bytes of a float32, and of its two halves."""

BUSY = 4
"""Groups for each compute unit that look for the largest numbers at least: loads then hide their waits."""

THINNEST = 256
"""Inner indices that one group looks through at least."""

WIDER = 2
"""So many times 2 as many inner indices are summed in registers where results are float32."""

DEEP = 8
"""Parts in which a sum that meets an inf is added up; kernels/multiply/infinite_strips.cl."""


class Panels(Protocol):
    """An operand of a product that packs itself.

    Attributes
    ----------
    shape : (inner, strips)
    """

    @property
    def shape(self) -> tuple[int, int]: ...

    def packed(self, device: Device, slab: slice) -> tuple[Any, int]:
        """Queue the packing of a slab of inner indices; return its panels and their padded inner size."""


def with_products(form: Form, products: int) -> Form:
    """Return `form` with so many products of halves for one product."""
    return replace(form, defines={**form.defines, "PRODUCTS": products})


def queue_halves(
    device: Device,
    form: Form,
    matrices: tuple[Uncentred, ...],
    blocks: tuple[Any, int],
    total: np.dtype[Any],
    target: Any,
    limit: int,
) -> None:
    """Queue the product of two float32 matrices as they are, or X'X of one; the rest as for `queue_products`.

    With `total` float32 each strip gets a scale of its own, and NaN and inf are data; with float64 nothing is
    inf, and |x| <= 1 of all that is not NaN.
    """
    (inner, rows), columns = matrices[0].shape, matrices[-1].shape[1]
    slabs = slabs_of(device, form, (rows, inner, columns))
    if total != np.float32:
        operands = [ready(device, X, slabs) for X in matrices]
        queue_products(device, form, operands, blocks, total, target, limit)
        return
    # short kernels, between which a device would wait for the host
    with device.together():
        scaled = [scaled_by_largest(device, X, slabs) for X in matrices]
        largest = tuple(X.largest for X in scaled)
        queue_products(device, form, scaled, blocks, total, target, limit, scales=largest)
        _queue_infinite(device, matrices, largest, target)


def slabs_of(device: Device, form: Form, shape: tuple[int, int, int]) -> list[slice]:
    """Return the inner indices of a product, (rows, inner, columns), that are packed at a time."""
    return list(spans(shape[1], slab_depth(form, shape, size=SIZE, units=device.units)))


def ready(device: Device, X: Uncentred, slabs: list[slice]) -> Centring:
    """Return a matrix within 1 as one that is packed as it is."""
    table, _ = device.table(("as it is", X.width), lambda: np.repeat((0.0, 1.0), X.width))
    return X.given(device, table, slabs)


@dataclass(frozen=True, slots=True, eq=False)
class Scaled:
    """An ordinary float32 matrix whose strips are scaled by powers of two on their way into panels.

    Attributes
    ----------
    largest : buffer for the bits of the largest |x| of each strip, uint32 of whole panels; kernels/halves.clh
    parts, measured : buffer with those of so many chunks of inner indices; with none the groups that pack
        look for themselves
    chunk : inner indices that a group packs
    """

    raw: Uncentred
    largest: Any
    parts: Any
    measured: int
    chunk: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.raw.shape

    def packed(self, device: Device, slab: slice) -> tuple[Any, int]:
        """Queue the packing of a slab of inner indices; return its panels and their padded inner size."""
        tables = (self.parts, self.largest)
        return queue_packing(
            device, self.raw, slab, self.chunk, tables, measured=self.measured, ordinary=True
        )


def scaled_by_largest(device: Device, X: Uncentred, slabs: list[slice]) -> Scaled:
    """Return `X` as one whose strips are scaled; queue the search for their largest, if it is a launch."""
    inner, _ = X.shape
    across = X.width // SQUARE
    largest = device.buffer(f"{X.slot} largest", X.width * SIZE)
    if shared := X.looked(device, slabs):
        return Scaled(X, largest, largest, 0, padded(-(-inner // shared), CHUNK_ROWS))
    wanted = min(-(-BUSY * device.units // across), -(-inner // THINNEST))
    chunk = padded(-(-inner // wanted), SQUARE)
    chunks = -(-inner // chunk)
    parts = device.buffer(f"{X.slot} largest of parts", chunks * X.width * SIZE)
    defines = {"REAL_BITS": 32, "SUM_BITS": 8 * SUM.itemsize, **X.squares}
    kernel = device.kernel("largest", (HALVES, SCALING, "multiply/largest.cl"), defines)
    sizes = (np.int32(X.shape[1]), np.int32(inner), np.int32(chunk), *map(np.int64, X.steps))
    device.run(kernel, (across, chunks), (SQUARE, defines["DOWN"]), X.source, parts, *sizes)
    deepest = max(slab.stop - slab.start for slab in slabs)
    return Scaled(X, largest, parts, chunks, X.chunk_rows(deepest, device))


def queue_products(
    device: Device,
    form: Form,
    operands: Sequence[Panels],
    blocks: tuple[Any, int],
    total: np.dtype[Any],
    target: Any,
    limit: int,
    *,
    scales: tuple[Any, ...] = (),
) -> None:
    """Queue the sums of products of panels of halves into the buffer `target`.

    Parameters
    ----------
    form : in halves (split_mma.py)
    operands : left and right one, or the only one of X'X
    blocks : table of the blocks of the result, and their number
    total : float32 or float64, in which sums come out
    target : buffer of the result, (strips of the left, strips of the right)
    limit : bytes that a buffer may have
    scales : for each operand a table of what tells the scales of its strips, where they have some: in halves,
        the bits of the largest |x| of each
    """
    (inner, rows), columns = operands[0].shape, operands[-1].shape[1]
    shape = (rows, inner, columns)
    name, extent = ("gram", (columns,)) if len(operands) == 1 else ("multiply", (rows, columns))
    if total == np.float32 and "WIDE_INNER" in form.defines:
        # sums are of no wider type in memory than in registers
        wide = form.defines["WIDE_INNER"] << WIDER
        form = replace(form, defines={**form.defines, "WIDE_INNER": wide})
    defines = {**form.defines, "REAL_BITS": 32, "SUM_BITS": 8 * total.itemsize}
    if scales:
        defines["SCALED"] = 1
    files = (*form.headers, f"{name}/{form.file}.cl")
    sums = SharedSums(name, files, defines, form, shape, *blocks, total, target, limit)
    for slab in slabs_of(device, form, shape):
        packed = [operand.packed(device, slab) for operand in operands]
        sizes = tuple(np.int32(size) for size in (*extent, packed[0][1], columns))
        sums.queue(device, (*(panels for panels, _ in packed), *scales), sizes, slab)


def _queue_infinite(
    device: Device, matrices: tuple[Uncentred, ...], largest: tuple[Any, ...], target: Any
) -> None:
    """Queue what strips that hold an inf make of a product."""
    left, right = matrices[0], matrices[-1]
    (inner, rows), columns = left.shape, right.shape[1]
    defines = {"REAL_BITS": 32, "WIDE": SQUARE, "DEEP": DEEP}
    kernel = device.kernel("infinite_strips", (HALVES, "multiply/infinite_strips.cl"), defines)
    sizes = tuple(np.int32(size) for size in (rows, columns, inner, columns))
    steps = tuple(np.int64(step) for step in (*left.steps, *right.steps))
    groups = -(-columns // SQUARE) + -(-rows // SQUARE)
    buffers = (left.source, right.source, largest[0], largest[-1], target)
    device.run(kernel, (groups, 1), (SQUARE, DEEP), *buffers, *sizes, *steps)
