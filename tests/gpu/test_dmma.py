"""Float64 products on the tensor cores of an NVIDIA GPU, against long double; skipped where there is none."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mtbridge.compute import nvidia
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.errors import DeviceError

SHAPES = [
    (1, 1, 1), (2, 1, 2), (37, 11, 5), (127, 3, 129), (128, 16, 128), (129, 17, 127), (131, 1000, 257),
    (997, 1009, 1013), (1, 5000, 300), (2048, 33, 2048), (256, 2048, 384),
]  # fmt: skip
TALL = [(255, 100_003, 61), (1, 100_003, 1), (130, 100_003, 2)]


@pytest.fixture(scope="module")
def engine() -> Iterator[OpenCLEngine]:
    try:
        found = open_opencl("gpu")
    except DeviceError as error:
        pytest.skip(f"no OpenCL device on a GPU: {error}")
    with found:
        if found._device.capability < nvidia.FIRST_CAPABILITY:
            pytest.skip(f"{found.device} has no tensor cores of double precision")
        yield found


@pytest.fixture(params=["chosen", "cp.async and m8n8k4"])
def dmma(request: pytest.FixtureRequest, engine: OpenCLEngine) -> Iterator[OpenCLEngine]:
    """The engine with the kernels for its device, and with those for capability 8.0, which it runs too."""
    chosen = engine.form_in_use("float64")
    if request.param != "chosen":
        engine._forms["float64"] = nvidia.tensor_core_form(80)
    yield engine
    engine._forms["float64"] = chosen


def right(found: Any, left: Any, other: Any) -> bool:
    """Whether a grid of elements is within ``inner * eps * |A| |B|`` of the product in long double."""
    rows, columns = (np.unique(np.linspace(0, length - 1, 40).astype(int)) for length in found.shape)
    some, others = left[rows].astype(np.longdouble), other[:, columns].astype(np.longdouble)
    bound = left.shape[1] * np.finfo(np.float64).eps * (np.abs(some) @ np.abs(others))
    return bool((np.abs(found[np.ix_(rows, columns)] - some @ others) <= bound).all())


def test_tensor_cores_are_chosen(engine: OpenCLEngine, capsys: pytest.CaptureFixture[str]) -> None:
    assert engine.form_in_use("float64").file == "dmma"
    assert engine.form_in_use("float32").file != "dmma"
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(("rows", "inner", "columns"), SHAPES + TALL)
@pytest.mark.parametrize("order", ["C", "F"])
def test_products_are_right_whatever_the_shape_and_order(
    dmma: OpenCLEngine, rows: int, inner: int, columns: int, order: Any
) -> None:
    random = np.random.default_rng([rows, inner, columns])
    A = np.asarray(random.standard_normal((rows, inner)), order=order)
    B = np.asarray(random.standard_normal((inner, columns)), order=order)
    C, G = dmma.multiply(A, B), dmma.gram(B)
    assert right(C, A, B)
    assert right(G, B.T, B)
    assert np.abs(C - A @ B).max() <= 2 * inner * np.finfo(np.float64).eps * (np.abs(A) @ np.abs(B)).max()
    assert np.array_equal(G, G.T)
    # resident, in the other order, and again: the same bits
    other: Any = "F" if order == "C" else "C"
    first: Any = dmma.upload(np.asarray(A, order=other))
    second: Any = dmma.upload(np.asarray(B, order=other))
    for _ in range(3):
        answers: list[Any] = [dmma.multiply(first, second), dmma.gram(second)]
        assert [dmma.download(answer).tobytes() for answer in answers] == [C.tobytes(), G.tobytes()]


def test_tensor_cores_agree_with_the_portable_kernels(dmma: OpenCLEngine) -> None:
    X = np.random.default_rng(1).standard_normal((777, 333))
    found = dmma.gram(X)
    tensor = dmma._forms["float64"]
    dmma._forms["float64"] = dmma.form("float64")
    portable = dmma.gram(X)
    dmma._forms["float64"] = tensor
    assert np.abs(found - portable).max() <= 777 * np.finfo(np.float64).eps * (np.abs(X.T) @ np.abs(X)).max()


def test_nan_and_infinity_stay_in_their_rows_and_columns(dmma: OpenCLEngine) -> None:
    X = np.ones((1000, 300))
    X[999, 299] = X[3, 5] = np.nan
    X[500, 130] = np.inf
    G, C = dmma.gram(X), dmma.multiply(X.T, np.ones((1000, 3)))
    extreme = np.isin(np.arange(300), (5, 130, 299))
    assert (G[np.ix_(~extreme, ~extreme)] == 1000).all()
    assert np.isnan(G[[5, 299]]).all()
    assert (G[130, ~extreme] == np.inf).all()
    assert (C[~extreme] == 1000).all()
    assert np.isnan(C[[5, 299]]).all()
    assert (C[130] == np.inf).all()


def test_moments_and_pairs_are_right(dmma: OpenCLEngine) -> None:
    random = np.random.default_rng(2)
    X = 1000 + random.standard_normal((3000, 501))
    assert np.abs(dmma.moments(X).covariance() - np.cov(X, rowvar=False)).max() < 1e-12
    X[random.random(X.shape) < 0.05] = np.nan
    found = dmma.pair_moments(X).correlation()
    for i, j in [(0, 1), (7, 400), (499, 500), (130, 131)]:
        rows = ~(np.isnan(X[:, i]) | np.isnan(X[:, j]))
        assert abs(found[i, j] - np.corrcoef(X[rows, i], X[rows, j])[0, 1]) < 1e-12


def test_the_check_finds_a_kernel_that_reads_other_columns(engine: OpenCLEngine) -> None:
    tensor = engine.form_in_use("float64")
    assert nvidia.fault_of(engine._device, tensor) == ""
    assert "is wrong" in nvidia.fault_of(engine._device, replace(tensor, right=32))
