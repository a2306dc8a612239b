"""The scripts, as a user runs them: inputs, the real worker, a printed table, a saved file."""

from __future__ import annotations

import csv
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from harness.programs import Run, Runner, Served

H1 = "ADAUSD,AUDUSD,BRENT,DOTUSD,EURGBP,EURUSD,GBPUSD,SILVER,USDCAD,USDCHF"
ALL_BARS = 100000
Prices = dict[str, dict[int, float]]


def exported(folder: Path, symbol: str) -> dict[int, float]:
    """Closes of the terminal's export by time, read without mtbridge."""
    (path,) = folder.glob(f"{symbol}_*.csv")
    closes = {}
    for row in csv.DictReader(path.read_text(encoding="ascii").splitlines(), delimiter="\t"):
        time = datetime.strptime(f"{row['<DATE>']} {row['<TIME>']} +0000", "%Y.%m.%d %H:%M:%S %z")
        closes[int(time.timestamp())] = float(row["<CLOSE>"])
    return closes


def joined(prices: Prices) -> np.ndarray:
    """Closes at the times that all symbols have, (rows, symbols)."""
    common = sorted(set.intersection(*(set(closes) for closes in prices.values())))
    return np.array([[closes[time] for closes in prices.values()] for time in common])


def log_returns(closes: np.ndarray) -> np.ndarray:
    return np.asarray(np.log(closes[1:] / closes[:-1]))


def saved(folder: Path, name: str = "MtBridge/covariance.csv") -> tuple[list[str], np.ndarray]:
    """Labels and numbers of the file that the script saved."""
    rows = list(csv.reader((folder / name).read_text(encoding="utf-8").splitlines()))
    labels = rows[0][1:]
    assert rows[0][0] == ""
    assert [row[0] for row in rows[1:]] == labels
    return labels, np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])


def write_prices(folder: Path, prices: Prices) -> None:
    """Files that the shim reads: seconds of 1970 and four times the close."""
    for symbol, closes in prices.items():
        lines = ["time,open,high,low,close"]
        lines += [
            ",".join(map(str, (time, close, close, close, close))) for time, close in sorted(closes.items())
        ]
        (folder / f"{symbol}.csv").write_text("\n".join(lines) + "\n", encoding="ascii")


@pytest.fixture
def prices(tmp_path: Path) -> Prices:
    """Three symbols whose calendars differ: one stops early, one has holes, one starts late."""
    random = np.random.default_rng(5)
    hours = [1700000400 + 3600 * hour for hour in range(200)]
    calendars = {
        "EURUSD": hours[:190],
        "GBPUSD": [h for i, h in enumerate(hours) if i % 7],
        "USDJPY": hours[20:],
    }
    walk = dict(zip(hours, np.exp(np.cumsum(random.normal(0, 0.01, (200, 3)), axis=0)), strict=True))
    made = {
        symbol: {time: float(walk[time][i]) for time in times}
        for i, (symbol, times) in enumerate(calendars.items())
    }
    write_prices(tmp_path, made)
    return made


def covariance(run: Runner, **settings: object) -> Run:
    return run("Covariance", **{"InpBars": ALL_BARS, **settings})


@pytest.mark.parametrize("engine", ["numpy", "opencl"])
def test_the_covariance_of_exported_bars_agrees_with_numpy_to_1e_12(
    run: Runner,
    serve: Callable[..., Served],
    h1_folder: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    engine: str,
) -> None:
    options: tuple[str, ...] = ("--engine", engine)
    if engine == "opencl":
        request.getfixturevalue("verdict")  # skips where there is no device
        options += ("--device", "cpu")
    worker = serve(options=options)
    done = covariance(run, InpSymbols=H1, InpPort=worker.port, DATA=h1_folder)
    closes = joined({symbol: exported(h1_folder, symbol) for symbol in H1.split(",")})
    assert len(closes) == 3189
    labels, matrix = saved(tmp_path)
    assert labels == H1.split(",")
    np.testing.assert_allclose(matrix, np.cov(log_returns(closes), rowvar=False), rtol=1e-12, atol=0)
    assert "10 symbols, 2025.06.23 01:00 to 2026.01.20 20:00: 3189 rows kept, 1901 dropped" in done.text
    assert f"Computed by {worker.description} in " in done.text


