"""Centred float32 columns in halves by wgmma: panels and sums everywhere, tensor cores where there are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from given_engines import WAYS, in_halves

from mtbridge.compute.forms import Form
from mtbridge.compute.launches import Launches
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.opencl_moments import SUM, Uncentred
from mtbridge.compute.split_mma import MOST_BIAS, MOST_ERROR, fault_in, fault_of, products
from mtbridge.compute.split_wgmma import SMALL_SETTINGS, wgmma_form
from mtbridge.matrix import Matrix

AWKWARD = [(1, 1), (1, 5), (2, 3), (63, 64), (65, 63), (64, 129), (130, 65), (129, 191), (513, 30)]
"""(rows, columns): beside a stage, a panel, a block and the sums in registers."""


@pytest.fixture(scope="module")
def plain() -> Iterator[OpenCLEngine]:
    with in_halves("plain", "split_wgmma") as engine:
        yield engine


@pytest.fixture(scope="module")
def nvidia() -> Iterator[OpenCLEngine]:
    with in_halves("nvidia", "split_wgmma") as engine:
        yield engine


@pytest.fixture(params=WAYS)
def engine(request: pytest.FixtureRequest) -> OpenCLEngine:
    found: OpenCLEngine = request.getfixturevalue(request.param)
    return found


def form_of(engine: OpenCLEngine) -> Form:
    assert engine.centred_form is not None
    return engine.centred_form


def found_and_exact(engine: OpenCLEngine, X: Matrix) -> tuple[Matrix, Matrix]:
    return products(engine.kernels_device, form_of(engine), np.ascontiguousarray(X))


def data(rows: int, columns: int, seed: int = 1) -> Matrix:
    random = np.random.default_rng(seed)
    return 1000 + random.standard_normal((rows, columns)) * np.exp(3 * random.standard_normal(columns))


@pytest.mark.parametrize("shape", AWKWARD, ids=str)
def test_sums_are_within_a_millionth_of_exact_at_awkward_sizes(
    engine: OpenCLEngine, shape: tuple[int, int]
) -> None:
    found, exact = found_and_exact(engine, data(*shape))
    assert not fault_in(found, exact)


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_prices_of_few_levels_stay_within_a_millionth(engine: OpenCLEngine, levels: int) -> None:
    """All roundings of such columns fall alike, and add up."""
    rows = 8192 if engine.kernels_device.capability else 1024
    X = 1e5 + 0.01 * np.random.default_rng(levels).integers(0, levels, (rows, 30))
    found, exact = found_and_exact(engine, X)
    assert not fault_in(found, exact)


@pytest.mark.parametrize("columns", [20, 300])
def test_the_diagonal_is_not_biased_however_long_the_sums(engine: OpenCLEngine, columns: int) -> None:
    """Tensor cores cut off: sums that they added up alone would be too small by 6e-5 at 8192 rows."""
    rows = 8192 if engine.kernels_device.capability else 256
    found, exact = found_and_exact(engine, np.random.default_rng(3).standard_normal((rows, columns)))
    bias = np.mean(np.diagonal(found) / np.diagonal(exact) - 1)
    assert abs(bias) <= MOST_BIAS


@pytest.mark.parametrize("columns", [3, 200, 400])
def test_parts_that_are_kept_and_sums_that_go_to_memory_add_up(engine: OpenCLEngine, columns: int) -> None:
    """So deep that a group keeps its sums apart several times, and then adds to what is in memory."""
    rows = 40_003 if engine.kernels_device.capability else 333
    found, exact = found_and_exact(engine, data(rows, columns if rows > 333 else columns // 2))
    assert not fault_in(found, exact)


def test_heavy_tails_lose_few_digits(engine: OpenCLEngine) -> None:
    """One value may be most of a column's sum of squares; cuBLAS in float32 is then off by 1e-5."""
    found, exact = found_and_exact(engine, np.random.default_rng(2).standard_t(2, (1000, 40)))
    # two factors of 22 bits, what a tensor core cuts off in the four steps of a stage of 64 inner indices,
    # and a rounding for each stage
    bound = 2.0**-22 + 4 * 2.0**-23 + -(-1000 // 64) * 2.0**-24
    norms = np.sqrt(np.diagonal(exact))
    assert (np.abs(found - exact) <= bound * np.outer(norms, norms)).all()


@pytest.mark.parametrize("most", [1 << 16, 1 << 30])
def test_slices_and_slabs_add_up_and_give_the_same_bits(
    engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    """Three units have one block each or share the last ones; small buffers take a slab at a time."""
    from mtbridge.compute import slices

    monkeypatch.setattr(engine.kernels_device, "units", 3)
    monkeypatch.setattr(slices, "MOST_BYTES", most)
    X = data(700, 200)
    found, exact = found_and_exact(engine, X)
    assert not fault_in(found, exact)
    again, _ = found_and_exact(engine, X)
    assert again.tobytes() == found.tobytes()


def test_one_product_of_halves_has_eleven_bits(engine: OpenCLEngine) -> None:
    form = form_of(engine)
    single = replace(form, defines={**form.defines, "PRODUCTS": 1})
    found, exact = products(engine.kernels_device, single, data(300, 70))
    norms = np.sqrt(np.diagonal(exact))
    error = np.abs(found - exact) / np.outer(norms, norms)
    assert 1e-6 < error.max() <= 2.0**-11
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize(
    "settings", [{"WORKERS": 2}, {"WORKERS": 3, "KEPT_INNER": 128, "WIDE_INNER": 256}], ids=str
)
def test_tiles_of_several_workers_and_panels_are_the_same_sums(
    plain: OpenCLEngine, settings: dict[str, int]
) -> None:
    form = wgmma_form(0, settings={**SMALL_SETTINGS, **settings})
    found, exact = products(plain.kernels_device, form, data(300, 200))
    assert not fault_in(found, exact)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_moments_agree_with_float64_in_every_order_and_type(
    engine: OpenCLEngine, dtype: Any, order: Any
) -> None:
    X = np.asarray(data(300, 70), dtype, order=order)
    X[:, 7], X[:, 69] = 0.5, X[:, 5]
    found = engine.moments(X, dtype=np.dtype(np.float32))
    exact = np.cov(X.astype(np.float64), rowvar=False)
    norms = np.sqrt(np.diagonal(exact))
    covariance = found.covariance()
    assert (np.abs(covariance - exact) <= MOST_ERROR * np.outer(norms, norms)).all()
    assert not covariance[7].any()
    assert found.correlation()[5, 69] == 1


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_column_that_is_not_finite_spoils_no_other(engine: OpenCLEngine, bad: float) -> None:
    X = data(300, 20)
    X[5, 3] = bad
    R = engine.moments(X, dtype=np.dtype(np.float32)).correlation()
    others = np.delete(np.arange(20), 3)
    assert np.isnan(R[3]).all()
    expected = np.corrcoef(X[:, others], rowvar=False)
    assert np.abs(R[np.ix_(others, others)] - expected).max() <= MOST_ERROR


def test_the_check_of_a_device_finds_nothing_wrong(
    engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mtbridge.compute import split_mma

    if not engine.kernels_device.capability:
        monkeypatch.setattr(split_mma, "SHAPES", ((1, 1), (37, 130), (300, 70)))
    assert not fault_of(engine.kernels_device, form_of(engine))


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (5, 31), (64, 64), (65, 33), (200, 130)])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_panels_hold_the_halves_of_every_number(
    plain: OpenCLEngine, rows: int, columns: int, turned: bool, source: Any
) -> None:
    """Against the formula at the head of moments/pack_centred_halves.cl."""
    device, form = plain.kernels_device, form_of(plain)
    X = np.random.default_rng(4).standard_t(2, (rows, columns)).astype(source)
    X[:, 0] = 2.0 ** -np.arange(rows).clip(0, 40)
    low, high = X.min(axis=0).astype(float), X.max(axis=0).astype(float)
    exponent = np.frexp(high - low)[1].astype(np.int64)
    origin = X.mean(axis=0, dtype=float)
    held = np.ascontiguousarray(X.T) if turned else X
    raw = Uncentred(
        device.send("right source", held),
        X.shape,
        (1, rows) if turned else (columns, 1),
        X.dtype,
        np.dtype(np.float32),
        form,
    )
    centring = raw.centred(device, origin, exponent, [slice(0, rows)])
    buffer, depth = centring.packed(device, slice(0, rows))
    width = raw.width
    panels = device.downloaded(buffer, np.empty((width // 64, depth // 64, 2, 512, 8), np.uint16))

    z = np.zeros((depth, width))
    z[:rows, :columns] = 1024 * np.ldexp(X - origin, -exponent.astype(np.int32))
    assert np.abs(z).max() < 1024
    z32 = z.astype(np.float32)
    hi = z32.astype(np.float16)
    lo = (z32 - hi).astype(np.float16)
    k, j = np.indices((depth, width))
    unit = j % 64 * 8 + ((k % 64 // 8) ^ (j % 8))
    for part, half in ((0, hi), (1, lo)):
        assert np.array_equal(panels[j // 64, k // 64, part, unit, k % 8], half.view(np.uint16))
    mean = centring.mean(device)
    assert np.abs(mean - z[:rows, :columns].mean(axis=0) / 1024).max() <= 1e-15


def test_products_of_two_centred_matrices_are_within_a_millionth(engine: OpenCLEngine) -> None:
    """Blocks off the diagonal: kernels/multiply/split_wgmma.cl."""
    random = np.random.default_rng(5)
    A, B = (random.uniform(-1, 1, (300, n)).astype(np.float32) for n in (70, 200))
    device, form = engine.kernels_device, form_of(engine)
    target, out = device.result("product", (70, 200), SUM)
    Launches(device).product(form, A.T, B, SUM, target, device.largest_buffer)
    found = device.receive(target, out)
    a, b = A.astype(np.float64), B.astype(np.float64)
    norms = np.outer(np.linalg.norm(a, axis=0), np.linalg.norm(b, axis=0))
    assert (np.abs(found - a.T @ b) <= MOST_ERROR * norms).all()


@pytest.fixture(scope="module")
def resident() -> Iterator[OpenCLEngine]:
    """The form in plain OpenCL C, in an engine that keeps its answers on the device."""
    with in_halves("plain", "split_wgmma", tiled=64) as engine:
        yield engine


@pytest.mark.parametrize("most", [1 << 16, 1 << 30])
@pytest.mark.parametrize("units", [2, 3])
@pytest.mark.parametrize(("shape", "ddof"), [((2, 1), 1), ((65, 130), 0), ((700, 200), 2)], ids=str)
def test_covariances_made_of_sums_where_they_are_added_up_are_those_of_the_moments(
    resident: OpenCLEngine,
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, int],
    ddof: int,
    units: int,
    most: int,
) -> None:
    """Of whole blocks, of slices of the last ones, and of slabs: kernels/finish.clh."""
    from mtbridge.compute import slices

    monkeypatch.setattr(resident.kernels_device, "units", units)
    monkeypatch.setattr(slices, "MOST_BYTES", most)
    X = data(*shape).astype(np.float32)
    if shape[1] > 100:
        X[5, 100] = np.nan
    uploaded: Any = resident.upload(X)
    found = resident.download(resident.covariance_on_device(uploaded, ddof=ddof))
    expected = resident.moments(X).covariance(ddof).astype(np.float32)
    assert found.dtype == np.float32
    assert np.array_equal(found, expected, equal_nan=True)
    assert np.isnan(found).any() == (shape[1] > 100)
