"""The pairs that must be done again, on an OpenCL device: two passes over the rows of each, many at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.blocks import padded, spans
from mtbridge.compute.careful import Indices, careful_pairs
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.forms import SQUARE
from mtbridge.compute.launches import Operand
from mtbridge.compute.moments import Vector
from mtbridge.compute.opencl_moments import SUM, Uncentred
from mtbridge.compute.pair_moments import PairMoments, Side
from mtbridge.compute.pair_sums import LARGEST, SMALLEST

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

LANES = 16
FIELDS = 7
FEWEST = 256
"""Fewer pairs the host has done before their columns are packed once more for the device."""

TILES = 4096
"""Tiles of a launch: their answers take some megabytes."""


@dataclass(frozen=True, slots=True, eq=False)
class CarefulDevice:
    """Does again pairs of the columns of `data`, which are ordinary: scaled, their deviations are moderate.

    Attributes
    ----------
    raw, data : the matrix on the device, and the array that it came from, or itself
    exponent : of each column
    limit : bytes of the largest buffer
    """

    device: Device
    raw: Uncentred
    data: Operand
    exponent: NDArray[np.int64]
    limit: int

    def pairs(self, lefts: Indices, rights: Indices, n: NDArray[np.int64]) -> PairMoments:
        """Return the moments of the pairs of columns, of which each has `n` common rows; shape (pairs,)."""
        rows, columns = self.raw.shape
        lanes = SQUARE if self.raw.form.squares else LANES
        width = padded(columns, lanes)
        largest = max(rows * width, TILES * FIELDS * lanes) * SUM.itemsize
        resident = isinstance(self.data, DeviceMatrix)
        if (len(lefts) < FEWEST and not resident) or largest > self.limit:
            return self._by_host(lefts, rights)
        keys, at = np.unique(lefts * width + rights // lanes, return_inverse=True)
        tiles = np.column_stack([keys // width, keys % width]).astype(np.int32)
        numbers = np.empty((len(lefts), FIELDS))
        for first, found in self._tiles(tiles, lanes, width):
            mine = np.flatnonzero((at >= first) & (at < first + len(found)))
            numbers[mine] = found[at[mine] - first, :, rights[mine] % lanes]
        return self._settled(lefts, rights, n, numbers.T)

    def _tiles(self, tiles: NDArray[np.int32], lanes: int, width: int) -> Iterator[tuple[int, Vector]]:
        """Yield the first tile of each launch and what the kernel found, (tiles, fields, lanes)."""
        rows, columns = self.raw.shape
        # packed as they are, but as float64 and in panels of this kernel's width
        form = replace(self.raw.form, right=lanes, inner=1, halves=False)
        raw = replace(self.raw, dtype=SUM, form=form, missing=False)
        none = np.zeros(columns)
        plain = raw.centred(self.device, none, none.astype(np.int64), [slice(0, rows)])
        panels, _ = plain.packed(self.device, slice(0, rows))
        # the kernel reads it in whole vectors
        scales = aligned_empty((width,), SUM)
        scales[columns:] = 1
        scales[:columns] = np.ldexp(1.0, -self.exponent.astype(np.int32))
        scales_buffer = self.device.send("scales", scales)
        defines = {"REAL_BITS": 8 * SUM.itemsize, "PANEL": lanes}
        group = lanes if raw.form.squares else 1
        if group > 1:
            defines["GROUP"] = group
        else:
            registers = self.raw.form.defines["WIDTH"] * self.raw.dtype.itemsize
            defines["WIDTH"] = max(2, registers // SUM.itemsize)
        kernel = self.device.kernel("two_pass", ("pairwise/two_pass.cl",), defines)
        for part in spans(len(tiles), TILES):
            asked = np.ascontiguousarray(tiles[part])
            target, array = self.device.result("two passes", (len(asked), FIELDS * lanes), SUM)
            given = (panels, scales_buffer, self.device.send("tiles", asked), target, np.int32(rows))
            self.device.run(kernel, (len(asked),), (group,), *given)
            found = self.device.receive(target, array).astype(SUM, copy=False)
            yield part.start, found.reshape(len(asked), FIELDS, lanes)

    def _settled(self, lefts: Indices, rights: Indices, n: NDArray[np.int64], numbers: Vector) -> PairMoments:
        """Return what the kernel found as moments; the host does what is past the kernel's range."""
        left, right = (
            Side(numbers[side], self.exponent[columns], numbers[2 + side], numbers[4 + side])
            for side, columns in enumerate((lefts, rights))
        )
        found = PairMoments(n, numbers[6], left, right)
        squares = numbers[4:6]
        trusted = (squares == 0) | ((squares > SMALLEST) & (squares < LARGEST))
        beyond = np.flatnonzero(~trusted.all(axis=0))
        if len(beyond):
            again = self._by_host(lefts[beyond], rights[beyond])
            found = found.replaced((beyond,), again, mirror=False)
        return found

    def _by_host(self, lefts: Indices, rights: Indices) -> PairMoments:
        data = self.data
        if isinstance(data, DeviceMatrix):
            straight = data.steps[1] == 1
            held = aligned_empty(data.shape if straight else data.shape[::-1], data.dtype)
            self.device.downloaded(data.buffer, held)
            data = held if straight else held.T
        return careful_pairs(data, data, (lefts, rights))
