"""What each of several devices does of a matrix that they share: it has the factors, and computes stripes.

X'X is computed by the very launches of one device, cut into those of a stripe each: the tiles of its rows
that touch the upper triangle, which are mirrored. So its bits are those of one device alone, whoever did
which stripe. Moments are too, since each device centres all columns itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import block_sizes
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.finish import Finish
from mtbridge.compute.forms import SQUARE, Form, nearby, upper_triangle
from mtbridge.compute.launches import Operand, contiguous, macros, summing
from mtbridge.compute.moments import Vector
from mtbridge.compute.opencl_direct import Reading, queue_pieces
from mtbridge.compute.opencl_moments import COVARIANCE_SIDE, SUM, Centring
from mtbridge.compute.opencl_split import ready
from mtbridge.compute.opencl_statistics import SMALLEST_SCALE
from mtbridge.compute.shares import shares
from mtbridge.compute.slices import slab_depth, slice_count
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl_conveyor import Answer
    from mtbridge.compute.opencl_engine import OpenCLEngine


class Work(Protocol):
    """What one device does."""

    def begin(self) -> bool:
        """Send what the device needs; False where the columns are not ordinary, so that it cannot be done."""

    def queue(self, stripe: slice) -> list[Answer]:
        """Queue the kernels of a stripe; return what of the answer is there when they are done."""


@dataclass(slots=True, eq=False)
class Triangle:
    """X'X, of columns as they are or centred, or covariances.

    Attributes
    ----------
    engine : of the device
    X : (inner, columns), contiguous or on the device
    dtype : in which products are taken, that of `X` unless columns are centred
    form : of the products
    kind : dtype of the answer, in which products are summed, or covariances wanted
    out : the answer, (columns, columns), where it is brought to the host
    centred : the columns are centred first
    ddof : with it, answers are covariances
    centre : what `begin` found, the origins and exponents of columns
    packed : an event that has ended when what `pack` queued is done; set by who waits for that
    """

    engine: OpenCLEngine
    X: Operand
    dtype: np.dtype[Any]
    form: Form
    kind: np.dtype[Any]
    out: Matrix | None = None
    centred: bool = False
    ddof: int | None = None
    centre: tuple[Vector, NDArray[np.int64]] | None = None
    packed: Any = None
    _centring: Centring | None = None
    _reading: Reading | None = None
    _packed: tuple[Any, int] = (None, 0)

    @property
    def total(self) -> np.dtype[Any]:
        """In which products are summed."""
        return SUM if self.centred else self.kind

    def begin(self) -> bool:
        # where there is no room for the answer, that is told before anything is done
        self._product()
        if self.pack() and self._centring is not None:
            self.centre = self._centring.chosen(self.engine.kernels_device)
        return self.centre is not None or not self.centred

    def pack(self) -> bool:
        """Queue what comes before the first stripe; False where the host had to centre the columns."""
        engine, whole, form = self.engine, slice(0, self.X.shape[0]), self.form
        launches, device, columns = engine._launches, engine.kernels_device, self.X.shape[1]
        if self.centred:
            self._centring = engine._centring(self.X, self.dtype)
            if self._centring is None:
                return False
        if form.direct:
            self._reading = launches.reading(form, "right", self._centring or self.X).ready(whole)
        elif self._centring is not None:
            self._packed = self._centring.packed(device, whole)
        elif form.halves:
            self._packed = ready(device, launches.ordinary(form, "right", self.X), [whole]).packed(
                device, whole
            )
        else:
            source, size = launches.source("right", self.X), self.X.itemsize
            self._packed = launches.pack(form, "right", source, columns, whole, size)
        return True

    @property
    def ordinary(self) -> bool:
        """Whether no column is extreme, for which covariances are wrong; waits until all are packed."""
        from mtbridge.compute.opencl_conveyor import read_beside

        if self._centring is None:
            raise ValueError("no columns were centred")
        device, found = self.engine.kernels_device, self._centring.found
        scales = found[-1]
        if self._centring.table is None:
            offset = found.nbytes - scales.nbytes
            read_beside(device, self._centring.target, scales, offset, self.packed)
        else:
            scales = self._centring.scales(device)
        return bool(scales[: self.X.shape[1]].min() >= SMALLEST_SCALE[self.kind])

    def mean(self) -> Vector:
        """Return the mean of each column that `begin` centred."""
        if self._centring is None:
            raise ValueError("no columns were centred")
        return self._centring.mean(self.engine.kernels_device)

    def queue(self, stripe: slice) -> list[Answer]:
        if self.out is None:
            raise ValueError("nothing is brought to the host")
        answer = self._product()
        self.compute(stripe, answer)
        return brought(answer, stripe, self.out)

    def compute(self, stripe: slice, answer: Any) -> None:
        """Queue the kernels of a stripe, which write it and its mirror in `answer`, a buffer of the whole."""
        device, launches, form = self.engine.kernels_device, self.engine._launches, self.form
        columns, target, finish = self.X.shape[1], answer, None
        if self.ddof is not None and self._centring is not None:
            if self.kind != self.total:
                target = device.buffer("sums", columns * columns * self.total.itemsize)
            if form.finishes:
                finish = Finish(self._centring, answer, self.kind, self.ddof)
        self._sum(stripe, target, finish)
        if self.ddof is not None and finish is None and self._centring is not None:
            blocks = self._squares(stripe, COVARIANCE_SIDE)
            self._centring.covariance(device, target, answer, self.kind, self.ddof, blocks)
        elif form.squares and not form.mirrors:
            launches.mirror(form, target, columns, self.total, self._squares(stripe, SQUARE))

    def _product(self) -> Any:
        """The kept buffer for an answer that is brought to the host."""
        columns = self.X.shape[1]
        return self.engine.kernels_device.buffer("product", columns * columns * self.kind.itemsize)

    def _sum(self, stripe: slice, target: Any, finish: Finish | None) -> None:
        """Queue the launch of a stripe: its tiles of that of the whole, in the same order and cut alike."""
        device, form = self.engine.kernels_device, self.form
        inner, columns = self.X.shape
        files, defines = (*form.headers, f"gram/{form.file}.cl"), macros(form, self.dtype, self.total)
        block, shape, limit = (form.rows, form.columns), (columns, inner, columns), self.engine._full_limit
        if self._reading is not None:
            mirrored, operands = self.ddof is None, (self._reading,)
            given = (device, form, operands, shape, files, defines, target, limit)
            queue_pieces(*given, mirrored=mirrored, finish=finish, stripe=stripe)
            return

        def tiles() -> NDArray[np.int32]:
            some = upper_triangle(columns, block, stripe)
            return nearby(some) if form.shared else some

        panels, depth = self._packed
        table = device.table((columns, block, form.shared, stripe.start, stripe.stop), tiles)
        shared: dict[str, Any] = {}
        if form.shared:
            most = limit // (form.rows * form.columns * self.total.itemsize)
            key = (columns, block, stripe.start, stripe.stop, depth, device.units, most, form.pace)
            left, slices = cut_of(*key)
            shared = {"finish": finish, "cut": (table[1] - left, slices)}
        # with a limit of 0 no inner size is cut, but as that of the tiles that are shared out
        sums = summing(form)("gram", files, defines, form, shape, *table, self.total, target, 0, **shared)
        sizes = (np.int32(columns), np.int32(depth), np.int32(columns))
        sums.queue(device, (panels,), sizes, slice(0, inner))

    def _squares(self, stripe: slice, side: int) -> tuple[Any, int]:
        """The table of the squares of a stripe, and how many they are."""
        columns = self.X.shape[1]
        key = (columns, side, stripe.start, stripe.stop)
        return self.engine.kernels_device.table(key, lambda: upper_triangle(columns, (side, side), stripe))


def brought(answer: Any, stripe: slice, out: Matrix) -> list[Answer]:
    """Return what the buffer `answer` holds of a stripe and its mirror, and where in `out` that goes."""
    from mtbridge.compute.opencl_conveyor import Answer

    columns = len(out)
    across, below = slice(stripe.start, columns), slice(stripe.stop, columns)
    found = [Answer(answer, columns, (stripe.start, stripe.start), out[stripe, across])]
    if below.start < columns:
        found.append(Answer(answer, columns, (below.start, stripe.start), out[below, stripe]))
    return found


@lru_cache(maxsize=64)
def cut_of(
    columns: int, block: tuple[int, int], start: int, stop: int, inner: int, units: int, most: int, pace: int
) -> tuple[int, int]:
    """Return how many tiles of the rows `start` to `stop` of X'X one device cuts, and into how many slices.

    The others are as for `shares`.
    """
    order = whole_order(columns, block)
    whole, slices = shares(len(order), inner, units=units, most=most, pace=pace)
    rows = order[whole:, 0] * block[0]
    return int(((rows >= start) & (rows < stop)).sum()), slices


@lru_cache(maxsize=4)
def whole_order(columns: int, block: tuple[int, int]) -> NDArray[np.int32]:
    """The tiles of X'X in the order in which one device does them."""
    return nearby(upper_triangle(columns, block))


