"""Fixtures that every test may ask for: engines on the device of this machine, and the shared files.

XDG_CACHE_HOME is left alone, so kernels are built once a machine and not once a test.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from mtbridge.compute import Engine, devices, open_engine
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.errors import DeviceError

SHARED = Path(__file__).resolve().parents[1].parent / "shared"
CONTENDERS = ("opencl", "opencl tiled", "numpy", "serial")
DEVICE = os.environ.get("MTBRIDGE_TEST_DEVICE", "cpu")
"""The device that kernels are tested on; "gpu" tests those of a graphics card where there is one."""

# The same examples on every run, however busy the machine, so that what passes here passes there too. To look
# for new ones: pytest --hypothesis-profile=random tests/property
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", settings.get_profile("random"), derandomize=True)
settings.load_profile("same")

SMALL_GROUP = 64
"""Items of a group that select the small settings; a CPU runtime builds the large ones for minutes."""


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real price files and of cases with exact answers, beside the checkout."""
    if not SHARED.is_dir():
        pytest.skip("there is no folder ../shared beside the checkout")
    return SHARED


@pytest.fixture(scope="session")
def verdict() -> Verdict:
    """The device that tests compute on: by default a CPU's, so that the packed kernels are tested."""
    try:
        found = devices.choose(DEVICE)
    except DeviceError as error:
        pytest.skip(f"no OpenCL device {DEVICE!r}: {error}")
    devices.load(found)
    return found


@pytest.fixture(scope="session")
def open_tiled(verdict: Verdict) -> Callable[[], OpenCLEngine]:
    """Open an engine with the GPU kernels in their small settings on the CPU device."""

    def opened(largest_buffer: int | None = None) -> OpenCLEngine:
        return open_opencl(DEVICE, largest_buffer=largest_buffer, tiled=SMALL_GROUP)

    return opened


@pytest.fixture(scope="session")
def opencl_engine(verdict: Verdict) -> Iterator[Engine]:
    with open_opencl(DEVICE) as engine:
        # small matrices too, or no test would see the kernels that centre
        engine.centred_from = 0
        yield engine


@pytest.fixture(scope="session")
def tiled_engine(open_tiled: Callable[[], OpenCLEngine]) -> Iterator[Engine]:
    with open_tiled() as engine:
        engine.centred_from = 0
        yield engine


@pytest.fixture(params=["packed", "tiled"])
def device_engine(
    request: pytest.FixtureRequest, opencl_engine: OpenCLEngine, tiled_engine: OpenCLEngine
) -> OpenCLEngine:
    """The OpenCL engines in turn: with the kernels of processors, and with those of GPUs."""
    return opencl_engine if request.param == "packed" else tiled_engine


@pytest.fixture(scope="session")
def numpy_engine() -> Iterator[Engine]:
    with open_engine("numpy") as engine:
        yield engine


@pytest.fixture(scope="session")
def serial_engine() -> Iterator[Engine]:
    with open_engine("serial") as engine:
        yield engine


@pytest.fixture(params=CONTENDERS)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Every engine in turn, the GPU kernels on the CPU device among them."""
    name = {"opencl tiled": "tiled_engine"}.get(request.param, f"{request.param}_engine")
    found: Engine = request.getfixturevalue(name)
    return found


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Run a command line in this process, in an empty folder; return exit code, stdout and stderr."""
    from mtbridge.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MTBRIDGE_DEVICE", raising=False)

    def called(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mtbridge", *arguments])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return called
