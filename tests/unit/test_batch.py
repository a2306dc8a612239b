"""Batches of small matrices against extended precision, wherever they lie and whatever they hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_batches import ORDERS, assert_moments, assert_products, batch, batches, bits, tensor_engine

from mtbridge.compute import Engine, Moments, batch_plan
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.parameters import Limits
from mtbridge.errors import InputError, ShapeError
from mtbridge.matrix import DTYPES

# fixtures
__all__ = ["batches", "tensor_engine"]

SHAPES = [
    (1, 1, 1),
    (5, 2, 2),
    (3, 1, 7),
    (7, 7, 3),
    (4, 61, 13),
    (3, 31, 17),
    (2, 60, 36),
    (2, 129, 8),
    (9, 20, 8),
]
"""(matrices, rows, columns) around the sides of tiles and panels."""

# what is computed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_each_matrix_of_a_batch_is_within_its_bound(
    batches: OpenCLEngine, shape: tuple[int, int, int], dtype: str
) -> None:
    for order in ORDERS[:3]:
        X = batch(shape, dtype, order)
        found = batches.gram(X)
        assert_products(found, X.swapaxes(1, 2), X)
        assert np.array_equal(found, found.swapaxes(1, 2))
        Y = batch((*shape[:2], 5), dtype, order)
        assert_products(batches.gram(X, Y), X.swapaxes(1, 2), Y)
        assert_products(batches.multiply(Y.swapaxes(1, 2), X), Y.swapaxes(1, 2), X)
        assert_moments(batches.moments(X), X, dtype)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
def test_where_matrices_lie_changes_no_bit(batches: OpenCLEngine, order: str, dtype: str) -> None:
    X = batch((5, 31, 17), dtype, order)
    copied = X.copy()
    assert batches.gram(X).tobytes() == batches.gram(copied).tobytes()
    assert bits(batches.moments(X)) == bits(batches.moments(copied))
    Y = X[..., :3]
    assert batches.gram(Y, X).tobytes() == batches.gram(Y.copy(), copied).tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_matrix_has_the_same_bits_in_any_batch_and_each_time(batches: OpenCLEngine, dtype: str) -> None:
    X = batch((70, 20, 8), dtype)
    whole, moments = batches.gram(X), batches.moments(X)
    assert batches.gram(X).tobytes() == whole.tobytes()
    for some in (slice(0, 1), slice(69, 70), slice(3, 36)):
        assert batches.gram(X[some]).tobytes() == whole[some].tobytes()
        found = batches.moments(X[some])
        for one, all_ in ((found.comoment, moments.comoment), (found.mean, moments.mean)):
            assert one.tobytes() == np.ascontiguousarray(all_[some]).tobytes()


def test_products_of_another_type_than_the_data(batches: OpenCLEngine) -> None:
    X = batch((4, 61, 13), "float64")
    assert_moments(batches.moments(X, dtype=np.dtype(np.float32)), X, "float32")
    X = batch((4, 61, 13), "float32")
    assert_moments(batches.moments(X, dtype=np.dtype(np.float64)), X, "float64")


@pytest.mark.parametrize("dtype", DTYPES)
def test_leading_dimensions_are_kept(engine: Engine, dtype: str) -> None:
    X = batch((6, 12, 5), dtype).reshape(2, 3, 12, 5)
    turned = X.swapaxes(0, 1)
    for Y in (X, turned):
        assert engine.gram(Y).shape == (*Y.shape[:2], 5, 5)
        assert_products(engine.gram(Y), Y.swapaxes(-1, -2), Y)
        assert_products(engine.multiply(Y, Y.swapaxes(-1, -2)), Y, Y.swapaxes(-1, -2))
        found = engine.moments(Y)
        assert found.origin.shape == (*Y.shape[:2], 5)
        assert_moments(found, Y, dtype)


@pytest.mark.parametrize("shape", [(0, 4, 3), (3, 0, 4), (3, 4, 0), (2, 0, 3, 2)])
def test_a_batch_of_nothing(engine: Engine, shape: tuple[int, ...]) -> None:
    X = np.zeros(shape)
    square = (*shape[:-1][:-1], shape[-1], shape[-1])
    assert np.array_equal(engine.gram(X), np.zeros(square))
    assert np.array_equal(engine.multiply(X.swapaxes(-1, -2), X), np.zeros(square))
    found = engine.moments(X)
    assert np.array_equal(found.comoment, np.zeros(square))
    assert found.n == shape[-2]


def test_what_is_no_batch_is_refused(batches: OpenCLEngine) -> None:
    X = batch((3, 4, 5), "float64")
    with pytest.raises(ShapeError, match=r"a batch of \(3,\)"):
        batches.multiply(X, X[:2].swapaxes(1, 2))
    with pytest.raises(InputError, match="int64"):
        batches.gram(X.astype(np.int64))


# what is in it


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_spoils_its_own_rows_and_columns_alone(
    batches: OpenCLEngine, value: float, dtype: str
) -> None:
    X = batch((6, 31, 17), dtype)
    clean, clean_moments = batches.gram(X), batches.moments(X)
    spoilt = X.copy()
    spoilt[2, 30, 16] = spoilt[4, 0, 3] = value
    hit = np.zeros(clean.shape, bool)
    hit[2, 16] = hit[2, :, 16] = hit[4, 3] = hit[4, :, 3] = True
    found = batches.gram(spoilt)
    assert not np.isfinite(found[hit]).any()
    assert found[~hit].tobytes() == clean[~hit].tobytes()
    moments = batches.moments(spoilt)
    assert np.isnan(moments.comoment[hit]).all()
    assert np.isfinite(moments.comoment[~hit]).all()
    others = [0, 1, 3, 5]
    assert moments.comoment[others].tobytes() == clean_moments.comoment[others].tobytes()
    assert np.isnan(moments.origin[[2, 4], [16, 3]]).all()
    assert np.count_nonzero(np.isnan(moments.origin)) == 2
    assert_moments(batches.moments(spoilt[others]), X[others], dtype)


@pytest.mark.parametrize("scale", [1e-170, 1e-300, 5e-324, 1e200, 1e308])
def test_extreme_values_are_as_right_as_one_by_one(batches: OpenCLEngine, scale: float) -> None:
    X = batch((4, 12, 5), "float64", level=0.0) / 8
    X[1] *= scale
    X[2, :, 3] *= scale
    found = batches.moments(X)
    for m in range(len(X)):
        one = batches.moments(X[m])
        variance = np.diagonal(one.comoment)
        bound = 64 * np.finfo(float).eps * np.sqrt(np.outer(variance, variance))
        assert np.array_equal(found.exponent[m], one.exponent)
        assert (np.abs(found.comoment[m] - one.comoment) <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [0.0, 0.1, -1e5 / 3, 1e30])
def test_a_constant_has_exactly_zeros(batches: OpenCLEngine, value: float, dtype: str) -> None:
    X = batch((3, 33, 6), dtype)
    X[1, :, 2] = value
    found = batches.moments(X)
    assert not found.comoment[1, 2].any()
    assert found.origin[1, 2] == X[1, 0, 2]
    assert found.mean[1, 2] == 0
    assert (np.diagonal(found.comoment[0]) > 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_level_costs_no_digits(batches: OpenCLEngine, dtype: str) -> None:
    X = batch((3, 60, 7), "float64", level=0.0).astype(np.float32) / 16
    # multiples of 2**-9 below 2: exact beside the level, in float32 too
    X = np.round(X * 512) / 512
    level = (X + 4096).astype(dtype)
    near, far = batches.moments(X.astype(dtype)), batches.moments(level)
    scale = np.sqrt(np.einsum("mi,mj->mij", *[np.einsum("mii->mi", near.comoment)] * 2))
    assert (np.abs(near.comoment - far.comoment) <= 68 * np.finfo(dtype).eps * scale).all()


def test_only_matrices_that_are_not_ordinary_are_done_again(
    batches: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = batch((40, 20, 8), "float64")
    X[7, 3, 2], X[11, 0, 0], X[31] = np.nan, 1e300, X[31] * 1e-150
    again = []
    real = Engine.moments

    def seen(self: Engine, one: Any, **options: Any) -> Moments:
        again.append(next(m for m in range(len(X)) if np.array_equal(X[m], one, equal_nan=True)))
        return real(self, one, **options)

    monkeypatch.setattr(Engine, "moments", seen)
    monkeypatch.setattr(batches, "centred_from", 1 << 20)
    batches.moments(X)
    assert again == [7, 11, 31]


# moments of a stack


@pytest.mark.parametrize("dtype", DTYPES)
def test_stacked_moments_say_what_each_says_alone(numpy_engine: Engine, dtype: str) -> None:
    X = batch((3, 12, 5), dtype).reshape(3, 1, 12, 5)
    X[1, 0, :, 2] = 7
    X[2, 0, 3, 4] = np.nan
    X = X * np.array([1, 1e-30, 1]).reshape(3, 1, 1, 1).astype(dtype)
    whole, half = numpy_engine.moments(X), numpy_engine.moments(X[..., :5, :])
    merged = half.merge(numpy_engine.moments(X[..., 5:, :]))
    assert whole.columns == merged.columns == 5
    for m in range(3):
        one, part = numpy_engine.moments(X[m, 0]), numpy_engine.moments(X[m, 0, :5])
        together = part.merge(numpy_engine.moments(X[m, 0, 5:]))
        for stack, alone in ((whole, one), (merged, together)):
            assert stack.n == alone.n
            assert stack.covariance()[m, 0].tobytes() == alone.covariance().tobytes()
            assert stack.correlation()[m, 0].tobytes() == alone.correlation().tobytes()
    assert np.isnan(whole.covariance(ddof=12)).all()


def test_a_processor_takes_no_answer_whose_places_are_past_an_int() -> None:
    plans = batch_plan.Processor(Limits(vector_bytes=64, largest_group=1, local_bytes=1 << 20), {4: 16, 8: 8})
    assert plans.product((50_000, 1, 50_000), 4) is None
    assert plans.product((200, 1, 200), 4) is not None
