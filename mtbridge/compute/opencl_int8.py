"""The methods of an engine whose float64 products are taken in digits of 8 bits, where those are as good.

That is for centred columns, whatever they hold, and for large products of dense factors (int8_products.py).
All else goes on as without.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from mtbridge.compute.forms import Form
from mtbridge.compute.int8_mma import CAPABILITIES, built_form
from mtbridge.compute.int8_products import centred_digits, queue_dense
from mtbridge.compute.launches import Launches, Operand, transposed
from mtbridge.compute.nvidia import trusted
from mtbridge.compute.opencl_batch import OpenCLBatches
from mtbridge.compute.opencl_moments import SUM, Centring
from mtbridge.errors import DeviceError

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

LEAST = 1 << 27
"""Products of numbers from which on digits are worth the time to measure and count a factor."""


class DigitLaunches(Launches):
    """Queues products of float64 in digits where they are large and dense, and others as `Launches` does.

    Attributes
    ----------
    digits : the form in digits
    least : products of numbers of a product that is large
    """

    def __init__(self, device: Device, digits: Form, *, least: int = LEAST) -> None:
        super().__init__(device)
        self.digits = digits
        self.least = least

    def product(
        self, form: Form, A: Operand, B: Operand, total: np.dtype[Any], target: Any, limit: int
    ) -> None:
        size = A.shape[0] * A.shape[1] * B.shape[1]
        if not self._in_digits((transposed(A), B), size, target, limit):
            super().product(form, A, B, total, target, limit)

    def gram(
        self, form: Form, X: Operand | Centring, total: np.dtype[Any], target: Any, limit: int, **more: Any
    ) -> None:
        size = X.shape[0] * X.shape[1] ** 2 // 2
        if isinstance(X, Centring) or not self._in_digits((X,), size, target, limit):
            super().gram(form, X, total, target, limit, **more)

    def _in_digits(self, operands: tuple[Operand, ...], size: int, target: Any, limit: int) -> bool:
        if size < self.least or any(X.dtype != SUM for X in operands):
            return False
        return queue_dense(self._device, self, self.digits, operands, target, limit=limit)


class OpenCLDigits(OpenCLBatches):
    """An engine that may take float64 in digits."""

    _digits: Form | None = None

    def use_int8(
        self, capability: int | None, settings: Mapping[str, int] | None = None, *, least: int = LEAST
    ) -> None:
        """Take float64 in digits of 8 bits from now on (int8_mma.py), or with None as before.

        Parameters
        ----------
        capability : that of the device, or 0 for the same in plain OpenCL C, which is there for tests
        settings : macros of kernels/int8.clh, by default those of int8_mma.py
        least : products of numbers from which on a product of dense factors is taken so

        Raises
        ------
        DeviceError
            If the kernels cannot be built; then nothing is taken in digits.
        """
        self._digits, self._launches = None, Launches(self._device)
        if capability is not None:
            form = built_form(self._device, capability, settings)
            self._digits, self._launches = form, DigitLaunches(self._device, form, least=least)

    def _try_digits(self, key: str) -> str:
        """Take float64 in digits on a device that has little of it, if they are right; else say what is not.

        The sentence has no end mark, and is empty where there is nothing to say.
        """
        capability = self._device.capability
        if capability not in CAPABILITIES:
            return ""
        good, fault = trusted(key, capability, family="int8_mma")
        if good:
            try:
                self.use_int8(capability)
            except (DeviceError, MemoryError) as error:
                fault = str(error)
        return fault

    def _centring(self, X: Operand, dtype: np.dtype[Any], *, finite: bool = False) -> Centring | None:
        if dtype == SUM:
            # which may find out that there are digits
            self.form_in_use("float64")
        if dtype == SUM and self._digits is not None:
            found = centred_digits(
                self._device, self._launches, self._digits, X, limit=self._limit, finite=finite
            )
            if found is not None:
                return found
        return super()._centring(X, dtype, finite=finite)
