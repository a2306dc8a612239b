"""One matrix shared by several engines: on the processor's device, each with a queue of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import exact
import numpy as np
import pytest
from given_matrices import lying
from given_several import BLOCK, KINDS, among, assert_product, normal, prices, three_engines

from mtbridge.compute import Engine, masked, operations
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.several import SeveralEngine
from mtbridge.errors import ShapeError
from mtbridge.matrix import DTYPES, Matrix

COLUMNS = [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 53]


@pytest.fixture(scope="module", params=KINDS)
def engines(
    request: pytest.FixtureRequest, verdict: Verdict, open_tiled: Callable[[], OpenCLEngine]
) -> Iterator[list[OpenCLEngine]]:
    opened = three_engines(request.param, open_tiled)
    yield opened
    for engine in opened:
        engine.close()


@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", COLUMNS)
def test_a_shared_gram_matrix_is_right_and_symmetric_bit_for_bit(
    engines: list[OpenCLEngine], columns: int, dtype: str, order: str
) -> None:
    X = normal(37, columns, dtype, order)
    shared = among(engines)
    C = shared.gram(X)
    assert_product(C, X.T, X)
    assert np.array_equal(C, C.T)
    assert (shared.used is shared) == (columns > BLOCK)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, BLOCK, 47])
@pytest.mark.parametrize("inner", [1, 2, 211])
@pytest.mark.parametrize("columns", [1, BLOCK + 1, 53])
def test_a_shared_product_is_right(
    engines: list[OpenCLEngine], rows: int, inner: int, columns: int, dtype: str, order: str
) -> None:
    A, B = normal(rows, inner, dtype, order), normal(inner, columns, dtype, order)
    shared = among(engines, 3)
    assert_product(shared.multiply(A, B), A, B)
    assert (shared.used is shared) == (max(rows, columns) > BLOCK)


def test_batches_and_products_of_two_matrices_are_shared_one_by_one(engines: list[OpenCLEngine]) -> None:
    shared = among(engines)
    stack = np.stack([normal(29, 40), normal(31, 40)[:29]])
    for C, X in zip(shared.gram(stack), stack, strict=True):
        assert_product(C, X.T, X)
    Y = normal(29, 7)
    assert_product(shared.gram(stack[0], Y), stack[0].T, Y)
    assert shared.used is shared
    with pytest.raises(ShapeError, match="must be equal"):
        shared.multiply(Y, Y)


@pytest.mark.parametrize("shape", [(0, 40), (7, 0), (0, 0)])
def test_a_matrix_of_nothing_is_left_to_the_first_device(
    engines: list[OpenCLEngine], shape: tuple[int, int]
) -> None:
    shared = among(engines)
    X = np.zeros(shape)
    assert np.array_equal(shared.gram(X), np.zeros((shape[1], shape[1])))
    moments = shared.moments(X)
    assert (moments.n, moments.columns) == shape
    assert shared.used is engines[0]


def answers(shared: Engine, X: Matrix) -> list[bytes]:
    """The bytes of everything that is shared."""
    found = [shared.gram(X), shared.multiply(X.T, X[:, ::-1])]
    for dtype in DTYPES:
        moments = shared.moments(X, dtype=np.dtype(dtype))
        found += [moments.comoment, moments.origin, moments.exponent, moments.mean]
    return [np.ascontiguousarray(array).tobytes() for array in found]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 53), (300, 97), (1009, 2 * BLOCK)])
def test_bits_are_the_same_each_time_and_for_any_number_of_devices(
    engines: list[OpenCLEngine], rows: int, columns: int, dtype: str
) -> None:
    X = prices(rows, columns, dtype)
    first = answers(among(engines, 1), X)
    for count in (2, 3, 3, 2):
        assert answers(among(engines, count), X) == first


@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(2, 17), (300, 53), (1009, 33)])
def test_shared_moments_are_those_of_one_engine(
    engines: list[OpenCLEngine], rows: int, columns: int, source: str, dtype: str, order: str
) -> None:
    X = lying(prices(rows, columns, source), order)
    shared, kind = among(engines), np.dtype(dtype)
    found, alone = shared.moments(X, dtype=kind), engines[2].moments(X, dtype=kind)
    assert shared.used is shared
    wide = X.astype(np.longdouble)
    wide -= wide.mean(axis=0)
    right = wide.T @ wide
    scale = np.sqrt(np.outer(np.diagonal(right), np.diagonal(right))).astype(float)
    # as for one device: eps of the products, and that of a deviation from an origin near 2000
    tolerance = 4e-7 if dtype == "float32" else 1e-12
    for moments in (found, alone):
        z = np.ldexp(moments.comoment, (moments.exponent[:, np.newaxis] + moments.exponent).astype(np.int32))
        assert (np.abs(z - right) <= tolerance * scale).all()
    assert np.array_equal(found.comoment, found.comoment.T)
    assert np.array_equal(found.exponent, alone.exponent)
    level = found.origin + np.ldexp(found.mean, found.exponent.astype(np.int32))
    assert np.abs(level - X.astype(np.longdouble).mean(axis=0)).max() < 1e-11


@pytest.mark.parametrize("statistic", ["covariance", "correlation"])
def test_shared_statistics_are_those_of_exact_arithmetic(engines: list[OpenCLEngine], statistic: str) -> None:
    X = 1e5 + 0.01 * normal(23, BLOCK + 3)
    X[:, 4] = 1e5
    X[:, BLOCK + 1] *= 1e-170
    X[:, BLOCK] *= 1e150
    shared = among(engines)
    found = getattr(operations, statistic)(X, engine=shared)
    assert found.device == shared.device
    assert found.device.startswith("2 x ")
    for i in range(X.shape[1]):
        for j in range(i, X.shape[1]):
            right = getattr(exact, statistic)(X[:, i], X[:, j])
            if np.isnan(right):
                assert np.isnan(found.matrix[i, j])
                continue
            scale = 1.0 if statistic == "correlation" else exact.scale(X[:, i], X[:, j]) / (len(X) - 1)
            # eps of a level of 1e5 beside deviations of 0.01
            assert abs(found.matrix[i, j] - right) <= 2e-9 * scale
    assert found.matrix.tobytes() == found.matrix.T.tobytes()


def hostile(rows: int) -> Matrix:
    """Columns of every kind, some beside each other in one block, others in blocks far apart."""
    X = prices(rows, 3 * BLOCK + 5)
    X[rows // 2, 1] = np.inf
    X[3, 2 * BLOCK] = -np.inf
    X[:, 5] = 0.1
    X[:, 3 * BLOCK] = 1e9 + 0.1
    X[:, 7] *= 1e200
    X[:, BLOCK + 2] *= 1e-170
    X[:, 2 * BLOCK + 1] = np.where(np.arange(rows) % 2, 1.7e308, -1.7e308)
    X[:, -1] = X[:, 0]
    return X


@pytest.mark.parametrize("dtype", DTYPES)
def test_hostile_columns_harm_nobody_else_wherever_they_stand(
    engines: list[OpenCLEngine], numpy_engine: Engine, dtype: str
) -> None:
    X, shared = hostile(101), among(engines, 3)
    found = shared.moments(X, dtype=np.dtype(dtype))
    right = numpy_engine.moments(X)
    assert shared.used is shared
    for statistic in ("covariance", "correlation"):
        mine, theirs = (getattr(moments, statistic)() for moments in (found, right))
        assert np.array_equal(np.isnan(mine), np.isnan(theirs))
        assert np.array_equal(np.isinf(mine), np.isinf(theirs))
        variances = np.abs(np.diagonal(theirs))
        finite = np.isfinite(theirs)
        with np.errstate(invalid="ignore", over="ignore"):
            scale = np.sqrt(variances)[:, np.newaxis] * np.sqrt(variances)
            near = np.abs(mine - theirs) <= (1e-6 if dtype == "float32" else 1e-11) * scale
        # a scale past the range of float64, at either end, says nothing
        assert near[finite & np.isfinite(scale) & (scale > 0)].all()
    lost = np.isinf(X).any(axis=0)
    for constant in (5, 3 * BLOCK):
        assert (found.comoment[constant, ~lost] == 0).all()
    assert found.comoment.tobytes() == found.comoment.T.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_columns_in_different_blocks_correlate_by_exactly_one(
    engines: list[OpenCLEngine], dtype: str
) -> None:
    X = np.repeat(prices(700, 1), 53, axis=1)
    assert (among(engines, 3).moments(X, dtype=np.dtype(dtype)).correlation() == 1).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_infinities_and_nan_stay_in_their_rows_and_columns_of_a_gram_matrix(
    engines: list[OpenCLEngine], dtype: str
) -> None:
    X = normal(40, 50, dtype)
    X[3, 2], X[4, 20], X[5, 49] = np.inf, -np.inf, np.nan
    C = among(engines).gram(X)
    with np.errstate(invalid="ignore"):
        right = X.T @ X
    assert np.array_equal(np.isnan(C), np.isnan(right))
    assert np.array_equal(C[np.isinf(right)], right[np.isinf(right)])


def test_complete_pairs_are_shared_and_pairs_with_gaps_are_not(engines: list[OpenCLEngine]) -> None:
    X, shared = prices(200, 53), among(engines)
    assert shared.pair_moments(X).comoment.tobytes() == shared.moments(X).comoment.tobytes()
    assert shared.used is shared
    X[7, 3] = np.nan
    assert masked.holds_missing(X)
    found, alone = shared.pair_moments(X), engines[0].pair_moments(X)
    assert shared.used is engines[0]
    assert found.comoment.tobytes() == alone.comoment.tobytes()


def test_what_lies_on_a_device_windows_and_ranks_are_left_to_the_first(engines: list[OpenCLEngine]) -> None:
    X, shared = normal(30, 40), among(engines)
    held = shared.upload(X)
    for C in (shared.gram(held), shared.multiply(held.transposed, X)):
        assert_product(shared.download(C), X.T, X)  # type: ignore[arg-type]
    assert_product(shared.download(shared.gram(held, held)), X.T, X)  # type: ignore[arg-type]
    assert np.allclose(shared.moments(held).covariance(), np.cov(X, rowvar=False))  # type: ignore[arg-type]
    assert np.array_equal(shared.spearman(X)[0], engines[0].spearman(X)[0])
    assert np.array_equal(shared.kendall(X)[0], engines[0].kendall(X)[0])
    assert len(shared.lagged_moments(X, [0, 1])) == 2
    assert shared.empty_pinned((3, 2)).shape == (3, 2)
    assert shared.dtypes == engines[0].dtypes
    assert shared.used is engines[0]
    assert "on one device" in shared.why


@pytest.mark.parametrize("tiled", [False, True])
def test_blocks_past_the_largest_buffer_are_cut_by_each_engine_alike(
    verdict: Verdict, open_tiled: Callable[..., OpenCLEngine], tiled: bool
) -> None:
    largest = 40_000
    opened = [open_tiled(largest) if tiled else open_opencl("cpu", largest_buffer=largest) for _ in range(3)]
    X = prices(601, 53)
    first = None
    for count in (1, 2, 3):
        with SeveralEngine(dict(enumerate(opened[:count])), block=BLOCK) as shared:
            C = shared.gram(X)
            assert_product(C, X.T, X)
            assert first in (None, C.tobytes())
            first = C.tobytes()
            scale = np.sqrt(np.diagonal(np.cov(X, rowvar=False)))
            error = np.abs(shared.moments(X).covariance() - np.cov(X, rowvar=False))
            assert (error <= 1e-12 * np.outer(scale, scale)).all()


def test_a_block_that_no_longer_fits_makes_room_for_the_next(verdict: Verdict) -> None:
    """Two blocks of 40 x 16 float64 fit the largest buffer, where five are needed."""
    with open_opencl("cpu", largest_buffer=2 * 40 * BLOCK * 8) as one, open_opencl("cpu") as roomy:
        X = normal(40, 5 * BLOCK)
        found = SeveralEngine({0: one}, block=BLOCK).gram(X)
        assert found.tobytes() == SeveralEngine({0: roomy}, block=BLOCK).gram(X).tobytes()
