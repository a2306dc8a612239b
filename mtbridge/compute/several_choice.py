"""What of the work of several devices they share, and what the first of them does alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbridge.compute.engine import Engine
from mtbridge.compute.forms import Form
from mtbridge.compute.launches import Operand
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.opencl_moments import SUM
from mtbridge.compute.several_devices import Member
from mtbridge.compute.several_stripes import seconds, stripes_of_product
from mtbridge.compute.several_work import product_fits, triangle_fits


class Choice(Engine):
    """An engine on several devices that knows which of them do a piece of work.

    Attributes
    ----------
    first : the engine that does alone what is not shared
    _members : the devices
    _least : share whatever has so many rows or columns in its answer; by default what is done sooner so
    """

    first: OpenCLEngine
    _members: list[Member]
    _least: int | None
    _used: Engine
    _why: str

    @property
    def used(self) -> Engine:
        """This engine where the last call was shared, else the first device's."""
        return self._used

    @property
    def why(self) -> str:
        """A sentence about who did the last call, empty before the first."""
        return self._why

    @property
    def dtypes(self) -> tuple[str, ...]:
        return self.first.dtypes

    def _alone(self, what: str) -> OpenCLEngine:
        self._used = self.first
        self._why = f"opencl did {what} on one device: it is too small, or of a kind that is not shared"
        return self.first

    def _shares_product(self, A: Operand, B: Operand) -> bool:
        (rows, inner), columns = A.shape[-2:], B.shape[-1]
        form = self._form(A.dtype, A.dtype)
        if form is None or not rows * inner * columns:
            return False
        height = stripes_of_product(rows, form.rows)[0].stop
        if not product_fits(self.first, form, (rows, inner, columns), height, A.itemsize):
            return False
        if self._least is not None:
            return max(rows, columns) >= self._least
        taken = seconds(
            (rows, inner, columns),
            size=A.itemsize,
            total=A.itemsize,
            units=self.first.kernels_device.units,
            triangle=False,
            halves=bool(form.halves),
        )
        return height < rows and taken.shared

    def _shares_moments(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], answer: np.dtype[Any] = SUM
    ) -> bool:
        return self._shares_gram(shape, dtype, SUM, answer)

    def _shares_gram(
        self,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        total: np.dtype[Any],
        answer: np.dtype[Any] | None = None,
        *,
        there: bool = False,
    ) -> bool:
        """Whether X'X of (rows, columns) is shared, as it lies on the host, or on the devices with `there`.

        `answer` is what is brought where that is not `total`.
        """
        rows, columns = shape
        form = self._form(dtype, total)
        if form is None or not rows * columns or (form.halves and total == np.float32):
            return False
        if not triangle_fits(self.first, form, (rows, columns), dtype.itemsize, total.itemsize):
            return False
        if self._least is not None:
            return columns >= self._least
        size = (answer or total).itemsize
        taken = seconds(
            (columns, rows, columns),
            size=dtype.itemsize,
            total=size,
            units=self.first.kernels_device.units,
            triangle=True,
            halves=bool(form.halves),
        )
        return taken.shared_there if there else taken.shared

    def _form(self, dtype: np.dtype[Any], total: np.dtype[Any]) -> Form | None:
        """The form of products that can be shared, tried here so that other threads find the verdict."""
        # a device without float64 adds up whole matrices only in pairs of floats, and refuses others itself
        if not {dtype.name, total.name} <= set(self.dtypes):
            return None
        forms = [one.engine.form_of_products(dtype, total) for one in self._members]
        # on some devices float64 is taken in digits of 8 bits, in launches of another kind
        in_digits = dtype == SUM and self.first._digits is not None
        return forms[0] if not in_digits and all(form == forms[0] for form in forms) else None
