"""How the matrices of a batch are given to work-groups, as data: by their shape and the device alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from mtbridge.compute.blocks import padded
from mtbridge.compute.forms import WIDE_SUM
from mtbridge.compute.parameters import Limits

LARGEST = 1 << 16
"""Elements of a matrix that is given to one group; a larger one is worth launches of its own."""

MOST_COLUMNS = 512
"""Of a matrix for one core: its panels stay in the second cache."""

MICRO_ROWS, LEAST_PANEL = 8, 4
MICRO = 4
"""Side of the tile of sums of an item of a graphics card (kernels/batch/tile_gpu.clh)."""

TILE, STEP, SKEW = 16, 4, 4
"""Of tensor cores (kernels/batch/tile_dmma.clh): side of a tile, of which a run of items has two; inner
indices of an instruction; by how much rows are longer than their tiles."""

FULL_RATE = (80, 90, 100)
"""Compute capabilities whose tensor cores take double as fast as others take float."""

RUN, MOST_ITEMS = 32, 640
"""Items of a matrix on a graphics card: whole runs, and so few that each has 100 registers."""

SCRATCH = 32 << 10
"""Bytes of a matrix in a card's local memory: several groups share it, one computes while others read."""

RESERVED = 1 << 10
"""Bytes of local memory that a card keeps for itself: NVIDIA's driver refuses arguments of all there is."""

WORK, EVEN = 1 << 20, 20
"""A group on a processor takes so many products, but there are so many groups for each core, or more."""