def test_the_correlation_of_exported_bars_has_the_published_values(
    run: Runner, worker_port: int, h1_folder: Path, tmp_path: Path
) -> None:
    covariance(run, InpSymbols=H1, InpPort=worker_port, InpStatistic=1, InpFile="c.csv", DATA=h1_folder)
    labels, matrix = saved(tmp_path, "c.csv")
    pairs = {("ADAUSD", "AUDUSD"): 0.2587, ("AUDUSD", "USDCHF"): -0.4899, ("ADAUSD", "USDCHF"): -0.0392}
    for (one, other), value in pairs.items():
        assert matrix[labels.index(one), labels.index(other)] == pytest.approx(value, abs=5e-5)
    assert np.array_equal(matrix, matrix.T)
    assert np.array_equal(np.diag(matrix), np.ones(10))


@pytest.mark.parametrize(
    ("kind", "returns"),
    [
        (0, log_returns),
        (1, lambda closes: closes[1:] / closes[:-1] - 1),
        (2, lambda closes: np.diff(closes, axis=0)),
        (3, lambda closes: closes),
    ],
    ids=["log", "simple", "difference", "none"],
)
def test_returns_are_those_of_the_bars_in_common(
    run: Runner,
    worker_port: int,
    prices: Prices,
    tmp_path: Path,
    kind: int,
    returns: Callable[[np.ndarray], np.ndarray],
) -> None:
    done = covariance(run, InpPort=worker_port, InpReturns=kind)
    np.testing.assert_allclose(saved(tmp_path)[1], np.cov(returns(joined(prices)), rowvar=False), rtol=1e-11)
    kept = len(joined(prices))
    assert f"{kept} rows kept, {200 - kept} dropped" in done.text
    assert ("Warning: prices and not returns" in done.text) == (kind == 3)


def test_the_bar_in_the_making_takes_no_part(run: Runner, worker_port: int, prices: Prices) -> None:
    """The shim has one at the same time for all symbols, with a close of a thousand million."""
    done = covariance(run, InpPort=worker_port)
    assert "2100" not in done.text
    last = datetime.fromtimestamp(max(set.intersection(*map(set, prices.values()))), tz=UTC)
    assert f"to {last:%Y.%m.%d %H:%M}:" in done.text


def test_bars_are_counted_back_from_the_last_finished_one(
    run: Runner, worker_port: int, prices: Prices
) -> None:
    done = covariance(run, InpPort=worker_port, InpBars=50, InpSymbols="EURUSD")
    assert "1 symbols" in done.text
    assert "50 rows kept, 0 dropped" in done.text


def test_a_history_that_is_still_loading_is_waited_for(
    run: Runner, worker_port: int, prices: Prices, tmp_path: Path
) -> None:
    covariance(run, InpPort=worker_port, HISTORY_CALLS=7)
    np.testing.assert_allclose(
        saved(tmp_path)[1], np.cov(log_returns(joined(prices)), rowvar=False), rtol=1e-11
    )


def test_spaces_in_the_list_of_symbols_do_not_matter(
    run: Runner, worker_port: int, prices: Prices, tmp_path: Path
) -> None:
    covariance(run, InpPort=worker_port, InpSymbols=" GBPUSD , ,EURUSD ")
    assert saved(tmp_path)[0] == ["GBPUSD", "EURUSD"]


@pytest.mark.parametrize(
    ("symbols", "sentence"),
    [
        ("EURUSD,NOSUCH", "NOSUCH is not a symbol of this broker (error 4301)"),
        ("EURUSD,EURUSD", "EURUSD is named twice"),
        (" , ", "No symbol is named"),
        (
            "EURUSD,EARLY",
            "no bar in common: EURUSD 2023.11.14 22:20 to 2023.11.22 19:20, EARLY 2020.01.01 00:00 to",
        ),
        (
            "EURUSD,ZERO",
            "ZERO has no positive close at 2023.11.14 23:20, and its returns need one: use differences.",
        ),
        ("LONE", "1 common bars are too few"),
    ],
)
def test_prices_that_do_not_serve_give_one_sentence(
    run: Runner, worker_port: int, prices: Prices, tmp_path: Path, symbols: str, sentence: str
) -> None:
    start = min(prices["EURUSD"])
    write_prices(
        tmp_path,
        {
            "EARLY": {1577836800: 1.0, 1577840400: 1.1, 1577844000: 1.2},
            "ZERO": {start: 1.0, start + 3600: 0.0, start + 7200: 1.0, start + 10800: 1.1},
            "LONE": {start: 1.0},
        },
    )
    done = covariance(run, InpPort=worker_port, InpSymbols=symbols)
    assert len(done.lines) == 1
    assert sentence in done.text
    assert not (tmp_path / "MtBridge").exists()


