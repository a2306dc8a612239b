"""One matrix shared by several engines: on the processor's device, each with a queue of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import exact
import numpy as np
import pytest
from given_matrices import lying
from given_several import KINDS, LEAST, among, assert_product, normal, prices, three_engines

from mtbridge.compute import Engine, masked, operations
from mtbridge.compute.devices import Verdict
from mtbridge.compute.nvidia import tensor_core_form
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.several import SeveralEngine
from mtbridge.errors import ShapeError
from mtbridge.matrix import DTYPES, Matrix

COLUMNS = [1, 2, LEAST - 1, LEAST, 32, 33, 73, 150]


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
    assert (shared.used is shared) == (columns >= LEAST)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rows", [1, 32, 150])
@pytest.mark.parametrize("inner", [1, 2, 211])
@pytest.mark.parametrize("columns", [1, 33, 53])
def test_a_shared_product_is_right(
    engines: list[OpenCLEngine], rows: int, inner: int, columns: int, dtype: str, order: str
) -> None:
    A, B = normal(rows, inner, dtype, order), normal(inner, columns, dtype, order)
    shared = among(engines, 3)
    assert_product(shared.multiply(A, B), A, B)
    assert (shared.used is shared) == (max(rows, columns) >= LEAST)


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
@pytest.mark.parametrize(("rows", "columns"), [(1, 150), (300, 97), (1009, 64)])
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
@pytest.mark.parametrize(("rows", "columns"), [(2, 33), (300, 150), (1009, 64)])
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
    X = 1e5 + 0.01 * normal(23, 35)
    X[:, 4] = 1e5
    X[:, 33] *= 1e-170
    X[:, 32] *= 1e150
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
    """Columns of every kind, some beside each other in one stripe, others in stripes far apart."""
    X = prices(rows, 101)
    X[rows // 2, 1] = np.inf
    X[3, 64] = -np.inf
    X[:, 5] = 0.1
    X[:, 96] = 1e9 + 0.1
    X[:, 7] *= 1e200
    X[:, 34] *= 1e-170
    X[:, 65] = np.where(np.arange(rows) % 2, 1.7e308, -1.7e308)
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
    for constant in (5, 96):
        assert (found.comoment[constant, ~lost] == 0).all()
    assert found.comoment.tobytes() == found.comoment.T.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_columns_in_different_stripes_correlate_by_exactly_one(
    engines: list[OpenCLEngine], dtype: str
) -> None:
    X = np.repeat(prices(700, 1), 150, axis=1)
    assert (among(engines, 3).moments(X, dtype=np.dtype(dtype)).correlation() == 1).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_infinities_and_nan_stay_in_their_rows_and_columns_of_a_gram_matrix(
    engines: list[OpenCLEngine], dtype: str
) -> None:
    X = normal(40, 150, dtype)
    X[3, 2], X[4, 70], X[5, 149] = np.inf, -np.inf, np.nan
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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 150), (37, 97), (300, 150), (1009, 64)])
def test_shared_bits_are_those_of_one_device_alone(
    engines: list[OpenCLEngine], rows: int, columns: int, dtype: str
) -> None:
    X, shared = prices(rows, columns, dtype), among(engines, 3)
    assert shared.gram(X).tobytes() == engines[0].gram(X).tobytes()
    for kind in map(np.dtype, DTYPES):
        found, alone = shared.moments(X, dtype=kind), centred_by(engines[0]).moments(X, dtype=kind)
        assert shared.used is shared
        for name in ("comoment", "origin", "exponent", "mean"):
            assert getattr(found, name).tobytes() == getattr(alone, name).tobytes(), name


@pytest.mark.parametrize("dtype", DTYPES)
def test_shared_covariances_have_the_bits_of_one_device_and_may_be_written_to_an_array(
    engines: list[OpenCLEngine], dtype: str
) -> None:
    X, shared, kind = prices(300, 150, dtype), among(engines, 3), np.dtype(dtype)
    alone = centred_by(engines[0]).complete_covariance(X, dtype=kind, ddof=1)
    out = np.full((150, 150), np.nan, kind)
    found = shared.complete_covariance(X, dtype=kind, ddof=1, out=out)
    if engines[0]._packed:
        # a processor leaves them to its moments
        assert alone is found is None
        return
    assert shared.used is shared
    assert alone is not None
    assert found is not None
    assert found.matrix is out
    assert out.tobytes() == alone.matrix.tobytes()
    assert np.array_equal(found.exponent, alone.exponent)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_covariance_of_columns_that_miss_something_is_left_to_moments(
    engines: list[OpenCLEngine], bad: float
) -> None:
    X, shared = prices(60, 97), among(engines)
    X[3, 40] = bad
    for _ in range(2):
        assert shared.complete_covariance(X, dtype=X.dtype, ddof=1) is None
    X[3, 40] = X[2, 40]
    assert engines[0]._packed or shared.complete_covariance(X, dtype=X.dtype, ddof=1) is not None


@pytest.mark.parametrize("dtype", DTYPES)
def test_shared_answers_are_written_to_an_array_that_is_given(
    engines: list[OpenCLEngine], dtype: str
) -> None:
    X, shared = normal(37, 97, dtype), among(engines)
    out = np.full((97, 97), np.nan, dtype)
    assert shared.gram(X, out=out) is out
    assert out.tobytes() == shared.gram(X).tobytes()
    out.fill(np.nan)
    assert shared.multiply(X.T, X, out=out) is out
    assert shared.used is shared
    assert_product(out, X.T, X)


def test_a_matrix_past_the_largest_buffer_is_left_to_the_first(
    open_tiled: Callable[..., OpenCLEngine],
) -> None:
    X = prices(601, 53)
    with SeveralEngine({0: open_tiled(40_000), 1: open_tiled(40_000)}, least=LEAST) as shared:
        assert_product(shared.gram(X), X.T, X)
        assert shared.used is shared.first
        scale = np.sqrt(np.diagonal(np.cov(X, rowvar=False)))
        error = np.abs(shared.moments(X).covariance() - np.cov(X, rowvar=False))
        assert (error <= 1e-12 * np.outer(scale, scale)).all()


@pytest.mark.parametrize("family", ["dmma", "split_wgmma", "split_mma"])
def test_kernels_for_tensor_cores_are_shared_with_the_bits_of_one_device(
    open_tiled: Callable[[], OpenCLEngine], family: str
) -> None:
    """In plain OpenCL C: their tiles are cut into slices or pieces, by which bits go."""
    dtype = np.dtype(np.float64 if family == "dmma" else np.float32)
    opened = [open_tiled(), open_tiled()]
    for engine in opened:
        engine.centred_from = 0
        if family == "dmma":
            engine._use("float64", tensor_core_form(0))
        else:
            engine.use_halves(0, family)
    # deep enough for slices where there are few units, and hostile columns for those that the host centres
    with SeveralEngine(dict(enumerate(opened)), least=LEAST) as shared:
        X = prices(700, 333, dtype.name)
        assert shared.gram(X).tobytes() == opened[0].gram(X).tobytes()
        for some in (X, hostile(150)):
            found, alone = shared.moments(some, dtype=dtype), opened[0].moments(some, dtype=dtype)
            assert shared.used is shared
            assert found.comoment.tobytes() == alone.comoment.tobytes()
            assert found.mean.tobytes() == alone.mean.tobytes()
        one, both = (e.complete_covariance(X, dtype=dtype, ddof=1) for e in (opened[0], shared))
        assert one is not None
        assert both is not None
        assert both.matrix.tobytes() == one.matrix.tobytes()


def centred_by(engine: OpenCLEngine) -> OpenCLEngine:
    """The engine, which centres small matrices on its device too."""
    engine.centred_from = 0
    return engine
