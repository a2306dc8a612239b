"""Weighted covariances and correlations, by numpy's definitions."""

from __future__ import annotations

import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from mtbridge.compute import Engine
from mtbridge.compute.weights import weighted_correlation, weighted_covariance
from mtbridge.errors import InputError, MissingValueError, OptionError, ShapeError
from mtbridge.matrix import DTYPES

NAN, INF = math.nan, math.inf
RANDOM = np.random.default_rng(5)
X = 100 + RANDOM.standard_normal((40, 5)).cumsum(axis=0)
FREQUENCY = RANDOM.integers(0, 5, 40)
RELIABILITY = np.where(RANDOM.random(40) < 0.2, 0, RANDOM.random(40) * 3)
KINDS: list[dict[str, Any]] = [
    {},
    {"frequency": FREQUENCY},
    {"reliability": RELIABILITY},
    {"frequency": FREQUENCY, "reliability": RELIABILITY},
]
NAMES = {"frequency": "fweights", "reliability": "aweights"}


def by_numpy(data: NDArray[Any], ddof: int = 1, **weights: Any) -> NDArray[Any]:
    renamed = {NAMES[kind]: array for kind, array in weights.items()}
    return np.atleast_2d(np.cov(data.astype(np.float64), rowvar=False, ddof=ddof, **renamed))


@pytest.mark.parametrize("ddof", [0, 1, 3])
@pytest.mark.parametrize("weights", KINDS, ids=lambda kind: "+".join(kind) or "none")
def test_covariances_are_those_of_numpy(engine: Engine, weights: dict[str, Any], ddof: int) -> None:
    matrix, _ = weighted_covariance(X, engine=engine, ddof=ddof, **weights)
    np.testing.assert_allclose(matrix, by_numpy(X, ddof, **weights), rtol=1e-12)
    assert np.array_equal(matrix, matrix.T)


@pytest.mark.parametrize("weights", KINDS, ids=lambda kind: "+".join(kind) or "none")
def test_correlations_follow_from_the_covariances(engine: Engine, weights: dict[str, Any]) -> None:
    matrix, _ = weighted_correlation(X, engine=engine, **weights)
    covariance = by_numpy(X, **weights)
    spread = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(matrix, covariance / np.outer(spread, spread), rtol=1e-12)
    assert (np.diag(matrix) == 1).all()


def test_the_case_with_a_known_answer(shared: Path, engine: Engine) -> None:
    cases = json.loads((shared / "cases" / "statistics.json").read_text(encoding="utf-8"))
    (case,) = (case for case in cases["cases"] if case["name"] == "aweights_ddof1")
    data = np.array([column["values"] for column in case["columns"].values()], np.float64).T
    weights, ddof = case["options"]["weights"], case["options"]["ddof"]
    for scale in (1, 10, 1e-300, 1e300):
        scaled = [scale * weight for weight in weights]
        matrix, _ = weighted_covariance(data, engine=engine, reliability=scaled, ddof=ddof)
        assert matrix[0, 1] == pytest.approx(case["expect"], rel=case["tolerance"]["relative"])


def test_a_frequency_repeats_a_row(engine: Engine) -> None:
    repeated = np.repeat(X, FREQUENCY, axis=0)
    matrix, effective = weighted_covariance(X, engine=engine, frequency=FREQUENCY)
    np.testing.assert_allclose(matrix, np.cov(repeated, rowvar=False), rtol=1e-12)
    assert effective == len(repeated)
    for ddof in (len(repeated) - 1, len(repeated)):
        matrix, _ = weighted_covariance(X, engine=engine, frequency=FREQUENCY, ddof=ddof)
        assert np.isnan(matrix).all() == (ddof == len(repeated))


def test_effective_rows_are_those_of_kish(numpy_engine: Engine) -> None:
    _, effective = weighted_covariance(X, engine=numpy_engine, reliability=RELIABILITY)
    assert effective == pytest.approx(RELIABILITY.sum() ** 2 / (RELIABILITY**2).sum(), rel=1e-14)
    for same in (0.1, 7.0):
        _, effective = weighted_correlation(X, engine=numpy_engine, reliability=np.full(40, same))
        assert effective == 40
    _, effective = weighted_correlation(X, engine=numpy_engine, frequency=FREQUENCY, reliability=RELIABILITY)
    repeated = np.repeat(RELIABILITY, FREQUENCY)
    assert effective == pytest.approx(repeated.sum() ** 2 / (repeated**2).sum(), rel=1e-14)


def test_a_row_of_weight_zero_may_hold_anything(engine: Engine) -> None:
    data, weights = X.copy(), np.ones(40)
    data[3], data[7, 0], data[9, 1] = NAN, INF, 1e300
    weights[[3, 7, 9]] = 0
    expected = np.cov(np.delete(X, [3, 7, 9], axis=0), rowvar=False)
    for kind in ("frequency", "reliability"):
        matrix, effective = weighted_covariance(data, engine=engine, **{kind: weights})  # type: ignore[arg-type]
        np.testing.assert_allclose(matrix, expected, rtol=1e-12)
        assert effective == 37


def test_a_constant_is_told_by_equality_and_inf_stays_with_its_own(engine: Engine) -> None:
    data = X.copy()
    data[:, 0] = 0.1
    data[4, 1] = -INF
    # a column that only changes where no weight is
    data[1:, 2], data[0, 2] = 9.45, 1e5
    weights = np.r_[0.0, RANDOM.random(39) + 0.1]
    covariance, _ = weighted_covariance(data, engine=engine, reliability=weights)
    correlation, _ = weighted_correlation(data, engine=engine, reliability=weights)
    assert (covariance[np.ix_([0, 2], [0, 2, 3, 4])] == 0).all()
    assert np.isnan(covariance[1]).all()
    assert np.isnan(correlation[:3]).all()
    assert np.isfinite(correlation[3:, 3:]).all()
    assert correlation[4, 4] == 1


