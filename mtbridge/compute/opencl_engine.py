"""The `opencl` engine: products on one OpenCL device, by the settings and kernels that suit it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute import devices, tensor_cores
from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.blocks import block_sizes
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.engine import check_out
from mtbridge.compute.forms import Form, packed_form, tiled_form
from mtbridge.compute.launches import Launches, Operand, contiguous, element_steps, macros
from mtbridge.compute.nvidia import FIRST_CAPABILITY, tensor_core_form, trusted
from mtbridge.compute.opencl_int8 import OpenCLDigits
from mtbridge.compute.opencl_moments import ELEMENTS, SUM
from mtbridge.compute.parameters import Limits
from mtbridge.compute.precision import form_of_precision
from mtbridge.compute.strips import strip_macros
from mtbridge.compute.tuned import AGAIN, Target, store, tuned_for
from mtbridge.errors import DeviceError, InputError
from mtbridge.matrix import DTYPES, Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device


def open_opencl(
    wanted: str | None = None,
    *,
    largest_buffer: int | None = None,
    tiled: int = 0,
    precision: str = "full",
) -> OpenCLEngine:
    """Open the engine on the device that is meant (see `devices.choose`).

    Parameters
    ----------
    largest_buffer : bytes that one buffer may have; by default what the device allows
    tiled : take the GPU kernels, for groups of up to so many items, on a CPU device too
    precision : of products of float32, "full", "split" or "single" (see `open_engine`)

    Raises
    ------
    DeviceError
        If there is no such device, it does not work, or has no kernels for `precision`.
    """
    for _ in range(2):
        verdict = devices.choose(wanted)
        devices.load(verdict)
        from mtbridge.compute.opencl import Device, enumerate_devices

        alike = [found for found in enumerate_devices() if found.key == verdict.key]
        if verdict.twin < len(alike):
            engine = OpenCLEngine(
                Device(alike[verdict.twin]),
                key=verdict.key,
                vector_bytes=verdict.vector_bytes,
                largest_buffer=largest_buffer,
                tiled=tiled,
            )
            engine.take_tuned()
            if precision != "full":
                engine.use_precision(precision)
            return engine
        # a driver was exchanged since the verdict: look again, once
        devices.survey(fresh=True)
    raise DeviceError(f"the OpenCL device {verdict.name} is listed at one time and gone at another.")


class OpenCLEngine(OpenCLDigits):
    """Products by the kernels in kernels/multiply and kernels/gram.

    `tiled` takes the GPU kernels, for groups of up to so many items, on a CPU device too: slow, but it can be
    tested. Matrices of `centred_from` elements or more are centred on the device (opencl_moments.py).
    """

    name = "opencl"

    def __init__(
        self,
        device: Device,
        *,
        key: str = "",
        vector_bytes: int = 0,
        largest_buffer: int | None = None,
        tiled: int = 0,
    ) -> None:
        self.device = device.name
        self._device = device
        self._launches = Launches(device)
        self._full_limit = min(largest_buffer or device.largest_buffer, device.largest_buffer)
        self.centred_from = ELEMENTS
        # halved when the device runs out of memory
        self._limit = self._full_limit
        self._key = key
        self._packed = device.kind == "cpu" and not tiled
        self.limits = Limits(vector_bytes, tiled or device.largest_group, device.local_bytes)
        self._forms = {dtype: self.form(dtype) for dtype in DTYPES}
        # element types with tuned settings whose kernels have not been built yet
        self._unproven: set[str] = set()
        # element types with kernels for tensor cores that have not been tried yet
        fitting = device.fp64 and not tiled and device.capability >= FIRST_CAPABILITY
        self._untried = {"float64"} if fitting else set()
        # the form of centred float32 columns where they have one of their own, and whether it is to be tried
        self.centred_form: Form | None = None
        self._split_untried = fitting and bool(tensor_cores.families(device.capability))
        # the form of ordinary float32 products where it was asked for
        self.product_form: Form | None = None

    @property
    def kernels_device(self) -> Device:
        """The device with its queue and buffers, for a peer that computes in the same context."""
        return self._device

    @property
    def host_threads(self) -> int:
        """Threads of this machine that compute: every unit of a CPU device, one beside any other."""
        return self._device.units if self._device.host_memory else 1

    def close(self) -> None:
        self._device.close()

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The element types in which the device computes."""
        return tuple(dtype for dtype in DTYPES if dtype != "float64" or self._device.fp64)

    def form_in_use(self, dtype: str) -> Form:
        """Return the form of products of `dtype`, with the settings that are in use."""
        if dtype in self._untried:
            self._try_tensor_cores(dtype)
        if dtype in self._unproven:
            self._prove(dtype)
        return self._forms[dtype]

    def form(self, dtype: str, settings: Mapping[str, int] | None = None) -> Form:
        """Return the form of this device with the shipped settings or with these."""
        if self._packed:
            return packed_form(dtype, self.limits.vector_bytes, settings, platform=self._device.platform)
        return tiled_form(dtype, self.limits.largest_group, settings)

    def use(self, dtype: str, settings: Mapping[str, int] | None = None) -> None:
        """Compute products of `dtype` with these settings from now on, or with the shipped ones.

        Raises
        ------
        DeviceError
            If their kernels cannot be built; the settings stay as they were.
        """
        self._use(dtype, self.form(dtype, settings))

    def _use(self, dtype: str, form: Form) -> None:
        defines = macros(form, np.dtype(dtype), np.dtype(dtype))
        strips = defines if form.squares else strip_macros(defines, self._device.local_bytes)
        for name, given in (("multiply", strips), ("gram", defines)):
            self._device.kernel(name, (*form.headers, f"{name}/{form.file}.cl"), given)
        self._forms[dtype] = form
        self._unproven.discard(dtype)
        self._untried.discard(dtype)

    def target(self, dtype: str) -> Target:
        """Return what settings that are measured on this engine are good for."""
        return Target(self._key, self.limits.vector_bytes, self.form(dtype).file, dtype)

    def take_tuned(self) -> None:
        """Take the settings that `mtbridge tune` found for this device, where there are some that fit."""
        notes = {}
        for dtype in DTYPES:
            found, note = tuned_for(self.target(dtype), self.limits)
            if found is not None:
                self._forms[dtype] = self.form(dtype, found.settings)
                self._unproven.add(dtype)
            notes[note] = True
        for note in filter(None, notes):
            print(f"mtbridge: {note}", file=sys.stderr)

    def upload(self, X: Matrix) -> DeviceMatrix:
        """Return a copy of `X` on the device, for `multiply`, `gram` and `download` of this engine."""
        if X.ndim > 2:
            return self._uploaded_batch(X)
        held = contiguous(X)
        flat = held if held.flags.c_contiguous else held.T
        buffer = self._device.uploaded(flat)
        return DeviceMatrix(buffer, X.shape, X.dtype, element_steps(held), self._device)

    def download(self, X: DeviceMatrix, out: Matrix | None = None) -> Matrix:
        """Return an uploaded or computed matrix as an array: a new one, or `out`, which may be pinned."""
        if out is not None:
            check_out(X.shape, X.dtype, out)
        if X.ndim > 2:
            return super().download(self._downloaded_batch(X), out)
        straight = X.steps[1] == 1
        if out is not None and straight:
            return self._device.downloaded(X.buffer, out)
        found = self._device.downloaded(
            X.buffer, aligned_empty(X.shape if straight else X.shape[::-1], X.dtype)
        )
        found = found if straight else found.T
        if out is None:
            return found
        out[...] = found
        return out

    def _pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        return self._device.pinned(shape, dtype)

    def finish(self) -> None:
        """Wait until everything queued on the device is done."""
        self._device.finish()

    def _form(self, X: Operand) -> Form:
        if X.dtype == np.float64 and not self._device.fp64:
            raise DeviceError(
                f"{self.device} has no float64; use --dtype float32, or --engine numpy for float64."
            )
        return self.form_of_products(X.dtype, X.dtype)

    def form_of_products(self, dtype: np.dtype[Any], total: np.dtype[Any]) -> Form:
        """Return the form of products of `dtype` summed in `total`: of centred columns if the two differ."""
        if total != dtype:
            return self._form_of_centred(dtype.name)
        if dtype == np.float32 and self.product_form is not None:
            return self.product_form
        return self.form_in_use(dtype.name)

    def _try_tensor_cores(self, dtype: str) -> None:
        """Take the kernels for tensor cores where they are right and can be built; else nothing changes."""
        self._untried.discard(dtype)
        good, fault = trusted(self._key, self._device.capability)
        if good:
            try:
                self._use(dtype, tensor_core_form(self._device.capability))
            except (DeviceError, MemoryError) as error:
                fault = str(error)
        if fault:
            self._leave_out(f"tensor cores of {self.device}", dtype, fault, "the portable kernels")
        if fault := self._try_digits(self._key):
            self._leave_out(f"int8_mma kernels of {self.device}", dtype, fault, "others")

    def _form_of_centred(self, dtype: str) -> Form:
        """The form of products of centred columns: in halves on tensor cores where those are right."""
        if dtype == "float32" and self._split_untried:
            self._split_untried = False
            self.centred_form, faults = tensor_cores.centred_form(self._device, self._key)
            for family, fault in faults.items():
                instead = f"the {self.centred_form.file if self.centred_form else 'portable'} kernels"
                self._leave_out(f"{family} kernels of {self.device}", "centred float32", fault, instead)
        if dtype == "float32" and self.centred_form is not None:
            return self.centred_form
        return self.form_in_use(dtype)

    def use_halves(self, capability: int | None, family: str = "split_mma") -> None:
        """Take centred float32 columns in halves from now on (tensor_cores.py), or with None as all others.

        `capability` is that of the device, or 0 for the same in plain OpenCL C, which is there for tests.

        Raises
        ------
        DeviceError
            If their kernel cannot be built; then they are taken as all others.
        """
        self._split_untried = False
        self.centred_form = None
        if capability is not None:
            form = tensor_cores.form_of(family, capability)
            tensor_cores.build(self._device, form, SUM)
            self.centred_form = form

    def use_precision(self, precision: str, form: Form | None = None) -> None:
        """Take products of float32 in "split" or "single" precision from now on (precision.py).

        Raises
        ------
        DeviceError
            If the device has no kernels for it, or none that are right; `form` is taken unasked, for tests.
        """
        chosen = form or form_of_precision(self._device, self._key, precision)
        self.product_form = chosen
        if precision == "single":
            self.centred_form, self._split_untried = chosen, False
        self.device = f"{self._device.name} ({precision} float32)"

    def _leave_out(self, what: str, products: str, fault: str, instead: str) -> None:
        print(
            f"mtbridge: the {what} are left out of {products} products: {fault}; {instead} are used, and "
            "`mtbridge devices --fresh` tries again.",
            file=sys.stderr,
        )

    def _prove(self, dtype: str) -> None:
        """Build the kernels with their tuned settings; take the shipped ones where that fails."""
        self._unproven.discard(dtype)
        try:
            self.use(dtype, self._forms[dtype].defines)
        except (DeviceError, MemoryError) as error:
            self._forms[dtype] = self.form(dtype)
            print(
                f"mtbridge: the tuned {dtype} settings in {store()} are ignored: {error}; {AGAIN}.",
                file=sys.stderr,
            )

    def _product(self, A: Operand, B: Operand) -> Any:
        if isinstance(A, DeviceMatrix) or isinstance(B, DeviceMatrix):
            # an array beside an uploaded matrix is copied: its owner may change it before it has been read
            A, B = (X if isinstance(X, DeviceMatrix) else self.upload(X) for X in (A, B))
            shape = (A.shape[0], B.shape[1])
            self._check_resident((shape[0], A.shape[1], shape[1]), A, B)
            if 0 in (*shape, A.shape[1]):
                return self.upload(np.zeros(shape, A.dtype))
            target = self._device.allocate(shape[0] * shape[1] * A.itemsize)
            self._launches.product(self._form(A), A, B, A.dtype, target, self._limit)
            return DeviceMatrix(target, shape, A.dtype, (shape[1], 1), self._device)
        return self._product_in_blocks(A, B, A.dtype)

    def _gram(self, X: Operand, *, wide: bool) -> Any:
        if isinstance(X, DeviceMatrix):
            columns = X.shape[1]
            self._check_resident((columns, X.shape[0], columns), X)
            if 0 in X.shape:
                return self.upload(np.zeros((columns, columns), X.dtype))
            target = self._device.allocate(columns * columns * X.itemsize)
            self._launches.gram(self._form(X), X, X.dtype, target, self._limit)
            return DeviceMatrix(target, (columns, columns), X.dtype, (columns, 1), self._device)
        total = np.dtype(np.float64) if wide else X.dtype
        if total != X.dtype and not self._device.fp64:
            return self._gram_without_fp64(X)
        return self._gram_in_blocks(X, total)

    def _product_into(self, A: Operand, B: Operand, out: Matrix) -> Matrix:
        if A.ndim > 2 or isinstance(A, DeviceMatrix) or isinstance(B, DeviceMatrix):
            return super()._product_into(A, B, out)  # type: ignore[arg-type]
        return self._product_in_blocks(A, B, A.dtype, out)

    def _gram_into(self, X: Operand, out: Matrix) -> Matrix:
        if X.ndim > 2 or isinstance(X, DeviceMatrix):
            return super()._gram_into(X, out)  # type: ignore[arg-type]
        return self._gram_in_blocks(X, X.dtype, out)

    def _check_owner(self, X: DeviceMatrix) -> None:
        if X.device is not self._device:
            raise InputError(f"{X!r} was uploaded to another engine; upload it to this one.")

    def _check_resident(self, shape: tuple[int, int, int], *operands: DeviceMatrix) -> None:
        """Refuse matrices of another engine, and products whose buffers would be too large."""
        for X in operands:
            self._check_owner(X)
        size = operands[0].itemsize
        whole = tuple(max(length, 1) for length in shape)
        if block_sizes(self._form(operands[0]), shape, size=size, total=size, limit=self._limit) != whole:
            raise DeviceError(
                f"a product of {operands!r} needs more than the {self._limit} bytes of a buffer of "
                f"{self.device}; download the matrices, and it is done in blocks."
            )
