"""Rolling, expanding and exponentially weighted answers as DataFrames: labels and options."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from given_frames import equal, hourly_moves

import mtbridge
from mtbridge.compute import Engine
from mtbridge.errors import InputError


@pytest.fixture
def frame() -> pd.DataFrame:
    return hourly_moves()


@pytest.fixture
def gaps(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.mask(np.random.default_rng(4).random(frame.shape) < 0.2)


@pytest.mark.parametrize("options", [{}, {"min_periods": 2}, {"min_periods": 7}], ids=str)
def test_rolling_rows_equal_pandas_to_the_label(
    gaps: pd.DataFrame, engine: Engine, options: dict[str, int]
) -> None:
    windows = mtbridge.rolling(gaps, 7, engine=engine, **options)
    equal(windows.covariance(), gaps.rolling(7, **options).cov())
    equal(windows.correlation(), gaps.rolling(7, **options).corr())


@pytest.mark.parametrize("window", ["5h", pd.Timedelta("330min"), datetime.timedelta(hours=9)], ids=str)
def test_rolling_times_equal_pandas_on_irregular_stamps(
    gaps: pd.DataFrame, engine: Engine, window: object
) -> None:
    kept = gaps[np.random.default_rng(5).random(len(gaps)) < 0.7]
    windows = mtbridge.rolling(kept, window, engine=engine)
    equal(windows.covariance(ddof=0), kept.rolling(window).cov(ddof=0))
    equal(windows.correlation(), kept.rolling(window).corr())


def test_a_span_of_numpy_is_a_span_of_time(frame: pd.DataFrame) -> None:
    found = mtbridge.rolling(frame, np.timedelta64(3, "h"), engine="numpy").correlation()
    equal(found, frame.rolling("3h").corr())


def test_expanding_equals_pandas_to_the_label(gaps: pd.DataFrame, engine: Engine) -> None:
    windows = mtbridge.expanding(gaps, min_periods=3, engine=engine)
    equal(windows.covariance(), gaps.expanding(3).cov())
    equal(windows.correlation(), gaps.expanding(3).corr())


@pytest.mark.parametrize("decay", [{"span": 9}, {"com": 2}, {"halflife": 3.5}, {"alpha": 0.2}], ids=str)
@pytest.mark.parametrize("adjust", [True, False])
@pytest.mark.parametrize("ignore_na", [True, False])
def test_ewm_equals_pandas_to_the_label(
    gaps: pd.DataFrame, numpy_engine: Engine, decay: dict[str, float], adjust: bool, ignore_na: bool
) -> None:
    options = {**decay, "adjust": adjust, "ignore_na": ignore_na}
    windows = mtbridge.ewm(gaps, engine=numpy_engine, min_periods=3, **options)
    theirs = gaps.ewm(min_periods=3, **options)
    equal(windows.covariance(), theirs.cov())
    equal(windows.covariance(bias=True), theirs.cov(bias=True))
    equal(windows.correlation(), theirs.corr())


def test_a_halflife_in_time_ages_rows_by_their_stamps(frame: pd.DataFrame, engine: Engine) -> None:
    """pandas has means by times but no covariances; on regular stamps both must be the same."""
    by_rows = mtbridge.ewm(frame, halflife=4, engine=engine).covariance()
    equal(mtbridge.ewm(frame, halflife="4h", engine=engine).covariance(), by_rows)
    equal(mtbridge.ewm(frame, halflife=pd.Timedelta("4h"), engine=engine).covariance(), by_rows)
    times = np.asarray(frame.index)
    found = mtbridge.ewm(frame.to_numpy(), halflife="4h", times=times, engine=engine).covariance()
    np.testing.assert_allclose(found.reshape(-1, 4), by_rows.to_numpy(), rtol=1e-12)


def test_irregular_times_weigh_as_the_definition_says(frame: pd.DataFrame, engine: Engine) -> None:
    kept = frame[np.random.default_rng(6).random(len(frame)) < 0.4]
    age = (kept.index[-1] - kept.index) / pd.Timedelta("5h")
    right = np.cov(kept.to_numpy(), rowvar=False, aweights=0.5 ** np.asarray(age))
    found = mtbridge.ewm(kept, halflife="5h", engine=engine).covariance(last=True)
    np.testing.assert_allclose(found.to_numpy(), right, rtol=1e-11)


def test_beta_is_the_covariance_over_the_benchmarks_variance(gaps: pd.DataFrame, engine: Engine) -> None:
    found = mtbridge.rolling(gaps, 12, min_periods=5, engine=engine).beta("US30")
    assert list(found.columns) == list(gaps.columns)
    assert found.columns.name == "symbol"
    for symbol in gaps.columns:
        both = gaps[["US30", symbol]].dropna().reindex(gaps.index) if symbol != "US30" else gaps[["US30"]]
        windows = both.rolling(12, min_periods=5)
        right = windows["US30"].cov(both[symbol]) / windows["US30"].var()
        np.testing.assert_allclose(found[symbol], right, rtol=1e-10)


@pytest.mark.parametrize("data", ["frame", "gaps"])
def test_the_last_window_alone_is_the_last_of_all(
    data: str, engine: Engine, request: pytest.FixtureRequest
) -> None:
    gaps = request.getfixturevalue(data)
    for windows in (
        mtbridge.rolling(gaps, 9, min_periods=2, engine=engine),
        mtbridge.rolling(gaps, "9h", step=4, engine=engine),
        mtbridge.expanding(gaps, engine=engine),
        mtbridge.expanding(gaps, min_periods=38, engine=engine),
        mtbridge.ewm(gaps, span=8, engine=engine),
        mtbridge.ewm(gaps, alpha=0.3, adjust=False, engine=engine),
        mtbridge.ewm(gaps, halflife="90min", ignore_na=True, engine=engine),
        mtbridge.ewm(gaps, alpha=1, engine=engine),
        mtbridge.ewm(gaps, span=5, min_periods=99, engine=engine),
    ):
        for name in ("covariance", "correlation"):
            method = getattr(windows, name)
            last = method(last=True)
            assert last.columns.equals(gaps.columns)
            assert last.index.equals(gaps.columns)
            np.testing.assert_allclose(last.to_numpy(), method(frame=False)[-1], rtol=1e-12)
        np.testing.assert_allclose(
            windows.beta("US30", last=True), windows.beta("US30").iloc[-1], rtol=1e-12, equal_nan=True
        )


def test_the_last_window_does_not_look_at_older_rows(numpy_engine: Engine) -> None:
    X = np.random.default_rng(0).standard_normal((10_000, 3))
    found = mtbridge.rolling(X, 50, engine=numpy_engine).covariance(last=True, full=True)
    assert found.rows == 50
    np.testing.assert_allclose(found.matrix, np.cov(X[-50:], rowvar=False), rtol=1e-12)


def test_a_packed_answer_is_the_upper_triangle_row_by_row(frame: pd.DataFrame, engine: Engine) -> None:
    windows = mtbridge.rolling(frame, 6, engine=engine)
    whole = windows.correlation(frame=False)
    packed = windows.correlation(packed=True)
    assert packed.columns[:5].tolist() == [
        ("EURUSD", "EURUSD"),
        ("EURUSD", "GBPUSD"),
        ("EURUSD", "XAUUSD"),
        ("EURUSD", "US30"),
        ("GBPUSD", "GBPUSD"),
    ]
    upper = whole[:, *np.triu_indices(4)]
    np.testing.assert_array_equal(packed.to_numpy(), upper)
    last = windows.correlation(packed=True, last=True)
    np.testing.assert_allclose(last.to_numpy(), upper[-1], rtol=1e-13)


def test_float32_is_the_float64_answer_rounded(frame: pd.DataFrame, engine: Engine) -> None:
    windows = mtbridge.rolling(frame, 6, engine=engine)
    small = windows.covariance(dtype="float32")
    assert set(small.dtypes) == {np.dtype("float32")}
    np.testing.assert_allclose(small.to_numpy(), windows.covariance().to_numpy(), rtol=1e-6)
    narrow = mtbridge.rolling(frame.astype(np.float32), 6, engine=engine).correlation(frame=False)
    assert narrow.dtype == np.float32


def test_an_array_gives_arrays(frame: pd.DataFrame, engine: Engine) -> None:
    windows = mtbridge.rolling(frame.to_numpy(), 6, engine=engine)
    labelled = mtbridge.rolling(frame, 6, engine=engine)
    assert type(windows.covariance()) is np.ndarray
    assert windows.covariance().shape == (40, 4, 4)
    np.testing.assert_array_equal(windows.covariance(), labelled.covariance(frame=False))
    assert windows.beta(3).shape == (40, 4)
    assert windows.correlation(last=True).shape == (4, 4)
    assert windows.mean_correlation().shape == (40,)
    values, pairs = windows.top_pairs(2)
    assert values.shape == (40, 2)
    assert pairs.shape == (40, 2, 2)


def test_each_step_th_row_has_a_window(frame: pd.DataFrame, engine: Engine) -> None:
    every = mtbridge.rolling(frame, 7, engine=engine).correlation()
    third = mtbridge.rolling(frame, 7, step=3, engine=engine).correlation()
    equal(third, every.loc[frame.index[::3]])


def test_labels_of_several_levels_and_labels_that_repeat_are_those_of_pandas() -> None:
    values = np.random.default_rng(1).standard_normal((9, 2))
    columns = pd.MultiIndex.from_tuples([("EURUSD", "close"), ("GBPUSD", "close")], names=["s", "f"])
    levels = pd.DataFrame(values, columns=columns)
    equal(mtbridge.rolling(levels, 4, engine="numpy").correlation(), levels.rolling(4).corr())
    # pandas itself fails on rows of several levels
    folds = levels.set_axis(pd.MultiIndex.from_product([list("abc"), range(3)], names=["fold", "row"]))
    found = mtbridge.rolling(folds, 4, engine="numpy").correlation()
    assert found.index.names == ["fold", "row", "s", "f"]
    assert found.index[-1] == ("c", 2, "GBPUSD", "close")
    np.testing.assert_allclose(found.to_numpy(), levels.rolling(4).corr().to_numpy(), rtol=1e-12)
    twice = pd.DataFrame(values, columns=["A", "A"])
    equal(mtbridge.rolling(twice, 4, engine="numpy").correlation(), twice.rolling(4).corr())
    rows = pd.DataFrame(values, index=list("aabbccdde"), columns=["A", "B"])
    equal(mtbridge.rolling(rows, 4, engine="numpy").correlation(), rows.rolling(4).corr())


def test_the_labels_cost_no_copy_of_the_numbers(frame: pd.DataFrame) -> None:
    found = mtbridge.rolling(frame, 6, engine="numpy").correlation()
    values = found.to_numpy(copy=False)
    assert not values.flags.owndata
    assert values.flags.c_contiguous


def test_reducers_say_what_the_matrices_say(gaps: pd.DataFrame, engine: Engine) -> None:
    windows = mtbridge.rolling(gaps, 10, min_periods=4, engine=engine)
    correlations = windows.correlation(frame=False)
    left, right = np.triu_indices(4, 1)
    mean = windows.mean_correlation()
    assert mean.index.equals(gaps.index)
    assert mean.name == "mean_correlation"
    pairs = correlations[:, left, right]
    some = ~np.isnan(pairs).all(axis=1)
    np.testing.assert_allclose(mean[some], np.nanmean(pairs[some], axis=1), rtol=1e-12)
    assert mean[~some].isna().all()

    chosen = windows.pairs([("XAUUSD", "EURUSD"), ("GBPUSD", "US30")])
    assert list(chosen.columns) == [("XAUUSD", "EURUSD"), ("GBPUSD", "US30")]
    np.testing.assert_allclose(chosen.to_numpy(), correlations[:, [2, 1], [0, 3]], rtol=1e-12)

    row = windows.row("GBPUSD", statistic="covariance", ddof=0)
    np.testing.assert_allclose(row.to_numpy(), windows.covariance(ddof=0, frame=False)[:, 1], rtol=1e-12)

    whole = np.isfinite(correlations).all(axis=(1, 2))
    largest = windows.largest_eigenvalue()
    np.testing.assert_allclose(largest[whole], np.linalg.eigvalsh(correlations[whole])[:, -1], rtol=1e-9)
    assert largest[~whole].isna().all()


def test_the_largest_pairs_come_with_their_names(gaps: pd.DataFrame, engine: Engine) -> None:
    windows = mtbridge.rolling(gaps, 10, min_periods=4, engine=engine)
    correlations = windows.correlation().xs(gaps.index[-1], level="time").to_numpy()
    top = windows.top_pairs(3, by="value")
    assert top.index.names == ["time", "rank"]
    assert len(top) == 3 * len(gaps)
    last = top.loc[gaps.index[-1]]
    assert last.index.tolist() == [1, 2, 3]
    left, right = np.triu_indices(4, 1)
    order = np.argsort(-correlations[left, right])[:3]
    assert last["left"].tolist() == gaps.columns[left[order]].tolist()
    assert last["right"].tolist() == gaps.columns[right[order]].tolist()
    np.testing.assert_allclose(last["correlation"], correlations[left, right][order], rtol=1e-12)
    first = top.loc[gaps.index[0]]
    assert first["correlation"].isna().all()
    assert first["left"].isna().all()


@pytest.mark.parametrize("kind", ["rolling", "ewm"])
def test_the_variance_of_a_portfolio_is_that_of_its_returns(
    frame: pd.DataFrame, engine: Engine, kind: str
) -> None:
    weights = pd.Series({"US30": -0.5, "EURUSD": 1.0, "XAUUSD": 0.25, "GBPUSD": 0.0})
    returns = frame @ weights.reindex(frame.columns)
    if kind == "rolling":
        found, right = mtbridge.rolling(frame, 8, engine=engine), returns.rolling(8).var()
    else:
        found, right = mtbridge.ewm(frame, span=8, engine=engine), returns.ewm(span=8).var()
    variance = found.portfolio_variance(weights)
    assert variance.name == "portfolio_variance"
    np.testing.assert_allclose(variance, right, rtol=1e-10)


def test_weights_may_change_from_window_to_window(frame: pd.DataFrame, engine: Engine) -> None:
    windows = mtbridge.rolling(frame, 8, step=2, engine=engine)
    matrices = windows.covariance(frame=False)
    weights = pd.DataFrame(np.random.default_rng(2).random(frame.shape), frame.index, frame.columns)
    held = weights.to_numpy()[::2]
    right = np.einsum("wi,wij,wj->w", held, matrices, held)
    # the columns in another order, and rows that have no window
    found = windows.portfolio_variance(weights[frame.columns[::-1]])
    np.testing.assert_allclose(found, right, rtol=1e-11)
    np.testing.assert_allclose(windows.portfolio_variance(held), right, rtol=1e-11)


def test_blocks_are_the_whole_answer_piece_by_piece(gaps: pd.DataFrame, engine: Engine) -> None:
    windows = mtbridge.ewm(gaps, span=6, engine=engine)
    whole = windows.covariance(frame=False)
    seen = list(windows.blocks(statistic="covariance", size=15))
    assert [len(block) for _, block in seen] == [15, 15, 10]
    assert seen[0][0].append([labels for labels, _ in seen[1:]]).equals(gaps.index)
    np.testing.assert_allclose(np.concatenate([block for _, block in seen]), whole, rtol=1e-13)
    arrays = mtbridge.rolling(gaps.to_numpy(), 6, engine=engine).blocks(size=30)
    assert [next(iter(labels)) for labels, _ in arrays] == [0, 30]


def test_progress_ends_with_all_windows(frame: pd.DataFrame, engine: Engine) -> None:
    seen: list[tuple[int, int]] = []
    mtbridge.rolling(frame, 6, engine=engine).covariance(progress=lambda *done: seen.append(done))
    assert seen[-1] == (40, 40)


def test_whole_numbers_past_2_to_53_keep_their_digits(engine: Engine) -> None:
    level = 2**53 + 1
    steps = np.array([0, 2, 6, 3, 9])
    data = pd.DataFrame({"x": level + steps, "y": [1, 2, 4, 3, 7]})
    small = pd.DataFrame({"x": steps, "y": data["y"]})
    equal(
        mtbridge.rolling(data, 3, engine=engine).covariance(),
        mtbridge.rolling(small, 3, engine=engine).covariance(),
    )


def test_a_window_longer_than_the_data_is_nan_with_a_note(
    frame: pd.DataFrame, capsys: pytest.CaptureFixture[str]
) -> None:
    windows = mtbridge.rolling(frame, 500, engine="numpy")
    assert windows.correlation().isna().to_numpy().all()
    assert "min_periods asks for more rows than any window has" in capsys.readouterr().err
    found = windows.correlation(full=True)
    assert "40 at most, so every answer is NaN" in found.notes[0]
    assert capsys.readouterr().err == ""


def test_an_answer_larger_than_memory_is_refused_with_its_size(numpy_engine: Engine) -> None:
    windows = mtbridge.rolling(np.ones((200, 30_000)), 60, engine=numpy_engine)
    with pytest.raises(InputError, match=r"1,440 GB.*blocks"):
        windows.correlation()


def test_numbers_past_any_table_are_out_of_reach_like_large_ones(frame: pd.DataFrame, engine: Engine) -> None:
    huge = 2**70
    assert mtbridge.rolling(frame, huge, engine=engine).covariance().isna().to_numpy().all()
    every = mtbridge.rolling(frame, huge, min_periods=2, engine=engine)
    equal(every.covariance(), mtbridge.expanding(frame, min_periods=2, engine=engine).covariance())
    assert len(mtbridge.rolling(frame, 5, step=huge, engine=engine)) == 1
    assert every.row("US30", statistic="covariance", ddof=huge).isna().to_numpy().all()
    assert mtbridge.covariance(frame, ddof=huge, engine=engine).isna().to_numpy().all()
    assert mtbridge.correlation(frame, min_periods=huge, engine=engine).isna().to_numpy().all()
    assert (
        mtbridge.expanding(frame, min_periods=huge, engine=engine).correlation(last=True).isna().all().all()
    )


@pytest.mark.parametrize("rows", [0, 1])
def test_too_few_rows_give_nan(engine: Engine, rows: int) -> None:
    frame = pd.DataFrame(np.ones((rows, 2)), columns=["A", "B"])
    equal(mtbridge.rolling(frame, 1, engine=engine).covariance(), frame.rolling(1).cov())
    assert len(mtbridge.expanding(frame, engine=engine).mean_correlation()) == rows


def test_a_dict_of_series_is_joined_by_time(frame: pd.DataFrame) -> None:
    columns = {name: frame[name].iloc[::-1].iloc[number:] for number, name in enumerate(frame.columns)}
    found = mtbridge.rolling(columns, 5, min_periods=2, engine="numpy").correlation()
    joined = pd.DataFrame(columns).sort_index()
    np.testing.assert_allclose(found.to_numpy(), joined.rolling(5, 2).corr().to_numpy(), rtol=1e-10)
