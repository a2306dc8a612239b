"""Engines of the two ways to run a form of tensor cores; tests are skipped where no device has it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from mtbridge.compute import devices
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.tensor_cores import families
from mtbridge.errors import DeviceError

WAYS = ("plain", "nvidia")
"""Plain OpenCL C on the processor, and tensor cores."""


@contextmanager
def opened(way: str, capable: Callable[[int], bool], **options: Any) -> Iterator[OpenCLEngine]:
    """Open an engine of one of WAYS, with `options` of `open_opencl` on the processor.

    `capable` says of a compute capability, 10 * major + minor, whether its tensor cores have the form.
    """
    try:
        engine = open_opencl("cpu", **options) if way == "plain" else open_opencl(nvidia_name())
    except DeviceError as error:
        pytest.skip(f"no OpenCL device for the {way} form: {error}")
    with engine:
        capability = engine.kernels_device.capability
        if way == "nvidia" and not capable(capability):
            pytest.skip(f"{engine.device} has compute capability {capability / 10}, not for this form")
        engine.centred_from = 0
        yield engine


@contextmanager
def in_halves(way: str, family: str, **options: Any) -> Iterator[OpenCLEngine]:
    """Open an engine that takes centred float32 columns in halves, whatever the size."""

    def capable(capability: int) -> bool:
        return family in [found.name for found in families(capability)]

    with opened(way, capable, **options) as engine:
        engine.use_halves(engine.kernels_device.capability if way == "nvidia" else 0, family)
        yield engine


def nvidia_name() -> str:
    names = [v.name for v in devices.survey().verdicts if v.ok and "NVIDIA" in v.platform]
    if not names:
        pytest.skip("there is no NVIDIA GPU with OpenCL here")
    return names[0]
