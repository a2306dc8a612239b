"""The engines of one device for `mtbridge bench gpu`: what is chosen, and each family of kernels by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtbridge.compute.forms import Form
from mtbridge.compute.nvidia import FIRST_CAPABILITY, trusted
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.precision import PRODUCTS
from mtbridge.compute.tensor_cores import FAMILIES
from mtbridge.errors import DeviceError

if TYPE_CHECKING:
    from mtbridge.bench.gpu_device import ResidentDevice

CHOSEN, PORTABLE = "opencl", "register_tiled"
SMALL_GROUP = 64
"""Items of a group for the portable kernels on a processor: its compiler takes minutes for the large ones."""

DIGITS = "int8_mma"
DENSE = ("gram", "multiply", "covariance")
"""Operations that have kernels in digits of 8 bits, and for the precision that is asked for."""

NEEDS_80 = "it needs an NVIDIA device of compute capability 8.0 or more"
REFUSED = "its check on this driver failed: `mtbridge devices --fresh` tries again"


class Families:
    """The engine as it is, and the portable kernels in their shipped settings, on one device.

    Matrices of any size are centred on the device, so that the same kernels run at every size.
    """

    def __init__(self, device: ResidentDevice, key: str) -> None:
        self.device = device
        self._key = key
        group = SMALL_GROUP if device.kind == "cpu" else device.largest_group
        self._engines = {
            name: OpenCLEngine(device, key=key, vector_bytes=device.vector_bytes, tiled=tiled)
            for name, tiled in ((CHOSEN, 0), (PORTABLE, group))
        }
        self._engines[CHOSEN].take_tuned()
        for engine in self._engines.values():
            engine.centred_from = 0

    @property
    def chosen(self) -> OpenCLEngine:
        """The engine as `open_engine` opens it."""
        return self._engines[CHOSEN]

    def names(self, operation: str, dtype: str) -> tuple[str, ...]:
        """Return the families that have kernels for an operation in one type, the chosen one first."""
        if dtype == "float64":
            return (CHOSEN, PORTABLE, "dmma", *((DIGITS,) if operation in DENSE else ()))
        if operation == "covariance":
            return (CHOSEN, PORTABLE, *(family.name for family in FAMILIES), "single")
        return (CHOSEN, PORTABLE, *(PRODUCTS if operation in DENSE else ()))

    def file(self, operation: str, dtype: str) -> str:
        """Return the name of the kernels that are chosen for an operation."""
        if operation == "covariance":
            return centred_form(self.chosen, dtype).file
        return self.chosen.form_in_use(dtype).file

    def engine(self, name: str, dtype: str) -> OpenCLEngine:
        """Return an engine whose products in `dtype` are those of family `name`.

        Raises
        ------
        DeviceError
            If the device lacks what the family needs, or the type; the sentence has no end mark.
        """
        if dtype not in self.chosen.dtypes:
            raise DeviceError(f"{self.device.name} has no {dtype}")
        if name in self._engines:
            return self._engines[name]
        if name == "dmma":
            return self._dmma()
        self._engines[name] = engine = self._another()
        try:
            if name == DIGITS:
                self._use_digits(engine)
            elif name in PRODUCTS:
                engine.use_precision(name)
            else:
                self._use_halves(engine, name)
        except DeviceError as fault:
            del self._engines[name]
            raise DeviceError(str(fault).removesuffix(".")) from fault
        return engine

    def _another(self) -> OpenCLEngine:
        engine = OpenCLEngine(self.device, key=self._key, vector_bytes=self.device.vector_bytes)
        engine.centred_from = 0
        return engine

    def _use_digits(self, engine: OpenCLEngine) -> None:
        if self.device.capability < FIRST_CAPABILITY:
            raise DeviceError(NEEDS_80)
        if not trusted(self._key, self.device.capability, family=DIGITS)[0]:
            raise DeviceError(REFUSED)
        # tensor cores of float64 are tried first, else they would be taken in place of digits later
        engine.form_in_use("float64")
        engine.use_int8(self.device.capability)

    def _dmma(self) -> OpenCLEngine:
        if self.device.capability < FIRST_CAPABILITY:
            raise DeviceError(NEEDS_80)
        if self.chosen.form_in_use("float64").file != "dmma":
            raise DeviceError(REFUSED)
        return self.chosen

    def _use_halves(self, engine: OpenCLEngine, name: str) -> None:
        (capabilities,) = (family.capabilities for family in FAMILIES if family.name == name)
        if self.device.capability not in capabilities:
            *others, last = (f"{one / 10}" for one in capabilities)
            listed = f"{', '.join(others)} or {last}" if others else last
            raise DeviceError(f"it needs an NVIDIA device of compute capability {listed}")
        if not trusted(self._key, self.device.capability, family=name)[0]:
            raise DeviceError(REFUSED)
        engine.use_halves(self.device.capability, name)


def centred_form(engine: OpenCLEngine, dtype: str) -> Form:
    """Return the form in which `engine` takes products of centred columns of `dtype`."""
    if dtype == "float32" and engine.centred_form is None:
        # what is special is tried with the first matrix
        engine.moments(np.eye(2, dtype=dtype))
    if dtype == "float32" and engine.centred_form is not None:
        return engine.centred_form
    return engine.form_in_use(dtype)
