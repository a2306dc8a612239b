"""The memory experiments as data: a case is a question with one answer; its contenders differ in one idea."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

Vector: TypeAlias = np.ndarray[Any, Any]

GROUP, EACH = 64, 32
SIDE, DOWN = 32, 8
READS, TABLE_BITS = 256, 10
OFFSETS = (0, 1, 4, 8, 32)
LOADS = (1, 2, 4)
TABLE_PLACES = ("__global", "__constant", "__local", "__constant, in the program")
DRIVER = "driver's copy"


@dataclass(frozen=True, slots=True)
class Contender:
    """One way to answer a case.

    Attributes
    ----------
    name : as rows say it
    file, kernel : below kernels/memory, without suffix; none for the driver's own copy
    defines : the macros that make this contender of the file
    group : items of a work-group
    block : what a group covers of the case's extent
    local_elements : numbers in local memory
    constant : whether the input is taken as __constant
    source : which of the case's sources it reads
    """

    name: str
    file: str = ""
    kernel: str = ""
    defines: Mapping[str, int] = field(default_factory=dict)
    group: tuple[int, ...] = (GROUP,)
    block: tuple[int, ...] = (GROUP,)
    local_elements: int = 0
    constant: bool = False
    source: int = 0


@dataclass(frozen=True, slots=True)
class Case:
    """One question.

    Attributes
    ----------
    name, dtype : as rows say it
    sources : arrays to read, of the same numbers
    expected : the answer, computed by numpy
    tolerance : how far each number may be from it; 0 where it must be the same
    extent : what the groups cover together
    scalars : int32 arguments of the kernel behind the two buffers
    moved : bytes that the question needs read and written, whoever answers it
    contenders : in the order of the table
    peer : the contender that the others are compared with
    """

    name: str
    dtype: str
    sources: tuple[Vector, ...]
    expected: Vector
    tolerance: Vector | float
    extent: tuple[int, ...]
    scalars: tuple[int, ...]
    moved: int
    contenders: tuple[Contender, ...]
    peer: str


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the experiments are: bytes copied, the matrix turned over, sums of lookups, price bars."""

    copied: int
    rows: int
    columns: int
    lookups: int
    bars: int


# Past the caches of their kind of device, and for a processor done in milliseconds
LARGE = Sizes(copied=1 << 28, rows=8000, columns=8160, lookups=1 << 22, bars=1 << 24)
SMALL = Sizes(copied=1 << 26, rows=3200, columns=3168, lookups=1 << 16, bars=1 << 23)


def cases(sizes: Sizes, dtype: str) -> Iterator[Case]:
    """Yield every case in one type; its arrays are made when it is asked for."""
    count = sizes.copied // np.dtype(dtype).itemsize
    for offset in OFFSETS:
        yield copy_case(count, offset, dtype)
    yield transpose_case(sizes.rows, sizes.columns, dtype)
    for divergent in (False, True):
        yield table_case(sizes.lookups, dtype, divergent=divergent)
    for middle in (False, True):
        yield bars_case(sizes.bars, dtype, middle=middle)


def copy_case(count: int, offset: int, dtype: str) -> Case:
    """Copy `count` numbers, read from `offset` numbers behind the start of a buffer."""
    source = uniform(offset, (count + offset,), dtype)
    contenders = [
        Contender(
            f"{order}, {load}-wide",
            "copy",
            "copy",
            {"TOGETHER": together, "LOAD": load, "ALIGNED": int(offset % load == 0), "EACH": EACH},
            block=(GROUP * EACH * load,),
        )
        for order, together in (("coalesced", 1), ("strided", 0))
        for load in LOADS
    ]
    return Case(
        f"copy {binary(count * source.itemsize)}, offset {offset}",
        dtype,
        (source,),
        expected=source[offset:],
        tolerance=0.0,
        extent=(count,),
        scalars=(count, offset),
        moved=2 * count * source.itemsize,
        contenders=(*contenders, Contender(DRIVER)),
        peer="coalesced, 1-wide",
    )


