"""Moments whose columns are measured, centred and packed on the device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_matrices import lying

from mtbridge.compute import Engine, engine, forms, masked, operations, slices
from mtbridge.compute.centre import centre, ordinary_centre
from mtbridge.compute.devices import Verdict
from mtbridge.compute.moments import without_residue
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.opencl_moments import CHUNK_ROWS, ELEMENTS, MOST_CHUNKS, chunk_rows
from mtbridge.errors import DeviceError, InputError, MissingValueError
from mtbridge.matrix import DTYPES, Matrix

EPS = float(np.finfo(np.float64).eps)
SHAPES = [(1, 1), (2, 5), (127, 23), (128, 24), (129, 25), (300, 97), (1000, 3)]


@pytest.fixture
def no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where the host centres."""

    def refused(*_: object) -> None:
        raise AssertionError("the host centred")

    monkeypatch.setattr(engine, "centre", refused)


def counted_centre(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes that the host has centred from now on."""
    called: list[tuple[int, ...]] = []

    def counted(X: Matrix, dtype: Any = None) -> Any:
        called.append(X.shape)
        return centre(X, dtype)

    monkeypatch.setattr(engine, "centre", counted)
    return called


def prices(rows: int, columns: int, dtype: str) -> Matrix:
    random = np.random.default_rng(rows + columns)
    return (2000 + random.standard_normal((rows, columns)).cumsum(axis=0)).astype(dtype)


def exact(X: Matrix) -> Matrix:
    wide = X.astype(np.longdouble)
    wide -= wide.mean(axis=0)
    return wide.T @ wide


@pytest.mark.usefixtures("no_host")
@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_ordinary_columns_are_centred_on_the_device(
    device_engine: OpenCLEngine, rows: int, columns: int, source: str, dtype: str, order: str
) -> None:
    X = lying(prices(rows, columns, source), order)
    found = device_engine.moments(X, dtype=np.dtype(dtype))
    right = exact(X)
    scale = np.sqrt(np.outer(np.diagonal(right), np.diagonal(right))).astype(float)
    z = found.comoment * np.exp2(found.exponent[:, np.newaxis] + found.exponent)
    # eps of the products and of a deviation from an origin near 2000; a residue of that origin is taken out
    tolerance = 4e-7 if dtype == "float32" else 1e-12
    assert (np.abs(z - right) <= tolerance * scale).all()
    assert np.array_equal(found.comoment, found.comoment.T)
    # origin and residue together are the mean
    mean = found.origin + np.ldexp(found.mean, found.exponent.astype(np.int32))
    assert np.abs(mean - X.astype(np.longdouble).mean(axis=0)).max() < 1e-11


@pytest.mark.usefixtures("no_host")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_tall_matrix_is_centred_slab_by_slab(
    device_engine: OpenCLEngine, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "UNIT_BYTES", 1)
    X = prices(5000, 3, dtype)
    form = device_engine.form_in_use(dtype)
    depth = slices.slab_depth(form, (3, 5000, 3), size=X.itemsize, units=device_engine._device.units)
    assert depth < 2500, "there is but one slab"
    found = device_engine.moments(X).covariance(0) * len(X)
    right = exact(X)
    scale = np.sqrt(np.outer(np.diagonal(right), np.diagonal(right)))
    assert (np.abs(found - right) <= (1e-6 if dtype == "float32" else 1e-13) * scale).all()


@pytest.mark.usefixtures("no_host")
@pytest.mark.parametrize("value", [0.1, 1.81, -0.04096, 1e9 + 0.1])
def test_a_constant_is_told_by_equality_on_the_device_too(device_engine: OpenCLEngine, value: float) -> None:
    X = prices(1448, 3, "float64")
    X[:, 1] = value
    found = device_engine.moments(X)
    assert (found.comoment[1] == 0).all()
    assert found.origin[1] == value
    assert found.mean[1] == 0


@pytest.mark.usefixtures("no_host")
def test_equal_columns_give_equal_bits_wherever_they_stand(device_engine: OpenCLEngine) -> None:
    """In a whole panel, in the last one, which has fewer columns, and in either order of memory."""
    column = prices(700, 1, "float64")
    for X in (np.repeat(column, 131, axis=1), np.asfortranarray(np.repeat(column, 131, axis=1))):
        found = device_engine.moments(X)
        assert (found.comoment == found.comoment[0, 0]).all()
        assert (found.correlation() == 1).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "hostile", [np.nan, np.inf, -np.inf, "vast", "tiny", "both signs"], ids=lambda value: str(value)
)
def test_an_extreme_column_changes_no_other_and_has_the_answer_of_the_host(
    device_engine: OpenCLEngine, numpy_engine: Engine, dtype: str, hostile: Any
) -> None:
    X = prices(200, 5, dtype)
    largest = np.finfo(dtype).max
    if isinstance(hostile, float):
        X[150, 3] = hostile
    elif hostile == "both signs":
        X[3, 3], X[4, 3] = np.inf, -np.inf
    else:
        X[:, 3] = np.linspace(-1, 1, 200) * (largest if hostile == "vast" else np.finfo(dtype).tiny)
    found, expected = device_engine.moments(X), numpy_engine.moments(X)
    # a sum of 200 values may be taken in another order
    assert np.allclose(found.origin, expected.origin, rtol=200 * EPS, atol=0, equal_nan=True)
    assert np.array_equal(found.exponent, expected.exponent)
    assert np.array_equal(np.isnan(found.comoment), np.isnan(expected.comoment))
    assert np.array_equal(np.isnan(found.mean), np.isnan(expected.mean))
    assert np.allclose(found.correlation(), expected.correlation(), rtol=0, atol=1e-6, equal_nan=True)


@pytest.mark.usefixtures("no_host")
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_column_that_is_not_finite_never_leaves_a_gpu(tiled_engine: OpenCLEngine, dtype: str) -> None:
    X = prices(200, 5, dtype)
    X[150, 3], X[7, 1] = np.nan, np.inf
    found = tiled_engine.moments(X)
    others = [0, 2, 4]
    right = exact(X[:, others])
    norms = np.sqrt(np.outer(np.diagonal(right), np.diagonal(right)))
    shift = (found.exponent[others, np.newaxis] + found.exponent[others]).astype(np.int32)
    error = np.abs(np.ldexp(found.comoment[np.ix_(others, others)], shift) - right)
    assert (error <= (4e-7 if dtype == "float32" else 1e-12) * norms).all()
    assert np.isnan(found.comoment[[1, 3]]).all()
    assert np.isnan(found.origin).tolist() == [False, True, False, True, False]


def test_pairs_with_gaps_are_found_before_anything_is_multiplied(
    tiled_engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = prices(200, 5, "float64")
    X[150, 3] = np.nan
    monkeypatch.setattr(tiled_engine._launches, "gram", None)
    assert tiled_engine._moments_on_device(X, X.dtype, finite=True) is None


def test_a_small_matrix_is_left_to_the_host(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> None:
    called = counted_centre(monkeypatch)
    with open_opencl("cpu") as opened:
        opened.moments(np.ones((ELEMENTS - 1, 1)))
        opened.moments(np.ones((ELEMENTS, 1)))
    assert called == [(ELEMENTS - 1, 1)]


@pytest.mark.usefixtures("no_host")
def test_a_matrix_on_the_device_stays_there(
    device_engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = prices(300, 40, "float64")
    held = device_engine.upload(X)
    monkeypatch.setattr(device_engine, "download", None)
    for there, here in ((held, X), (held.transposed, X.T)):
        assert np.array_equal(device_engine.moments(there).comoment, device_engine.moments(here).comoment)


def test_a_matrix_of_another_engine_is_refused(opencl_engine: Engine, tiled_engine: Engine) -> None:
    with pytest.raises(InputError, match="another engine"):
        opencl_engine.moments(tiled_engine.upload(np.ones((300, 300))))


def test_missing_memory_is_left_to_the_host(
    device_engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none_left(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(device_engine, "_moments_on_device", none_left)
    X = prices(50, 4, "float64")
    assert np.allclose(device_engine.moments(X).comoment, exact(X).astype(float), rtol=1e-12)


def test_a_device_without_subnormal_numbers_takes_no_zeros_for_a_constant(
    device_engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it reads 1e-40 as 0, it finds what is made of zeros here; the host can tell."""
    called = counted_centre(monkeypatch)
    X = prices(50, 2, "float32")
    X[:, 1] = 0
    device_engine.moments(X)
    assert not called
    monkeypatch.setattr(device_engine._device, "subnormals", False)
    device_engine.moments(X)
    assert called == [(50, 2)]


def test_complete_data_are_not_read_once_more_for_nan(
    device_engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = prices(50, 3, "float64")
    monkeypatch.setattr(operations, "refuse_missing", None)
    monkeypatch.setattr(masked, "holds_missing", None)
    operations.covariance(X, engine=device_engine)
    operations.covariance(X, engine=device_engine, missing="error")
    monkeypatch.undo()
    X[7, 1] = np.nan
    with pytest.raises(MissingValueError, match="1 missing values, the first in column B"):
        operations.covariance(X, engine=device_engine, symbols=("A", "B", "C"), missing="error")


def test_a_device_without_float64_centres_on_the_host(
    device_engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_engine._device, "fp64", False)
    monkeypatch.setattr(device_engine, "_moments_on_device", None)
    X = prices(300, 4, "float32")
    right = exact(X).astype(float)
    found = device_engine.moments(X).covariance(0) * len(X)
    assert np.abs(found - right).max() < 1e-6 * np.abs(right).max()
    with pytest.raises(DeviceError, match="has no float64"):
        device_engine.moments(X, dtype=np.dtype("float64"))


def test_the_ordinary_centre_is_that_of_centre() -> None:
    X = prices(100, 4, "float64")
    X[:, 2] = 1.81
    for dtype in DTYPES:
        expected = centre(X, np.dtype(dtype))
        chosen = ordinary_centre(
            X.sum(axis=0), X.min(axis=0), X.max(axis=0), rows=len(X), dtype=np.dtype(dtype)
        )
        assert chosen is not None
        assert np.allclose(chosen[0], expected.origin, rtol=1e-15)
        assert np.array_equal(chosen[1], expected.exponent)


def test_a_residue_that_no_digit_shows_is_not_taken_out_and_others_are() -> None:
    products = np.array([[4.0, 2.0], [2.0, 9.0]])
    kept = products.copy()
    assert np.array_equal(without_residue(products, np.array([1e-10, -1e-10]), 10), kept)
    assert np.array_equal(without_residue(products, np.array([0.5, 0.1]), 4), kept - [[1, 0.2], [0.2, 0.04]])
    lost = np.array([[np.nan, np.nan], [np.nan, 9.0]])
    assert without_residue(lost, np.array([np.nan, 0.5]), 4)[1, 1] == 8


@pytest.mark.parametrize("rows", [1, 127, 128, 129, 8192, 8193, 1_000_000])
@pytest.mark.parametrize("most", [0, 1, 7, MOST_CHUNKS, 1000])
def test_chunks_are_whole_squares_and_few(rows: int, most: int) -> None:
    chunk = chunk_rows(rows, most)
    assert chunk % CHUNK_ROWS == CHUNK_ROWS % forms.SQUARE == 0
    assert -(-rows // chunk) <= min(max(most, 1), MOST_CHUNKS)
