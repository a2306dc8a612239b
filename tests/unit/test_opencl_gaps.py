"""Covariances of pairs that stay on a GPU, by each family of products, on the kernels in plain OpenCL C."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from given_matrices import lying

from mtbridge.compute import opencl_careful, opencl_gap_pairs, slices
from mtbridge.compute.careful import careful_pairs
from mtbridge.compute.nvidia import tensor_core_form
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.errors import InputError
from mtbridge.matrix import Matrix

FAMILIES = [
    ("tiled", "float64"),
    ("tiled", "float32"),
    ("dmma", "float64"),
    ("split_mma", "float32"),
    ("split_wgmma", "float32"),
]
SHAPES = [(1, 1), (2, 5), (31, 23), (129, 33), (300, 97), (40, 131)]
TOLERANCE = {"float64": 1e-12, "float32": 1e-6}


@pytest.fixture(params=FAMILIES, ids=" ".join)
def family(
    request: pytest.FixtureRequest, open_tiled: Callable[[], OpenCLEngine]
) -> Iterator[tuple[OpenCLEngine, str]]:
    """An engine with GPU kernels that takes products of a type by a family, and the type."""
    name, dtype = request.param
    with open_tiled() as engine:
        engine.centred_from = 0
        if name == "dmma":
            engine._use(dtype, tensor_core_form(0))
        elif name != "tiled":
            engine.use_halves(0, name)
        yield engine, dtype


def prices(rows: int, columns: int, dtype: str) -> Matrix:
    """Prices with gaps: scattered, at the beginning, long or short, at the end; some columns are complete."""
    random = np.random.default_rng(rows + columns)
    X = 2000 + random.standard_normal((rows, columns)).cumsum(axis=0)
    gaps = random.random(X.shape) < 0.07
    for column in range(0, columns, 6):
        gaps[: int(random.integers(0, rows + 1)), column] = True
    gaps[rows * 2 // 3 :, 5::6] = True
    gaps[random.random(rows) < 0.9, 4::12] = True
    gaps[:, 2::3] = False
    X[gaps] = np.nan
    return X.astype(dtype)


def check(engine: OpenCLEngine, X: Matrix, order: str = "C", **options: int) -> Matrix:
    """Return the covariances that stay on the device, compared with the careful routine's."""
    found = engine.download(engine.pair_covariance_on_device(engine.upload(lying(X, order)), **options))
    every = np.indices((X.shape[1],) * 2).reshape(2, -1)
    right = careful_pairs(X, X, (every[0], every[1]))
    shape = found.shape
    expected = right.covariance(**options).reshape(shape)
    assert found.dtype == X.dtype
    assert np.array_equal(np.isnan(found), np.isnan(expected))
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = right.left.squares / (right.n - options.get("ddof", 1))
        deviation = (np.sqrt(squares) * 2.0**right.left.exponent).reshape(shape)
        bound = TOLERANCE[X.dtype.name] * deviation * deviation.T
    there = ~np.isnan(expected)
    assert (np.abs(found - expected)[there] <= bound[there]).all()
    assert np.array_equal(found, found.T, equal_nan=True)
    return found


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_covariances_are_of_the_rows_that_both_have(
    family: tuple[OpenCLEngine, str], rows: int, columns: int, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, dtype = family
    monkeypatch.setattr(engine, "pair_moments", None)
    check(engine, prices(rows, columns, dtype), order)


def test_nothing_missing_is_a_case_like_any_other(family: tuple[OpenCLEngine, str]) -> None:
    engine, dtype = family
    X = np.random.default_rng(1).standard_normal((130, 70)).astype(dtype)
    check(engine, X)


@pytest.mark.parametrize(
    "options", [{"ddof": 0}, {"ddof": 3}, {"min_periods": 25}, {"ddof": 2, "min_periods": 2}]
)
def test_options_are_those_of_moments(
    open_tiled: Callable[[], OpenCLEngine], options: dict[str, int]
) -> None:
    with open_tiled() as engine:
        check(engine, prices(40, 30, "float64"), **options)


def test_tall_data_are_summed_up_slab_by_slab(
    family: tuple[OpenCLEngine, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, dtype = family
    monkeypatch.setattr(slices, "UNIT_BYTES", 1)
    X = prices(2500, 4, dtype)
    X[:900, 1], X[:2000, 3] = np.nan, np.nan
    check(engine, X)


@pytest.mark.parametrize("tiles", [1, opencl_careful.TILES])
def test_pairs_that_lost_digits_are_put_right_one_by_one(
    family: tuple[OpenCLEngine, str], tiles: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, dtype = family
    monkeypatch.setattr(opencl_careful, "TILES", tiles)
    monkeypatch.setattr(opencl_gap_pairs, "ELEMENTS", 7)
    X = prices(200, 13, dtype)
    # spikes that some partners do not see
    X[100, 2], X[100, [0, 6, 9]] = 1e7, np.nan
    X[150:, 7] += 1e6
    X[150:, 1] = np.nan
    check(engine, X)


@pytest.mark.parametrize(
    ("dtype", "hostile"),
    [("float64", np.inf), ("float64", 1e100), ("float64", 1e-100), ("float32", np.inf), ("float32", 1e-42)],
)
def test_what_is_not_ordinary_is_left_to_the_host(
    open_tiled: Callable[[], OpenCLEngine], dtype: str, hostile: float
) -> None:
    X = prices(60, 7, "float64")
    X[:, 2] = 0 if hostile < 1 else X[:, 2]
    X[30, 2] = hostile
    asked: list[Any] = []
    with open_tiled() as engine:
        engine.centred_from = 0
        held = engine.upload(X.astype(dtype))
        plain = engine.pair_moments

        def watched(*given: Any) -> Any:
            asked.append(given)
            return plain(*given)

        engine.pair_moments = watched  # type: ignore[method-assign]
        found = engine.download(engine.pair_covariance_on_device(held))
        right = plain(held).covariance().astype(dtype)
        assert np.array_equal(found, right, equal_nan=True)
    assert len(asked) == 1


def test_repeated_calls_give_the_same_bits(family: tuple[OpenCLEngine, str]) -> None:
    engine, dtype = family
    X, other = prices(300, 60, dtype), prices(500, 90, dtype)
    one = check(engine, X)
    check(engine, other)
    assert check(engine, X).tobytes() == one.tobytes()


def test_covariances_past_the_range_of_float32_are_refused(open_tiled: Callable[[], OpenCLEngine]) -> None:
    X = prices(60, 7, "float32")
    X[:, 2] *= 1e25
    with open_tiled() as engine:
        held = engine.upload(X)
        with pytest.raises(InputError, match="float32"):
            engine.pair_covariance_on_device(held)