def transpose_case(rows: int, columns: int, dtype: str) -> Case:
    """Turn a matrix over."""
    source = uniform(rows, (rows, columns), dtype)
    shape: dict[str, Any] = {"group": (SIDE, DOWN), "block": (SIDE, SIDE)}
    tiles = [
        Contender(
            f"tile, {SIDE} + {pad}",
            "transpose_tile",
            "transpose",
            {"PAD": pad, "SIDE": SIDE, "DOWN": DOWN},
            local_elements=SIDE * (SIDE + pad),
            **shape,
        )
        for pad in (0, SIDE >> 2, 1)
    ]
    direct = Contender("direct", "transpose_direct", "transpose", {"SIDE": SIDE, "DOWN": DOWN}, **shape)
    return Case(
        f"transpose {rows}x{columns}",
        dtype,
        (source,),
        expected=np.ascontiguousarray(source.T),
        tolerance=0.0,
        extent=(columns, rows),
        scalars=(rows, columns),
        moved=2 * source.nbytes,
        contenders=(direct, *tiles),
        peer="direct",
    )


def table_case(count: int, dtype: str, *, divergent: bool) -> Case:
    """Add up READS entries of a table for each of `count` items."""
    entries = 1 << TABLE_BITS
    # whole numbers, so that the sums are exact in any order, by a formula that a program can hold
    table = (389 * np.arange(entries) % 1999 - 999).astype(dtype)
    seeds = np.arange(count, dtype=np.uint32) // np.uint32(1 if divergent else GROUP)
    contenders = [
        Contender(
            place,
            "table",
            "look_up",
            {"PLACE": number, "DIVERGENT": int(divergent), "READS": READS, "TABLE_BITS": TABLE_BITS},
            local_elements=entries if place == "__local" else 0,
            constant=place.startswith("__constant"),
        )
        for number, place in enumerate(TABLE_PLACES)
    ]
    return Case(
        f"table, {'divergent' if divergent else 'uniform'} reads",
        dtype,
        (table,),
        expected=looked_up(table, seeds),
        tolerance=0.0,
        extent=(count,),
        scalars=(count,),
        moved=count * READS * table.itemsize,
        contenders=tuple(contenders),
        peer="__global",
    )


def looked_up(table: Vector, seeds: Vector) -> Vector:
    """Return the sums of kernels/memory/table.cl by the formula at its head."""
    kinds, place = np.unique(seeds, return_inverse=True)
    state = np.uint32(2654435761) * (kinds + np.uint32(1))
    sums = np.zeros(len(kinds), table.dtype)
    for _ in range(READS):
        state = np.uint32(1664525) * state + np.uint32(1013904223)
        sums += table[state >> np.uint32(32 - TABLE_BITS)]
    return sums[place]


def bars_case(count: int, dtype: str, *, middle: bool) -> Case:
    """Add up close, or (high + low) / 2, of `count` price bars: EACH of them an item."""
    bars = uniform(4, (count, 4), dtype)
    values = ((bars[:, 1].astype(np.float64) + bars[:, 2]) / 2) if middle else bars[:, 3].astype(np.float64)
    block = GROUP * EACH
    padded = np.zeros(-(-count // block) * block)
    padded[:count] = values
    sums = padded.reshape(-1, EACH, GROUP).sum(axis=1).ravel()
    contenders = [
        Contender(
            name,
            "bars",
            "add_up",
            {"APART": apart, "MIDDLE": int(middle), "EACH": EACH},
            block=(block,),
            source=apart,
        )
        for apart, name in enumerate(("array of structures", "structure of arrays"))
    ]
    return Case(
        f"bars, mean of {'(high + low) / 2' if middle else 'close'}",
        dtype,
        (bars, np.ascontiguousarray(bars.T)),
        expected=sums,
        # EACH positive terms, each rounded once when it is made and once when it is added
        tolerance=2 * EACH * float(np.finfo(dtype).eps) * sums,
        extent=(count,),
        scalars=(count,),
        moved=count * (2 if middle else 1) * bars.itemsize,
        contenders=tuple(contenders),
        peer="array of structures",
    )


def uniform(seed: int, shape: tuple[int, ...], dtype: str) -> Vector:
    """Return numbers from 0 to 1."""
    random = np.random.default_rng(seed)
    return random.random(shape, np.float32) if dtype == "float32" else random.random(shape)


def binary(size: int) -> str:
    """Return a number of bytes as KiB or MiB."""
    return f"{size >> 20} MiB" if size >= 1 << 20 else f"{size >> 10} KiB"
