"""Options of the moving commands that do not fit each other, and files that are none: one sentence."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Run

BASE = ("rolling", "prices.csv", "--window", "20")


@pytest.mark.parametrize("reduce", ["mean", "top"])
def test_a_mean_of_covariances_is_refused_and_not_answered_by_correlations(
    run: Run, prices: Path, reduce: str
) -> None:
    code, out, err = run(*BASE, "--reduce", reduce, "--statistic", "covariance", "-o", "out.csv")
    assert (code, out) == (1, "")
    assert f"--reduce {reduce} is of correlations but --statistic is covariance" in err
    assert not prices.with_name("out.csv").exists()


@pytest.mark.parametrize(
    ("option", "value", "user"),
    [
        ("--pairs", "EURUSD:GBPUSD", "pairs"),
        ("--weights", "EURUSD=1", "variance"),
        ("--symbol", "EURUSD", "row"),
    ],
)
def test_an_option_that_nothing_looks_at_is_refused(
    run: Run, prices: Path, option: str, value: str, user: str
) -> None:
    code, out, err = run(*BASE, option, value)
    assert (code, out) == (1, "")
    assert err == f"mtbridge: {option} is for --reduce {user}; add that, or leave {option} out.\n"
    assert run(*BASE, option, value, "--reduce", user)[0] == 0


@pytest.mark.parametrize("window", ["20 ", " 20", "+20"])
def test_a_window_that_is_a_number_counts_rows_however_it_is_typed(
    run: Run, prices: Path, window: str
) -> None:
    usual = run(*BASE, "--reduce", "mean", "-q")
    assert usual[0] == 0
    assert run("rolling", "prices.csv", f"--window={window}", "--reduce", "mean", "-q") == usual


@pytest.mark.parametrize("window", ["0", "-1"])
def test_a_window_without_rows_is_refused_as_one_of_rows(run: Run, prices: Path, window: str) -> None:
    code, out, err = run("rolling", "prices.csv", f"--window={window}")
    assert (code, out) == (1, "")
    assert f"mtbridge: window is {window}; it must be 1 or more rows.\n" in err


def test_the_benchmark_of_a_beta_needs_no_reduce(run: Run, prices: Path) -> None:
    assert run(*BASE, "--statistic", "beta", "--symbol", "EURUSD")[0] == 0


def test_the_variance_of_a_portfolio_is_said_to_be_of_covariances(run: Run, prices: Path) -> None:
    code, _, err = run(*BASE, "--reduce", "variance")
    assert code == 0
    assert "rolling 20 covariance of log returns, variance of each" in err


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ("", "--weights is empty; give a number for each symbol, such as EURUSD=0.5."),
        (" , ", "--weights is empty; give a number for each symbol, such as EURUSD=0.5."),
        ("EURUSD=1,EURUSD=2", "--weights names EURUSD twice; give each symbol one weight."),
        ("=1", "--weights names '', which is not among"),
    ],
)
def test_weights_that_say_nothing_or_two_things_are_refused(
    run: Run, prices: Path, weights: str, sentence: str
) -> None:
    code, out, err = run(*BASE, "--reduce", "variance", "--weights", weights)
    assert (code, out) == (1, "")
    assert sentence in err


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege on Windows")
def test_a_link_to_itself_is_a_file_that_cannot_be_read(run: Run, tmp_path: Path) -> None:
    (tmp_path / "loop.csv").symlink_to("loop.csv")
    code, out, err = run("rolling", "loop.csv", "--window", "5")
    assert (code, out) == (1, "")
    assert err.startswith("mtbridge: loop.csv cannot be read: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("output", "sentence"),
    [("folder.csv", "folder.csv is a folder"), ("nowhere/out.csv", "does not exist; make it first")],
)
def test_a_place_that_cannot_be_written_is_refused_before_any_work(
    run: Run, tmp_path: Path, output: str, sentence: str
) -> None:
    (tmp_path / "folder.csv").mkdir()
    # the prices are not there either, but the place of the answer is looked at first
    code, out, err = run("rolling", "missing.csv", "--window", "5", "-o", output)
    assert (code, out) == (1, "")
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a folder that takes no files")
@pytest.mark.parametrize("command", [BASE, ("lagged", "prices.csv"), ("correlation", "prices.csv")])
def test_a_folder_that_takes_no_files_is_said_in_a_sentence(
    run: Run, prices: Path, command: tuple[str, ...]
) -> None:
    code, out, err = run(*command, "-o", "/proc/out.csv", "-q")
    assert (code, out) == (1, "")
    assert err.startswith("mtbridge: /proc/out.csv cannot be written (")
    assert err.count("\n") == 1


def test_the_largest_pairs_are_written_as_arrays_of_names_and_numbers(run: Run, prices: Path) -> None:
    assert run(*BASE, "--reduce", "top", "--top", "2", "-o", "top.npz")[0] == 0
    assert run(*BASE, "--reduce", "top", "--top", "2", "-o", "top.csv")[0] == 0
    table = pd.read_csv(prices.with_name("top.csv"), keep_default_na=False)
    with np.load(prices.with_name("top.npz"), allow_pickle=False) as arrays:
        assert arrays["columns"].tolist() == ["correlation"]
        assert arrays["left"].tolist() == table["left"].tolist()
        assert arrays["right"].tolist() == table["right"].tolist()
        assert arrays["rank"].tolist() == table["rank"].tolist()
        written = pd.to_numeric(table["correlation"]).to_numpy()
        np.testing.assert_array_equal(arrays["values"][:, 0], written)
