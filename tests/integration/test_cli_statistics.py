"""The commands on windows, lags, ranks and gaps: their numbers are pandas', their refusals are kind."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Run, refused

CLOSE = {"rtol": 1e-9, "atol": 1e-15}


def log_returns(prices: Path, *, complete: bool = True) -> pd.DataFrame:
    """The log returns that the commands take of the sample prices."""
    frame = pd.read_csv(prices, index_col=0, parse_dates=True)
    frame = frame.dropna() if complete else frame
    return np.log(frame).diff().iloc[1:]


def written(path: Path, labels: int = 1) -> pd.DataFrame:
    return pd.read_csv(path, index_col=list(range(labels)), parse_dates=[0])


def test_rolling_correlations_are_those_of_pandas(prices: Path, run: Run, tmp_path: Path) -> None:
    code, out, err = run("rolling", "prices.csv", "--window", "60", "-o", "r.csv")
    assert (code, out) == (0, ""), err
    assert "rolling 60 correlation of log returns" in err
    expected = log_returns(prices).rolling(60).corr()
    found = written(tmp_path / "r.csv", labels=2)
    np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), **CLOSE)
    assert list(found.columns) == list(expected.columns)
    assert list(found.index.get_level_values(1)) == list(expected.index.get_level_values(1))


def test_a_window_in_time_a_step_and_gaps(prices: Path, run: Run, tmp_path: Path) -> None:
    words = ("--statistic", "covariance", "--missing", "pairwise", "--min-periods", "5", "--step", "7")
    code, _, err = run("rolling", "prices.csv", "--window", "3D", *words, "-o", "r.parquet")
    assert code == 0, err
    assert "own rows" in err
    # pandas has no step for a window in time
    expected = log_returns(prices, complete=False).rolling("3D", min_periods=5).cov()
    rows = expected.index.get_level_values(0).unique()[::7]
    found = pd.read_parquet(tmp_path / "r.parquet").iloc[:, 2:]
    np.testing.assert_allclose(found.to_numpy(), expected.loc[rows].to_numpy(), **CLOSE)


def test_one_number_of_each_window(prices: Path, run: Run, tmp_path: Path) -> None:
    returns = log_returns(prices)
    matrices = returns.rolling(40).corr().to_numpy().reshape(len(returns), 5, 5)
    upper = np.triu_indices(5, 1)
    expected = {
        "mean": matrices[:, upper[0], upper[1]].mean(axis=1)[:, None],
        "eigenvalue": np.array(
            [[np.nan if np.isnan(one).any() else np.linalg.eigvalsh(one)[-1]] for one in matrices]
        ),
        "row": matrices[:, 2],
    }
    for reduce, numbers in expected.items():
        symbol = ("--symbol", returns.columns[2]) if reduce == "row" else ()
        code, _, err = run(
            "rolling", "prices.csv", "--window", "40", "--reduce", reduce, *symbol, "-o", f"{reduce}.csv"
        )
        assert code == 0, err
        found = written(tmp_path / f"{reduce}.csv")
        assert list(found.index) == list(returns.index)
        np.testing.assert_allclose(found.to_numpy(), numbers, rtol=1e-8, atol=1e-12)


def test_pairs_top_and_a_portfolio(prices: Path, run: Run, tmp_path: Path) -> None:
    returns = log_returns(prices)
    a, b, c = returns.columns[:3]
    code, _, err = run(
        "ewm",
        "prices.csv",
        "--span",
        "30",
        "--reduce",
        "pairs",
        "--pairs",
        f"{a}:{b}, {c}:{a}",
        "-o",
        "p.csv",
    )
    assert code == 0, err
    expected = returns.ewm(span=30).corr().unstack()
    np.testing.assert_allclose(
        written(tmp_path / "p.csv").to_numpy(), expected[[(a, b), (c, a)]].to_numpy(), rtol=1e-8, atol=1e-12
    )
    code, _, err = run(
        "expanding",
        "prices.csv",
        "--statistic",
        "covariance",
        "--reduce",
        "variance",
        "--weights",
        f"{a}=0.5,{c}=-1.5",
        "-o",
        "v.csv",
    )
    assert code == 0, err
    portfolio = (0.5 * returns[a] - 1.5 * returns[c]).expanding().var()
    np.testing.assert_allclose(written(tmp_path / "v.csv").iloc[:, 0], portfolio, rtol=1e-8, atol=1e-18)
    code, out, err = run("rolling", "prices.csv", "--window", "50", "--reduce", "top", "--top", "2")
    assert code == 0, err
    assert out


def test_beta_to_a_benchmark(prices: Path, run: Run, tmp_path: Path) -> None:
    returns = log_returns(prices)
    benchmark = returns.columns[0]
    words = ("--statistic", "beta", "--symbol", benchmark, "-o", "beta.csv")
    code, _, err = run("rolling", "prices.csv", "--window", "50", *words)
    assert code == 0, err
    windows = returns.rolling(50)
    covariances = pd.DataFrame({name: windows[name].cov(returns[benchmark]) for name in returns})
    expected = covariances.div(windows[benchmark].var(), axis=0)
    np.testing.assert_allclose(
        written(tmp_path / "beta.csv").to_numpy(), expected.to_numpy(), rtol=1e-8, atol=1e-12
    )


def test_the_newest_window_is_printed(prices: Path, run: Run) -> None:
    code, out, err = run("rolling", "prices.csv", "--window", "60", "--last")
    assert code == 0, err
    returns = log_returns(prices)
    expected = returns.tail(60).corr()
    numbers = [float(line.split()[-1]) for line in out.strip().splitlines()[-5:]]
    np.testing.assert_allclose(numbers, expected.iloc[:, -1], atol=5.1e-5)


def test_lagged_correlations(prices: Path, run: Run, tmp_path: Path) -> None:
    code, _, err = run("lagged", "prices.csv", "--lags", "2", "-o", "lags.csv")
    assert code == 0, err
    returns = log_returns(prices)
    found = pd.read_csv(tmp_path / "lags.csv", index_col=[0, 1])
    first, last = returns.columns[0], returns.columns[-1]
    for lag in range(-2, 3):
        assert found.loc[(lag, first), last] == pytest.approx(
            returns[first].shift(lag).corr(returns[last]), abs=1e-12
        )


@pytest.mark.parametrize("method", ["spearman", "kendall"])
def test_ranks_with_gaps(prices: Path, run: Run, tmp_path: Path, method: str) -> None:
    code, _, err = run(
        "correlation", "prices.csv", "--method", method, "--missing", "pairwise", "-o", "c.csv"
    )
    assert code == 0, err
    assert "rows that a pair shares" in err
    expected = log_returns(prices, complete=False).corr(method=method)
    np.testing.assert_allclose(pd.read_csv(tmp_path / "c.csv", index_col=0), expected, rtol=0, atol=1e-12)


def test_gaps_are_dropped_or_taken_pair_by_pair(prices: Path, run: Run, tmp_path: Path) -> None:
    for missing, returns in (
        ("drop", log_returns(prices)),
        ("pairwise", log_returns(prices, complete=False)),
    ):
        code, _, err = run("covariance", "prices.csv", "--missing", missing, "-o", "c.json")
        assert code == 0, err
        answer = json.loads((tmp_path / "c.json").read_text())
        np.testing.assert_allclose(answer["matrix"], returns.cov(), **CLOSE)
        present = returns.notna().astype(int)
        assert answer["counts"] == (present.T @ present).to_numpy().tolist()


def test_a_year_is_inferred_and_said(prices: Path, run: Run, tmp_path: Path) -> None:
    code, _, err = run("covariance", "prices.csv", "--annualise", "auto", "-o", "year.csv")
    assert code == 0, err
    assert "bars a year" in err
    code, _, err = run("covariance", "prices.csv", "--annualise", "252", "-o", "number.csv")
    assert code == 0, err
    expected = 252 * log_returns(prices).cov()
    np.testing.assert_allclose(pd.read_csv(tmp_path / "number.csv", index_col=0), expected, **CLOSE)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("rolling", "prices.csv", "--window", "0"), ("window",)),
        (("rolling", "prices.csv", "--window", "many"), ("window", "many")),
        (("rolling", "prices.csv", "--window", "20", "--min-periods", "21"), ("min_periods", "21", "20")),
        (("rolling", "prices.csv", "--window", "20", "--statistic", "beta"), ("--symbol",)),
        (("rolling", "prices.csv", "--window", "20", "--reduce", "row", "--symbol", "NONE"), ("NONE",)),
        (("rolling", "prices.csv", "--window", "20", "--reduce", "pairs", "--pairs", "A"), ("--pairs",)),
        (("rolling", "prices.csv", "--window", "20", "--reduce", "mean", "--last"), ("--last",)),
        (("rolling", "prices.csv", "--window", "20", "--reduce", "variance", "--weights", "X=1"), ("X",)),
        (
            ("rolling", "prices.csv", "--window", "20", "--reduce", "variance", "--weights", "X"),
            ("--weights",),
        ),
        (("ewm", "prices.csv"), ("span", "alpha")),
        (("ewm", "prices.csv", "--span", "0.5"), ("span", "0.5")),
        (("ewm", "prices.csv", "--halflife", "-3"), ("halflife", "-3")),
        (("covariance", "prices.csv", "--annualise", "0"), ("--annualise", "0")),
        (("covariance", "prices.csv", "--annualise", "yearly"), ("--annualise", "yearly")),
        (("rolling", "prices.csv", "--window", "20", "-o", "r.txt"), (".csv",)),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(
    prices: Path, run: Run, words: tuple[str, ...], said: tuple[str, ...]
) -> None:
    refused(run(*words, "-q"), *said)


def test_a_window_longer_than_the_history_is_all_nan_with_a_note(
    prices: Path, run: Run, tmp_path: Path
) -> None:
    code, _, err = run("rolling", "prices.csv", "--window", "100000", "-o", "r.csv")
    assert code == 0, err
    assert "100000" in err or "100,000" in err
    assert written(tmp_path / "r.csv", labels=2).isna().all(axis=None)