def test_without_a_worker_the_script_says_so_and_computes_in_the_terminal(
    run: Runner, unused_port: int, prices: Prices, tmp_path: Path
) -> None:
    done = covariance(run, InpPort=unused_port)
    assert f"start the worker with 'mtbridge serve --bind tcp://127.0.0.1:{unused_port}'" in done.text
    assert "Computed by the terminal's own matrix methods" in done.text
    np.testing.assert_allclose(
        saved(tmp_path)[1], np.cov(log_returns(joined(prices)), rowvar=False), rtol=1e-11
    )


def test_without_a_worker_and_without_leave_to_compute_the_script_ends(
    run: Runner, unused_port: int, prices: Prices, tmp_path: Path
) -> None:
    done = covariance(run, InpPort=unused_port, InpFallback=False)
    assert "Nobody answers at" in done.lines[-1]
    assert not (tmp_path / "MtBridge").exists()


def test_a_full_disk_leaves_no_half_written_file(
    run: Runner, worker_port: int, prices: Prices, tmp_path: Path
) -> None:
    done = covariance(run, InpPort=worker_port, DISK_BYTES=100)
    assert "could not be written (error 5026)" in done.lines[-1]
    assert list((tmp_path / "MtBridge").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "settings", "code"),
    [("folder", {}, 5018), ("c.csv", {"FILE_IN_USE": "c.csv"}, 5020), ("file/c.csv", {}, 5004)],
    ids=["a folder", "a file in use", "below a file"],
)
def test_a_file_that_cannot_be_written_is_named(
    run: Runner,
    worker_port: int,
    prices: Prices,
    tmp_path: Path,
    name: str,
    settings: dict[str, str],
    code: int,
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    before = set(tmp_path.rglob("*"))
    done = covariance(run, InpPort=worker_port, InpFile=name, **settings)
    assert f"{name} could not be written (error {code})" in done.lines[-1]
    assert set(tmp_path.rglob("*")) == before


def test_no_file_is_saved_when_none_is_named(
    run: Runner, worker_port: int, prices: Prices, tmp_path: Path
) -> None:
    before = set(tmp_path.iterdir())
    assert "Computed by" in covariance(run, InpPort=worker_port, InpFile="").text
    assert set(tmp_path.iterdir()) == before


def test_a_table_wider_than_the_log_is_cut_and_says_so(run: Runner, worker_port: int, tmp_path: Path) -> None:
    random = np.random.default_rng(6)
    names = [f"S{i:02d}" for i in range(15)]
    write_prices(
        tmp_path,
        {name: {3600 * i: float(p) for i, p in enumerate(random.uniform(1, 2, 30))} for name in names},
    )
    done = covariance(run, InpPort=worker_port, InpSymbols=",".join(names))
    assert "(12 of 15 symbols shown; the file has all)" in done.text
    assert saved(tmp_path)[1].shape == (15, 15)


def rolling(run: Runner, **settings: object) -> Run:
    return run("RollingCorrelation", **{"InpBars": ALL_BARS, **settings})


def mean_correlations(prices: Prices, window: int) -> pd.Series:
    """The mean over all pairs of pandas' rolling correlation of the log returns, by time."""
    frame = pd.DataFrame(prices).dropna().sort_index()
    frame = np.log(frame).diff().dropna()
    correlations = frame.rolling(window).corr().unstack()
    names = list(prices)
    pairs = [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    return correlations[pairs].mean(axis=1)


@pytest.mark.parametrize("symbols", ["", "USDJPY,EURUSD,GBPUSD"], ids=["Market Watch", "named"])
def test_the_mean_rolling_correlation_is_that_of_pandas(
    run: Runner, worker_port: int, prices: Prices, symbols: str
) -> None:
    done = rolling(run, InpPort=worker_port, InpWindow=24, InpShown=7, InpSymbols=symbols)
    expected = mean_correlations(prices, 24).iloc[-7:]
    assert done.lines[0].startswith("3 symbols, ")
    assert f"{len(mean_correlations(prices, 24))} windows of 24 bars" in done.lines[1]
    assert done.lines[2:] == [
        f"{datetime.fromtimestamp(time, tz=UTC):%Y.%m.%d %H:%M} {mean:8.4f}"
        for time, mean in expected.items()
    ]


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"InpWindow": 1}, "A window of 1 bars over"),
        ({"InpWindow": 5000}, "it needs 2 symbols and a window of 2 to"),
        ({"InpSymbols": "EURUSD"}, "of 1 symbols has no mean correlation"),
        ({"InpSymbols": "NOSUCH"}, "NOSUCH is not a symbol of this broker"),
    ],
)
def test_what_has_no_rolling_correlation_gets_one_sentence(
    run: Runner, worker_port: int, prices: Prices, settings: dict[str, object], sentence: str
) -> None:
    done = rolling(run, InpPort=worker_port, **settings)
    assert len(done.lines) == 1
    assert sentence in done.text


