"""Which kernels in halves a device is given: the fastest family that it has and that is right there.

A family is tried on its device before its first use, in a child process (nvidia.py keeps the verdict); where
it is wrong or cannot be built, the next one is taken, and the portable kernels after the last.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from mtbridge.compute import split_mma, split_wgmma
from mtbridge.compute.finish import finishing
from mtbridge.compute.forms import Form
from mtbridge.compute.nvidia import trusted
from mtbridge.errors import DeviceError

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device


@dataclass(frozen=True, slots=True)
class Family:
    """Kernels for products of float32 in halves.

    Attributes
    ----------
    name : of kernels/gram/<name>.cl
    capabilities : the compute capabilities, 10 * major + minor, of devices that it is for
    form : of a capability, or of 0 in plain OpenCL C, and so many products of halves for one product
    """

    name: str
    capabilities: tuple[int, ...]
    form: Callable[[int, int], Form]


FAMILIES = (
    Family("split_wgmma", split_wgmma.CAPABILITIES, split_wgmma.wgmma_form),
    Family("split_mma", split_mma.CAPABILITIES, split_mma.split_form),
)
"""The fastest one first."""


def families(capability: int) -> tuple[Family, ...]:
    """Return the families that are for devices of `capability`, the fastest one first."""
    return tuple(family for family in FAMILIES if capability in family.capabilities)


def form_of(name: str, capability: int, products: int = 3) -> Form:
    """Return the form of the family `name`."""
    (family,) = (family for family in FAMILIES if family.name == name)
    return family.form(capability, products)


def build(device: Device, form: Form, total: np.dtype[np.float64]) -> None:
    """Build the kernels of X'X of centred columns in halves, summed in `total`.

    Raises
    ------
    DeviceError
        If one cannot be built.
    """
    from mtbridge.compute.launches import macros

    real = np.dtype(np.float32)
    files, defines = (*form.headers, f"gram/{form.file}.cl"), macros(form, real, total)
    device.kernel("gram", files, defines)
    if form.finishes:
        device.kernel("gram", files, {**defines, **finishing(real, summed=False)})


def centred_form(device: Device, key: str) -> tuple[Form | None, dict[str, str]]:
    """Return the form of centred float32 columns on a device, or None; and why faster families are left out.

    Parameters
    ----------
    key : of the device (`Verdict.key`)

    Returns
    -------
    form : of the fastest family that is right, and whose kernel is built by now; its products with masks are
        tried apart (opencl_masks.py)
    faults : by the name of a family, a sentence without an end mark, if it was found out just now
    """
    faults: dict[str, str] = {}
    for family in families(device.capability):
        good, fault = trusted(key, device.capability, family=family.name)
        if good:
            form = family.form(device.capability, 3)
            try:
                build(device, form, np.dtype(np.float64))
            except (DeviceError, MemoryError) as error:
                fault = str(error)
            else:
                masks, masks_fault = trusted(key, device.capability, family=f"{family.name} masks")
                if masks_fault:
                    faults[f"{family.name} masks"] = masks_fault
                return replace(form, masks=masks), faults
        if fault:
            faults[family.name] = fault
    return None, faults
