"""The kernels that find sums over the rows of pairs on a GPU, each against plain loops."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from given_kernels import launched
from numpy.typing import NDArray

from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.matrix import DTYPES, Matrix

pytestmark = pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")

TALL, PANEL, BLOCK = 32, 64, 8
SHAPES = [(1, 1), (33, 17), (64, 64), (131, 70)]
GAPS = "pairwise/gaps.clh"


@dataclass
class Gapped:
    """Values with gaps, as kernels see them, and lists of rows of a slab.

    Attributes
    ----------
    values, there : 0 where missing, and whether a value is there
    bits : as presence.cl leaves them
    first, rows : of the slab
    lists : column, whether it names the rows that are there, rows left out at the beginning, the first quad
        of its block
    named : the rows of each list
    """

    values: Matrix
    there: NDArray[np.bool_]
    bits: NDArray[np.uint32]
    first: int
    rows: int
    lists: NDArray[np.int32]
    named: list[list[int]]

    @property
    def tiles(self) -> int:
        return -(-self.rows // TALL)

    def panels(self, dtype: str) -> Matrix:
        """The slab in panels, its rows padded."""
        (_, columns), depth = self.values.shape, -(-self.rows // 16) * 16
        panels = np.zeros((-(-columns // PANEL), depth, PANEL), dtype)
        for row in range(self.rows):
            for column in range(columns):
                panels[column // PANEL, row, column % PANEL] = self.values[self.first + row, column]
        return panels

    def listed(self, engine: OpenCLEngine) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """What gap_lists.cl makes of the lists: edges (blocks, tiles, BLOCK + 1) and quads."""
        quads = sum(len(rows) // 4 + self.tiles + 1 for rows in self.named)
        edges, found = launched(
            engine,
            (GAPS, "pairwise/gap_lists.cl"),
            {"TALL": TALL, "BLOCK": BLOCK, "ACROSS": 4, "DOWN": 4},
            (self.blocks, 1),
            (4, 4),
            [
                self.bits,
                self.lists,
                np.zeros((self.blocks, self.tiles, BLOCK + 1), np.int32),
                np.full((quads, 4), 9999, np.uint16),
                *map(np.int32, (self.values.shape[1], len(self.lists), self.first, self.rows)),
            ],
            (2, 3),
        )
        return edges, found

    @property
    def blocks(self) -> int:
        return -(-len(self.lists) // BLOCK)


def gapped(rows: int, columns: int, part: str, seed: int = 0) -> Gapped:
    random = np.random.default_rng(rows + columns + seed)
    there = random.random((rows, columns)) > 0.2
    there[: rows // 2, ::5] = False
    there[:, 3:4] = False
    bits = np.zeros((-(-rows // 32), columns), np.uint32)
    for row, column in zip(*np.nonzero(there), strict=True):
        bits[row // 32, column] |= np.uint32(1 << row % 32)
    first = rows // 3 if part == "later slab" else 0
    height = rows - first
    lists, named, place = [], [], 0
    for column in reversed(range(columns)):
        have = 2 * there[:, column].sum() < rows
        lead = 0 if have else int(random.integers(0, rows + 1))
        if len(lists) % BLOCK == 0:
            place = sum(len(one) // 4 + -(-height // TALL) for one in named)
        lists.append((column, have, lead, place))
        named.append([row for row in range(max(first, lead), rows) if there[row, column] == have])
    values = np.where(there, random.standard_normal((rows, columns)), 0)
    return Gapped(values, there, bits, first, height, np.array(lists, np.int32), named)


@pytest.fixture(params=["all rows", "later slab"])
def part(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_lists_name_rows_tile_by_tile_in_whole_quads(
    opencl_engine: OpenCLEngine, rows: int, columns: int, part: str
) -> None:
    X = gapped(rows, columns, part)
    edges, quads = X.listed(opencl_engine)
    for number, named in enumerate(X.named):
        found = []
        for tile, edge in enumerate(edges[number // BLOCK]):
            rows_of_tile = quads[edge[number % BLOCK] : edge[number % BLOCK + 1]].ravel()
            kept = rows_of_tile[rows_of_tile < TALL]
            assert len(rows_of_tile) - len(kept) < 4
            assert (rows_of_tile[len(kept) :] == TALL).all()
            found += (X.first + tile * TALL + kept.astype(int)).tolist()
        assert found == named
    behind = edges[-1, :, len(X.lists) - len(X.lists) // BLOCK * BLOCK :]
    assert len(X.lists) % BLOCK == 0 or (behind == behind[:, :1]).all()
    for block, one in enumerate(edges):
        assert one[0, 0] == X.lists[block * BLOCK, 3]
        assert (one[1:, 0] == one[:-1, -1]).all()


@pytest.mark.parametrize("room", [4, 64])
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("each", [1, 2])
@pytest.mark.parametrize("dtype", DTYPES)
def test_sums_over_lists_are_added_up_in_float64(
    opencl_engine: OpenCLEngine, dtype: str, each: int, more: int, room: int, part: str
) -> None:
    X = gapped(131, 70, part)
    X.values = X.values.astype(dtype)
    width, lanes = 2 * PANEL, 16
    edges, quads = X.listed(opencl_engine)
    count, panels = len(X.lists), X.panels(dtype)
    defines = {"TALL": TALL, "PANEL": PANEL, "LANES": lanes, "DOWN": 2, "BLOCK": BLOCK, "EACH": each}
    defines |= {"ROOM": room, "REAL_BITS": 8 * panels.itemsize, "SUM_BITS": 64, "MOST": 2}
    (sums,) = launched(
        opencl_engine,
        (GAPS, "pairwise/tile_sums.cl"),
        defines,
        (X.blocks, width // lanes // each),
        (lanes, 2),
        [
            panels,
            quads,
            edges,
            np.full((2, count, width), 3, dtype),
            *map(np.int32, (count, X.rows, panels.shape[1], more)),
        ],
        (3,),
    )
    # MOST quads are summed in the type of the values
    eps = 8 * np.finfo(dtype).eps
    for number, named in enumerate(X.named):
        values = X.values[named].astype(float)
        for found, terms in ((sums[0, number], values), (sums[1, number], values * values)):
            bound = eps * (np.abs(terms).sum(axis=0) + 3)
            assert (np.abs(found[:70] - terms.sum(axis=0) - 3 * more) <= bound).all()
            assert (found[70:] == 3 * more).all()


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_bits_are_turned(opencl_engine: OpenCLEngine, rows: int, columns: int) -> None:
    X = gapped(rows, columns, "all rows")
    words, across = -(-rows // 32), 8
    (turned,) = launched(
        opencl_engine,
        ("pairwise/turn_bits.cl",),
        {"ITEMS": 8},
        (1, words),
        (8, 1),
        [X.bits, np.full((32 * words, across), 5, np.uint32), np.int32(columns)],
        (1,),
    )
    bits = np.unpackbits(turned.view(np.uint8), axis=1, bitorder="little")
    assert np.array_equal(bits[:rows, :columns], X.there)
    assert not bits[rows:].any()
    assert not bits[:, columns:].any()


@pytest.mark.parametrize("room", [4, 64])
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_rows_of_lists_are_counted(
    opencl_engine: OpenCLEngine, rows: int, columns: int, more: int, room: int, part: str
) -> None:
    X = gapped(rows, columns, part)
    edges, quads = X.listed(opencl_engine)
    turned = np.zeros((-(-rows // 32) * 32, 8 * 32), np.uint8)
    turned[:rows, :columns] = X.there
    words = np.packbits(turned, axis=1, bitorder="little").view(np.uint32)
    (counts,) = launched(
        opencl_engine,
        (GAPS, "pairwise/tile_counts.cl"),
        {"TALL": TALL, "BLOCK": BLOCK, "ROOM": room, "LANES": 8, "DOWN": 2, "LISTS": 2, "PLANES": 8},
        (X.blocks * 2, 1),
        (8, 2),
        [
            words,
            quads,
            edges,
            np.full((len(X.lists), 256), 100, np.int32),
            *map(np.int32, (len(X.lists), X.first, X.rows, more)),
        ],
        (3,),
    )
    for number, named in enumerate(X.named):
        assert np.array_equal(counts[number, :columns] - 100 * more, X.there[named].sum(axis=0))


@pytest.mark.parametrize("lies", ["rows", "columns"])
@pytest.mark.parametrize("up", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("edges", [[0], [131], [1, 2, 3], [40, 44, 45, 100, 131], list(range(132))])
def test_runs_are_sums_above_or_below_an_edge(
    opencl_engine: OpenCLEngine, edges: list[int], dtype: str, up: int, lies: str, part: str
) -> None:
    X = gapped(131, 70, part)
    X.values = X.values.astype(dtype)
    width, columns = 2 * PANEL, X.values.shape[1]
    # the kernel centres and scales: exactly, with these
    origin, scale = np.arange(width) % 4.0, 2.0 ** (np.arange(width) % 3)
    values = np.where(X.there, X.values / scale[:columns], np.nan) + origin[:columns]
    source = values if lies == "rows" else np.ascontiguousarray(values.T)
    steps = (columns, 1) if lies == "rows" else (1, len(values))
    # others come before and after those that are asked for
    places = np.array([edges[0], *edges, edges[-1]], np.int32)
    (sums,) = launched(
        opencl_engine,
        ("pairwise/run_sums.cl",),
        {
            "SOURCE_BITS": 64,
            "LANES": 32,
            "DOWN": 4,
            "REAL_BITS": 8 * np.dtype(dtype).itemsize,
            "SUM_BITS": 64,
        },
        (width // 32, 1),
        (32, 4),
        [
            source,
            np.stack([origin, scale]),
            places,
            np.full((2, len(places), width), 3, dtype),
            *map(np.int32, (columns, 1, len(places) - 1, len(places), X.first, X.rows, up, 1)),
            *map(np.int64, steps),
        ],
        (3,),
    )
    assert (sums[:, [0, -1]] == 3).all()
    rows = np.arange(131)
    for number, edge in enumerate(edges):
        taken = (rows >= X.first) & ((rows >= edge) if up else (rows < edge))
        values = X.values[taken].astype(float)
        for found, terms in ((sums[0, number + 1], values), (sums[1, number + 1], values * values)):
            # what is added to an origin has lost a bit of that
            bound = 131 * 8 * np.finfo(float).eps + np.finfo(dtype).eps
            bound = bound * (np.abs(terms).sum(axis=0) + 3)
            assert (np.abs(found[:70].astype(float) - 3 - terms.sum(axis=0)) <= bound).all()


@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_rows_above_edges_are_counted(opencl_engine: OpenCLEngine, rows: int, columns: int) -> None:
    X = gapped(rows, columns, "all rows")
    edges = np.unique(np.linspace(0, rows, 23).astype(np.int32))
    (counts,) = launched(
        opencl_engine,
        ("pairwise/run_counts.cl",),
        {"RUNS": 4, "DOWN": 2},
        (3, -(-len(edges) // 8)),
        (32, 2),
        [X.bits, edges, np.full((len(edges), 96), -1, np.int32), np.int32(columns), np.int32(len(edges))],
        (2,),
    )
    for found, edge in zip(counts, edges, strict=True):
        assert np.array_equal(found[:columns], X.there[:edge].sum(axis=0))


@pytest.mark.parametrize("chunks", [1, 5])
@pytest.mark.parametrize("columns", [1, 33])
def test_columns_are_put_together_from_their_chunks(
    opencl_engine: OpenCLEngine, columns: int, chunks: int
) -> None:
    parts = np.random.default_rng(1).standard_normal((chunks, 5, columns))
    parts[:, 3] = np.arange(chunks)[:, np.newaxis]
    (found,) = launched(
        opencl_engine,
        ("pairwise/found_columns.cl",),
        {"SUM_BITS": 64, "DOWN": 2},
        (-(-columns // 32), 1),
        (32, 2),
        [parts, np.zeros((5, columns)), np.int32(columns), np.int32(chunks)],
        (1,),
    )
    assert np.allclose(found[[0, 3]], parts[:, [0, 3]].sum(axis=0), rtol=0, atol=1e-14)
    assert np.array_equal(found[[1, 4]], parts[:, [1, 4]].min(axis=0))
    assert np.array_equal(found[2], parts[:, 2].max(axis=0))
