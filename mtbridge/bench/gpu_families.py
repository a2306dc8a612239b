"""The engines of one device for `mtbridge bench gpu`: what is chosen, and each family of kernels by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtbridge.compute.forms import Form
from mtbridge.compute.nvidia import FIRST_CAPABILITY
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.split_mma import CAPABILITIES
from mtbridge.errors import DeviceError

if TYPE_CHECKING:
    from mtbridge.bench.gpu_device import ResidentDevice

CHOSEN, PORTABLE = "opencl", "register_tiled"
SMALL_GROUP = 64
"""Items of a group for the portable kernels on a processor: its compiler takes minutes for the large ones."""

REFUSED = "its check on this driver failed: `mtbridge devices --fresh` tries again"


class Families:
    """The engine as it is, and the portable kernels in their shipped settings, on one device.

    Matrices of any size are centred on the device, so that the same kernels run at every size.
    """

    def __init__(self, device: ResidentDevice, key: str) -> None:
        self.device = device
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
        special = ("dmma",) if dtype == "float64" else ("split_mma",) if operation == "covariance" else ()
        return (CHOSEN, PORTABLE, *special)

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
        capability = self.device.capability
        if name == "dmma":
            if capability < FIRST_CAPABILITY:
                raise DeviceError("it needs an NVIDIA device of compute capability 8.0 or more")
            if self.chosen.form_in_use("float64").file != name:
                raise DeviceError(REFUSED)
        else:
            if capability not in CAPABILITIES:
                *others, last = (f"{one / 10}" for one in CAPABILITIES)
                listed = f"{', '.join(others)} or {last}"
                raise DeviceError(f"it needs an NVIDIA device of compute capability {listed}")
            if centred_form(self.chosen, "float32").file != name:
                raise DeviceError(REFUSED)
        return self.chosen


def centred_form(engine: OpenCLEngine, dtype: str) -> Form:
    """Return the form in which `engine` takes products of centred columns of `dtype`."""
    if dtype == "float32" and engine.centred_form is None:
        # what is special is tried with the first matrix
        engine.moments(np.eye(2, dtype=dtype))
    if dtype == "float32" and engine.centred_form is not None:
        return engine.centred_form
    return engine.form_in_use(dtype)
