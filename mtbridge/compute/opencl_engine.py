"""The `opencl` engine: products on one OpenCL device, in blocks where its buffers are too small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from mtbridge.compute import devices
from mtbridge.compute.engine import Engine
from mtbridge.compute.forms import WIDE_SUM, Form, packed_form, tiled_form, upper_triangle, whole_grid
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES, Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

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

    def _form(self, X: Matrix) -> Form:
        if X.dtype == np.float64 and not self._device.fp64:
            raise DeviceError(
                f"{self.device} has no float64; use --dtype float32, or --engine numpy for float64."
            )
        return self._forms[X.dtype.name]

    def _product(self, A: Matrix, B: Matrix) -> Matrix:
        return self._product_in_blocks(A, B, A.dtype)

    def _gram(self, X: Matrix, *, wide: bool) -> Matrix:
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
        left, right = contiguous(A), contiguous(B)
        packed_left, depth = self._pack(form, "left", left.T, form.left)
        packed_right, _ = self._pack(form, "right", right, form.right)
        target, out = self._device.result("product", (rows, columns), total)
        kernel = self._device.kernel(
            "multiply", (*form.headers, f"multiply/{form.file}.cl"), bits(form, A.dtype, total)
        )
        grid = whole_grid(rows, columns, (form.rows, form.columns))
        blocks = self._device.constant("blocks", grid)
        sizes = (np.int32(rows), np.int32(columns), np.int32(depth), np.int32(columns))
        self._device.run(
            kernel, (len(grid),), (form.group,), packed_left, packed_right, target, *sizes, blocks
        )
        return self._device.receive(target, out)

    def _gram_block(self, form: Form, X: Matrix, total: np.dtype[Any]) -> Matrix:
        rows, columns = X.shape
        if not rows or not columns:
            return np.zeros((columns, columns), total)
        source = contiguous(X)
        panels, depth = self._pack(form, "right", source, form.right)
        target, out = self._device.result("product", (columns, columns), total)
        defines = {**bits(form, X.dtype, total), "LEFT_PANEL": form.right}
        kernel = self._device.kernel("gram", (*form.headers, f"gram/{form.file}.cl"), defines)
        grid = upper_triangle(columns, (form.rows, form.columns))
        blocks = self._device.constant("triangle", grid)
        sizes = (np.int32(columns), np.int32(depth), np.int32(columns))
        self._device.run(kernel, (len(grid),), (form.group,), panels, target, *sizes, blocks)
        if not form.mirrors:
            self._mirror(target, columns, total)
        return self._device.receive(target, out)

    def _mirror(self, target: Any, columns: int, total: np.dtype[Any]) -> None:
        size = 8 * total.itemsize
        kernel = self._device.kernel("mirror", ("gram/mirror.cl",), {"REAL_BITS": size})
        grid = upper_triangle(columns, (MIRROR_SIDE, MIRROR_SIDE))
        blocks = self._device.constant("mirror", grid)
        local = (MIRROR_SIDE, MIRROR_DOWN)
        self._device.run(kernel, (len(grid), 1), local, target, np.int32(columns), np.int32(columns), blocks)

    def _pack(self, form: Form, slot: str, X: Matrix, panel: int) -> tuple[Any, int]:
        """Pack `X`, (inner, strips), contiguous in either order; return panels and the padded inner size."""
        inner, strips = X.shape
        depth = -(-inner // form.inner) * form.inner
        panels = -(-strips // panel)
        flat = X if X.flags.c_contiguous else X.T
        source = self._device.send(f"{slot} source", flat)
        packed = self._device.buffer(f"{slot} panels", panels * panel * depth * X.itemsize)
        defines = {
            "REAL_BITS": 8 * X.itemsize,
            "PANEL": panel,
            "LANES": form.lanes,
            "INNER_STEP": INNER_STEP,
        }
        kernel = self._device.kernel("pack", ("multiply/pack.cl",), defines)
        strides = (np.int64(X.strides[0] // X.itemsize), np.int64(X.strides[1] // X.itemsize))
        self._device.run(
            kernel,
            (panels, -(-depth // INNER_STEP)),
            (form.lanes, 1),
            source,
            packed,
            np.int32(strips),
            np.int32(inner),
            np.int32(depth),
            *strides,
        )
        return packed, depth


def bits(form: Form, dtype: np.dtype[Any], total: np.dtype[Any]) -> dict[str, int]:
    """The macros of a product of `dtype` summed in `total`."""
    macros = {**form.defines, "REAL_BITS": 8 * dtype.itemsize, "SUM_BITS": 8 * total.itemsize}
    if total != dtype:
        macros["BLOCK_INNER"] = WIDE_SUM
    return macros


def contiguous(X: Matrix) -> Matrix:
    """Return `X` contiguous in C or Fortran order, copied only if it is neither."""
    return X if X.flags.c_contiguous or X.flags.f_contiguous else np.ascontiguousarray(X)


def spans(size: int, step: int) -> Iterator[slice]:
    for start in range(0, size, step):
        yield slice(start, min(start + step, size))
