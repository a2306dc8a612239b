"""X'X of float32 on a device without float64: sums in pairs of floats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from mtbridge.compute import double_float, opencl_blocks
from mtbridge.compute.double_float import slab_rows
from mtbridge.compute.forms import packed_form
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.errors import DeviceError


@pytest.fixture(params=["opencl_engine", "tiled_engine"])
def narrow(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> OpenCLEngine:
    """An engine whose device has no float64: a program that names that type does not compile."""
    engine: OpenCLEngine = request.getfixturevalue(request.param)
    build = engine._device.kernel

    def kernel(name: str, files: tuple[str, ...], defines: Mapping[str, int]) -> Any:
        return build(name, files, {**defines, "double": 0})

    monkeypatch.setattr(engine._device, "fp64", False)
    monkeypatch.setattr(engine._device, "kernel", kernel)
    return engine


def test_the_macro_forbids_float64(narrow: OpenCLEngine) -> None:
    with pytest.raises(DeviceError, match=r"building moments/columns\.cl"):
        narrow._device.kernel("columns", ("moments/columns.cl",), {"SUM_BITS": 64})


@pytest.mark.parametrize(
    ("rows", "columns"), [(1, 1), (63, 2), (64, 23), (65, 25), (129, 97), (1000, 145), (5000, 3)]
)
@pytest.mark.parametrize("slices", [1, 7, 1000])
@pytest.mark.parametrize("order", ["C", "F"])
def test_pairs_of_floats_add_up_as_float64_would(
    narrow: OpenCLEngine, rows: int, columns: int, slices: int, order: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(double_float, "PARTIAL_BYTES", slices * 4 * columns**2)
    X = np.asarray(np.random.default_rng(rows).uniform(0, 1, (rows, columns)), np.float32, order=order)
    found = narrow._gram(X, wide=True)
    assert found.dtype == np.float64
    assert np.array_equal(found, found.T)
    # the same sums of 64 rows, each in float32, added up in float64 by the host
    expected = sum(narrow._gram(X[at : at + 64], wide=False).astype(float) for at in range(0, rows, 64))
    assert (np.abs(found - expected) <= 2.0**-44 * expected).all()
    wide = X.astype(np.longdouble)
    assert (np.abs(found - wide.T @ wide) <= 64 * np.finfo(np.float32).eps * (wide.T @ wide)).all()


def test_prices_of_a_high_level_stay_within_a_millionth(narrow: OpenCLEngine) -> None:
    steps = np.random.default_rng(7).integers(-30, 31, (100_000, 2))
    X = (1e5 + steps.cumsum(axis=0) * 0.0078125).astype(np.float32)
    found = narrow.moments(X).covariance()
    exact = np.cov(X.astype(float), rowvar=False)
    assert np.abs(found - exact).max() < 1e-6 * exact.max()


def test_nan_stays_in_its_own_row_and_column(narrow: OpenCLEngine) -> None:
    X = np.ones((200, 30), np.float32)
    X[150, 4] = np.nan
    found = narrow._gram(X, wide=True)
    assert np.isnan(found[4]).all()
    assert np.isnan(found[:, 4]).all()
    others = [column for column in range(30) if column != 4]
    assert (found[np.ix_(others, others)] == 200).all()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_nothing_adds_up_to_zeros(narrow: OpenCLEngine, shape: tuple[int, int]) -> None:
    found = narrow._gram(np.ones(shape, np.float32), wide=True)
    assert np.array_equal(found, np.zeros((shape[1], shape[1])))


def test_small_buffers_and_missing_memory_give_the_same_answer(
    narrow: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(3).uniform(0, 1, (700, 50)).astype(np.float32)
    expected = narrow._gram(X, wide=True)

    def none_left(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(opencl_blocks, "gram_in_double_floats", none_left)
        assert np.allclose(narrow._gram(X, wide=True), expected, rtol=1e-13)
    for limit in (40_000, 150_000, 1 << 20):
        monkeypatch.setattr(narrow, "_limit", limit)
        assert np.allclose(narrow._gram(X, wide=True), expected, rtol=1e-6)


def test_a_slab_fits_the_buffers() -> None:
    form = packed_form("float32", 64)
    assert slab_rows(form, (1000, 50), 1 << 30) % 64 == 0
    # the matrix itself, or two results, are too large
    assert slab_rows(form, (1000, 50), 199_999) == 0
    assert slab_rows(form, (10, 500), 1_999_999) == 0
    depth = slab_rows(form, (1000, 50), 200_000)
    assert 0 < depth * 96 * 4 <= 200_000
    assert depth // 64 * 50 * 50 * 4 <= 200_000
