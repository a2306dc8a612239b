"""Float64 products in digits of 8 bits (kernels/int8.clh): operands are scaled, cut and packed on a device.

Each strip, a row of A or a column of B or X, has one power of two, so errors are small beside the largest of
a strip. For deviations from a mean that is as good as float64. For other matrices it is where both factors
are dense, which is counted while they are packed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import block_sizes, padded
from mtbridge.compute.centre import VAST
from mtbridge.compute.forms import SQUARE, Form, nearby, upper_triangle, whole_grid
from mtbridge.compute.moments import Vector
from mtbridge.compute.opencl_moments import SUM, Centring, Uncentred
from mtbridge.compute.opencl_split import queue_products

if TYPE_CHECKING:
    from mtbridge.compute.launches import Launches, Operand
    from mtbridge.compute.opencl import Device

DEPTH = 32
"""Inner indices of a stage."""

DOWN = 4
"""Rows of SQUARE items that pack a square."""

DIGIT_REACH = 0.985
"""No scaled number is larger (kernels/int8.clh)."""

FARTHEST = 900
"""Scales beyond 2**-900 .. 2**900 are left to the host."""

CHUNKS, TALLIES = 64, 1 << 19
"""Chunks of inner indices that are tallied by themselves, and tallies that more chunks may make: few to add
up, and enough groups for a slab of a few columns."""

DENSE = 259
"""By how many more than half of a strip's elements must be large for it to be dense."""


