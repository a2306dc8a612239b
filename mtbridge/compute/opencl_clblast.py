"""CLBlast on the device of an engine, as a peer of our kernels; through its C API, where it is installed.

On Debian and Ubuntu it is the package libclblast1. The arrays go to the device and come back the way they do
for our own kernels, so that only the products differ.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyopencl as cl

from mtbridge.compute.aligned import ALIGNMENT
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl_engine import OpenCLEngine

LIBRARIES = ("libclblast.so.1", "libclblast.so", "libclblast.dylib", "clblast.dll")
ABSENT = "CLBlast is not installed; on Debian and Ubuntu `apt-get install libclblast1` brings it."

# values of the enumerations in clblast_c.h
ROW_MAJOR, UPPER, AS_IT_IS, TRANSPOSED = 101, 121, 111, 112
TYPES: dict[str, tuple[str, Any]] = {"float32": ("S", ctypes.c_float), "float64": ("D", ctypes.c_double)}


@cache
def library() -> ctypes.CDLL:
    """Return CLBlast.

    Raises
    ------
    DeviceError
        If it is not installed.
    """
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise DeviceError(ABSENT)


class Clblast:
    """Products by CLBlast in the context and queue of `engine`, which must stay open.

    Raises
    ------
    DeviceError
        If CLBlast is not installed.
    """

    def __init__(self, engine: OpenCLEngine) -> None:
        self._library = library()
        self._device = engine.kernels_device

    def multiply(self, A: Matrix, B: Matrix) -> Matrix:
        """Return A B for C-ordered `A`, (rows, inner), and `B`, (inner, columns), of one dtype.

        Raises
        ------
        DeviceError
            If CLBlast refuses.
        """
        (rows, inner), columns = A.shape, B.shape[1]
        left, right = self._sent("left source", A), self._sent("right source", B)
        target, out = self._device.result("product", (rows, columns), A.dtype)
        # both as they are; alpha 1, beta 0
        sizes = (AS_IT_IS, AS_IT_IS, *map(ctypes.c_size_t, (rows, columns, inner)))
        self._call("gemm", A.dtype, sizes, (left, inner), (right, columns), target, columns)
        return self._device.receive(target, out)

    def gram(self, X: Matrix) -> Matrix:
        """Return a matrix whose upper triangle is that of X'X, for C-ordered `X`; below it is anything.

        Raises
        ------
        DeviceError
            If CLBlast refuses.
        """
        rows, columns = X.shape
        source = self._sent("right source", X)
        target, out = self._device.result("product", (columns, columns), X.dtype)
        sizes = (UPPER, TRANSPOSED, *map(ctypes.c_size_t, (columns, rows)))
        self._call("syrk", X.dtype, sizes, (source, columns), None, target, columns)
        return self._device.receive(target, out)

    def _sent(self, slot: str, array: Matrix) -> Any:
        """Return a buffer with `array`; copied if vectors of CLBlast's kernels cannot start there."""
        if array.ctypes.data % ALIGNMENT == 0:
            return self._device.send(slot, array)
        target = self._device.buffer(f"{slot} aligned", array.nbytes)
        with self._device.failures_named(f"copying to {self._device.name}"):
            cl.enqueue_copy(self._device.queue, target, array, is_blocking=False)
        return target

    def _call(
        self,
        name: str,
        dtype: np.dtype[Any],
        sizes: tuple[Any, ...],
        left: tuple[Any, int],
        right: tuple[Any, int] | None,
        target: Any,
        steps: int,
    ) -> None:
        """Queue ``target = left right``; each operand is a buffer and the elements between its rows."""
        letter, number = TYPES[dtype.name]
        operands: list[Any] = []
        for buffer, between in (left, right) if right else (left,):
            operands += [ctypes.c_void_p(buffer.int_ptr), ctypes.c_size_t(0), ctypes.c_size_t(between)]
        queue = ctypes.c_void_p(self._device.queue.int_ptr)
        result = (ctypes.c_void_p(target.int_ptr), ctypes.c_size_t(0), ctypes.c_size_t(steps))
        routine = getattr(self._library, f"CLBlast{letter}{name}")
        status = routine(
            ROW_MAJOR, *sizes, number(1), *operands, number(0), *result, ctypes.byref(queue), None
        )
        if status:
            raise DeviceError(f"CLBlast's {letter}{name} on {self._device.name} ended with status {status}.")
