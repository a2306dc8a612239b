"""Every engine against products in extended precision, at sizes that have edges.

The tolerance of an element is ``inner * eps * (|A| |B|)``, as the contract of `Engine.multiply` says.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from mtbridge.compute import Engine, open_engine
from mtbridge.errors import InputError, OptionError, ShapeError
from mtbridge.matrix import Matrix

SIZES = [
    (1, 1, 1),
    (2, 2, 2),
    (3, 3, 3),
    (1, 300, 1),
    (1, 5, 300),
    (300, 5, 1),
    (31, 31, 31),
    (37, 11, 13),
    (11, 37, 49),
    (255, 255, 255),
    (257, 257, 257),
    (1000, 7, 33),
    (7, 1000, 7),
    (33, 7, 1000),
    (48, 513, 72),
]
DTYPES = ["float32", "float64"]


@cache
def operands(rows: int, inner: int, columns: int, dtype: str) -> tuple[Matrix, Matrix, Matrix, Matrix]:
    """A, B, their product in extended precision, and the tolerance of each element."""
    random = np.random.default_rng([rows, inner, columns])
    A = random.standard_normal((rows, inner)).astype(dtype)
    B = random.standard_normal((inner, columns)).astype(dtype)
    exact = A.astype(np.longdouble) @ B.astype(np.longdouble)
    bound = inner * np.finfo(dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
    return A, B, exact, bound


def placed(X: Matrix, how: str) -> Matrix:
    """The same matrix, lying in memory in another way."""
    if how == "C":
        return np.ascontiguousarray(X)
    if how == "Fortran":
        return np.asfortranarray(X)
    if how == "sliced":
        big = np.full((X.shape[0] * 2 + 1, X.shape[1] * 3 + 1), np.nan, X.dtype)
        big[1::2, 1::3] = X
        return big[1::2, 1::3]
    if how == "cut":
        big = np.full((X.shape[0] + 2, X.shape[1] + 3), np.nan, X.dtype)
        big[1:-1, 1:-2] = X
        return big[1:-1, 1:-2]
    if how == "reversed":
        return X[::-1, ::-1].copy()[::-1, ::-1]
    raw = np.empty(X.size * X.itemsize + 256, np.uint8)
    start = -raw.ctypes.data % 128 + {"one element off": X.itemsize, "aligned": 0, "read-only": 0}[how]
    out = raw[start : start + X.size * X.itemsize].view(X.dtype).reshape(X.shape)
    out[...] = X
    out.flags.writeable = how != "read-only"
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("order", ["C", "Fortran"])
def test_a_product_is_within_its_bound(
    engine: Engine, size: tuple[int, int, int], dtype: str, order: str
) -> None:
    A, B, exact, bound = operands(*size, dtype)
    C = engine.multiply(placed(A, order), placed(B, order))
    assert C.dtype == np.dtype(dtype)
    assert C.shape == exact.shape
    assert (np.abs(C - exact) <= bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("order", ["C", "Fortran"])
def test_a_gram_matrix_is_within_its_bound_and_symmetric_bit_for_bit(
    engine: Engine, size: tuple[int, int, int], dtype: str, order: str
) -> None:
    _, X, _, _ = operands(*size, dtype)
    C = engine.gram(placed(X, order))
    wide = X.astype(np.longdouble)
    bound = len(X) * np.finfo(dtype).eps * (np.abs(X).astype(float).T @ np.abs(X).astype(float))
    assert C.dtype == np.dtype(dtype)
    assert (np.abs(C - wide.T @ wide) <= bound).all()
    assert C.tobytes() == C.T.copy().tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("how", ["sliced", "cut", "reversed", "one element off", "aligned", "read-only"])
def test_where_an_array_lies_in_memory_does_not_change_a_product(
    engine: Engine, dtype: str, how: str
) -> None:
    A, B, exact, bound = operands(37, 11, 13, dtype)
    assert (np.abs(engine.multiply(placed(A, how), placed(B, how)) - exact) <= bound).all()
    wide = A.astype(np.longdouble)
    spread = len(A) * np.finfo(dtype).eps * (np.abs(A).astype(float).T @ np.abs(A).astype(float))
    assert (np.abs(engine.gram(placed(A, how)) - wide.T @ wide) <= spread).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_are_left_as_they_were(engine: Engine, dtype: str) -> None:
    A, B, _, _ = operands(37, 11, 13, dtype)
    left, right = placed(A, "aligned"), placed(B, "aligned")
    engine.multiply(left, right)
    engine.gram(left)
    engine.moments(left)
    assert np.array_equal(left, A)
    assert np.array_equal(right, B)


def test_one_operand_may_be_both(engine: Engine) -> None:
    A = operands(31, 31, 31, "float64")[0]
    left = placed(A, "aligned")
    assert np.allclose(engine.multiply(left, left), A @ A, rtol=0, atol=1e-12)
    assert np.allclose(engine.multiply(left.T, left), A.T @ A, rtol=0, atol=1e-12)


def test_an_earlier_answer_is_not_overwritten_by_a_later_one(engine: Engine) -> None:
    A, B, _, _ = operands(37, 11, 13, "float64")
    first = engine.multiply(A, B)
    kept = first.copy()
    engine.multiply(2 * A, B)
    engine.gram(A)
    assert np.array_equal(first, kept)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_same_call_gives_the_same_bits(engine: Engine, dtype: str) -> None:
    A, B, _, _ = operands(257, 257, 257, dtype)
    products = {engine.multiply(A, B).tobytes() for _ in range(3)}
    grams = {engine.gram(A).tobytes() for _ in range(3)}
    moments = {engine.moments(A).comoment.tobytes() for _ in range(3)}
    assert len(products) == len(grams) == len(moments) == 1


@pytest.mark.parametrize("shape", [(0, 0, 0), (0, 3, 2), (3, 0, 2), (3, 2, 0), (0, 0, 4), (4, 0, 0)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_an_empty_size_gives_zeros_of_the_right_shape(
    engine: Engine, shape: tuple[int, int, int], dtype: str
) -> None:
    rows, inner, columns = shape
    C = engine.multiply(np.ones((rows, inner), dtype), np.ones((inner, columns), dtype))
    assert C.shape == (rows, columns)
    assert C.dtype == np.dtype(dtype)
    assert not C.any()
    G = engine.gram(np.ones((rows, inner), dtype))
    assert G.shape == (inner, inner)
    assert (rows == G).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_leading_dimensions_are_a_batch(engine: Engine, dtype: str) -> None:
    random = np.random.default_rng(4)
    A = random.standard_normal((2, 3, 5, 7)).astype(dtype)
    B = random.standard_normal((2, 3, 7, 4)).astype(dtype)
    tolerance = 7 * np.finfo(dtype).eps * (np.abs(A) @ np.abs(B)).max()
    assert np.abs(engine.multiply(A, B) - A.astype(float) @ B.astype(float)).max() <= tolerance
    G = engine.gram(A)
    assert G.shape == (2, 3, 7, 7)
    assert np.array_equal(G[1, 2], engine.gram(A[1, 2]))
    cross = engine.gram(A, np.swapaxes(B, -1, -2)[:, :, :1, :].repeat(5, axis=2))
    assert cross.shape == (2, 3, 7, 7)


def test_a_batch_of_nothing_is_empty(engine: Engine) -> None:
    assert engine.multiply(np.ones((0, 2, 3)), np.ones((0, 3, 4))).shape == (0, 2, 4)
    assert engine.gram(np.ones((0, 2, 3))).shape == (0, 3, 3)


def test_gram_of_two_matrices_is_their_cross_product(engine: Engine) -> None:
    X, Y, _, _ = operands(31, 31, 31, "float64")
    exact = X.T.astype(np.longdouble) @ Y
    bound = 31 * np.finfo(float).eps * (np.abs(X.T) @ np.abs(Y))
    assert (np.abs(engine.gram(X, Y) - exact) <= bound).all()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nan_and_inf_stay_in_their_rows_and_columns(engine: Engine, value: float, dtype: str) -> None:
    A = np.ones((37, 53), dtype)
    A[5, 7] = value
    C = engine.multiply(A, np.ones((53, 50), dtype))
    assert np.isfinite(np.delete(C, 5, axis=0)).all()
    assert not np.isfinite(C[5]).any()
    G = engine.gram(A)
    others = np.arange(53) != 7
    assert (G[np.ix_(others, others)] == 37).all()
    assert not np.isfinite(G[7]).any()


def test_inf_times_zero_is_nan_as_in_ieee(engine: Engine) -> None:
    A = np.zeros((3, 3))
    A[0, 0] = np.inf
    C = engine.multiply(A, np.zeros((3, 3)))
    assert np.isnan(C[0]).all()
    assert (C[1:] == 0).all()


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        ((2, 3), (4, 5), "A has 3 columns but B has 4 rows"),
        ((2, 2, 3), (3, 3, 5), "batch"),
        ((2, 3), (1, 3, 5), "batch"),
    ],
)
def test_sizes_that_do_not_fit_are_a_shape_error(
    engine: Engine, left: tuple[int, ...], right: tuple[int, ...], words: str
) -> None:
    with pytest.raises(ShapeError, match=words):
        engine.multiply(np.ones(left), np.ones(right))


def test_two_dtypes_are_a_shape_error(engine: Engine) -> None:
    with pytest.raises(ShapeError, match="float32 but B is float64"):
        engine.multiply(np.ones((2, 2), np.float32), np.ones((2, 2)))


def test_gram_of_matrices_of_different_rows_is_a_shape_error(engine: Engine) -> None:
    with pytest.raises(ShapeError, match="X has 2 rows but Y has 3"):
        engine.gram(np.ones((2, 4)), np.ones((3, 4)))


def test_float32_moments_are_summed_in_float64(engine: Engine) -> None:
    """Summed in float32, 200,000 rows would lose three digits."""
    X = np.random.default_rng(9).standard_normal((200_000, 3)).astype(np.float32)
    found = engine.moments(X).covariance()
    exact = np.cov(X.astype(float), rowvar=False)
    scale = np.sqrt(np.outer(np.diagonal(exact), np.diagonal(exact)))
    assert (np.abs(found - exact) / scale).max() < 1e-6


def test_upload_and_download_give_the_matrix_back(engine: Engine) -> None:
    X = operands(37, 11, 13, "float64")[0]
    assert np.array_equal(engine.download(engine.upload(X)), X)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "Fortran", "sliced", "one element off"])
def test_uploaded_matrices_multiply_where_they_are(engine: Engine, dtype: str, order: str) -> None:
    A, B, exact, bound = operands(37, 11, 13, dtype)
    left, right = engine.upload(placed(A, order)), engine.upload(placed(B, order))
    for _ in range(3):
        C = engine.download(engine.multiply(left, right))
        assert C.dtype == np.dtype(dtype)
        assert (np.abs(C - exact) <= bound).all()
        G = engine.download(engine.gram(left))
        wide = A.astype(np.longdouble)
        spread = 37 * np.finfo(dtype).eps * (np.abs(A).astype(float).T @ np.abs(A).astype(float))
        assert (np.abs(G - wide.T @ wide) <= spread).all()
        assert np.array_equal(G, G.T)


def test_an_uploaded_matrix_does_not_follow_the_array_that_it_came_from(opencl_engine: Engine) -> None:
    X = placed(operands(37, 11, 13, "float64")[0], "aligned")
    kept = X.copy()
    there = opencl_engine.upload(X)
    X[...] = 0
    assert np.array_equal(opencl_engine.download(there), kept)


def test_an_engine_may_be_closed_twice_and_says_what_it_is() -> None:
    with open_engine("numpy") as engine:
        assert engine.name == "numpy"
        assert engine.device in repr(engine)
    engine.close()
    engine.close()


def test_an_unknown_engine_is_refused_with_the_ones_there_are() -> None:
    with pytest.raises(OptionError, match=r"'cuda'.*auto, opencl, numpy, serial"):
        open_engine("cuda")


@pytest.mark.parametrize(
    "wrong", [np.ones(3), np.ones((3, 3), int), np.ones((3, 3), ">f8"), np.ones((3, 3), bool)]
)
def test_what_is_no_matrix_of_floats_is_refused(engine: Engine, wrong: Any) -> None:
    right = np.eye(3)
    for call in (
        lambda: engine.multiply(wrong, right),
        lambda: engine.multiply(right, wrong),
        lambda: engine.gram(wrong),
        lambda: engine.gram(right, wrong),
    ):
        with pytest.raises(InputError, match=r"dimensions|convert"):
            call()


def test_an_array_beside_an_uploaded_matrix_may_be_changed_at_once(opencl_engine: Engine) -> None:
    random = np.random.default_rng(4)
    A, B = random.standard_normal((2, 900, 900))
    there = opencl_engine.upload(A)
    for _ in range(3):
        spare = np.repeat(B, 2, axis=1)[:, ::2]
        product = opencl_engine.multiply(there, spare)
        spare[...] = 7.0
        assert np.allclose(opencl_engine.download(product), A @ B)
