"""What a result says of itself besides its matrix: eigenvalues, condition, effective rows, notes."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import mtbridge
from mtbridge.compute import Engine
from mtbridge.errors import InputError, MissingValueError, OptionError, ShapeError
from mtbridge.matrix import Result, triangle_side, unpacked


def result(matrix: object, *, packed: bool = False) -> Result:
    return Result(np.asarray(matrix, float), None, None, 9, "numpy", "host", 0.5, packed=packed)


def test_eigenvalues_and_condition_are_those_of_numpy(engine: Engine) -> None:
    X = np.random.default_rng(0).standard_normal((50, 6))
    found = mtbridge.covariance(X, engine=engine, full=True)
    values = np.linalg.eigvalsh(np.cov(X, rowvar=False))
    assert found.smallest_eigenvalue == pytest.approx(values[0], rel=1e-10)
    assert found.condition_number == pytest.approx(values[-1] / values[0], rel=1e-10)
    assert found.effective_rows == 50


def test_a_stack_has_one_of_each_a_window() -> None:
    X = np.random.default_rng(0).standard_normal((30, 3))
    found = mtbridge.rolling(X, 10, engine="numpy").covariance(full=True)
    smallest = found.smallest_eigenvalue
    assert isinstance(smallest, np.ndarray)
    assert smallest.shape == (30,)
    assert np.isnan(smallest[:9]).all()
    right = np.linalg.eigvalsh(found.matrix[9:])
    np.testing.assert_allclose(smallest[9:], right[:, 0], rtol=1e-10)
    np.testing.assert_allclose(found.condition_number[9:], right[:, -1] / right[:, 0], rtol=1e-10)
    np.testing.assert_array_equal(found.effective_rows, np.minimum(np.arange(1, 31), 10))
    last = mtbridge.rolling(X, 10, engine="numpy").covariance(full=True, last=True)
    assert last.effective_rows == 10
    assert last.smallest_eigenvalue == pytest.approx(smallest[-1], rel=1e-10)


def test_a_packed_stack_has_the_same_ones() -> None:
    X = np.random.default_rng(1).standard_normal((20, 4))
    windows = mtbridge.ewm(X, span=8, engine="numpy")
    whole, packed = windows.covariance(full=True), windows.covariance(full=True, packed=True)
    assert packed.packed
    np.testing.assert_allclose(packed.smallest_eigenvalue, whole.smallest_eigenvalue, rtol=1e-12)
    np.testing.assert_array_equal(unpacked(packed.matrix), whole.matrix)
    assert windows.covariance(full=True, packed=True, last=True).smallest_eigenvalue == pytest.approx(
        whole.smallest_eigenvalue[-1], rel=1e-9
    )


def test_matrices_far_from_one_have_eigenvalues_too() -> None:
    assert result(np.diag([2e-300, 4e-300])).smallest_eigenvalue == pytest.approx(2e-300)
    assert result(np.diag([2e300, 8e300])).condition_number == pytest.approx(4)
    assert result(np.zeros((2, 2))).smallest_eigenvalue == 0
    assert result(np.ones((2, 2)) * 0.5).smallest_eigenvalue == pytest.approx(0, abs=1e-15)
    assert result(np.diag([1.0, 0.0])).condition_number == np.inf


def test_nan_and_inf_have_none() -> None:
    assert np.isnan(result([[1.0, np.nan], [np.nan, 1.0]]).smallest_eigenvalue)
    assert np.isnan(result([[1.0, np.inf], [np.inf, 1.0]]).condition_number)


@pytest.mark.parametrize(
    "matrix",
    [np.ones((2, 3)), [[1.0, 2.0], [3.0, 4.0]], np.ones((0, 0)), [[[1.0, 2.0], [0.0, 1.0]]], np.ones(3)],
    ids=["oblong", "not-symmetric", "empty", "lag", "series"],
)
def test_what_is_no_symmetric_matrix_is_refused(matrix: object) -> None:
    with pytest.raises(ShapeError):
        _ = result(matrix).smallest_eigenvalue


def test_lengths_that_are_no_triangle_are_refused() -> None:
    assert [triangle_side(length) for length in (0, 1, 3, 6, 10)] == [0, 1, 2, 3, 4]
    with pytest.raises(ShapeError, match="5 elements"):
        triangle_side(5)


def test_effective_rows_of_gaps_are_those_of_the_shortest_pair(engine: Engine) -> None:
    X = np.random.default_rng(0).standard_normal((20, 3))
    X[:4, 0] = X[15:, 1] = np.nan
    found = mtbridge.correlation(X, engine=engine, full=True)
    assert found.counts is not None
    assert found.counts.tolist() == [[16, 11, 16], [11, 15, 15], [16, 15, 20]]
    assert found.effective_rows == 11
    assert mtbridge.rolling(X, 5, engine=engine).correlation(full=True).effective_rows is None
    assert mtbridge.correlation(X, engine=engine, missing="drop", full=True).effective_rows == 11


@pytest.mark.parametrize("adjust", [True, False])
def test_effective_rows_of_decaying_weights_are_kishs(adjust: bool) -> None:
    X = np.random.default_rng(0).standard_normal((9, 2))
    found = mtbridge.ewm(X, alpha=0.3, adjust=adjust, engine="numpy").covariance(full=True)
    weights = 0.7 ** np.arange(9)[::-1]
    if not adjust:
        weights[1:] *= 0.3
    kish = weights.sum() ** 2 / (weights**2).sum()
    assert isinstance(found.effective_rows, np.ndarray)
    assert found.effective_rows[-1] == pytest.approx(kish, rel=1e-12)
    assert found.effective_rows[0] == 1


def test_weighted_matrices_equal_numpy_and_say_kishs_rows(engine: Engine) -> None:
    random = np.random.default_rng(0)
    X, shares, counts = random.standard_normal((30, 3)), random.random(30), random.integers(0, 4, 30)
    found = mtbridge.covariance(X, weights=shares, engine=engine, full=True)
    np.testing.assert_allclose(found.matrix, np.cov(X, rowvar=False, aweights=shares), rtol=1e-12)
    assert found.effective_rows == pytest.approx(shares.sum() ** 2 / (shares**2).sum())
    often = mtbridge.covariance(X, weights=counts, weight_kind="frequency", ddof=0, engine=engine)
    np.testing.assert_allclose(often, np.cov(X, rowvar=False, fweights=counts, ddof=0), rtol=1e-12)
    together = mtbridge.correlation(X, weights=counts, weight_kind="frequency", engine=engine)
    np.testing.assert_allclose(together, np.corrcoef(np.repeat(X, counts, axis=0), rowvar=False), rtol=1e-12)


def test_weights_of_a_series_must_have_the_rows_of_the_data() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((5, 2)), list("vwxyz"), ["A", "B"])
    weights = pd.Series([1, 2, 3, 4, 5.0], list("vwxyz"))
    found = mtbridge.covariance(frame, weights=weights, engine="numpy")
    np.testing.assert_allclose(found, np.cov(frame, rowvar=False, aweights=weights), rtol=1e-12)
    with pytest.raises(ShapeError, match="different labels"):
        mtbridge.covariance(frame, weights=weights[::-1], engine="numpy")


def test_rows_that_are_dropped_take_their_weights_along() -> None:
    X = np.random.default_rng(0).standard_normal((8, 2))
    weights = np.arange(1.0, 9)
    X[2, 1] = np.nan
    with pytest.raises(MissingValueError, match="drop"):
        mtbridge.covariance(X, weights=weights, engine="numpy")
    found = mtbridge.covariance(X, weights=weights, missing="drop", engine="numpy")
    kept = np.arange(8) != 2
    right = np.cov(X[kept], rowvar=False, aweights=weights[kept])
    np.testing.assert_allclose(found, right, rtol=1e-12)
    few = mtbridge.covariance(X, weights=weights, missing="drop", min_periods=8, engine="numpy")
    assert np.isnan(few).all()


@pytest.mark.parametrize(
    ("weights", "options"),
    [
        ([1.0, 2.0], {}),
        ([1.0, -2.0, 1.0], {}),
        ([1.0, np.nan, 1.0], {}),
        (["1", "2", "3"], {}),
        ([0.0, 0.0, 0.0], {}),
        ([1.0, 0.5, 1.0], {"weight_kind": "frequency"}),
        ([1.0, 1.0, 1.0], {"weight_kind": "analytic"}),
        ([1.0, 1.0, -1.0], {"missing": "drop"}),
        ([1.0, 1.0], {"missing": "drop"}),
        ([1.0, 1.0, 1.0], {"missing": "fill"}),
    ],
    ids=str,
)
def test_weights_that_are_wrong_are_refused(weights: object, options: dict[str, object]) -> None:
    X = [[1.0, 2.0], [2.0, 1.0], [4.0, 3.0]]
    for function in (mtbridge.covariance, mtbridge.correlation):
        with pytest.raises(InputError):
            function(X, weights=weights, engine="numpy", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("method", ["spearman", "kendall"])
def test_rank_correlations_equal_pandas(engine: Engine, method: str) -> None:
    random = np.random.default_rng(2)
    frame = pd.DataFrame(random.integers(0, 9, (60, 4)).astype(float), columns=list("abcd"))
    frame = frame.mask(random.random(frame.shape) < 0.15)
    found = mtbridge.correlation(frame, method=method, engine=engine)
    pd.testing.assert_frame_equal(found, frame.corr(method), rtol=1e-12)
    complete = mtbridge.correlation(frame, method=method, missing="drop", engine=engine)
    pd.testing.assert_frame_equal(complete, frame.dropna().corr(method), rtol=1e-12)
    few = mtbridge.correlation(frame, method=method, min_periods=61, engine=engine)
    assert few.isna().to_numpy().all()
    with pytest.raises(MissingValueError, match="column a"):
        mtbridge.correlation(frame, method=method, missing="error", engine=engine)


def test_rank_correlations_take_no_weights_and_no_other_method() -> None:
    X = [[1.0, 2.0], [2.0, 1.0], [4.0, 3.0]]
    with pytest.raises(OptionError, match="no weights"):
        mtbridge.correlation(X, method="spearman", weights=[1, 1, 1], engine="numpy")
    with pytest.raises(OptionError, match="'gamma'"):
        mtbridge.correlation(X, method="gamma", engine="numpy")  # type: ignore[call-overload]


@pytest.mark.parametrize("statistic", ["correlation", "covariance"])
def test_lags_equal_shifted_columns(engine: Engine, statistic: str) -> None:
    random = np.random.default_rng(7)
    frame = pd.DataFrame(random.standard_normal((40, 3)), columns=pd.Index(list("abc"), name="symbol"))
    frame = frame.mask(random.random(frame.shape) < 0.1)
    function = {
        "correlation": mtbridge.lagged_correlation,
        "covariance": mtbridge.lagged_covariance,
    }[statistic]
    found = function(frame, 3, engine=engine)
    assert found.index.names == ["lag", "symbol"]
    for lag in range(-3, 4):
        for left in frame.columns:
            for right in frame.columns:
                earlier = frame[left].shift(lag)
                short = {"correlation": earlier.corr, "covariance": earlier.cov}[statistic]
                assert found.loc[(lag, left), right] == pytest.approx(short(frame[right]), rel=1e-10)
    array = function(frame.to_numpy(), 3, engine=engine)
    np.testing.assert_array_equal(array.reshape(-1, 3), found.to_numpy())
    full = function(frame, 3, engine=engine, full=True)
    assert full.counts is not None
    assert full.counts.shape == (7, 3, 3)


@pytest.mark.parametrize("lags", [-1, 1.5, True, "2"])
def test_lags_that_are_no_count_are_refused(lags: object) -> None:
    with pytest.raises(OptionError, match="lag"):
        mtbridge.lagged_correlation([[1.0], [2.0]], lags, engine="numpy")  # type: ignore[arg-type]
