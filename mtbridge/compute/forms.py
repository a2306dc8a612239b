"""The forms in which products are computed, as data: here packed panels on a CPU, and local tiles on a GPU.

Those for tensor cores are in nvidia.py, int8_mma.py, split_mma.py and split_wgmma.py. What a form says of its
kernels is all that launches.py asks, so one host side drives every one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mtbridge.sources import tuned

LARGE_GROUP = 256
# Side of the squares in which a GPU packs panels and mirrors a triangle, and the most rows of a group
SQUARE = 32
MOST_SQUARES = 8
HALVES = "halves.clh"
"""The file of kernels/ that cuts numbers into halves."""
PANEL = 64
"""Columns of a panel of halves, and inner indices of a stage; kernels/split_panels.clh."""
MEASURING = "measuring.clh"
"""The file of kernels/ that measures columns."""
SCALING = "scaling.clh"
"""The file of kernels/ that finds scales of halves."""
FINISH = "finish.clh"
"""The file of kernels/ by which sums become covariances where they are added up."""

# Inner indices whose float32 products are summed in float32 before the sums are added up in float64. Of
# prices with few levels all roundings fall alike: 256 gave errors of 1.4e-6 there, 64 stays below 4e-7.
WIDE_SUM = 64
# Inner indices for which a GPU adds up such sums in float32, in local memory, before they go to memory in
# float64
WIDE_BLOCK = 1024
# The largest tile of which that has room in local memory: 16 KB of sums
WIDE_TILE = 64
# Side, in blocks, of the squares that groups do one after the other: about the root of an H200's 132 units.
# There 16 took 2 to 3 % more time in one run, 8 took 10 to 23 %, and whole rows of blocks 2 to 15 %
NEAR = 12


@dataclass(frozen=True, slots=True)
class Form:
    """How a product is cut up for a device and one element type.

    Attributes
    ----------
    headers : files of kernels/ that come before the kernel's own
    file : name of the kernel files, multiply/<file>.cl and gram/<file>.cl
    defines : macros of the kernels, their tuned values
    left, right : width of the panels of the left and of the right operand, in elements; gram uses the right
    rows, columns : size of the block of the result that one work-group computes
    inner : the inner size is padded with zeros to a multiple of it
    group : work-items of a group
    squares : rows of SQUARE work-items that pack a square of a panel and mirror one of a triangle; 0 where
        one item packs a panel, and gram/<file>.cl writes both triangles itself
    shared : the last blocks are cut into slices by the kernel itself (shares.py), and neighbours come in turn
    mirrors : gram/<file>.cl writes both triangles itself, whatever `squares` is
    halves : numbers lie in panels as two halves (kernels/split_panels.clh)
    direct : the kernels read matrices where they lie and share out pieces of blocks (opencl_direct.py)
    lasting : groups do one block after another (SharedSums), so a compute unit has one group
    pace : inner indices of a block that a unit does in the time that shares.py counts in
    finishes : gram/<file>.cl can make covariances of its sums (finish.py)
    masks : the same kernels with fewer products of halves take products with masks (opencl_masks.py)
    """

    headers: tuple[str, ...]
    file: str
    defines: Mapping[str, int]
    left: int
    right: int
    rows: int
    columns: int
    inner: int
    group: int
    squares: int
    shared: bool = False
    mirrors: bool = False
    halves: bool = False
    direct: bool = False
    lasting: bool = False
    finishes: bool = False
    pace: int = 1
    masks: bool = False

    def kept(self, inner: int) -> int:
        """Return how often a group of a lasting form keeps its sums apart over `inner` inner indices."""
        longest = min(inner, self.defines["WIDE_INNER"])
        return -(-longest // self.defines["KEPT_INNER"]) - 1


def packed_form(
    dtype: str, vector_bytes: int, settings: Mapping[str, int] | None = None, *, platform: str = ""
) -> Form:
    """The CPU form for registers of `vector_bytes`, with the settings of `platform` or with these."""
    table = tuned("cpu")
    if "Intel" in platform:
        table = {**table, **tuned("intel")}
    chosen = settings or table.get(str(vector_bytes), table["0"])[dtype]
    return Form(
        headers=("packed.clh",),
        file="packed",
        defines=chosen,
        left=chosen["MICRO_ROWS"],
        right=chosen["MICRO_COLUMNS"],
        rows=chosen["BLOCK_ROWS"] * chosen["MICRO_ROWS"],
        columns=chosen["BLOCK_COLUMNS"] * chosen["MICRO_COLUMNS"],
        inner=1,
        group=1,
        squares=0,
    )


def tiled_form(dtype: str, largest_group: int, settings: Mapping[str, int] | None = None) -> Form:
    """The GPU form, for groups of up to `largest_group` items, with the shipped settings or with these."""
    chosen = settings or tuned("gpu")["large" if largest_group >= LARGE_GROUP else "small"][dtype]
    tile = chosen["TILE"]
    return Form(
        headers=("register_tiled.clh",),
        file="register_tiled",
        defines=chosen,
        left=tile,
        right=tile,
        rows=tile,
        columns=tile,
        inner=chosen["STEP"],
        group=(tile // chosen["MICRO"]) ** 2,
        squares=min(largest_group // SQUARE, MOST_SQUARES),
    )


def whole_grid(rows: int, columns: int, block: tuple[int, int]) -> NDArray[np.int32]:
    """Every block of a (rows, columns) result: int32 of shape (blocks, 2), block row and block column."""
    down, across = -(-rows // block[0]), -(-columns // block[1])
    return np.indices((down, across), np.int32).reshape(2, -1).T.copy()


def planes(form: Form) -> dict[str, int]:
    """The macro that a kernel needs which packs an operand of products in halves: hi and lo, or hi alone."""
    return {"PLANES": 1 if form.defines.get("PRODUCTS") == 1 else 2}


def nearby(grid: NDArray[np.int32]) -> NDArray[np.int32]:
    """The blocks of `grid`, those in a square of NEAR x NEAR after each other: they read the same panels."""
    down, across = grid.T
    return grid[np.lexsort((across, down, across // NEAR, down // NEAR))].copy()


def upper_triangle(columns: int, block: tuple[int, int], rows: slice | None = None) -> NDArray[np.int32]:
    """The blocks of a (columns, columns) result that touch the upper triangle, of whole blocks of `rows`."""
    some = rows or slice(0, columns)
    grid = whole_grid(some.stop - some.start, columns, block)
    grid[:, 0] += some.start // block[0]
    reaches = grid[:, 0] * block[0] < np.minimum((grid[:, 1] + 1) * block[1], columns)
    return grid[reaches].copy()
