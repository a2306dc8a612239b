"""Missing values, weights, ranks, windows and lags by a real worker, held against the same without one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

import mtbridge
from mtbridge.client import Client
from mtbridge.compute.devices import Verdict
from mtbridge.errors import InputError, OptionError, RemoteError, ShapeError
from mtbridge.server import WorkerProcess
from mtbridge.wire import Limits, Status

RANDOM = np.random.default_rng(3)
SYMBOLS = ["EURUSD", "GBPUSD", "Золото", "@ES"]
X = RANDOM.standard_normal((50, 4)).cumsum(axis=0)
X[RANDOM.random(X.shape) < 0.1] = np.nan
TIMES = pd.date_range("2026-01-05", periods=50, freq="h") + pd.to_timedelta(RANDOM.integers(0, 3000, 50), "s")
FRAME = pd.DataFrame(X, index=TIMES, columns=SYMBOLS)
PAIRS = [("EURUSD", "Золото"), ("@ES", "EURUSD")]


def same(found: Any, expected: Any) -> None:
    """Equal with all labels, as far as two ways to add up the same numbers can be."""
    if isinstance(expected, pd.DataFrame):
        pd.testing.assert_frame_equal(found, expected, rtol=1e-12, atol=1e-12)
    elif isinstance(expected, pd.Series):
        pd.testing.assert_series_equal(found, expected, rtol=1e-12, atol=1e-12)
    else:
        assert np.shape(found) == np.shape(expected)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"missing": "drop"},
        {"min_periods": 44},
        {"missing": "drop", "weights": np.arange(50) % 3, "weight_kind": "frequency"},
        {"missing": "drop", "weights": pd.Series(np.linspace(0, 1, 50), index=TIMES)},
    ],
    ids=["pairwise", "drop", "min_periods", "frequency", "reliability"],
)
def test_one_matrix_is_that_of_the_functions_without_a_worker(client: Client, options: Any) -> None:
    same(
        client.covariance(FRAME, ddof=0, **options),
        mtbridge.covariance(FRAME, ddof=0, engine="numpy", **options),
    )
    same(client.correlation(FRAME, **options), mtbridge.correlation(FRAME, engine="numpy", **options))


@pytest.mark.parametrize("method", ["spearman", "kendall"])
def test_ranks_are_those_of_pandas(client: Client, method: Any) -> None:
    same(client.correlation(FRAME, method=method), FRAME.corr(method=method))


def test_series_are_joined_by_their_times(client: Client) -> None:
    series = {"left": FRAME["EURUSD"].dropna(), "right": FRAME["@ES"].dropna()}
    same(client.covariance(series), mtbridge.covariance(series, engine="numpy"))
    same(client.rolling(series, 5), mtbridge.rolling(series, 5, engine="numpy").covariance())


def test_a_full_result_tells_counts_and_effective_rows(client: Client) -> None:
    there = FRAME.notna().astype(int)
    result = client.covariance(FRAME, full=True)
    assert result.counts is not None
    np.testing.assert_array_equal(result.counts, there.T @ there)
    assert result.effective_rows == result.counts.min()
    weights = np.linspace(0, 1, 50)
    weighted = client.covariance(FRAME.fillna(0.0), weights=weights, full=True)
    np.testing.assert_allclose(weighted.effective_rows, weights.sum() ** 2 / (weights**2).sum())


def without_worker(name: str, data: Any) -> Any:
    """The windows of `mtbridge.frame` that a call of the client is held against."""
    made: dict[str, Any] = {
        "rows": lambda: mtbridge.rolling(data, 8, min_periods=4, step=3, engine="numpy"),
        "time": lambda: mtbridge.rolling(data, "5h", min_periods=3, engine="numpy"),
        "expanding": lambda: mtbridge.expanding(data, min_periods=5, engine="numpy"),
        "ewm": lambda: mtbridge.ewm(data, span=7, ignore_na=True, engine="numpy"),
        "ewm-time": lambda: mtbridge.ewm(data, halflife="3h", engine="numpy"),
    }
    return made[name]()


def by_worker(client: Client, name: str, data: Any, **asked: Any) -> Any:
    made: dict[str, Any] = {
        "rows": lambda: client.rolling(data, 8, min_periods=4, step=3, **asked),
        "time": lambda: client.rolling(data, "5h", min_periods=3, **asked),
        "expanding": lambda: client.expanding(data, min_periods=5, **asked),
        "ewm": lambda: client.ewm(data, span=7, ignore_na=True, **asked),
        "ewm-time": lambda: client.ewm(data, halflife="3h", **asked),
    }
    return made[name]()


@pytest.mark.parametrize("name", ["rows", "time", "expanding", "ewm", "ewm-time"])
def test_windows_are_labelled_as_those_without_a_worker(client: Client, name: str) -> None:
    windows = without_worker(name, FRAME)
    held = pd.Series([0.5, 0.25, -0.25, 1.0], index=SYMBOLS[::-1])

    def asked(**options: Any) -> Any:
        return by_worker(client, name, FRAME, **options)

    same(asked(), windows.covariance())
    same(asked(packed=True), windows.covariance(packed=True))
    same(asked(last=True), windows.covariance(last=True))
    same(asked(last=True, packed=True), windows.covariance(last=True, packed=True))
    same(asked(dtype="float32").astype("float64"), windows.covariance(dtype="float32").astype("float64"))
    same(asked(reduce="variance", weights=held), windows.portfolio_variance(held))
    same(asked(statistic="beta", column="@ES"), windows.beta("@ES"))
    same(asked(statistic="beta", column="@ES", last=True), windows.beta("@ES", last=True))
    correlation = {"statistic": "correlation"}
    same(asked(**correlation), windows.correlation())
    same(asked(**correlation, last=True), windows.correlation(last=True))
    same(asked(**correlation, reduce="row", column="Золото"), windows.row("Золото"))
    same(asked(**correlation, reduce="row", column="Золото", last=True), windows.row("Золото", last=True))
    same(asked(**correlation, reduce="mean"), windows.mean_correlation())
    same(asked(**correlation, reduce="pairs", pairs=PAIRS), windows.pairs(PAIRS))
    same(asked(**correlation, reduce="eigenvalue"), windows.largest_eigenvalue())
    same(asked(**correlation, reduce="top", top=2), windows.top_pairs(2))
    mean = asked(**correlation, reduce="mean", last=True)
    assert isinstance(mean, float)
    np.testing.assert_allclose(mean, windows.mean_correlation().iloc[-1], rtol=1e-12)
    same(asked(**correlation, reduce="top", top=2, last=True), windows.top_pairs(2).iloc[-2:])


@pytest.mark.parametrize("name", ["rows", "expanding", "ewm"])
def test_arrays_give_arrays(client: Client, name: str) -> None:
    windows = without_worker(name, X)

    def asked(**options: Any) -> Any:
        return by_worker(client, name, X, **options)

    same(asked(), windows.covariance())
    same(asked(last=True), windows.covariance(last=True))
    same(asked(reduce="pairs", pairs=[(0, 2)]), windows.pairs([(0, 2)], statistic="covariance"))
    same(asked(reduce="variance", weights=np.ones(4)), windows.portfolio_variance(np.ones(4)))
    values, pairs = asked(statistic="correlation", reduce="top", top=3)
    expected, columns = windows.top_pairs(3)
    same(values, expected)
    np.testing.assert_array_equal(pairs, columns)


def test_the_largest_covariances_are_named_so(client: Client) -> None:
    found = client.rolling(FRAME, 8, min_periods=4, reduce="top", top=1)
    assert list(found.columns) == ["left", "right", "covariance"]
    covariances = mtbridge.rolling(FRAME, 8, min_periods=4, engine="numpy").covariance(frame=False)
    upper = np.abs(covariances[-1][np.triu_indices(len(SYMBOLS), 1)])
    assert abs(found["covariance"].iloc[-1]) == pytest.approx(upper.max(), rel=1e-12)


def test_a_worker_on_an_opencl_device_gives_the_same(verdict: Verdict) -> None:
    windows = mtbridge.rolling(FRAME, 8, min_periods=4, engine="numpy")
    # kernels are built at the first call
    with (
        WorkerProcess(engine_name="opencl", device="cpu") as worker,
        Client(worker.endpoint, timeout=60) as client,
    ):
        same(client.covariance(FRAME), FRAME.cov())
        same(client.rolling(FRAME, 8, min_periods=4), windows.covariance())
        correlation = {"min_periods": 4, "statistic": "correlation"}
        same(client.rolling(FRAME, 8, reduce="mean", **correlation), windows.mean_correlation())
        same(client.rolling(FRAME, 8, reduce="top", top=2, **correlation), windows.top_pairs(2))
        same(client.ewm(FRAME, span=7), mtbridge.ewm(FRAME, span=7, engine="numpy").covariance())
        same(client.lagged(FRAME, 2), mtbridge.lagged_correlation(FRAME, 2, engine="numpy"))
        same(client.correlation(FRAME, method="spearman"), FRAME.corr(method="spearman"))


def test_lags_are_labelled_as_those_without_a_worker(client: Client) -> None:
    same(client.lagged(FRAME, 2), mtbridge.lagged_correlation(FRAME, 2, engine="numpy"))
    expected = mtbridge.lagged_covariance(X, 3, ddof=0, min_periods=5, engine="numpy")
    same(client.lagged(X, 3, statistic="covariance", ddof=0, min_periods=5), expected)
    result = client.lagged(X, 1, full=True)
    assert result.counts is not None
    assert result.counts.shape == result.matrix.shape == (3, 4, 4)


def test_a_full_result_of_windows_tells_who_computed_it(client: Client) -> None:
    result = client.rolling(FRAME, 8, packed=True, full=True)
    assert (result.engine, result.rows, result.packed) == ("numpy", 50, True)
    assert result.symbols == tuple(SYMBOLS)
    assert result.matrix.shape == (50, 10)
    ranked = client.rolling(FRAME, 8, reduce="top", top=1, full=True)
    assert ranked.pairs is not None
    assert ranked.pairs.shape == (50, 1, 2)


def test_the_worker_says_why_all_is_nan(client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    assert np.isnan(client.rolling(X, 60, last=True)).all()
    assert "min_periods" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda client: client.rolling(X, 0), "window"),
        (lambda client: client.rolling(X, 2.5), "int"),
        (lambda client: client.rolling(X, 8, min_periods=9), "min_periods is 9"),
        (lambda client: client.rolling(X, "5h"), "no times"),
        (lambda client: client.rolling(FRAME, "1us"), "whole milliseconds"),
        (lambda client: client.rolling(FRAME, "-5h"), "above 0"),
        (lambda client: client.rolling(FRAME.iloc[::-1], 8), "not in order"),
        (lambda client: client.rolling(FRAME.set_index(TIMES + pd.Timedelta("1us")), "5h"), "millisecond"),
        (lambda client: client.rolling(X, 8, windows=3), "windows"),
        (lambda client: client.rolling(X, 8, reduce="row", column=4), "no column 4"),
        (lambda client: client.rolling(FRAME, 8, reduce="row", column="XAUUSD"), "XAUUSD"),
        (lambda client: client.rolling(X, 8, reduce="pairs", pairs=[1, 2]), "two columns each"),
        (lambda client: client.rolling(X, 8, reduce="variance", weights=np.ones(3)), "shape"),
        (lambda client: client.ewm(X), "exactly one"),
        (lambda client: client.ewm(X, span=3, alpha=0.5), "exactly one"),
        (lambda client: client.ewm(X, halflife=-1), "halflife"),
        (lambda client: client.ewm(X, span=float("nan")), "span"),
        (lambda client: client.ewm(X, halflife=3, times=TIMES), "span of time"),
        (lambda client: client.ewm(X, halflife="3h", times=TIMES[1:]), "49 times"),
        (lambda client: client.lagged(X, -1), "lags"),
        (lambda client: client.lagged(X, 1.5), "lags"),
        (lambda client: client.covariance(X, missing="ignore"), "missing"),
        (lambda client: client.covariance(X, weights=np.ones(3)), "shape"),
        (lambda client: client.covariance(FRAME, weights=pd.Series(np.ones(50))), "labels"),
    ],
)
def test_what_cannot_be_sent_is_refused_before_it_is_sent(client: Client, call: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        call(client)
    assert isinstance(caught.value, (OptionError, ShapeError, InputError))


def test_an_answer_past_the_limit_is_refused_with_the_ways_to_ask_for_less() -> None:
    with (
        WorkerProcess(engine_name="numpy", limits=Limits(frame_bytes=50_000)) as worker,
        Client(worker.endpoint) as client,
    ):
        wide = np.random.default_rng(1).standard_normal((200, 20))
        with pytest.raises(
            RemoteError, match="use last, reduce, packed, the dtype float32, a larger step"
        ) as caught:
            client.rolling(wide, 30)
        assert caught.value.status == Status.TOO_LARGE
        assert client.rolling(wide, 30, last=True).shape == (20, 20)
        assert client.rolling(wide, 30, reduce="mean").shape == (200,)
        assert client.rolling(wide, 30, step=25, packed=True, dtype="float32").shape == (8, 210)


def test_rows_out_of_order_are_sorted_on_request(client: Client) -> None:
    same(client.rolling(FRAME.iloc[::-1], "5h", sort=True), client.rolling(FRAME, "5h"))
