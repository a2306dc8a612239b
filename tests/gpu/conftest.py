"""Engines that take float64 in digits of 8 bits, and float32 in halves, for every test of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from given_digits import Bench, in_digits
from given_engines import WAYS, nvidia_name
from given_split import Open

from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.precision import PRODUCTS
from mtbridge.compute.tensor_cores import families, form_of
from mtbridge.errors import DeviceError


@pytest.fixture(scope="module", params=WAYS)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    with in_digits(request.param) as found:
        yield found


@pytest.fixture(scope="module")
def plain_bench() -> Iterator[Bench]:
    """In plain OpenCL C alone."""
    with in_digits("plain") as found:
        yield found


@pytest.fixture(scope="module")
def processor() -> Iterator[OpenCLEngine]:
    try:
        engine = open_opencl("cpu")
    except DeviceError as error:
        pytest.skip(f"no OpenCL device on a processor: {error}")
    with engine:
        yield engine


@pytest.fixture(scope="module")
def card() -> Iterator[OpenCLEngine]:
    with open_opencl(nvidia_name()) as engine:
        yield engine


@pytest.fixture(params=["plain", "nvidia"])
def asked(request: pytest.FixtureRequest) -> Open:
    """What opens an engine with kernels of a family in a precision: in plain OpenCL C, or on tensor cores."""
    plain = request.param == "plain"
    engine: OpenCLEngine = request.getfixturevalue("processor" if plain else "card")
    capability = 0 if plain else engine.kernels_device.capability

    def opened(family: str, wanted: str) -> OpenCLEngine:
        if not plain and family not in [found.name for found in families(capability)]:
            pytest.skip(f"{engine.device} has compute capability {capability / 10}, not for {family}")
        engine.use_precision(wanted, form_of(family, capability, PRODUCTS[wanted]))
        return engine

    return opened