def test_an_empty_market_watch_is_said(run: Runner, worker_port: int) -> None:
    assert rolling(run, InpPort=worker_port).lines == [
        "Market Watch shows no symbol: add some, or name them."
    ]


def test_the_rolling_correlation_needs_a_worker(run: Runner, unused_port: int, prices: Prices) -> None:
    assert "Nobody answers at" in rolling(run, InpPort=unused_port, InpWindow=24).lines[-1]


def table(done: Run) -> dict[str, tuple[float, float, float]]:
    """Milliseconds, GF/s and difference of each method that Multiply printed."""
    lines = done.lines[done.lines.index(next(line for line in done.lines if line.startswith("method"))) + 1 :]
    parts = [line.rsplit(maxsplit=3) for line in lines if not line.startswith("Worker")]
    return {name.strip(): (float(ms), float(speed), float(worst)) for name, ms, speed, worst in parts}


@pytest.mark.parametrize("sizes", [(60, 80, 70), (1, 1, 1), (37, 3, 11)])
def test_multiply_compares_loops_matmul_and_the_worker(
    run: Runner, worker_port: int, sizes: tuple[int, int, int]
) -> None:
    rows, inner, cols = sizes
    found = table(run("Multiply", InpPort=worker_port, InpRows=rows, InpInner=inner, InpCols=cols))
    assert list(found) == ["three loops", "matrix::MatMul", "mtbridge with the transfer"]
    for milliseconds, _, difference in found.values():
        assert milliseconds > 0
        # |A||B| is at most inner, and a sum of inner products rounds at most inner times
        assert difference <= inner * inner * np.finfo(float).eps


def test_multiply_without_a_worker_still_compares_the_terminals_own(run: Runner, unused_port: int) -> None:
    done = run("Multiply", InpPort=unused_port, InpRows=20, InpInner=20, InpCols=20)
    assert "Nobody answers at" in done.lines[0]
    assert list(table(done)) == ["three loops", "matrix::MatMul"]


@pytest.mark.parametrize("wrong", [{"InpRows": 0}, {"InpRepeats": 0}, {"InpRows": 20000, "InpCols": 20000}])
def test_multiply_refuses_sizes_that_no_array_holds(run: Runner, wrong: dict[str, int]) -> None:
    assert run("Multiply", **wrong).text.startswith("Sizes and repeats must be 1 or more")


def test_multiply_can_be_stopped_in_its_loops(run: Runner, worker_port: int) -> None:
    done = run(
        "Multiply",
        InpPort=worker_port,
        InpRows=700,
        InpInner=700,
        InpCols=700,
        InpRepeats=50,
        STOP_AFTER_MS=1500,
    )
    assert "stopped" in done.text
    assert done.ended_after_stop() < 3.0
