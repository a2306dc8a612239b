"""Weights, ranks, windows and lags through `mtbridge.service`, held against pandas and numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from service_requests import (
    CORRELATION,
    COVARIANCE,
    DATA,
    EWM,
    EXPANDING,
    FRAME,
    LAGGED,
    ROLLING,
    TIMES,
    X,
    ask,
    found,
    refusal,
)
from wire_vectors import load, message_of

from mtbridge.compute import open_engine
from mtbridge.service import Service
from mtbridge.wire import Array, Kind, Operation, Role, Status


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with open_engine("numpy") as engine:
        yield Service(engine)


def stacked(frame: Any, columns: int = 4) -> Any:
    """The matrices of a pandas answer of many windows."""
    return frame.to_numpy().reshape(-1, columns, columns)


def test_missing_values_are_left_out_pair_by_pair_by_default(service: Service) -> None:
    np.testing.assert_allclose(found(service, COVARIANCE, b""), FRAME.cov(), rtol=1e-12)
    np.testing.assert_allclose(found(service, CORRELATION, b""), FRAME.corr(), rtol=1e-12)
    there = (~np.isnan(X)).astype(int)
    assert (found(service, COVARIANCE, b"", role=Role.COUNTS) == there.T @ there).all()


def test_rows_with_missing_values_are_dropped_on_request(service: Service) -> None:
    expected = FRAME.dropna().cov(ddof=0)
    np.testing.assert_allclose(
        found(service, COVARIANCE, {"missing": "drop", "ddof": 0}), expected, rtol=1e-12
    )


def test_min_periods_makes_nan_of_pairs_with_fewer_rows(service: Service) -> None:
    counts = found(service, CORRELATION, b"", role=Role.COUNTS)
    middle = int(np.median(counts))
    matrix = found(service, CORRELATION, {"min_periods": middle})
    assert (np.isnan(matrix) == (counts < middle)).all()
    assert np.isnan(matrix).any()


@pytest.mark.parametrize("method", ["spearman", "kendall"])
def test_ranks_are_those_of_pandas(service: Service, method: str) -> None:
    expected = FRAME.corr(method=method)
    np.testing.assert_allclose(found(service, CORRELATION, {"method": method}), expected, rtol=1e-12)


@pytest.mark.parametrize("kind", ["frequency", "reliability"])
@pytest.mark.parametrize("dtype", ["int64", "float64", "float32"])
def test_weights_are_those_of_numpy(service: Service, kind: str, dtype: str) -> None:
    whole = np.nan_to_num(X)
    weights = (np.arange(40) % 5).astype(dtype)
    arrays = Array(Role.DATA, whole), Array(Role.WEIGHTS, weights)
    plain = {"fweights" if kind == "frequency" else "aweights": weights.astype(int)}
    expected = np.cov(whole, rowvar=False, **plain)
    np.testing.assert_allclose(
        found(service, COVARIANCE, {"weight_kind": kind}, *arrays), expected, rtol=1e-12
    )
    matrix = found(service, CORRELATION, {"weight_kind": kind}, *arrays)
    deviations = np.sqrt(expected.diagonal())
    np.testing.assert_allclose(matrix, expected / np.outer(deviations, deviations), rtol=1e-12)


def test_the_scalars_are_eigenvalue_condition_and_rows(service: Service) -> None:
    scalars = found(service, COVARIANCE, {"scalars": True}, role=Role.SCALARS)
    values = np.linalg.eigvalsh(FRAME.cov())
    counts = found(service, COVARIANCE, b"", role=Role.COUNTS)
    np.testing.assert_allclose(scalars, [values[0], values[-1] / values[0], counts.min()], rtol=1e-9)
    assert ask(service, COVARIANCE, b"").find(Role.SCALARS) is None


def test_rolling_windows_are_those_of_pandas(service: Service) -> None:
    for options, rolling in (
        ({"window": 8}, FRAME.rolling(8)),
        ({"window": 8, "min_periods": 3}, FRAME.rolling(8, min_periods=3)),
    ):
        np.testing.assert_allclose(found(service, ROLLING, options), stacked(rolling.cov()), rtol=1e-9)
        options = {**options, "statistic": "correlation"}
        np.testing.assert_allclose(found(service, ROLLING, options), stacked(rolling.corr()), rtol=1e-9)


def test_windows_of_time_are_those_of_pandas(service: Service) -> None:
    timed = FRAME.set_index(pd.to_datetime(TIMES, unit="ms"))
    times = Array(Role.TIMES, TIMES)
    matrix = found(service, ROLLING, {"span_ms": 300_000, "statistic": "correlation"}, DATA, times)
    np.testing.assert_allclose(matrix, stacked(timed.rolling("300s").corr()), rtol=1e-9, atol=1e-12)


def test_expanding_windows_are_those_of_pandas(service: Service) -> None:
    matrix = found(service, EXPANDING, {"ddof": 0, "min_periods": 3})
    np.testing.assert_allclose(matrix, stacked(FRAME.expanding(3).cov(ddof=0)), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("ignore_na", [False, True])
@pytest.mark.parametrize(
    "decay", [{"alpha": 0.2}, {"span": 9}, {"halflife": 3.5}, {"com": 4, "adjust": False}], ids=str
)
def test_exponential_windows_are_those_of_pandas(
    service: Service, decay: dict[str, Any], ignore_na: bool, bias: bool
) -> None:
    options = {**decay, "ignore_na": ignore_na, "bias": bias}
    expected = stacked(FRAME.ewm(**decay, ignore_na=ignore_na).cov(bias=bias))
    np.testing.assert_allclose(found(service, EWM, options), expected, rtol=1e-9, atol=1e-12)


def test_a_half_life_in_time_fades_with_the_time_between_rows(service: Service) -> None:
    whole = np.nan_to_num(X[:, :1])
    arrays = Array(Role.DATA, np.hstack([whole, whole])), Array(Role.TIMES, TIMES)
    matrix = found(service, EWM, {"halflife_ms": 90_000.5, "bias": True}, *arrays)
    weights = 0.5 ** ((TIMES[-1] - TIMES) / 90_000.5)
    expected = np.cov(whole[:, 0], aweights=weights, ddof=0)
    np.testing.assert_allclose(matrix[-1, 0, 1], expected, rtol=1e-10)


STATISTICS = [{"statistic": "covariance"}, {"statistic": "correlation"}]
WINDOWS = [
    (ROLLING, {"window": 12, "min_periods": 5, "step": 3}),
    (EXPANDING, {"min_periods": 4}),
    (EWM, {"span": 7, "min_periods": 4}),
]


@pytest.mark.parametrize("statistic", STATISTICS, ids=lambda options: str(options["statistic"]))
@pytest.mark.parametrize(("operation", "options"), WINDOWS, ids=["rolling", "expanding", "ewm"])
def test_what_is_kept_of_each_window_is_of_the_whole_matrices(
    service: Service, operation: Operation, options: dict[str, Any], statistic: dict[str, Any]
) -> None:
    options = {**options, **statistic}
    whole = found(service, operation, options)
    upper = np.triu_indices(4, 1)

    def close(reduce: dict[str, Any], expected: Any, *arrays: Array) -> None:
        kept = found(service, operation, {**options, **reduce}, DATA, *arrays)
        np.testing.assert_allclose(kept, expected, rtol=1e-9, atol=1e-12)
        # and the newest alone is the last of all
        if any(len(array.data) == len(whole) for array in arrays):
            arrays = tuple(Array(array.role, array.data[-1:]) for array in arrays)
        newest = found(service, operation, {**options, **reduce, "last": True}, DATA, *arrays)
        assert newest.shape == (1, *kept.shape[1:])
        np.testing.assert_allclose(newest[0], kept[-1], rtol=1e-9, atol=1e-12)

    close({}, whole)
    close({"packed": True}, whole[:, *np.triu_indices(4)])
    with np.errstate(all="ignore"):
        counts = (~np.isnan(whole[:, *upper])).sum(axis=1)
        close({"reduce": "mean"}, np.nansum(whole[:, *upper], axis=1) / np.where(counts, counts, np.nan))
    close({"reduce": "row", "column": 2}, whole[:, 2])
    close({"reduce": "pairs", "pairs": [[3, 1], [0, 0]]}, whole[:, [3, 0], [1, 0]])
    finite = np.isfinite(whole).all(axis=(1, 2))
    eigenvalues = np.full(len(whole), np.nan)
    eigenvalues[finite] = np.linalg.eigvalsh(whole[finite])[:, -1]
    close({"reduce": "eigenvalue"}, eigenvalues)
    if statistic["statistic"] == "covariance":
        held = np.array([0.5, 0.25, -0.25, 1.0])
        close({"reduce": "variance"}, whole @ held @ held, Array(Role.WEIGHTS, held))
        changing = np.linspace(0, 1, whole.size // 4).reshape(len(whole), 4)
        variances = np.einsum("ti,tij,tj->t", changing, whole, changing)
        # a weight of 0 leaves a symbol out, whatever its numbers are
        variances[0] = found(
            service, operation, {**options, "reduce": "variance"}, DATA, Array(Role.WEIGHTS, changing)
        )[0]
        close({"reduce": "variance"}, variances, Array(Role.WEIGHTS, changing))


def test_the_largest_pairs_come_with_their_columns(service: Service) -> None:
    options = {"window": 12, "min_periods": 5, "statistic": "correlation"}
    whole = found(service, ROLLING, options)
    for by, keys in (("absolute", np.abs(whole)), ("value", whole)):
        asked = {**options, "reduce": "top", "top": 3, "by": by}
        values = found(service, ROLLING, asked)
        pairs = found(service, ROLLING, asked, role=Role.INDICES)
        assert (values.shape, pairs.shape, pairs.dtype) == ((40, 3), (40, 3, 2), np.int64)
        assert (np.isnan(values[:3])).all()
        assert (pairs[:3] == -1).all()
        for window in range(12, 40):
            left, right = pairs[window].T
            assert (left < right).all()
            np.testing.assert_array_equal(whole[window, left, right], values[window])
            best = np.sort(keys[window][np.triu_indices(4, 1)])[::-1][:3]
            np.testing.assert_array_equal(keys[window, left, right], best)


def test_betas_are_to_the_column(service: Service) -> None:
    covariances = found(service, ROLLING, {"window": 12})
    betas = found(service, ROLLING, {"window": 12, "statistic": "beta"})
    whole = np.nan_to_num(X)
    one = found(service, ROLLING, {"window": 12, "statistic": "beta", "column": 1})
    np.testing.assert_allclose(one, betas[:, 1], rtol=1e-14)
    assert betas.shape == covariances.shape
    matrix = found(
        service, ROLLING, {"window": 12, "statistic": "beta", "last": True}, Array(Role.DATA, whole)
    )
    expected = np.cov(whole[-12:], rowvar=False)
    np.testing.assert_allclose(matrix[0], expected / expected.diagonal()[:, np.newaxis], rtol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_answer_is_in_the_dtype_of_the_data_or_in_that_asked_for(service: Service, dtype: str) -> None:
    data = Array(Role.DATA, X.astype(dtype))
    assert found(service, ROLLING, {"window": 5}, data).dtype == dtype
    for options in ({}, {"reduce": "mean"}, {"reduce": "top", "top": 1}, {"last": True}):
        for wanted in ("float32", "float64"):
            assert found(service, ROLLING, {"window": 5, "dtype": wanted, **options}, data).dtype == wanted


def test_lags_are_of_the_rows_that_both_have(service: Service) -> None:
    for statistic in ("covariance", "correlation"):
        reply = ask(service, LAGGED, {"lags": 3, "statistic": statistic, "min_periods": 2})
        matrices, counts = reply.find(Role.RESULT), reply.find(Role.COUNTS)
        assert matrices is not None
        assert counts is not None
        assert matrices.shape == counts.shape == (7, 4, 4)
        for lag in range(-3, 4):
            for i in range(4):
                early = FRAME[i].shift(lag)
                for j in range(4):
                    rows = (early.notna() & FRAME[j].notna()).sum()
                    expected = early.corr(FRAME[j]) if statistic == "correlation" else early.cov(FRAME[j])
                    assert counts[3 + lag, i, j] == rows
                    np.testing.assert_allclose(matrices[3 + lag, i, j], expected, rtol=1e-9, atol=1e-12)


def test_a_result_that_is_all_nan_says_why(service: Service) -> None:
    reply = ask(service, ROLLING, {"window": 50, "last": True})
    assert reply.head.kind is Kind.RESULT
    assert "min_periods" in reply.text


def test_symbols_come_back_with_windows_and_lags(service: Service) -> None:
    names = Array(Role.SYMBOLS, np.frombuffer("a\nb\nЗолото\nd".encode(), np.uint8))
    for operation, options in (
        (ROLLING, {"window": 5}),
        (EXPANDING, {}),
        (EWM, {"span": 5}),
        (LAGGED, {"lags": 1}),
    ):
        back = found(service, operation, options, DATA, names, role=Role.SYMBOLS)
        assert back.tobytes() == names.data.tobytes()
        short = Array(Role.SYMBOLS, names.data[:3])
        assert refusal(service, operation, options, DATA, short)[0] == Status.BAD_SHAPE


def odd(array: Any) -> Any:
    """The same numbers at an address that no computation likes."""
    memory = np.frombuffer(bytearray(3) + array.tobytes(), array.dtype, offset=3).reshape(array.shape)
    assert not memory.flags.aligned
    return memory


def test_arrays_at_odd_addresses_are_answered_like_others(service: Service) -> None:
    times, weights = Array(Role.TIMES, TIMES), Array(Role.WEIGHTS, np.arange(4.0))
    options = {"span_ms": 500_000, "reduce": "variance"}
    even = found(service, ROLLING, options, DATA, times, weights)
    shifted = [Array(array.role, odd(array.data)) for array in (DATA, times, weights)]
    np.testing.assert_array_equal(found(service, ROLLING, options, *shifted), even)
    rows = Array(Role.WEIGHTS, np.arange(40))
    options = {"weight_kind": "frequency", "missing": "drop"}
    even = found(service, COVARIANCE, options, DATA, rows)
    shifted = [Array(array.role, odd(array.data)) for array in (DATA, rows)]
    np.testing.assert_array_equal(found(service, COVARIANCE, options, *shifted), even)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("covariance with weights", "covariance with scalars"),
        ("rolling", "rolling"),
        ("rolling over a span of time", "rolling mean"),
        ("expanding", "expanding"),
        ("ewm", "ewm"),
        ("lagged", "lagged"),
        ("covariance", "covariance"),
        ("multiply", "product"),
    ],
)
def test_the_golden_requests_have_the_golden_replies(service: Service, question: str, answer: str) -> None:
    (asked,) = [vector for vector in load("requests") if vector["name"] == question]
    (told,) = [vector for vector in load("replies") if vector["name"] == answer]
    expected, reply = message_of(told["message"]), service.answer(message_of(asked["message"]))
    assert reply.head == expected.head
    assert [array.role for array in reply.arrays] == [array.role for array in expected.arrays]
    for array, golden in zip(reply.arrays, expected.arrays, strict=True):
        assert (array.data.dtype, array.data.shape) == (golden.data.dtype, golden.data.shape)
        if array.data.dtype.kind == "f":
            np.testing.assert_allclose(array.data, golden.data, rtol=1e-6)
        else:
            np.testing.assert_array_equal(array.data, golden.data)
