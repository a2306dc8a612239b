"""The kernel ladder as data: every rung of A B in order, for tests, benchmark, docs and commands.

A rung of the device has one file in kernels/ and one kernel, `multiply(A, B, C, rows, inner, columns)`, whose
program is the #define lines, common.clh and that file. The rungs `register_tiled` and `packed` are the
engine's own forms, with kernels that pack; the serial rungs are loops on the host.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from typing import Literal

import numpy as np

from mtbridge.errors import OptionError

Layout = Literal["rows", "columns", "image", "panels"]
Runner = Literal["host", "kernel", "engine"]

MQL5, MEMORY, ADRENO, BEYOND = "MQL5", "memory", "Adreno", "beyond"
TEXEL_BYTES = 16


@dataclass(frozen=True, slots=True)
class Walk:
    """What one dimension of a launch walks along, and how many of them one work-item takes.

    `step` is in elements; 0 means one texel of an image, whose number of elements is the type's.
    """

    along: Literal["rows", "columns"]
    step: int = 1

    def items(self, size: int, itemsize: int) -> int:
        """Return how many items it takes to walk along `size` elements of `itemsize` bytes."""
        return -(-size // (self.step or TEXEL_BYTES // itemsize))


@dataclass(frozen=True, slots=True)
class Rung:
    """One step of the ladder: where its code is, how it is launched, what it needs and what it teaches.

    Attributes
    ----------
    name : as in the commands and tables
    article : whose step it is: "MQL5", "memory", "Adreno" or "beyond"
    teaches : its one idea, in a sentence
    runner : "host" for a loop there, "kernel" for a launch as told here, "engine" for a form of the engine
    file : below kernels/; empty on the host
    headers : files that come between common.clh and `file`
    order : the loops from the outside in, of a serial rung (r: rows, cr: inner, c: columns)
    second : how B lies: row-major, column-major, as an image, or packed into panels
    walks : the dimensions of the launch
    local : the local size that is taken where the device allows it
    fixed : whether the kernel requires that local size
    local_elements : elements of local memory that a group takes
    mapped : whether the host fills buffers that the driver allocated (the Adreno article's zero-copy way)
    defines : macros that differ from the file's defaults
    """

    name: str
    article: str
    teaches: str
    runner: Runner = "kernel"
    file: str = ""
    headers: tuple[str, ...] = ()
    order: str = ""
    second: Layout = "rows"
    walks: tuple[Walk, ...] = ()
    local: tuple[int, ...] = ()
    fixed: bool = False
    local_elements: int = 0
    mapped: bool = False
    defines: Mapping[str, int] = field(default_factory=dict)

    def macros(self, rows: int, inner: int, columns: int, dtype: np.dtype[np.floating]) -> dict[str, int]:
        """Return the #define lines for a product of these sizes."""
        found = {**self.defines, "REAL_BITS": 8 * dtype.itemsize}
        if self.name == "macro_tile":
            found["WHOLE_ROWS"] = int(inner % 4 == 0 and columns % 4 == 0)
        return found

    def local_size(self, largest_group: int) -> tuple[int, ...]:
        """Return `local`, its longest side halved until a group has at most `largest_group` items."""
        sides = list(self.local)
        while prod(sides) > largest_group and not self.fixed:
            longest = sides.index(max(sides))
            sides[longest] = max(sides[longest] // 2, 1)
        return tuple(sides)

    def groups(self, rows: int, columns: int, itemsize: int, local: tuple[int, ...]) -> tuple[int, ...]:
        """Return how many groups of `local` items cover a (rows, columns) result, in each dimension."""
        sizes = {"rows": rows, "columns": columns}
        return tuple(
            -(-walk.items(sizes[walk.along], itemsize) // side)
            for walk, side in zip(self.walks, local, strict=True)
        )


@dataclass(frozen=True, slots=True)
class Abilities:
    """What a device has that a rung may need; `largest_image` is 0 x 0 where there are no images."""

    kind: str
    fp64: bool
    largest_group: int
    local_bytes: int
    largest_image: tuple[int, int] = (0, 0)


def hindrance(rung: Rung, able: Abilities, inner: int, columns: int, dtype: np.dtype[np.floating]) -> str:
    """Return why a device cannot run `rung` at these sizes, in words; empty where it can."""
    if dtype.itemsize == 8 and not able.fp64:
        return "the device has no fp64"
    if rung.second == "image":
        wide, high = -(-columns // (TEXEL_BYTES // dtype.itemsize)), inner
        if able.largest_image == (0, 0):
            return "the device has no images"
        if wide > able.largest_image[0] or high > able.largest_image[1]:
            most = " x ".join(str(side) for side in able.largest_image)
            return f"an image of {wide} x {high} texels is more than the device's {most}"
    if rung.fixed and prod(rung.local) > able.largest_group:
        return f"groups of {prod(rung.local)} items are more than the device's {able.largest_group}"
    needed = rung.local_elements * dtype.itemsize
    if needed > able.local_bytes:
        return f"it needs {needed} bytes of local memory and the device has {able.local_bytes}"
    if rung.name == "packed" and able.kind != "cpu":
        return "one work-item a group: a form for processors"
    return ""


ROWS, COLUMNS = Walk("rows"), Walk("columns")
CHUNK = 1024


def _serial(order: str, teaches: str) -> Rung:
    name = "serial" if order == "r-cr-c" else f"serial_{order.replace('-', '_')}"
    return Rung(name, MQL5, teaches, runner="host", order=order)


LADDER: tuple[Rung, ...] = (
    _serial("r-c-cr", "the loop of the textbook: B is walked down its columns"),
    _serial("c-r-cr", "the same inner loop, C written column by column"),
    _serial("c-cr-r", "the inner loop jumps a row in A and in C: the worst order, with its twin cr-c-r"),
    _serial("cr-c-r", "as c-cr-r, the outer loops exchanged"),
    _serial("cr-r-c", "the inner loop walks along B and C; C is read and written once an inner index"),
    _serial("r-cr-c", "the inner loop walks along B and C, and a row of C stays in cache: the host baseline"),
    Rung(
        "serial_vectorised",
        BEYOND,
        "r-cr-c again, the compiler allowed to use vectors: one thread of the host at its ease",
        runner="host",
        order="r-cr-c",
    ),
    Rung(
        "naive",
        MQL5,
        "an item an element; the sum is kept in global memory",
        file="multiply/naive.cl",
        walks=(ROWS, COLUMNS),
        local=(16, 16),
    ),
    Rung(
        "coalesced",
        MQL5,
        "B column-major, so that an item reads both matrices along memory",
        file="multiply/coalesced.cl",
        second="columns",
        walks=(ROWS, COLUMNS),
        local=(16, 16),
    ),
    Rung(
        "private_sum",
        MQL5,
        "the sum in a register; C is written once",
        file="multiply/private_sum.cl",
        second="columns",
        walks=(ROWS, COLUMNS),
        local=(16, 16),
    ),
    Rung(
        "row_per_item",
        MQL5,
        "one dimension: an item computes a whole row of C",
        file="multiply/row_per_item.cl",
        second="columns",
        walks=(ROWS,),
        local=(64,),
    ),
    Rung(
        "private_row",
        MQL5,
        "the item's row of A copied to private memory",
        file="multiply/private_row.cl",
        second="columns",
        walks=(ROWS,),
        local=(64,),
    ),
    Rung(
        "local_column",
        MQL5,
        "the group copies a column of B to local memory and shares it",
        file="multiply/local_column.cl",
        second="columns",
        walks=(ROWS,),
        local=(64,),
        local_elements=CHUNK,
    ),
    Rung(
        "dot4_cast",
        MQL5,
        "four products at a time, the vectors put together inside the loop",
        file="multiply/dot4_cast.cl",
        second="columns",
        walks=(ROWS,),
        local=(64,),
        local_elements=CHUNK,
    ),
    Rung(
        "dot4",
        MQL5,
        "the same, row and column held as vectors from the start",
        file="multiply/dot4.cl",
        second="columns",
        walks=(ROWS,),
        local=(64,),
        local_elements=CHUNK,
    ),
    Rung(
        "dot8",
        MQL5,
        "vectors of eight: half the steps, two sums that do not wait for each other",
        file="multiply/dot8.cl",
        second="columns",
        walks=(ROWS,),
        local=(64,),
        local_elements=CHUNK,
    ),
    Rung(
        "tiled",
        MEMORY,
        "16 x 16 tiles in local memory: an element that was fetched is used 16 times",
        file="multiply/tiled.cl",
        walks=(COLUMNS, ROWS),
        local=(16, 16),
        fixed=True,
        local_elements=2 * 16 * 16,
    ),
    Rung(
        "tiled_padded",
        MEMORY,
        "the tiles' rows one element longer, against bank conflicts that are not there",
        file="multiply/tiled_padded.cl",
        walks=(COLUMNS, ROWS),
        local=(16, 16),
        fixed=True,
        local_elements=2 * 16 * 17,
    ),
    Rung(
        "macro_tile",
        ADRENO,
        "4 x 8 sums an item in registers, vector loads, a group stepping together; no local memory",
        file="multiply/macro_tile.cl",
        walks=(Walk("columns", 8), Walk("rows", 4)),
        local=(8, 8),
        mapped=True,
    ),
    Rung(
        "texture",
        ADRENO,
        "B through an image, A through a buffer: two roads to memory",
        file="multiply/texture.cl",
        second="image",
        walks=(Walk("columns", 0), Walk("rows", 8)),
        local=(16, 8),
        mapped=True,
    ),
    Rung(
        "register_tiled",
        BEYOND,
        "panels, a large tile in local memory, a square of it in each item's registers: what a GPU gets here",
        runner="engine",
        file="multiply/register_tiled.cl",
        headers=("register_tiled.clh",),
        second="panels",
    ),
    Rung(
        "packed",
        BEYOND,
        "register tiles, an item a group, which packs its strip of B itself: what a processor gets here",
        runner="engine",
        file="multiply/packed.cl",
        headers=("packed.clh",),
        second="panels",
    ),
)

VARIANTS: tuple[Rung, ...] = (
    Rung(
        "naive_side_by_side",
        BEYOND,
        "naive with ROW_DIMENSION 1: neighbouring items read and write side by side, which a GPU coalesces",
        file="multiply/naive.cl",
        walks=(COLUMNS, ROWS),
        local=(16, 16),
        defines={"ROW_DIMENSION": 1},
    ),
    Rung(
        "dot8_built_in",
        MQL5,
        "dot8 with the built-in dot()",
        file="multiply/dot8.cl",
        second="columns",
        walks=(ROWS,),
        local=(64,),
        local_elements=CHUNK,
        defines={"BUILT_IN_DOT": 1},
    ),
)
"""Other settings of a rung that teach something; measured after the ladder."""


def rung(name: str) -> Rung:
    """Return the rung called `name`.

    Raises
    ------
    OptionError
        If there is none.
    """
    for found in LADDER:
        if found.name == name:
            return found
    there = ", ".join(found.name for found in LADDER)
    raise OptionError(f"there is no rung {name!r}; there are {there}.")
