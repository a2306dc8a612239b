"""The `opencl` engine: products on one OpenCL device, in blocks where its buffers are too small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from mtbridge.compute import devices
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.engine import Engine
from mtbridge.compute.forms import WIDE_SUM, Form, packed_form, tiled_form, upper_triangle, whole_grid
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES, Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

Operand: TypeAlias = Matrix | DeviceMatrix

INNER_STEP = 128
MIRROR_SIDE, MIRROR_DOWN = 32, 8
# On a device without float64, float32 products are summed over this many rows, then in float64 on the host.
ROWS_OF_A_SUM = 256


def open_opencl(wanted: str | None = None, *, largest_buffer: int | None = None) -> OpenCLEngine:
    """Open the engine on the device that is meant (see `devices.choose`).

    Parameters
    ----------
    largest_buffer : bytes that one buffer may have; by default what the device allows

    Raises
    ------
    DeviceError
        If there is no such device, or it does not work.
    """
    verdict = devices.choose(wanted)
    devices.load(verdict)
    from mtbridge.compute.opencl import Device, enumerate_devices

    for found in enumerate_devices():
        if found.key == verdict.key:
            return OpenCLEngine(
                Device(found), vector_bytes=verdict.vector_bytes, largest_buffer=largest_buffer
            )
    # a driver was exchanged since the verdict: look again, once
    devices.survey(fresh=True)
    raise DeviceError(f"the OpenCL device {verdict.name} is gone since it was last seen; try again.")


class OpenCLEngine(Engine):
    """Products by the kernels in kernels/multiply and kernels/gram.

    `tiled` takes the GPU kernels on a CPU device too, where they are slow but can be tested.
    """

    name = "opencl"

    def __init__(
        self,
        device: Device,
        *,
        vector_bytes: int = 0,
        largest_buffer: int | None = None,
        tiled: bool = False,
    ) -> None:
        self.device = device.name
        self._device = device
        self._limit = min(largest_buffer or device.largest_buffer, device.largest_buffer)
        self._forms = {
            dtype: packed_form(dtype, vector_bytes)
            if device.kind == "cpu" and not tiled
            else tiled_form(dtype, device.largest_group)
            for dtype in DTYPES
        }

    def close(self) -> None:
        self._device.close()

    def upload(self, X: Matrix) -> DeviceMatrix:
        """Return a copy of `X` on the device, for `multiply`, `gram` and `download` of this engine."""
        held = contiguous(X)
        flat = held if held.flags.c_contiguous else held.T
        return DeviceMatrix(self._device.uploaded(flat), X.shape, X.dtype, element_steps(held))

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
            shape = (A.shape[0], B.shape[1])
            target = self._device.allocate(shape[0] * shape[1] * A.itemsize)
            self._queue_product(self._form(A), A, B, A.dtype, target)
            return DeviceMatrix(target, shape, A.dtype, (shape[1], 1))
        return self._product_in_blocks(A, B, A.dtype)

    def _gram(self, X: Operand, *, wide: bool) -> Any:
        if isinstance(X, DeviceMatrix):
            columns = X.shape[1]
            target = self._device.allocate(columns * columns * X.itemsize)
            self._queue_gram(self._form(X), X, X.dtype, target)
            return DeviceMatrix(target, (columns, columns), X.dtype, (columns, 1))
        total = np.dtype(np.float64) if wide else X.dtype
        if total != X.dtype and not self._device.fp64:
            parts = (
                self._gram(X[at : at + ROWS_OF_A_SUM], wide=False) for at in range(0, len(X), ROWS_OF_A_SUM)
            )
            return sum(parts, np.zeros((X.shape[1], X.shape[1])))
        form = self._form(X)
        rows, columns = X.shape
        step, inner = self._block_sizes(form, columns, columns, rows, X.itemsize, total.itemsize, square=True)
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
        (rows, inner), columns = A.shape, B.shape[1]
        step, depth = self._block_sizes(form, rows, columns, inner, A.itemsize, total.itemsize, square=False)
        if step >= max(rows, columns) and depth >= inner:
            return self._product_block(form, A, B, total)
        C = np.zeros((rows, columns), total)
        for down in spans(rows, step):
            for across in spans(columns, step):
                for at in spans(inner, depth):
                    C[down, across] += self._product_block(form, A[down, at], B[at, across], total)
        return C

    def _block_sizes(
        self, form: Form, rows: int, columns: int, inner: int, size: int, total: int, *, square: bool
    ) -> tuple[int, int]:
        """Rows or columns of the result, and inner indices, whose buffers all fit the largest buffer."""
        panel = max(form.left, form.right)
        # blocks of a triangle start with a panel, so that the two sides of the diagonal meet
        unit = form.rows * form.columns if square else panel
        step, depth = max(rows, columns, 1), max(inner, 1)
        while True:
            strips = -(-step // panel) * panel
            operand = strips * (-(-depth // form.inner) * form.inner) * size
            answer = step * step * total
            if max(operand, answer) <= self._limit:
                return step, depth
            if operand >= answer and depth > 1:
                depth = max(depth // 2, 1)
            elif step > 1:
                step = max(min(step // 2, max(step // 2 // unit * unit, 1) if step > unit else step // 2), 1)
            else:
                raise DeviceError(
                    f"{self.device} allows buffers of {self._limit} bytes only, too few for one tile; "
                    "use --engine numpy."
                )

    def _product_block(self, form: Form, A: Matrix, B: Matrix, total: np.dtype[Any]) -> Matrix:
        (rows, inner), columns = A.shape, B.shape[1]
        if not rows or not columns or not inner:
            return np.zeros((rows, columns), total)
        target, out = self._device.result("product", (rows, columns), total)
        self._queue_product(form, contiguous(A), contiguous(B), total, target)
        return self._device.receive(target, out)

    def _gram_block(self, form: Form, X: Matrix, total: np.dtype[Any]) -> Matrix:
        rows, columns = X.shape
        if not rows or not columns:
            return np.zeros((columns, columns), total)
        target, out = self._device.result("product", (columns, columns), total)
        self._queue_gram(form, contiguous(X), total, target)
        return self._device.receive(target, out)

    def _queue_product(self, form: Form, A: Operand, B: Operand, total: np.dtype[Any], target: Any) -> None:
        rows, columns = A.shape[0], B.shape[1]
        left, depth = self._pack(form, "left", transposed(A), form.left)
        right, _ = self._pack(form, "right", B, form.right)
        files = (*form.headers, f"multiply/{form.file}.cl")
        kernel = self._device.kernel("multiply", files, macros(form, A.dtype, total))
        grid = whole_grid(rows, columns, (form.rows, form.columns))
        blocks = self._device.constant("blocks", grid)
        sizes = (np.int32(rows), np.int32(columns), np.int32(depth), np.int32(columns))
        self._device.run(kernel, (len(grid),), (form.group,), left, right, target, *sizes, blocks)

    def _queue_gram(self, form: Form, X: Operand, total: np.dtype[Any], target: Any) -> None:
        columns = X.shape[1]
        panels, depth = self._pack(form, "right", X, form.right)
        defines = {**macros(form, X.dtype, total), "LEFT_PANEL": form.right}
        kernel = self._device.kernel("gram", (*form.headers, f"gram/{form.file}.cl"), defines)
        grid = upper_triangle(columns, (form.rows, form.columns))
        blocks = self._device.constant("triangle", grid)
        sizes = (np.int32(columns), np.int32(depth), np.int32(columns))
        self._device.run(kernel, (len(grid),), (form.group,), panels, target, *sizes, blocks)
        if not form.mirrors:
            self._mirror(target, columns, total)

    def _mirror(self, target: Any, columns: int, total: np.dtype[Any]) -> None:
        size = 8 * total.itemsize
        kernel = self._device.kernel("mirror", ("gram/mirror.cl",), {"REAL_BITS": size})
        grid = upper_triangle(columns, (MIRROR_SIDE, MIRROR_SIDE))
        blocks = self._device.constant("mirror", grid)
        local = (MIRROR_SIDE, MIRROR_DOWN)
        self._device.run(kernel, (len(grid), 1), local, target, np.int32(columns), np.int32(columns), blocks)

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
        defines = {
            "REAL_BITS": 8 * X.itemsize,
            "PANEL": panel,
            "LANES": form.lanes,
            "INNER_STEP": INNER_STEP,
        }
        kernel = self._device.kernel("pack", ("multiply/pack.cl",), defines)
        sizes = (np.int32(strips), np.int32(inner), np.int32(depth), np.int64(steps[0]), np.int64(steps[1]))
        groups = (panels, -(-depth // INNER_STEP))
        self._device.run(kernel, groups, (form.lanes, 1), source, packed, *sizes)
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


def spans(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))
