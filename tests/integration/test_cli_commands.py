"""The command line in real processes and in ours: outputs and reference values."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Run, refused

ENGINES = ["opencl", "numpy", "serial"]


def test_demo_compares_worker_direct_and_serial(run: Run) -> None:
    code, out, err = run("demo", "--json")
    assert code == 0, err
    (line,) = out.splitlines()
    found = json.loads(line)
    assert {"engine", "device", "largest_difference"} <= set(found)
    assert 0 <= found["largest_difference"] < 1e-12
    assert found["engine"] in ("opencl", "numpy")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("folder", "values", "rows"),
    [
        (
            "mt5_bars_h1_set_a",
            {("ADAUSD", "AUDUSD"): 0.2587, ("AUDUSD", "USDCHF"): -0.4899, ("ADAUSD", "USDCHF"): -0.0392},
            3188,
        ),
        (
            "mt4_history_h1_set_a",
            {("AUDCAD", "AUDCHF"): 0.5013, ("AUDCHF", "USDCHF"): 0.4480, ("AUDCAD", "USDCHF"): -0.0858},
            1748,
        ),
    ],
)
def test_the_reference_files_give_the_reference_correlations(
    run: Run,
    shared: Path,
    tmp_path: Path,
    engine: str,
    folder: str,
    values: dict[tuple[str, str], float],
    rows: int,
    request: pytest.FixtureRequest,
) -> None:
    if engine == "opencl":
        request.getfixturevalue("verdict")
    files = sorted(str(path) for path in (shared / "data" / folder).glob("*.csv"))
    code, out, err = run("correlation", *files, "--returns", "log", "--engine", engine, "-o", "c.csv")
    assert code == 0, err
    assert out == ""
    assert f"{rows} rows" in err
    found = pd.read_csv(tmp_path / "c.csv", index_col=0)
    for (one, other), value in values.items():
        assert round(found.loc[one, other], 4) == value
        assert found.loc[one, other] == found.loc[other, one]
    assert (np.diagonal(found) == 1).all()
    printed = run("correlation", *files, "--engine", engine, "-q")[1]
    for value in values.values():
        assert f"{value:.4f}" in printed


def test_a_real_process_puts_numbers_on_stdout_and_words_on_stderr(prices: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mtbridge", "covariance", "prices.csv", "--engine", "numpy"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd=tmp_path,
    )
    assert "EURUSD" in done.stdout
    assert "numpy on" not in done.stdout
    assert "numpy on" in done.stderr
    assert len(done.stdout.splitlines()) == 6


def test_the_installed_command_gives_its_version_and_python_m_the_same() -> None:
    command = Path(sys.executable).with_name("mtbridge")
    if not command.exists():
        pytest.skip("the command mtbridge is not installed beside this Python")
    said = [
        subprocess.run([*start, "--version"], capture_output=True, text=True, timeout=60, check=True).stdout
        for start in ([str(command)], [sys.executable, "-m", "mtbridge"])
    ]
    assert said[0] == said[1]
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", said[0])


def test_a_reader_that_leaves_early_is_no_error(prices: Path, tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "mtbridge", "sample", "--columns", "50", "--rows", "3000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=tmp_path,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.read(100)
        process.stdout.close()
        err = process.stderr.read().decode()
        process.wait(60)
    assert "Traceback" not in err
    assert err == ""


def test_quiet_says_nothing_but_errors(prices: Path, run: Run) -> None:
    code, out, err = run("covariance", "prices.csv", "--engine", "numpy", "-q")
    assert (code, err) == (0, "")
    assert out
    assert run("covariance", "prices.csv", "--engine", "numpy", "-q", "-o", "c.csv") == (0, "", "")
    refused(run("covariance", "nothing.csv", "-q"), "nothing.csv")


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".json"])
def test_an_output_file_holds_what_pandas_computes(
    prices: Path, run: Run, tmp_path: Path, engine: str, suffix: str, request: pytest.FixtureRequest
) -> None:
    if engine == "opencl":
        request.getfixturevalue("verdict")
    code, out, err = run("covariance", "prices.csv", "--engine", engine, "--ddof", "0", "-o", f"c{suffix}")
    assert code == 0, err
    assert out == ""
    table = pd.read_csv(prices, index_col=0).dropna()
    right = np.log(table).diff().dropna().cov(ddof=0)
    path = tmp_path / f"c{suffix}"
    if suffix == ".csv":
        found = pd.read_csv(path, index_col=0).to_numpy()
    elif suffix == ".parquet":
        found = pd.read_parquet(path).to_numpy()
    elif suffix == ".npz":
        found = np.load(path)["matrix"]
    else:
        found = np.array(json.loads(path.read_text())["matrix"])
    assert np.allclose(found, right, rtol=1e-10, atol=0)


@pytest.mark.parametrize(
    ("returns", "function"),
    [
        ("log", lambda table: np.log(table).diff().iloc[1:]),
        ("simple", lambda table: table.pct_change().iloc[1:]),
        ("difference", lambda table: table.diff().iloc[1:]),
        ("none", lambda table: table),
    ],
)
def test_returns_are_taken_after_the_join(
    prices: Path, run: Run, tmp_path: Path, returns: str, function: Callable[[pd.DataFrame], pd.DataFrame]
) -> None:
    code, _, err = run("correlation", "prices.csv", "--returns", returns, "--engine", "numpy", "-o", "c.csv")
    assert code == 0, err
    right = function(pd.read_csv(prices, index_col=0).dropna()).corr()
    assert np.allclose(pd.read_csv(tmp_path / "c.csv", index_col=0), right, rtol=1e-9)
    assert ("levels" in err) == (returns == "none")


def test_symbols_are_taken_in_their_order_and_times_are_cut(prices: Path, run: Run, tmp_path: Path) -> None:
    arguments = ("--symbols", "GBPUSD,EURUSD", "--engine", "numpy", "-o", "c.csv")
    code, _, err = run("covariance", "prices.csv", *arguments, "--from", "2024-01-09", "--to", "2024-01-11")
    assert code == 0, err
    found = pd.read_csv(tmp_path / "c.csv", index_col=0)
    assert list(found.columns) == ["GBPUSD", "EURUSD"]
    table = pd.read_csv(prices, index_col=0, parse_dates=True)[["GBPUSD", "EURUSD"]]
    table = table.loc["2024-01-09":"2024-01-11"].dropna()
    assert np.allclose(found, np.log(table).diff().cov(), rtol=1e-10)


def test_dtype_float32_is_obeyed(prices: Path, run: Run, tmp_path: Path) -> None:
    arguments = ("--dtype", "float32", "--engine", "numpy", "-o", "c.npz")
    assert run("correlation", "prices.csv", *arguments)[0] == 0
    assert np.load(tmp_path / "c.npz")["matrix"].dtype == np.float32


@pytest.mark.parametrize("engine", ENGINES)
def test_multiply_takes_npy_and_csv(
    run: Run, tmp_path: Path, engine: str, request: pytest.FixtureRequest
) -> None:
    if engine == "opencl":
        request.getfixturevalue("verdict")
    random = np.random.default_rng(0)
    A, B = random.standard_normal((4, 3)), random.standard_normal((3, 5))
    np.save(tmp_path / "a.npy", A)
    np.savetxt(tmp_path / "b.csv", B, delimiter=",", fmt="%.17g")
    code, out, err = run("multiply", "a.npy", "b.csv", "-o", "c.npz", "--engine", engine)
    assert (code, out) == (0, ""), err
    assert np.allclose(np.load(tmp_path / "c.npz")["matrix"], A @ B, rtol=1e-14)


def test_a_product_in_csv_may_be_multiplied_again(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([[1 / 3, 2.0], [0.1, 5.0]]))
    assert run("multiply", "a.npy", "a.npy", "-o", "b.csv", "--engine", "numpy")[0] == 0
    assert run("multiply", "b.csv", "a.npy", "-o", "c.npz", "--engine", "numpy")[0] == 0
    a = np.load(tmp_path / "a.npy")
    assert np.array_equal(np.load(tmp_path / "c.npz")["matrix"], (a @ a) @ a)
