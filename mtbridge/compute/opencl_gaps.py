"""Sums over the rows of pairs on a GPU: lists of rows are made, and summed over, where the data lie.

The host learns how many rows each column has and where it begins, decides (gap_plan.py), and waits for
nothing more until the answer is there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from mtbridge.compute.blocks import padded
from mtbridge.compute.forms import SQUARE, Form
from mtbridge.compute.gap_plan import GapPlan
from mtbridge.compute.opencl_gap_columns import WORD, FoundColumns
from mtbridge.compute.opencl_masks import MaskSums
from mtbridge.compute.opencl_moments import SUM, Centring, Uncentred
from mtbridge.compute.opencl_presence import BITS
from mtbridge.compute.split_mma import CAPABILITIES

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

GAPS = "pairwise/gaps.clh"
MOST_QUADS = 16
"""Quads of a list that are summed in float32 before the sums are added up in float64."""

WALKERS = 32
"""Rows of items of a group of run_sums.cl where all have room: few columns keep few groups busy."""

RUNS = 16
"""Runs that an item of run_counts.cl does."""

COUNTED = 4
"""Lists of an item of tile_counts.cl."""

QUAD_BYTES = 8
"""Of a quad, four numbers of 16 bits."""


@dataclass(frozen=True, slots=True)
class TileForm:
    """How lists and columns are shared out to groups; macros of the kernels of kernels/pairwise/gaps.clh.

    Attributes
    ----------
    tall : rows of a tile
    block : lists of a block, done by one group
    down : rows of items of a group, which share them
    each : columns of an item
    room : quads of a tile in local memory
    counters : rows of items of a group that counts
    """

    tall: int
    block: int
    down: int
    each: int
    room: int
    counters: int

    @property
    def listing(self) -> dict[str, int]:
        """The macros of lists, the same for every kernel that reads or makes them."""
        return {"TALL": self.tall, "BLOCK": self.block}


def tile_form(device: Device, form: Form, size: int) -> TileForm:
    """Return how sums over lists are taken of panels of `form`, of numbers of `size` bytes."""
    each = 2 if size == 4 and form.right % (2 * SQUARE) == 0 else 1
    if device.capability in CAPABILITIES:
        # two tiles of 64 KB, and half of all registers are sums
        return TileForm(256, 256 // each, 32, each, 2048 // each, 16)
    # two tiles within 32 KB, which every GPU has
    row = SQUARE * each * size
    tall = SQUARE if 2 * (2 * SQUARE + 1) * row + 4096 > min(device.local_bytes, 1 << 15) else 2 * SQUARE
    return TileForm(tall, 4 * form.squares, form.squares, each, 128, form.squares)


def tiles_of(device: Device, raw: Uncentred, deepest: int) -> int:
    """Return the most tiles of a slab of so many rows."""
    return -(-deepest // tile_form(device, raw.form, raw.dtype.itemsize).tall)


def plan_of(device: Device, raw: Uncentred, found: FoundColumns, deepest: int) -> GapPlan:
    """Return the lists and runs of a matrix that is packed in slabs of up to so many rows."""
    tiles, block = tiles_of(device, raw, deepest), tile_form(device, raw.form, raw.dtype.itemsize).block
    return GapPlan.of(found.counts, found.leads, raw.shape[0], tiles=tiles, block=block)


class GapSums:
    """Sums of every column over the rows of the others, queued slab by slab of rows after their products.

    The host plans them while the device multiplies.

    Attributes
    ----------
    bits : buffer of which values are there
    plan : the lists and runs
    list_sums, list_counts, run_sums, run_counts : buffers of what comes out
    across : columns of the counts, whole words of whole groups
    """

    def __init__(self, device: Device, centring: Centring, bits: Any, plan: GapPlan) -> None:
        self._device, self._centring, self.bits, self.plan = device, centring, bits, plan
        raw = centring.raw
        (rows, columns), width, size = raw.shape, raw.width, raw.dtype.itemsize
        self._tile = tile_form(device, raw.form, size)
        self.across = padded(columns, BITS * SQUARE)
        lists, runs = len(self.plan.lists), len(self.plan.edges)

        def room(slot: str, count: int, size: int) -> Any:
            return device.buffer(slot, max(count, 1) * size)

        self.list_sums = room("list sums", 2 * lists * width, size)
        self.list_counts = room("list counts", lists * self.across, WORD)
        self.run_sums = room("run sums", 2 * runs * width, size)
        self.run_counts = room("run counts", runs * self.across, WORD)
        self._types = {
            "REAL_BITS": 8 * size,
            "SUM_BITS": 8 * SUM.itemsize,
            "PANEL": raw.form.right,
        }
        self._edges = device.send("run edges", self.plan.edges)
        if lists:
            self._lists = device.send("gap lists", self.plan.lists)
            self._turned = room("turned presence", padded(rows, BITS) * self.across // BITS, WORD)
            kernel = device.kernel("turn_bits", ("pairwise/turn_bits.cl",), {"ITEMS": SQUARE})
            groups = (self.across // BITS // SQUARE, -(-rows // BITS))
            device.run(kernel, groups, (SQUARE, 1), self.bits, self._turned, np.int32(columns))
        if lists and runs:
            # where there are runs alone, the rows of a pair are those of its later beginner
            self._count_runs()

    @property
    def down(self) -> int:
        """Rows of items of a group."""
        return self._centring.raw.form.squares

    def sum_up(self, panels: Any, depth: int, slab: slice) -> None:
        """Queue the sums over a slab, of which `panels` are just packed, or its halves."""
        if len(self.plan.lists):
            # sums are of numbers, not of their halves
            plain = self._plain(slab) if self._centring.raw.form.halves else (panels, depth)
            self._sum_lists(*plain, slab)
        runs, downs = len(self.plan.edges), self.plan.downs
        for begin, end, up in ((0, downs, False), (downs, runs, True)):
            if begin < end:
                self._sum_runs(begin, end, up, slab)

    def _sum_runs(self, begin: int, end: int, up: bool, slab: slice) -> None:
        """Queue the sums over a slab of the runs `begin` to `end`."""
        device, raw, runs = self._device, self._centring.raw, len(self.plan.edges)
        defines = {**self._types, "SOURCE_BITS": 8 * raw.source_dtype.itemsize}
        down = WALKERS if device.capability in CAPABILITIES else self.down
        defines |= {"LANES": SQUARE, "DOWN": down}
        kernel = device.kernel("run_sums", ("pairwise/run_sums.cl",), defines)
        numbers = (raw.shape[1], begin, end, runs, slab.start, slab.stop - slab.start, up, slab.start > 0)
        sizes = tuple(np.int32(number) for number in numbers)
        steps = tuple(np.int64(step) for step in raw.steps)
        given = (raw.source, self._centring.centre, self._edges, self.run_sums, *sizes, *steps)
        device.run(kernel, (raw.width // SQUARE, 1), (SQUARE, down), *given)

    def _plain(self, slab: slice) -> tuple[Any, int]:
        """Queue the packing of a slab as numbers; return its panels and their padded inner size."""
        centring = self._centring
        raw = replace(centring.raw, form=replace(centring.raw.form, halves=False), slot="plain")
        residue = self._device.buffer("plain residue", centring.found.nbytes)
        plain = (centring.table, centring.centre, residue, centring.found, centring.chunk)
        return Centring(raw, *plain).packed(self._device, slab)

    def _sum_lists(self, panels: Any, depth: int, slab: slice) -> None:
        """Queue the lists of a slab, their sums and their counts."""
        device, tile, raw = self._device, self._tile, self._centring.raw
        columns, width = raw.shape[1], raw.width
        count, rows, more = len(self.plan.lists), slab.stop - slab.start, slab.start > 0
        blocks, tiles = -(-count // tile.block), -(-rows // tile.tall)
        quads = device.buffer("gap quads", self.plan.quads * QUAD_BYTES)
        edges = device.buffer("gap edges", blocks * tiles * (tile.block + 1) * WORD)
        kernel = device.kernel(
            "gap_lists", (GAPS, "pairwise/gap_lists.cl"), {**tile.listing, "DOWN": self.down}
        )
        sizes = (np.int32(number) for number in (columns, count, slab.start, rows))
        device.run(kernel, (blocks, 1), (SQUARE, self.down), self.bits, self._lists, edges, quads, *sizes)

        reading = {**tile.listing, "CAPABILITY": device.capability}
        summing = {**self._types, **reading, "ROOM": tile.room, "DOWN": tile.down, "EACH": tile.each}
        if raw.dtype != SUM:
            summing["MOST"] = MOST_QUADS
        kernel = device.kernel("tile_sums", (GAPS, "pairwise/tile_sums.cl"), summing)
        groups = (blocks, width // (SQUARE * tile.each))
        sizes = (np.int32(number) for number in (count, rows, depth, more))
        device.run(kernel, groups, (SQUARE, tile.down), panels, quads, edges, self.list_sums, *sizes)

        # whole counts differ by some bits only, so that few programs are built
        planes = padded(max(self.plan.longest, 1).bit_length(), 4)
        part = tile.counters * COUNTED
        counting = {**reading, "ROOM": tile.room * part // tile.block}
        counting |= {"DOWN": tile.counters, "LISTS": COUNTED, "PLANES": planes}
        kernel = device.kernel("tile_counts", (GAPS, "pairwise/tile_counts.cl"), counting)
        groups = (blocks * tile.block // part, self.across // BITS // SQUARE)
        sizes = (np.int32(number) for number in (count, slab.start, rows, more))
        local = (SQUARE, tile.counters)
        device.run(kernel, groups, local, self._turned, quads, edges, self.list_counts, *sizes)

    def queue_answers(
        self,
        defines: dict[str, int],
        products: Any,
        outputs: tuple[Any, ...],
        doubts: tuple[Any, Any],
        blocks: tuple[Any, int],
    ) -> None:
        """Queue the answers; `doubts` are buffers for doubtful pairs, and how many a block has."""
        device, raw, plan = self._device, self._centring.raw, self.plan
        runs, lists = len(plan.edges), len(plan.lists)
        defines = {**defines, "DOWN": self.down, "RUNS": int(runs > 0), "LISTS": int(lists > 0)}
        kernel = device.kernel("answers", ("pairwise/answers.clh", "pairwise/answers.cl"), defines)
        places = device.send("places", plan.places)
        given = (
            products,
            self._centring.target,
            places,
            self.run_sums,
            self.run_counts,
            self.list_sums,
            self.list_counts,
        )
        chunks = len(self._centring.found) - 2
        numbers = (raw.shape[1], raw.width, chunks, self.across, runs, lists)
        sizes = (np.int32(number) for number in numbers)
        table, count = blocks
        device.run(kernel, (count, 1), (SQUARE, self.down), *given, *outputs, *doubts, *sizes, table)

    def _count_runs(self) -> None:
        columns, runs = self._centring.shape[1], len(self.plan.edges)
        defines = {"LANES": SQUARE, "DOWN": self.down, "RUNS": RUNS}
        kernel = self._device.kernel("run_counts", ("pairwise/run_counts.cl",), defines)
        groups = (self.across // SQUARE, -(-runs // (RUNS * self.down)))
        sizes = (np.int32(columns), np.int32(runs))
        local = (SQUARE, self.down)
        self._device.run(kernel, groups, local, self.bits, self._edges, self.run_counts, *sizes)


@dataclass(frozen=True, slots=True, eq=False)
class GappedCentring(Centring):
    """A `Centring` whose slabs are also summed up, each when it is time to pack another one.

    Attributes
    ----------
    begun : makes the sums, once
    packed_last : the slab that is yet to be summed up, if any: panels, padded inner size, rows
    """

    begun: Callable[[], GapSums | MaskSums]
    packed_last: list[tuple[Any, int, slice]]

    def packed(self, device: Device, slab: slice) -> tuple[Any, int]:
        self.summed()
        # no zero-argument super() in a class that slots made anew
        panels, depth = Centring.packed(self, device, slab)
        self.packed_last.append((panels, depth, slab))
        return panels, depth

    def summed(self) -> None:
        """Queue the sums over what was packed last; the product of it has been queued."""
        if self.packed_last:
            self.begun().sum_up(*self.packed_last.pop())
