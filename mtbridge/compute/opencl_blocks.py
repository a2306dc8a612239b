"""Products of matrices on one OpenCL device, in blocks where its buffers, or its memory, are too small."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

import numpy as np

from mtbridge.compute.blocks import block_sizes, spans
from mtbridge.compute.double_float import gram_in_double_floats, slab_rows
from mtbridge.compute.engine import Engine
from mtbridge.compute.forms import WIDE_SUM, Form
from mtbridge.compute.launches import Launches, Operand, contiguous, macros
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

SMALLEST_LIMIT = 1 << 20
"""Bytes: a device that cannot give buffers of this size has no memory for us; smaller ones do not help."""


class BlockedProducts(Engine):
    """An engine that cuts a product into blocks whose buffers the device can give.

    Attributes
    ----------
    _limit : bytes of the largest buffer; halved when the device runs out of memory
    _full_limit : what it is at first
    """

    _device: Device
    _launches: Launches
    _limit: int
    _full_limit: int

    @abstractmethod
    def _form(self, X: Operand) -> Form:
        """The form of the products of matrices such as `X`."""

    def _gram_without_fp64(self, X: Matrix) -> Matrix:
        """X'X of float32, summed in pairs of floats; on the host where a buffer would be too large."""
        form, columns = self._form(X), X.shape[1]
        slab = slab_rows(form, X.shape, self._limit) if X.size else 0
        with suppress(MemoryError):
            if slab:
                held = contiguous(X)
                with self._settled():
                    source = self._launches.source("right", held)
                    return gram_in_double_floats(
                        self._device,
                        form,
                        X.shape,
                        pack=lambda part: self._launches.pack(
                            form, "right", source, columns, part, X.itemsize
                        ),
                        blocks=self._launches.triangle(columns, (form.rows, form.columns)),
                        defines=macros(form, X.dtype, X.dtype),
                        slab=slab,
                    )
        parts = (self._gram(X[at : at + WIDE_SUM], wide=False) for at in range(0, len(X), WIDE_SUM))
        return sum(parts, np.zeros((columns, columns)))

    def _gram_in_blocks(
        self, X: Matrix, total: np.dtype[Any], out: Matrix | None = None, form: Form | None = None
    ) -> Matrix:
        """X'X, summed in `total`; in `form`, or in that of matrices such as `X`."""
        form = form or self._form(X)
        rows, columns = X.shape
        step, inner, _ = self._block(form, (columns, rows, columns), X.itemsize, total.itemsize, square=True)
        if step >= columns and inner >= rows:
            try:
                return self._gram_block(form, X, total, out)
            except MemoryError:
                if not self._shrink(form, (columns, rows, columns), X.itemsize, total.itemsize):
                    raise
            return self._gram_in_blocks(X, total, out, form)
        C = zeros((columns, columns), total, out)
        for left in spans(columns, step):
            for at in spans(rows, inner):
                C[left, left] += self._gram_in_blocks(X[at, left], total, form=form)
            for right in spans(columns, step):
                if right.start > left.start:
                    C[left, right] = self._product_in_blocks(X[:, left].T, X[:, right], total, form=form)
                    C[right, left] = C[left, right].T
        return C

    def _product_in_blocks(
        self,
        A: Matrix,
        B: Matrix,
        total: np.dtype[Any],
        out: Matrix | None = None,
        form: Form | None = None,
    ) -> Matrix:
        """A B, as `_gram_in_blocks`."""
        form = form or self._form(A)
        whole = (*A.shape, B.shape[1])
        down, deep, across = self._block(form, whole, A.itemsize, total.itemsize)
        if down >= whole[0] and deep >= whole[1] and across >= whole[2]:
            try:
                return self._product_block(form, A, B, total, out)
            except MemoryError:
                if not self._shrink(form, whole, A.itemsize, total.itemsize):
                    raise
            return self._product_in_blocks(A, B, total, out, form)
        C = zeros((whole[0], whole[2]), total, out)
        for rows in spans(whole[0], down):
            for columns in spans(whole[2], across):
                for at in spans(whole[1], deep):
                    C[rows, columns] += self._product_in_blocks(A[rows, at], B[at, columns], total, form=form)
        return C

    def _block(
        self, form: Form, shape: tuple[int, int, int], size: int, total: int, *, square: bool = False
    ) -> tuple[int, int, int]:
        found = block_sizes(form, shape, size=size, total=total, limit=self._limit, square=square)
        if found is None:
            raise DeviceError(
                f"{self.device} allows buffers of {self._limit} bytes only, too few for one tile; "
                "use --engine numpy."
            )
        return found

    def _shrink(self, form: Form, shape: tuple[int, int, int], size: int, total: int) -> bool:
        """Halve the largest buffer until a block of `shape`, too large for the memory left, is cut.

        False if that would take buffers below SMALLEST_LIMIT; later calls then start from the full size.
        """
        # what is kept from larger blocks may be the very memory that is missing
        self._device.release_kept()
        limit = self._limit
        whole = tuple(max(length, 1) for length in shape)
        while block_sizes(form, shape, size=size, total=total, limit=limit) == whole:
            limit //= 2
        if limit < SMALLEST_LIMIT:
            self._limit = self._full_limit
            return False
        self._limit = limit
        return True

    def _product_block(
        self, form: Form, A: Matrix, B: Matrix, total: np.dtype[Any], out: Matrix | None
    ) -> Matrix:
        (rows, inner), columns = A.shape, B.shape[1]
        if not rows or not columns or not inner:
            return zeros((rows, columns), total, out)
        target, out = self._room((rows, columns), total, out)
        # copies, where they are some, must live until the device has read them
        left, right = contiguous(A), contiguous(B)
        with self._settled():
            self._launches.product(form, left, right, total, target, self._limit)
            return self._device.receive(target, out)

    def _gram_block(self, form: Form, X: Matrix, total: np.dtype[Any], out: Matrix | None) -> Matrix:
        rows, columns = X.shape
        if not rows or not columns:
            return zeros((columns, columns), total, out)
        target, out = self._room((columns, columns), total, out)
        # a copy, where it is one, must live until the device has read it
        held = contiguous(X)
        with self._settled():
            self._launches.gram(form, held, total, target, self._limit)
            return self._device.receive(target, out)

    def _room(self, shape: tuple[int, int], total: np.dtype[Any], out: Matrix | None) -> tuple[Any, Matrix]:
        """A buffer for a result, and the array that `receive` fills from it: `out`, or a new one."""
        if out is None:
            return self._device.result("product", shape, total)
        return self._device.over("product", out), out

    @contextmanager
    def _settled(self) -> Iterator[None]:
        """Wait where the block fails or is interrupted: the device may work on arrays about to be freed."""
        try:
            yield
        except BaseException:
            with suppress(DeviceError, MemoryError):
                self._device.finish()
            raise


def zeros(shape: tuple[int, int], dtype: np.dtype[Any], out: Matrix | None) -> Matrix:
    """Return a matrix of zeros: `out`, or a new one."""
    if out is None:
        return np.zeros(shape, dtype)
    out[...] = 0
    return out