def triangle_fits(engine: OpenCLEngine, form: Form, shape: tuple[int, int], size: int, total: int) -> bool:
    """Whether X'X of (rows, columns) is one launch of one device, in buffers that it can give.

    `size` and `total` are the bytes of an element of X and of the answer.
    """
    rows, columns = shape
    limit, units = engine._full_limit, engine.kernels_device.units
    whole = (columns, rows, columns)
    if block_sizes(form, whole, size=size, total=total, limit=limit, square=True) != whole:
        return False
    if slab_depth(form, whole, size=size, units=units) < rows:
        return False
    if form.shared or form.direct:
        return True
    tiles = tiles_of_triangle(columns, (form.rows, form.columns))
    return slice_count(form, whole, groups=tiles, units=units, total=total, limit=limit) == 1


@lru_cache(maxsize=16)
def tiles_of_triangle(columns: int, block: tuple[int, int]) -> int:
    """Return how many tiles of X'X touch the upper triangle."""
    return len(upper_triangle(columns, block))


def triangle_unit(form: Form) -> int:
    """Rows of which a stripe of X'X is made: whole tiles, and whole squares where they are mirrored so."""
    return math.lcm(form.rows, SQUARE, COVARIANCE_SIDE) if form.squares else form.rows


@dataclass(slots=True, eq=False)
class Product:
    """A B, of which B is sent whole and A a stripe at a time.

    Attributes
    ----------
    engine, form : as for `Triangle`
    A, B : (rows, inner) and (inner, columns), B contiguous
    out : the answer, (rows, columns)
    """

    engine: OpenCLEngine
    form: Form
    A: Matrix
    B: Matrix
    out: Matrix
    _right: DeviceMatrix | None = None
    _sent: list[Matrix] = field(default_factory=list)

    def begin(self) -> bool:
        device, B = self.engine.kernels_device, self.B
        buffer, steps = self.engine._launches.source("right", B)
        self._right = DeviceMatrix(buffer, B.shape, B.dtype, steps, device)
        return True

    def queue(self, stripe: slice) -> list[Answer]:
        from mtbridge.compute.opencl_conveyor import Answer

        engine, form, out = self.engine, self.form, self.out[stripe]
        if self._right is None:
            raise ValueError("nothing was sent")
        # what is sent is not to change or go before the device has read it
        left = contiguous(self.A[stripe])
        self._sent.append(left)
        target = engine.kernels_device.allocate(out.nbytes)
        limit = engine._full_limit
        engine._launches.product(form, left, self._right, out.dtype, target, limit)
        return [Answer(target, out.shape[1], (0, 0), out)]


def product_fits(
    engine: OpenCLEngine, form: Form, shape: tuple[int, int, int], height: int, size: int
) -> bool:
    """Whether a stripe of so many rows of a product is done in buffers that a device can give."""
    whole = (min(height, shape[0]), *shape[1:])
    return block_sizes(form, whole, size=size, total=size, limit=engine._full_limit) == whole
