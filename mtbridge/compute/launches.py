"""What the `opencl` engine queues for one block: pack the operands, take the product, mirror a triangle.

Arrays that are handed over must stay alive until the queue has been waited for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import spans
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.forms import (
    SQUARE,
    WIDE_BLOCK,
    WIDE_SUM,
    WIDE_TILE,
    Form,
    nearby,
    upper_triangle,
    whole_grid,
)
from mtbridge.compute.opencl_direct import Reading, queue_pieces
from mtbridge.compute.opencl_moments import Centring, Uncentred
from mtbridge.compute.opencl_split import queue_halves
from mtbridge.compute.shares import SharedSums
from mtbridge.compute.slices import Sums, slab_depth
from mtbridge.compute.strips import Strips, strip_macros
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.finish import Finish
    from mtbridge.compute.opencl import Device

Operand: TypeAlias = Matrix | DeviceMatrix

INNER_STEP = 128


class Launches:
    """Queues the kernels of products on a device; `limit` is the bytes of the largest buffer."""

    def __init__(self, device: Device) -> None:
        self._device = device

    def product(
        self, form: Form, A: Operand, B: Operand, total: np.dtype[Any], target: Any, limit: int
    ) -> None:
        """Queue the product of `A` and `B`, summed in `total`, into the buffer `target`."""
        (rows, inner), columns = A.shape, B.shape[1]
        shape = (rows, inner, columns)
        if form.halves:
            operands = self.ordinary(form, "left", transposed(A)), self.ordinary(form, "right", B)
            block = form.rows, form.columns
            table = self._table(form, lambda: whole_grid(rows, columns, block), rows, columns)
            queue_halves(self._device, form, operands, table, total, target, limit)
            return
        files = (*form.headers, f"multiply/{form.file}.cl")
        defines = macros(form, A.dtype, total)
        if form.direct:
            readings = self.reading(form, "left", transposed(A)), self.reading(form, "right", B)
            queue_pieces(self._device, form, readings, shape, files, defines, target, limit)
            return
        if not form.squares:
            defines = strip_macros(defines, self._device.local_bytes)
            strips = Strips(files, defines, form, shape, total, target, limit)
            strips.queue(self._device, self.source("left", A), self.source("right", B))
            return
        table = self._table(form, lambda: whole_grid(rows, columns, (form.rows, form.columns)), rows, columns)
        sums = summing(form)("multiply", files, defines, form, shape, *table, total, target, limit)
        left, right = self.source("left", transposed(A)), self.source("right", B)
        depth = slab_depth(form, shape, size=A.itemsize, units=self._device.units)
        for slab in spans(inner, depth):
            lefts, deep = self.pack(form, "left", left, rows, slab, A.itemsize)
            rights, _ = self.pack(form, "right", right, columns, slab, A.itemsize)
            sizes = (np.int32(rows), np.int32(columns), np.int32(deep), np.int32(columns))
            sums.queue(self._device, (lefts, rights), sizes, slab)

    def gram(
        self,
        form: Form,
        X: Operand | Centring,
        total: np.dtype[Any],
        target: Any,
        limit: int,
        *,
        mirrored: bool = True,
        finish: Finish | None = None,
    ) -> None:
        """Queue X'X, both triangles, summed in `total`, into the buffer `target`.

        Unless `mirrored`, the lower triangle may be left out. A form that finishes can be told to make
        covariances of the sums, and keeps in `target` what it has to keep until then.
        """
        inner, columns = X.shape
        if form.halves and not isinstance(X, Centring):
            table = self._table(form, lambda: upper_triangle(columns, (form.rows, form.columns)), columns)
            queue_halves(self._device, form, (self.ordinary(form, "right", X),), table, total, target, limit)
            return
        shape = (columns, inner, columns)
        files = (*form.headers, f"gram/{form.file}.cl")
        defines = macros(form, X.dtype, total)
        if form.direct:
            reading = self.reading(form, "right", X)
            given = (self._device, form, (reading,), shape, files, defines, target, limit)
            queue_pieces(*given, mirrored=mirrored, finish=finish)
            return
        if form.mirrors and not mirrored and finish is None:
            defines["MIRRORED"] = 0
        table = self._table(form, lambda: upper_triangle(columns, (form.rows, form.columns)), columns)
        sums = summing(form)("gram", files, defines, form, shape, *table, total, target, limit)
        if isinstance(sums, SharedSums):
            sums = replace(sums, finish=finish)
        source = X if isinstance(X, Centring) else self.source("right", X)
        depth = slab_depth(form, shape, size=X.itemsize, units=self._device.units)
        for slab in spans(inner, depth):
            if isinstance(source, Centring):
                panels, deep = source.packed(self._device, slab)
            else:
                panels, deep = self.pack(form, "right", source, columns, slab, X.itemsize)
            sizes = (np.int32(columns), np.int32(deep), np.int32(columns))
            sums.queue(self._device, (panels,), sizes, slab)
        if mirrored and form.squares and not form.mirrors:
            self.mirror(form, target, columns, total)

    def mirror(
        self,
        form: Form,
        target: Any,
        columns: int,
        total: np.dtype[Any],
        blocks: tuple[Any, int] | None = None,
    ) -> None:
        """Queue copies of `blocks` of SQUARE of the upper triangle, by default all, onto the lower one."""
        defines = {"REAL_BITS": 8 * total.itemsize, "SIDE": SQUARE, "DOWN": form.squares}
        kernel = self._device.kernel("mirror", ("gram/mirror.cl",), defines)
        table, count = blocks or self.triangle(columns, (SQUARE, SQUARE))
        local = (SQUARE, form.squares)
        self._device.run(kernel, (count, 1), local, target, np.int32(columns), np.int32(columns), table)

    def _table(self, form: Form, blocks: Callable[[], NDArray[np.int32]], *shape: int) -> tuple[Any, int]:
        """The table of the blocks of a product in the order of its form, and how many they are."""
        key = (*shape, (form.rows, form.columns), form.shared)
        return self._device.table(key, lambda: nearby(blocks()) if form.shared else blocks())

    def triangle(self, columns: int, block: tuple[int, int]) -> tuple[Any, int]:
        """The table of the blocks that touch the upper triangle, and how many they are."""
        return self._device.table((columns, block), lambda: upper_triangle(columns, block))

    def ordinary(self, form: Form, slot: str, X: Operand) -> Uncentred:
        """`X`, (inner, strips), as a matrix that is packed by `form` as it lies on the device."""
        (inner, strips), (source, steps) = X.shape, self.source(slot, X)
        return Uncentred(source, (inner, strips), steps, X.dtype, X.dtype, form, slot=slot)

    def reading(self, form: Form, slot: str, X: Operand | Centring) -> Reading:
        """`X`, (inner, strips), as an operand of kernels that read matrices where they lie."""
        if isinstance(X, Centring):
            return Reading(None, (0, 0), form.right, partial(X.packed, self._device), X.itemsize)
        sent, strips, size = self.source(slot, X), X.shape[1], X.itemsize
        return Reading(*sent, form.right, lambda slab: self.pack(form, slot, sent, strips, slab, size), size)

    def source(self, slot: str, X: Operand) -> tuple[Any, tuple[int, int]]:
        """A buffer with `X`, contiguous in either order, and its steps."""
        if isinstance(X, DeviceMatrix):
            row, column = X.steps
            return X.buffer, (row, column)
        sent = self._device.send(f"{slot} source", X if X.flags.c_contiguous else X.T)
        return sent, element_steps(X)

    def pack(
        self,
        form: Form,
        slot: str,
        sent: tuple[Any, tuple[int, int]],
        strips: int,
        slab: slice,
        size: int,
    ) -> tuple[Any, int]:
        """Pack a slab of what `source` gave, (inner, strips); return panels and their padded inner size."""
        source, steps = sent
        panel = form.left if slot == "left" else form.right
        inner = slab.stop - slab.start
        depth = -(-inner // form.inner) * form.inner
        panels = -(-strips // panel)
        packed = self._device.buffer(f"{slot} panels", panels * panel * depth * size)
        defines = {"REAL_BITS": 8 * size, "PANEL": panel}
        if form.squares:
            file, local = "multiply/pack_squares.cl", (SQUARE, form.squares)
            defines |= {"SQUARE": SQUARE, "DOWN": form.squares}
            groups = (panels * panel // SQUARE, -(-depth // SQUARE))
        else:
            file, local = "multiply/pack.cl", (1, 1)
            defines["INNER_STEP"] = INNER_STEP
            groups = (panels, -(-depth // INNER_STEP))
        kernel = self._device.kernel("pack", (file,), defines)
        sizes = (np.int32(strips), np.int32(inner), np.int32(depth), np.int64(steps[0]), np.int64(steps[1]))
        self._device.run(kernel, groups, local, source, packed, *sizes, offset=(0, slab.start))
        return packed, depth


def summing(form: Form) -> type[Sums]:
    """Return what sums up products of `form`."""
    return SharedSums if form.shared else Sums


def macros(form: Form, dtype: np.dtype[Any], total: np.dtype[Any]) -> dict[str, int]:
    """The macros of a product of `dtype` summed in `total`."""
    defines = {**form.defines, "REAL_BITS": 8 * dtype.itemsize, "SUM_BITS": 8 * total.itemsize}
    if total != dtype and form.squares and form.rows <= WIDE_TILE:
        defines |= {"BLOCK_INNER": WIDE_BLOCK, "PART_INNER": WIDE_SUM}
    elif total != dtype:
        defines |= {"BLOCK_INNER": WIDE_SUM, "STRIP_INNER": WIDE_SUM}
    return defines


def contiguous(X: Matrix) -> Matrix:
    """Return `X` contiguous in C or Fortran order, copied only if it is neither."""
    return X if X.flags.c_contiguous or X.flags.f_contiguous else X.copy(order="K")


def transposed(X: Operand) -> Operand:
    return X.transposed if isinstance(X, DeviceMatrix) else X.T


def element_steps(X: Matrix) -> tuple[int, int]:
    """Elements from one row to the next, and from one column to the next, of a contiguous matrix."""
    return (X.shape[1], 1) if X.flags.c_contiguous else (1, X.shape[0])