NUMBER = 8
"""Bytes of what columns are centred in."""


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """What is built and launched for matrices of one shape.

    Attributes
    ----------
    name : of the kernel
    files, defines : its program
    local : bytes of each of its arrays in local memory
    sizes : its int arguments, behind the number of matrices
    items, matrices : of a group of a graphics card; one item does `each` matrices on a processor
    work : products of a matrix
    """

    name: str
    files: tuple[str, ...]
    defines: Mapping[str, int]
    local: tuple[int, ...]
    sizes: tuple[int, ...]
    items: int = 1
    matrices: int = 0
    work: int = 0

    def launch(self, count: int, units: int) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Return groups, items of a group, and int arguments for `count` matrices on a device of `units`."""
        if self.matrices:
            return (-(-count // self.matrices), 1), (self.items, self.matrices), (count, *self.sizes)
        each = max(1, min(count // (EVEN * units), WORK // self.work))
        return (-(-count // each),), (1,), (count, each, *self.sizes)


@dataclass(frozen=True, slots=True)
class Processor:
    """Plans for the cores of a processor, each of which takes matrices one after the other.

    Attributes
    ----------
    limits : of the device
    width : elements of a vector, by the bytes of one
    """

    limits: Limits
    width: Mapping[int, int]

    def gram(self, shape: tuple[int, int], size: int, centre: Mapping[str, int] | None) -> BatchPlan | None:
        """Return the plan of X'X; None where a matrix is too large for one core.

        Parameters
        ----------
        shape : (rows, columns), neither of them 0
        size : bytes of an element in which products are taken
        centre : macros of centred columns; None for X itself
        """
        rows, columns = shape
        micro = self._micro(columns, size) | {"LEFT_LOCAL": 1}
        across = padded(columns, max(micro["MICRO_COLUMNS"], MICRO_ROWS))
        table = 0 if centre is None else 3 * across * NUMBER
        deep = _depth(rows, across * size, self.limits.local_bytes - table)
        if rows * columns > LARGEST or columns > MOST_COLUMNS or not deep:
            return None
        return BatchPlan(
            name="gram",
            files=("packed.clh", *_headers(centre), "batch/gram.cl"),
            defines={**micro, "REAL_BITS": 8 * size, **(centre or {})},
            local=(*((table,) if table else ()), across * deep * size),
            sizes=(rows, columns, deep),
            work=rows * columns * columns,
        )

    def product(self, shape: tuple[int, int, int], size: int) -> BatchPlan | None:
        """Return the plan of A B for matrices of (rows, inner, columns); None where they are too large."""
        rows, inner, columns = shape
        micro = self._micro(columns, size)
        strip = micro["MICRO_COLUMNS"] * size
        deep = _depth(inner, strip, self.limits.local_bytes, most=inner)
        if max(inner * max(rows, columns), rows * columns) > LARGEST or not deep:
            return None
        return BatchPlan(
            name="multiply",
            files=("packed.clh", "batch/multiply.cl"),
            defines={**micro, "REAL_BITS": 8 * size},
            local=(strip * deep,),
            sizes=(rows, columns, inner, deep),
            work=rows * inner * columns,
        )

    def _micro(self, columns: int, size: int) -> dict[str, int]:
        """Macros of a micro-tile one vector wide; no wider vector is taken than there are columns."""
        width = self.width[size]
        while width > LEAST_PANEL and width >= 2 * columns:
            width //= 2
        panel = max(width, LEAST_PANEL)
        return {"WIDTH": width, "MICRO_COLUMNS": panel, "MICRO_ROWS": MICRO_ROWS, "RIGHT_LOCAL": 1}


@dataclass(frozen=True, slots=True)
class Card:
    """Plans for a graphics card, whose groups have a matrix or a few each.

    Attributes
    ----------
    limits : of the device
    tensor : take tensor cores of double precision, by this compute capability; 0 the same in plain OpenCL C
    scratch : bytes of local memory for the rows of a matrix, and for its answer on the way out
    """

    limits: Limits
    tensor: int | None = None
    scratch: int = SCRATCH

    def gram(self, shape: tuple[int, int], size: int, centre: Mapping[str, int] | None) -> BatchPlan | None:
        """Return the plan of X'X, as `Processor.gram` does."""
        if centre is None and self._narrow(size):
            return replace(self, tensor=None).gram(shape, size, centre)
        rows, columns = shape
        return self._planned(
            "gram",
            _headers(centre),
            {"SOURCE_BITS": 8 * size, **(centre or {})},
            size=size,
            inner=rows,
            panels=(columns,),
            answer=(columns, columns),
            runs=self._triangle(columns),
            tables=() if centre is None else (3 * NUMBER * (columns + RUN * self._triangle(columns)),),
        )

    def product(self, shape: tuple[int, int, int], size: int) -> BatchPlan | None:
        """Return the plan of A B, as `Processor.product` does."""
        if self._narrow(size):
            return replace(self, tensor=None).product(shape, size)
        rows, inner, columns = shape
        return self._planned(
            "multiply",
            (),
            {"SOURCE_BITS": 8 * size},
            size=size,
            inner=inner,
            panels=(rows, columns),
            answer=(rows, columns),
            runs=self._grid(rows, columns),
            tables=(),
        )

    def _narrow(self, size: int) -> bool:
        """Whether elements are float32, whose products take less time without tensor cores of float64."""
        return self.tensor is not None and size < NUMBER

    def _triangle(self, columns: int) -> int:
        """Runs of items that have all sums of the upper triangle."""
        if self.tensor is None:
            blocks = -(-columns // MICRO)
            return -(-blocks * (blocks + 1) // 2 // RUN)
        tiles = -(-columns // TILE)
        return sum(-(-along // 2) for along in range(1, tiles + 1))

    def _grid(self, rows: int, columns: int) -> int:
        """Runs of items that have all sums of a whole answer."""
        if self.tensor is None:
            return -(-(-(-rows // MICRO) * -(-columns // MICRO)) // RUN)
        return -(-rows // TILE) * -(-columns // (2 * TILE))

    def _planned(
        self,
        name: str,
        headers: tuple[str, ...],
        defines: Mapping[str, int],
        *,
        size: int,
        inner: int,
        panels: tuple[int, ...],
        answer: tuple[int, int],
        runs: int,
        tables: tuple[int, ...],
    ) -> BatchPlan | None:
        """Return the plan of an `answer` of rows and columns, from panels so wide and `inner` rows deep."""
        centred, tensor = bool(tables), self.tensor is not None
        real = NUMBER if tensor else size
        total = NUMBER if tensor or centred else size
        step = STEP if tensor else 1
        items = RUN * runs
        most = min(self.limits.largest_group, MOST_ITEMS)
        if inner * max(panels) > LARGEST or items > most:
            return None
        row = real * sum(padded(width, TILE) + SKEW if tensor else padded(width, MICRO) for width in panels)
        allowed = self.limits.local_bytes - RESERVED
        scratch = max(min(self.scratch, allowed - sum(tables)), 1)
        deep = _evened(inner, max(scratch // row // step * step, step), step)
        # rows and a stripe of the answer lie there in turn
        stripe = min(max(scratch // (answer[1] * total), 1), answer[0]) * answer[1] * total
        room = padded(max(padded(deep, step) * row, stripe), 2 * NUMBER)
        matrices = max(min(2 * RUN // items, most // items), 1)
        local = tuple(padded(matrices * size_, 2 * NUMBER) for size_ in (*tables, room))
        if sum(local) > allowed:
            return None
        own = {"WIDTH": 2 * NUMBER // real} if not tensor else {"CAPABILITY": self.tensor or 0}
        tile = ("dmma_multiply.clh", "batch/tile_dmma.clh") if tensor else ("batch/tile_gpu.clh",)
        return BatchPlan(
            name=name,
            files=(*headers, "batch/group_gpu.clh", *tile, "batch/answer_gpu.clh", f"batch/{name}_gpu.cl"),
            defines={
                **defines,
                **own,
                "REAL_BITS": 8 * real,
                "SUM_BITS": 8 * total,
                "ITEMS": items,
                "MATRICES": matrices,
                **({"WHOLE": 1} if centred and deep >= inner and 8 * real >= defines["SOURCE_BITS"] else {}),
            },
            local=local,
            sizes=(answer[0], answer[1], inner, deep, room // total)
            if name == "multiply"
            else (inner, answer[1], deep, room // total),
            items=items,
            matrices=matrices,
        )


def centring(source: int, *, subnormals: bool, covariance: bool = False) -> dict[str, int]:
    """Return the macros of columns that are centred, from elements of `source` bytes.

    `subnormals` says whether the device knows numbers below the smallest normal one; `covariance` makes
    covariances of the co-moments, on a graphics card.
    """
    return {
        "SOURCE_BITS": 8 * source,
        "SUM_BITS": 8 * NUMBER,
        "CENTRED": 1,
        "SUBNORMALS": int(subnormals),
        **({"COVARIANCE": 1} if covariance else {}),
    }


def _headers(centre: Mapping[str, int] | None) -> tuple[str, ...]:
    return () if centre is None else ("batch/centre.clh",)


def _depth(rows: int, row: int, room: int, *, most: int = WIDE_SUM) -> int:
    """Rows of `row` bytes that are worked on at a time: as many as `room` has bytes for, up to `most`."""
    return max(min(rows, most, room // row), 0)


def _evened(rows: int, deep: int, step: int) -> int:
    """The least multiple of `step` that takes as few turns as `deep`, and no more than WIDE_SUM rows."""
    turns = -(-rows // min(deep, WIDE_SUM))
    return padded(-(-rows // turns), step)