@pytest.mark.parametrize("scale", [1e-170, 1e-300, 1e200])
def test_extreme_magnitudes_survive(engine: Engine, scale: float) -> None:
    matrix, _ = weighted_correlation(scale * X, engine=engine, reliability=RELIABILITY)
    expected, _ = weighted_correlation(X, engine=engine, reliability=RELIABILITY)
    np.testing.assert_allclose(matrix, expected, rtol=1e-9)


def test_a_heavy_level_does_not_hide_light_rows(engine: Engine) -> None:
    """Nearly all weight lies on one level: what is left of it after rounding must not outweigh the rest."""
    heavy = [[1e5 + 0.1, 7.3]] * 3
    data = np.array([*heavy, [1e5 + 1.1, 8.3], [1e5 - 1.9, 7.8]])
    weights = np.array([0.1, 0.2, 0.7, 1e-40, 3e-40])
    matrix, _ = weighted_covariance(data, engine=engine, reliability=weights, ddof=0)
    deviations = data[3:] - data[0]
    expected = np.einsum("r,ri,rj->ij", weights[3:], deviations, deviations)
    np.testing.assert_allclose(matrix, expected, rtol=1e-10)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_answer_has_the_dtype_of_the_data_or_the_one_wanted(numpy_engine: Engine, dtype: Any) -> None:
    data = X.astype(dtype)
    assert weighted_covariance(data, engine=numpy_engine)[0].dtype == dtype
    matrix, _ = weighted_correlation(data, engine=numpy_engine, dtype=np.dtype(np.float32))
    assert matrix.dtype == np.float32
    np.testing.assert_allclose(matrix, np.corrcoef(data.astype(float), rowvar=False), atol=1e-7)
    with pytest.raises(InputError, match="range of float32"):
        weighted_covariance(1e30 * X, engine=numpy_engine, dtype=np.dtype(np.float32))


@pytest.mark.parametrize("shape", [(0, 2), (1, 2), (3, 0)])
def test_few_rows_or_columns_are_answered_too(engine: Engine, shape: tuple[int, int]) -> None:
    matrix, effective = weighted_covariance(np.ones(shape), engine=engine, frequency=np.ones(shape[0]))
    assert matrix.shape == (shape[1], shape[1])
    assert effective == shape[0]
    assert np.isnan(matrix).all()
    matrix, _ = weighted_covariance(np.ones(shape), engine=engine, ddof=0)
    assert np.isnan(matrix).all() if shape[0] == 0 else (matrix == 0).all()


def test_weights_may_come_in_any_container(numpy_engine: Engine) -> None:
    expected, _ = weighted_covariance(X, engine=numpy_engine, reliability=RELIABILITY)
    for weights in (list(RELIABILITY), pd.Series(RELIABILITY), tuple(RELIABILITY)):
        assert np.array_equal(weighted_covariance(X, engine=numpy_engine, reliability=weights)[0], expected)
    matrix, _ = weighted_covariance(X, engine=numpy_engine, frequency=RELIABILITY > 0)
    np.testing.assert_allclose(matrix, np.cov(X[RELIABILITY > 0], rowvar=False), rtol=1e-12)


@pytest.mark.parametrize(
    ("weights", "error", "text"),
    [
        ({"frequency": [1, 2]}, ShapeError, "there are 2 frequency weights for 40 rows"),
        ({"reliability": np.ones((40, 2))}, ShapeError, "shape .40, 2. .*for 40 rows"),
        ({"reliability": [[1], [1, 2]]}, ShapeError, "uneven"),
        ({"frequency": 3}, ShapeError, "for 40 rows"),
        ({"frequency": np.full(40, -1)}, InputError, "a frequency weight is -1"),
        ({"reliability": np.full(40, -0.5)}, InputError, "a reliability weight is -0.5"),
        ({"reliability": np.full(40, NAN)}, InputError, "a reliability weight is nan"),
        ({"frequency": np.full(40, INF)}, InputError, "a frequency weight is inf"),
        ({"frequency": np.full(40, 1.5)}, InputError, "a frequency weight is 1.5; .*whole"),
        ({"frequency": np.full(40, 2.0**54)}, InputError, "above 2..53"),
        ({"reliability": np.zeros(40)}, InputError, "every weight is 0"),
        ({"frequency": np.arange(40) % 2, "reliability": 1 - np.arange(40) % 2}, InputError, "every weight"),
        ({"reliability": ["1"] * 40}, InputError, "must be numbers"),
        ({"reliability": np.full(40, 1j)}, InputError, "must be numbers"),
        ({"ddof": -1}, OptionError, "ddof is -1"),
        ({"ddof": True}, OptionError, "ddof is True"),
    ],
)
def test_bad_weights_are_refused(
    numpy_engine: Engine, weights: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        weighted_covariance(X, engine=numpy_engine, **weights)


def test_rows_with_nan_and_a_weight_are_refused(numpy_engine: Engine) -> None:
    data = X.copy()
    data[3, 1] = data[8] = NAN
    with pytest.raises(MissingValueError, match=r'2 rows with a weight hold NaN.*missing="drop"'):
        weighted_covariance(data, engine=numpy_engine, frequency=np.ones(40))


def test_no_warning_comes_out_of_numpy(numpy_engine: Engine) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        weighted_covariance(np.array([[1e308, -INF], [-1e308, 1.0]]), engine=numpy_engine)
        weighted_correlation(X, engine=numpy_engine, reliability=np.geomspace(1e-320, 1e300, 40))
