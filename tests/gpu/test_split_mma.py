"""Centred float32 columns in halves: panels and sums everywhere, tensor cores where there are some."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mtbridge.compute import devices
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.split_mma import (
    CAPABILITIES,
    MOST_BIAS,
    MOST_ERROR,
    fault_in,
    fault_of,
    products,
    split_form,
)
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix

AWKWARD = [(1, 1), (1, 5), (2, 3), (31, 32), (33, 31), (37, 130), (64, 129), (65, 33), (2049, 70), (4097, 9)]
"""(rows, columns): beside a stage, a tile and the sums in registers."""


def split_engine(engine: OpenCLEngine, capability: int) -> OpenCLEngine:
    engine.centred_from = 0
    engine.use_halves(capability)
    return engine


@pytest.fixture(scope="module")
def plain() -> Iterator[OpenCLEngine]:
    """The form in plain OpenCL C, on the processor."""
    try:
        engine = open_opencl("cpu")
    except DeviceError as error:
        pytest.skip(f"no OpenCL device on a processor: {error}")
    with engine:
        yield split_engine(engine, 0)


@pytest.fixture(scope="module")
def nvidia() -> Iterator[OpenCLEngine]:
    """The form on tensor cores."""
    names = [v.name for v in devices.survey().verdicts if v.ok and "NVIDIA" in v.platform]
    if not names:
        pytest.skip("there is no NVIDIA GPU with OpenCL here")
    with open_opencl(names[0]) as engine:
        capability = engine.kernels_device.capability
        if capability not in CAPABILITIES:
            pytest.skip(f"{engine.device} has compute capability {capability / 10}, none of {CAPABILITIES}")
        yield split_engine(engine, capability)


@pytest.fixture(params=["plain", "nvidia"])
def engine(request: pytest.FixtureRequest) -> OpenCLEngine:
    found: OpenCLEngine = request.getfixturevalue(request.param)
    return found


def found_and_exact(engine: OpenCLEngine, X: Matrix) -> tuple[Matrix, Matrix]:
    assert engine.centred_form is not None
    return products(engine.kernels_device, engine.centred_form, np.ascontiguousarray(X))


def data(rows: int, columns: int, seed: int = 1) -> Matrix:
    random = np.random.default_rng(seed)
    return 1000 + random.standard_normal((rows, columns)) * np.exp(3 * random.standard_normal(columns))


@pytest.mark.parametrize("shape", AWKWARD, ids=str)
def test_sums_are_within_a_millionth_of_exact_at_awkward_sizes(
    engine: OpenCLEngine, shape: tuple[int, int]
) -> None:
    found, exact = found_and_exact(engine, data(*shape))
    assert not fault_in(found, exact)


def test_heavy_tails_lose_no_more_than_a_millionth(engine: OpenCLEngine) -> None:
    X = np.random.default_rng(2).standard_t(2, (3000, 40))
    found, exact = found_and_exact(engine, X)
    assert not fault_in(found, exact)


def test_the_diagonal_is_not_biased_however_long_the_sums(engine: OpenCLEngine) -> None:
    """Tensor cores cut off: sums that they added up alone would be too small by 6e-5 at this length."""
    found, exact = found_and_exact(engine, np.random.default_rng(3).standard_normal((8192, 20)))
    bias = np.mean(np.diagonal(found) / np.diagonal(exact) - 1)
    assert abs(bias) <= MOST_BIAS


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_prices_of_few_levels_stay_within_a_millionth(engine: OpenCLEngine, levels: int) -> None:
    """All roundings of such columns fall alike, and add up."""
    X = 1e5 + 0.01 * np.random.default_rng(levels).integers(0, levels, (8192, 30))
    found, exact = found_and_exact(engine, X)
    assert not fault_in(found, exact)


def test_the_same_call_gives_the_same_bits(engine: OpenCLEngine) -> None:
    X = data(700, 150)
    first, *others = (engine.moments(X, dtype=np.dtype(np.float32)).comoment for _ in range(4))
    assert all(other.tobytes() == first.tobytes() for other in others)


def test_constant_columns_have_covariances_of_exactly_zero(engine: OpenCLEngine) -> None:
    X = data(300, 40)
    X[:, 7], X[:, 39] = 0.1, 1e5
    moments = engine.moments(X, dtype=np.dtype(np.float32))
    assert not moments.covariance()[7].any()
    assert not moments.covariance()[:, 39].any()
    assert np.isnan(moments.correlation()[7]).all()


def test_columns_that_repeat_another_correlate_by_exactly_one(engine: OpenCLEngine) -> None:
    X = data(1000, 140)
    X[:, 33], X[:, 131] = X[:, 5], -X[:, 5]
    R = engine.moments(X, dtype=np.dtype(np.float32)).correlation()
    assert R[5, 33] == R[33, 5] == 1
    assert R[5, 131] == R[131, 33] == -1


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_agree_with_float64_in_every_order_and_type(
    engine: OpenCLEngine, dtype: Any, order: Any
) -> None:
    X = np.asarray(data(500, 70), dtype, order=order)
    found = engine.moments(X, dtype=np.dtype(np.float32))
    exact = np.cov(X.astype(np.float64), rowvar=False)
    norms = np.sqrt(np.diagonal(exact))
    assert (np.abs(found.covariance() - exact) <= MOST_ERROR * np.outer(norms, norms)).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_column_that_is_not_finite_spoils_no_other(engine: OpenCLEngine, bad: float) -> None:
    X = data(300, 20)
    X[5, 3] = bad
    R = engine.moments(X, dtype=np.dtype(np.float32)).correlation()
    others = np.delete(np.arange(20), 3)
    assert np.isnan(R[3]).all()
    expected = np.corrcoef(X[:, others], rowvar=False)
    assert np.abs(R[np.ix_(others, others)] - expected).max() <= MOST_ERROR


def test_the_check_of_a_device_finds_nothing_wrong(engine: OpenCLEngine) -> None:
    assert engine.centred_form is not None
    assert not fault_of(engine.kernels_device, engine.centred_form)


def test_the_check_sees_a_wrong_sum_a_bias_and_a_lost_triangle() -> None:
    exact = np.cov(data(50, 6), rowvar=False)
    assert not fault_in(exact.copy(), exact)
    wrong = exact.copy()
    wrong[1, 2] = wrong[2, 1] = wrong[1, 2] + 1e-5 * np.sqrt(exact[1, 1] * exact[2, 2])
    assert "wrong" in fault_in(wrong, exact)
    assert "diagonal" in fault_in(exact * (1 - 6e-7), exact)
    assert "symmetric" in fault_in(np.triu(exact) + np.tril(exact, -1) * (1 + 1e-9), exact)
    assert fault_in(np.full_like(exact, np.nan), exact)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 31), (32, 32), (33, 33), (200, 70)])
@pytest.mark.parametrize("turned", [False, True])
def test_panels_hold_the_halves_of_every_number(
    plain: OpenCLEngine, rows: int, columns: int, turned: bool
) -> None:
    """Against the formula at the head of moments/pack_centred_split.cl."""
    from mtbridge.compute.opencl_moments import Uncentred

    device, form = plain.kernels_device, split_form(0)
    X = np.random.default_rng(4).standard_t(2, (rows, columns))
    X[:, 0] = np.float64(2.0) ** -np.arange(rows).clip(0, 40)
    low, high = X.min(axis=0), X.max(axis=0)
    exponent = np.frexp(high - low)[1].astype(np.int64)
    origin = X.mean(axis=0)
    held = np.ascontiguousarray(X.T) if turned else X
    steps = (1, rows) if turned else (columns, 1)
    source = device.send("right source", held)
    raw = Uncentred(source, X.shape, steps, X.dtype, np.dtype(np.float32), form)
    centring = raw.centred(device, origin, exponent, [slice(0, rows)])
    buffer, depth = centring.packed(device, slice(0, rows))
    tile, width = form.right, raw.width
    panels = device.downloaded(buffer, np.empty((width // tile, depth // 2, 2, tile), np.uint32))

    z = np.zeros((depth, width))
    z[:rows, :columns] = 1024 * np.ldexp(X - origin, -exponent.astype(np.int32))
    # they are cut as numbers of float32
    z = z.astype(np.float32).astype(np.float64)
    assert np.abs(z).max() < 1024
    hi = z.astype(np.float32).astype(np.float16)
    lo = (z - hi).astype(np.float32).astype(np.float16)
    k, c = np.indices((depth, width))
    unit = ((c & 3) * 2 + (c % 32 >> 4)) ^ (2 * (k // 2 & 3))
    place = c % tile // 32 * 32 + unit * 4 + (c >> 2 & 3)
    for part, half in ((0, hi), (1, lo)):
        words = panels[c // tile, k // 2, part, place]
        bits = np.where(k % 2, words >> 16, words & 0xFFFF).astype(np.uint16)
        assert np.array_equal(bits, half.view(np.uint16))
    kept = hi.astype(np.float64) + lo
    assert (np.abs(kept - z) <= np.maximum(np.abs(z) * 2.0**-22, 2.0**-25)).all()
