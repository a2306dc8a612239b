"""The `opencl` engine: products on one OpenCL device, in blocks where its buffers are too small."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mtbridge.compute import devices
from mtbridge.compute.blocks import block_sizes, spans
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.engine import Engine
from mtbridge.compute.forms import SQUARE, WIDE_SUM, Form, packed_form, tiled_form, upper_triangle, whole_grid
from mtbridge.errors import DeviceError, InputError
from mtbridge.matrix import DTYPES, Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

Operand: TypeAlias = Matrix | DeviceMatrix

INNER_STEP = 128


def open_opencl(
    wanted: str | None = None, *, largest_buffer: int | None = None, tiled: int = 0
) -> OpenCLEngine:
    """Open the engine on the device that is meant (see `devices.choose`).

    Parameters
    ----------
    largest_buffer : bytes that one buffer may have; by default what the device allows
    tiled : take the GPU kernels, for groups of up to so many items, on a CPU device too

    Raises
    ------
    DeviceError
        If there is no such device, or it does not work.
    """
    for _ in range(2):
        verdict = devices.choose(wanted)
        devices.load(verdict)
        from mtbridge.compute.opencl import Device, enumerate_devices

        for found in enumerate_devices():
            if found.key == verdict.key:
                return OpenCLEngine(
                    Device(found),
                    vector_bytes=verdict.vector_bytes,
                    largest_buffer=largest_buffer,
                    tiled=tiled,
                )
        # a driver was exchanged since the verdict: look again, once
        devices.survey(fresh=True)
    raise DeviceError(f"the OpenCL device {verdict.name} is listed at one time and gone at another.")


class OpenCLEngine(Engine):
    """Products by the kernels in kernels/multiply and kernels/gram.

    `tiled` takes the GPU kernels, for groups of up to so many items, on a CPU device too: slow, but it can be
    tested.
    """

    name = "opencl"

    def __init__(
        self,
        device: Device,
        *,
        vector_bytes: int = 0,
        largest_buffer: int | None = None,
        tiled: int = 0,
    ) -> None:
        self.device = device.name
        self._device = device
        self._limit = min(largest_buffer or device.largest_buffer, device.largest_buffer)
        self._forms = {
            dtype: packed_form(dtype, vector_bytes)
            if device.kind == "cpu" and not tiled
            else tiled_form(dtype, tiled or device.largest_group)
            for dtype in DTYPES
        }

    def close(self) -> None:
        self._device.close()

    def upload(self, X: Matrix) -> DeviceMatrix:
        """Return a copy of `X` on the device, for `multiply`, `gram` and `download` of this engine."""
        held = contiguous(X)
        flat = held if held.flags.c_contiguous else held.T
        buffer = self._device.uploaded(flat)
        return DeviceMatrix(buffer, X.shape, X.dtype, element_steps(held), self._device)

    def download(self, X: DeviceMatrix) -> Matrix:
        """Return an uploaded or computed matrix as an array."""
        rows, columns = X.shape
        if X.steps[1] == 1:
            return self._device.downloaded(X.buffer, (rows, columns), X.dtype)
        return self._device.downloaded(X.buffer, (columns, rows), X.dtype).T

    def finish(self) -> None:
        """Wait until everything queued on the device is done."""
        self._device.finish()

    def _form(self, X: Operand) -> Form:
        if X.dtype == np.float64 and not self._device.fp64:
            raise DeviceError(
                f"{self.device} has no float64; use --dtype float32, or --engine numpy for float64."
            )
        return self._forms[X.dtype.name]

    def _product(self, A: Operand, B: Operand) -> Any:
        if isinstance(A, DeviceMatrix) or isinstance(B, DeviceMatrix):
            # an array beside an uploaded matrix is copied: its owner may change it before it has been read
            A, B = (X if isinstance(X, DeviceMatrix) else self.upload(X) for X in (A, B))
            shape = (A.shape[0], B.shape[1])
            self._check_resident((shape[0], A.shape[1], shape[1]), A, B)
            if 0 in (*shape, A.shape[1]):
                return self.upload(np.zeros(shape, A.dtype))
            target = self._device.allocate(shape[0] * shape[1] * A.itemsize)
            self._queue_product(self._form(A), A, B, A.dtype, target)
            return DeviceMatrix(target, shape, A.dtype, (shape[1], 1), self._device)
        return self._product_in_blocks(A, B, A.dtype)

    def _gram(self, X: Operand, *, wide: bool) -> Any:
        if isinstance(X, DeviceMatrix):
            columns = X.shape[1]
            self._check_resident((columns, X.shape[0], columns), X)
            if 0 in X.shape:
                return self.upload(np.zeros((columns, columns), X.dtype))
            target = self._device.allocate(columns * columns * X.itemsize)
            self._queue_gram(self._form(X), X, X.dtype, target)
            return DeviceMatrix(target, (columns, columns), X.dtype, (columns, 1), self._device)
        total = np.dtype(np.float64) if wide else X.dtype
        if total != X.dtype and not self._device.fp64:
            parts = (self._gram(X[at : at + WIDE_SUM], wide=False) for at in range(0, len(X), WIDE_SUM))
            return sum(parts, np.zeros((X.shape[1], X.shape[1])))
        form = self._form(X)
        rows, columns = X.shape
        step, inner, _ = self._block(form, (columns, rows, columns), X.itemsize, total.itemsize, square=True)
        if step >= columns and inner >= rows:
            return self._gram_block(form, X, total)
        C = np.zeros((columns, columns), total)
        for left in spans(columns, step):
            for at in spans(rows, inner):
                C[left, left] += self._gram_block(form, X[at, left], total)
            for right in spans(columns, step):
                if right.start > left.start:
                    C[left, right] = self._product_in_blocks(X[:, left].T, X[:, right], total)
                    C[right, left] = C[left, right].T
        return C

    def _product_in_blocks(self, A: Matrix, B: Matrix, total: np.dtype[Any]) -> Matrix:
        form = self._form(A)
        whole = (*A.shape, B.shape[1])
        down, deep, across = self._block(form, whole, A.itemsize, total.itemsize)
        if down >= whole[0] and deep >= whole[1] and across >= whole[2]:
            return self._product_block(form, A, B, total)
        C = np.zeros((whole[0], whole[2]), total)
        for rows in spans(whole[0], down):
            for columns in spans(whole[2], across):
                for at in spans(whole[1], deep):
                    C[rows, columns] += self._product_block(form, A[rows, at], B[at, columns], total)
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

    def _check_resident(self, shape: tuple[int, int, int], *operands: DeviceMatrix) -> None:
        """Refuse matrices of another engine, and products whose buffers would be too large."""
        for X in operands:
            if X.device is not self._device:
                raise InputError(f"{X!r} was uploaded to another engine; upload it to this one.")
        size = operands[0].itemsize
        whole = tuple(max(length, 1) for length in shape)
        if block_sizes(self._form(operands[0]), shape, size=size, total=size, limit=self._limit) != whole:
            raise DeviceError(
                f"a product of {operands!r} needs more than the {self._limit} bytes of a buffer of "
                f"{self.device}; download the matrices, and it is done in blocks."
            )

    def _product_block(self, form: Form, A: Matrix, B: Matrix, total: np.dtype[Any]) -> Matrix:
        (rows, inner), columns = A.shape, B.shape[1]
        if not rows or not columns or not inner:
            return np.zeros((rows, columns), total)
        target, out = self._device.result("product", (rows, columns), total)
        # copies, where they are some, must live until the device has read them
        left, right = contiguous(A), contiguous(B)
        with self._settled():
            self._queue_product(form, left, right, total, target)
            return self._device.receive(target, out)

    def _gram_block(self, form: Form, X: Matrix, total: np.dtype[Any]) -> Matrix:
        rows, columns = X.shape
        if not rows or not columns:
            return np.zeros((columns, columns), total)
        target, out = self._device.result("product", (columns, columns), total)
        # a copy, where it is one, must live until the device has read it
        held = contiguous(X)
        with self._settled():
            self._queue_gram(form, held, total, target)
            return self._device.receive(target, out)

    @contextmanager
    def _settled(self) -> Iterator[None]:
        """Wait where the block fails or is interrupted: the device may work on arrays about to be freed."""
        try:
            yield
        except BaseException:
            with suppress(DeviceError, MemoryError):
                self._device.finish()
            raise

    def _queue_product(self, form: Form, A: Operand, B: Operand, total: np.dtype[Any], target: Any) -> None:
        rows, columns = A.shape[0], B.shape[1]
        left, depth = self._pack(form, "left", transposed(A), form.left)
        right, _ = self._pack(form, "right", B, form.right)
        files = (*form.headers, f"multiply/{form.file}.cl")
        kernel = self._device.kernel("multiply", files, macros(form, A.dtype, total))
        block = (form.rows, form.columns)
        blocks, count = self._device.table((rows, columns, block), lambda: whole_grid(rows, columns, block))
        sizes = (np.int32(rows), np.int32(columns), np.int32(depth), np.int32(columns))
        self._device.run(kernel, (count,), (form.group,), left, right, target, *sizes, blocks)

    def _queue_gram(self, form: Form, X: Operand, total: np.dtype[Any], target: Any) -> None:
        columns = X.shape[1]
        panels, depth = self._pack(form, "right", X, form.right)
        defines = {**macros(form, X.dtype, total), "LEFT_PANEL": form.right}
        kernel = self._device.kernel("gram", (*form.headers, f"gram/{form.file}.cl"), defines)
        blocks, count = self._triangle(columns, (form.rows, form.columns))
        sizes = (np.int32(columns), np.int32(depth), np.int32(columns))
        self._device.run(kernel, (count,), (form.group,), panels, target, *sizes, blocks)
        if form.squares:
            self._mirror(form, target, columns, total)

    def _mirror(self, form: Form, target: Any, columns: int, total: np.dtype[Any]) -> None:
        defines = {"REAL_BITS": 8 * total.itemsize, "SIDE": SQUARE, "DOWN": form.squares}
        kernel = self._device.kernel("mirror", ("gram/mirror.cl",), defines)
        blocks, count = self._triangle(columns, (SQUARE, SQUARE))
        local = (SQUARE, form.squares)
        self._device.run(kernel, (count, 1), local, target, np.int32(columns), np.int32(columns), blocks)

    def _triangle(self, columns: int, block: tuple[int, int]) -> tuple[Any, int]:
        return self._device.table((columns, block), lambda: upper_triangle(columns, block))

    def _pack(self, form: Form, slot: str, X: Operand, panel: int) -> tuple[Any, int]:
        """Pack `X`, (inner, strips), contiguous in either order; return panels and the padded inner size."""
        inner, strips = X.shape
        depth = -(-inner // form.inner) * form.inner
        panels = -(-strips // panel)
        if isinstance(X, DeviceMatrix):
            source, steps = X.buffer, X.steps
        else:
            source = self._device.send(f"{slot} source", X if X.flags.c_contiguous else X.T)
            steps = element_steps(X)
        packed = self._device.buffer(f"{slot} panels", panels * panel * depth * X.itemsize)
        defines = {"REAL_BITS": 8 * X.itemsize, "PANEL": panel}
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
        self._device.run(kernel, groups, local, source, packed, *sizes)
        return packed, depth


def macros(form: Form, dtype: np.dtype[Any], total: np.dtype[Any]) -> dict[str, int]:
    """The macros of a product of `dtype` summed in `total`."""
    defines = {**form.defines, "REAL_BITS": 8 * dtype.itemsize, "SUM_BITS": 8 * total.itemsize}
    if total != dtype:
        defines["BLOCK_INNER"] = WIDE_SUM
    return defines


def contiguous(X: Matrix) -> Matrix:
    """Return `X` contiguous in C or Fortran order, copied only if it is neither."""
    return X if X.flags.c_contiguous or X.flags.f_contiguous else np.ascontiguousarray(X)


def transposed(X: Operand) -> Operand:
    return X.transposed if isinstance(X, DeviceMatrix) else X.T


def element_steps(X: Matrix) -> tuple[int, int]:
    """Elements from one row to the next, and from one column to the next, of a contiguous matrix."""
    return (X.shape[1], 1) if X.flags.c_contiguous else (1, X.shape[0])