@dataclass(frozen=True, slots=True, eq=False)
class Digits(Centring):
    """A matrix, of shape (inner, strips), that is centred, scaled and cut into digits on its way into panels.

    A strip whose origin is NaN is all 0, but its sums are NaN.

    Attributes
    ----------
    slot : "left" or "right", for the names of its buffers
    counted : `found` has in place of sums how many packed numbers are large (LARGE of kernels/int8.clh)
    """

    slot: str = "right"
    counted: bool = False

    def packed(self, device: Device, slab: slice) -> tuple[Any, int]:
        """Queue the packing of a slab; return its panels and their padded inner size."""
        raw, form = self.raw, self.raw.form
        inner, slices = slab.stop - slab.start, form.defines["SLICES"]
        depth = padded(inner, DEPTH)
        panels = device.buffer(f"{self.slot} panels", raw.width * depth * slices)
        defines = {
            "SOURCE_BITS": 8 * raw.source_dtype.itemsize,
            "REAL_BITS": 64,
            "PANEL": form.right,
            "SLICES": slices,
            "COUNTED": int(self.counted),
        }
        kernel = device.kernel("pack", ("int8.clh", "multiply/pack_int8.cl"), defines)
        numbers = (raw.shape[1], inner, depth, self.chunk, slab.start > 0)
        sizes = (*map(np.int32, numbers), *map(np.int64, raw.steps))
        buffers = (raw.source, panels, self.centre, self.target)
        groups = (raw.width // SQUARE, len(self.found) - 2)
        device.run(kernel, groups, (SQUARE, DOWN), *buffers, *sizes, offset=(0, slab.start))
        return panels, depth

    def scales(self, device: Device) -> Vector:
        """Return the scales, once the device has done what is queued: it may still read them, and `found`."""
        device.finish()
        return np.asarray(self.table, SUM)[1, : self.shape[1]]

    def sums(self, device: Device) -> Vector:
        """Return the sum of each strip, or how many are large, once the device has packed all."""
        found: Vector = device.receive(self.target, self.found)[:-2].sum(axis=0)
        return found[: self.shape[1]]


def digits_of(
    device: Device,
    raw: Uncentred,
    origin: Vector,
    exponent: NDArray[np.int64],
    *,
    slot: str = "right",
    counted: bool = False,
) -> Digits:
    """Return `raw` as one that is packed with this origin and exponent of each strip."""
    # strips that do not exist are never read, whatever their origin
    table = np.zeros((2, raw.width))
    table[0, : len(origin)] = origin
    table[1, : len(origin)] = np.ldexp(1.0, -exponent.astype(np.int32))
    wanted = max(CHUNKS, TALLIES // raw.width)
    chunk = padded(-(-raw.shape[0] // wanted), SQUARE)
    chunks = -(-raw.shape[0] // chunk)
    target, found = device.result(f"{slot} found", (chunks + 2, raw.width), SUM)
    return Digits(raw, table, device.send(f"{slot} centre", table), target, found, chunk, slot, counted)


def reach_of(largest: Vector) -> NDArray[np.int64]:
    """Return the exponents that bring numbers up to `largest` below DIGIT_REACH, and above half of it."""
    return np.frexp(largest / DIGIT_REACH)[1].astype(np.int64)


def scaled_centre(
    total: Vector, low: Vector, high: Vector, *, rows: int
) -> tuple[Vector, NDArray[np.int64]] | None:
    """Return origin and exponent from the sum and the range of each column.

    A column that holds NaN or inf has the origin NaN and the exponent 0. None where one is vast, or so narrow
    that its scale would leave float64.
    """
    with np.errstate(invalid="ignore", over="ignore"):
        moderate = np.maximum(np.abs(low), np.abs(high)) <= VAST
        lost = ~(np.isfinite(low) & np.isfinite(high)) | (moderate & ~np.isfinite(total))
        origin = np.where(lost, np.nan, np.where(low == high, low, total / rows))
        largest = np.where(lost, 0, np.maximum(np.abs(high - origin), np.abs(low - origin)))
    exponent = reach_of(largest)
    ordinary = lost | (moderate & (np.abs(exponent) <= FARTHEST))
    return (origin, exponent) if ordinary.all() else None


def centred_digits(
    device: Device, launches: Launches, form: Form, X: Operand, *, limit: int, finite: bool = False
) -> Digits | None:
    """Return `X`, contiguous, of shape (rows >= 1, columns >= 1), as one that is centred on its way.

    Each sum of products is within ``2.1 * rows * eps`` of the norms of its two columns of deviations, mostly
    within half of that (kernels/int8.clh). A column that holds NaN or inf has NaN, and changes no other. None
    where a column is neither that nor ordinary (`scaled_centre`), where one holds NaN or inf if `finite`, or
    where a buffer would have more than `limit` bytes.
    """
    raw = _uncentred(launches, form, "right", X, limit, others=X.shape[1])
    chosen = None if raw is None else scaled_centre(*raw.measured(device), rows=X.shape[0])
    if raw is None or chosen is None or (finite and np.isnan(chosen[0]).any()):
        return None
    return digits_of(device, raw, *chosen)


def queue_dense(
    device: Device,
    launches: Launches,
    form: Form,
    operands: tuple[Operand, ...],
    target: Any,
    *,
    limit: int,
) -> bool:
    """Compute A B, or X'X of one operand, into the buffer `target`, float64, where both factors are dense.

    Each element is then within ``inner * eps * |A| |B|``. False where a row of A or a column of B or X lacks
    DENSE large elements beyond half of all, or holds NaN or inf, or a buffer would have more than `limit`
    bytes; what `target` holds then means nothing. Waits for the device, which counts.

    Parameters
    ----------
    operands : A turned and B, or X, contiguous, of shape (inner, strips) without 0, float64
    """
    slots = ("left", "right")[-len(operands) :]
    scaled = []
    for slot, operand in zip(slots, operands, strict=True):
        raw = _uncentred(launches, form, slot, operand, limit)
        if raw is None or raw.shape[0] < 2 * DENSE:
            return False
        total, low, high = raw.measured(device)
        with np.errstate(invalid="ignore"):
            exponent = reach_of(np.maximum(np.abs(low), np.abs(high)))
        if not (np.isfinite(total) & (np.abs(exponent) <= FARTHEST)).all():
            return False
        scaled.append((slot, raw, exponent))
    # what is sent from here on stays alive until the device has counted
    digits = [
        digits_of(device, raw, np.zeros(len(exponent)), exponent, slot=slot, counted=True)
        for slot, raw, exponent in scaled
    ]
    powers = [
        np.ldexp(1.0, np.pad(exponent, (0, raw.width - len(exponent))).astype(np.int32))
        for _, raw, exponent in scaled
    ]
    scales = tuple(device.send(f"{slot} powers", power) for slot, power in zip(slots, powers, strict=True))
    columns = operands[-1].shape[1]
    blocks = (
        gram_blocks(device, form, columns)
        if len(operands) == 1
        else product_blocks(device, form, operands[0].shape[1], columns)
    )
    queue_products(device, form, tuple(digits), blocks, SUM, target, limit, scales=scales)
    return all((one.sums(device) >= one.shape[0] / 2 + DENSE).all() for one in digits)


def gram_blocks(device: Device, form: Form, columns: int) -> tuple[Any, int]:
    """Return the table of the blocks of X'X, and their number."""
    block = (form.rows, form.columns)
    return device.table((columns, block, form.shared), lambda: nearby(upper_triangle(columns, block)))


def product_blocks(device: Device, form: Form, rows: int, columns: int) -> tuple[Any, int]:
    """Return the table of the blocks of A B, and their number."""
    block = (form.rows, form.columns)
    return device.table((rows, columns, block, form.shared), lambda: nearby(whole_grid(rows, columns, block)))


def _uncentred(
    launches: Launches, form: Form, slot: str, X: Operand, limit: int, *, others: int = 1
) -> Uncentred | None:
    """The matrix on the device, (inner, strips); None where a buffer would have more than `limit` bytes.

    `others` are the strips of the other factor, if the result is yet to be allocated.
    """
    inner, strips = X.shape
    whole, size = (strips, inner, others), SUM.itemsize
    if block_sizes(form, whole, size=size, total=size, limit=limit) != whole:
        return None
    source, steps = launches.source(slot, X)
    raw = Uncentred(source, (inner, strips), steps, X.dtype, SUM, form)
    return raw if raw.largest_buffer <= limit else None
