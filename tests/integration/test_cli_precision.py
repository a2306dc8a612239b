"""Float32 products in halves, as an option: refused in one sentence wherever nothing has kernels for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from command_line import Run, refused

from mtbridge.compute import devices, open_engine
from mtbridge.compute.devices import Verdict
from mtbridge.errors import DeviceError, OptionError
from mtbridge.frame import opened

PRODUCT = ("multiply", "a.npy", "a.npy")


@pytest.fixture
def matrix(tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.ones((2, 2), np.float32))


@pytest.fixture
def processor() -> Verdict:
    """A device that has no such kernels."""
    found = [verdict for verdict in devices.survey().verdicts if verdict.ok and verdict.kind == "cpu"]
    if not found:
        pytest.skip("no OpenCL device on a processor")
    return found[0]


@pytest.mark.usefixtures("matrix")
@pytest.mark.parametrize("wanted", ["split", "single"])
def test_a_precision_of_float32_is_refused_for_float64(run: Run, wanted: str) -> None:
    words = (f"--precision {wanted} is for products of float32", "add --dtype float32")
    refused(run(*PRODUCT, "--precision", wanted, "--engine", "opencl"), *words)
    # before any file is read
    refused(run("covariance", "none.csv", "--precision", wanted), *words)
    refused(run("correlation", "none.csv", "--precision", wanted), *words)


@pytest.mark.usefixtures("matrix")
@pytest.mark.parametrize("engine", ["numpy", "serial", "auto"])
def test_engines_without_such_kernels_refuse_it(run: Run, engine: str) -> None:
    options = ("--precision", "split", "--dtype", "float32", "--engine", engine)
    refused(run(*PRODUCT, *options), "for the opencl engine", "--engine opencl")


def test_a_worker_without_such_kernels_does_not_start(run: Run) -> None:
    options = ("--bind", "tcp://127.0.0.1:0", "--engine", "numpy", "--precision", "split")
    refused(run("serve", *options), "for the opencl engine")


@pytest.mark.usefixtures("matrix")
@pytest.mark.parametrize("engine", ["opencl", "auto"])
def test_a_device_without_such_kernels_is_named(run: Run, engine: str, processor: Verdict) -> None:
    options = ("--dtype", "float32", "--engine", engine, "--device", "cpu")
    outcome = run(*PRODUCT, "--precision", "single", *options)
    refused(outcome, "has no kernels for precision single", "take precision full", "--device")
    with pytest.raises(DeviceError, match="take precision full"):
        open_engine("opencl", device="cpu", precision="split")


@pytest.mark.usefixtures("matrix")
def test_full_is_what_there_is_without_the_option(run: Run) -> None:
    code, asked, _ = run(*PRODUCT, "--precision", "full", "--engine", "numpy")
    assert code == 0
    assert run(*PRODUCT, "--engine", "numpy")[1] == asked


def test_other_words_are_refused_with_those_that_there_are() -> None:
    with pytest.raises(OptionError, match="'full', 'split' or 'single'"):
        open_engine("numpy", precision="half")


def test_an_engine_is_kept_for_each_precision() -> None:
    full = opened("numpy", None)
    assert opened("numpy", None, "full") is full
    with pytest.raises(OptionError):
        opened("numpy", None, "split")
    assert opened("numpy", None) is full
