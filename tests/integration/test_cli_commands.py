"""The command line in real processes and in ours: help, examples, outputs, reference values, refusals."""

from __future__ import annotations

import json
import os
import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import Run, refused
from typer.testing import CliRunner

from mtbridge.cli import app
from mtbridge.compute.devices import Verdict

COMMANDS = [
    "covariance", "correlation", "lagged", "rolling", "expanding", "ewm", "multiply", "sample", "download",
    "demo", "devices", "tune", "serve", "ping", "bench gram", "bench multiply", "bench covariance",
    "bench stats", "bench bridge", "bench ladder", "bench memory", "kernels list", "kernels show",
]  # fmt: skip
# their examples measure for a minute; other tests run them with less
MEASURED = ["bench gram", "bench multiply", "bench covariance", "bench stats"]
ENGINES = ["opencl", "numpy", "serial"]
ROW_KEYS = {
    "case", "dtype", "contender", "device", "threads",
    "median_s", "spread_s", "gflops", "error", "note", "versus",
}  # fmt: skip


# Help


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_one_sentence_and_one_example(command: str) -> None:
    done = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    said = re.sub(r"\s+", " ", done.output)
    words = re.search(
        r"Usage: .*?(?:\[OPTIONS\]|\.\.\.) (?:[A-Z.{}\[\]]+ )*(.*?) "
        r"Example: (mtbridge .*?) (?:Arguments|Options)",
        said,
    )
    assert words, said
    assert words[1].strip().count(". ") == 0, "one sentence"
    assert words[1].strip().endswith(".")
    assert words[2].startswith(f"mtbridge {command}")


def example(command: str) -> list[str]:
    done = CliRunner().invoke(app, [*command.split(), "--help"])
    text = re.search(r"Example: mtbridge (.*?)\n\s*\n", done.output, re.DOTALL)
    assert text
    return shlex.split(text[1])


@pytest.mark.parametrize("command", COMMANDS)
def test_the_example_is_one_line_of_a_terminal(command: str) -> None:
    """Broken over two lines it cannot be copied and does not work as typed."""
    done = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "80"})
    (line,) = (line for line in done.output.splitlines() if line.strip().startswith("Example: "))
    assert shlex.split(line.split("Example: mtbridge ", 1)[1]) == example(command)


@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    "command",
    # tune would leave settings in the cache of this machine; tests/integration/test_cli_tune.py runs it
    [name for name in COMMANDS if name not in ("serve", "ping", "download", "tune", *MEASURED)],
)
def test_the_example_works_as_typed(command: str, prices: Path, run: Run, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", random.standard_normal((4, 3)))
    np.save(tmp_path / "b.npy", random.standard_normal((3, 5)))
    code, out, err = run(*example(command))
    assert code == 0, err
    written = re.search(r"(?:-o|--json) (\S+)", shlex.join(example(command)))
    assert out or written
    if written:
        assert (tmp_path / written[1]).stat().st_size > 0


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[str]:
    """A worker on the port that the examples name, where that port is free; else on any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 5555))
            bind = "tcp://127.0.0.1:5555"
        except OSError:
            bind = "tcp://127.0.0.1:0"
    process = subprocess.Popen(
        [sys.executable, "-m", "mtbridge", "serve", "--bind", bind, "--engine", "numpy"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        found = re.search(r"tcp://127\.0\.0\.1:\d+", said)
        assert found, said
        yield found[0]
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()


def test_the_examples_of_serve_and_ping_work_as_typed_together(worker: str, run: Run) -> None:
    assert example("serve") == ["serve", "--bind", "tcp://127.0.0.1:5555"]
    arguments = [worker if part.startswith("tcp:") else part for part in example("ping")]
    code, out, err = run(*arguments)
    assert code == 0, err
    assert worker in out
    assert "mtbridge 0." in out
    assert "ms" in out


def test_a_bind_to_a_port_in_use_is_refused(worker: str, run: Run) -> None:
    refused(run("serve", "--bind", worker, "--engine", "numpy"), worker.rsplit(":", 1)[1])


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal may be there on Windows")
def test_download_elsewhere_than_windows_says_what_to_do(run: Run, tmp_path: Path) -> None:
    refused(run(*example("download")))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("operation", ["gram", "multiply"])
def test_bench_writes_rows_beside_the_machine(
    operation: str, run: Run, tmp_path: Path, verdict: Verdict
) -> None:
    arguments = example(f"bench {operation}")
    arguments[arguments.index("--sizes") + 1] = "24"
    code, out, err = run(*arguments, "--rounds", "1", "--threads", "all")
    assert code == 0, err
    assert "24x24" in out
    found = json.loads((tmp_path / f"{operation}.json").read_text())
    assert set(found) == {"machine", "rows"}
    assert {row["contender"] for row in found["rows"]} == {"opencl", "numpy", "serial", "openblas"}
    assert {row["dtype"] for row in found["rows"]} == {"float32", "float64"}
    for row in found["rows"]:
        assert set(row) == ROW_KEYS
        assert row["case"] == f"{operation} " + ("24x24" if operation == "gram" else "24x24x24")
        assert row["median_s"] > 0
        assert row["spread_s"] >= 0
        assert row["gflops"] > 0
        assert row["error"] < 24 * np.finfo(row["dtype"]).eps
        peers = {"openblas", "numpy"} - {row["contender"]}
        assert set(row["versus"]) == peers
    by_name = {(row["contender"], row["dtype"]): row for row in found["rows"]}
    ours, peer = by_name["opencl", "float64"], by_name["openblas", "float64"]
    assert ours["versus"]["openblas"] == pytest.approx(peer["median_s"] / ours["median_s"])


def test_bench_covariance_sets_arrays_beside_numpy_and_frames_beside_pandas(
    run: Run, tmp_path: Path, verdict: Verdict
) -> None:
    arguments = example("bench covariance")
    arguments[arguments.index("--shapes") + 1] = "40x7"
    code, _, err = run(*arguments, "--rounds", "1", "--threads", "all")
    assert code == 0, err
    assert "7 windows" in err, "one window is called no result"
    rows = json.loads((tmp_path / "covariance.json").read_text())["rows"]
    contenders = {
        "covariance 40x7": ["opencl", "numpy", "serial", "np.cov"],
        "covariance frame 40x7": ["opencl", "numpy", "pandas"],
    }
    for case, names in contenders.items():
        for dtype in ("float32", "float64"):
            found = [row for row in rows if (row["case"], row["dtype"]) == (case, dtype)]
            assert [row["contender"] for row in found] == names
            assert all(set(row) == ROW_KEYS for row in found)
            assert all(row["error"] < 40 * np.finfo(dtype).eps for row in found)
            assert names[-1] in found[0]["versus"]


def test_bench_puts_the_rows_of_one_thread_behind_those_of_all(
    run: Run, tmp_path: Path, verdict: Verdict
) -> None:
    arguments = ("--shapes", "5x7x3", "--peers", "openblas", "--rounds", "1", "--json", "found.json")
    code, _, err = run("bench", "multiply", *arguments)
    assert code == 0, err
    rows = json.loads((tmp_path / "found.json").read_text())["rows"]
    for dtype in ("float32", "float64"):
        found = [row for row in rows if row["dtype"] == dtype]
        assert [row["contender"] for row in found] == ["opencl", "serial", "openblas"] * 2
        assert {row["case"] for row in found} == {"multiply 5x7x3"}
        assert [row["threads"] for row in found[3:]] == [1, 1, 1]
        assert found[0]["threads"] == os.cpu_count()
        assert all(set(row["versus"]) == {"openblas"} - {row["contender"]} for row in found)


def test_bench_bridge_writes_rows_of_the_same_keys(run: Run, tmp_path: Path) -> None:
    code, _, err = run("bench", "bridge", "--rounds", "20", "--json", "bridge.json")
    assert code == 0, err
    rows = json.loads((tmp_path / "bridge.json").read_text())["rows"]
    assert any(row["case"] == "bridge correlation 60x50" for row in rows)
    assert all(set(row) == ROW_KEYS for row in rows)
    assert any("echo" in row["versus"] for row in rows)


@pytest.mark.parametrize("sizes", ["0", "-3", "ten", "", "8,,9", "1e3"])
def test_bench_refuses_sizes_that_are_none(run: Run, sizes: str) -> None:
    refused(run("bench", "gram", "--sizes", sizes), repr(sizes))


@pytest.mark.parametrize(
    ("command", "shapes"),
    [
        ("gram", "5"), ("gram", "5x"), ("gram", "5x0"), ("gram", "5x4x3"), ("gram", ""), ("multiply", "5x4"),
        ("covariance", "5x4,3"),
    ],
)  # fmt: skip
def test_bench_refuses_shapes_that_are_none(run: Run, command: str, shapes: str) -> None:
    refused(run("bench", command, "--shapes", shapes), repr(shapes), "sizes each")


def test_bench_refuses_a_peer_that_it_does_not_know(run: Run) -> None:
    refused(run("bench", "gram", "--peers", "numpy,cublas"), "'cublas'", "clblast")


def test_bench_refuses_a_folder_that_is_not_there_before_it_measures(run: Run) -> None:
    outcome = run("bench", "gram", "--sizes", "8", "--json", "nowhere/gram.json")
    refused(outcome, "nowhere")
    assert "8x8" not in outcome[2]


# Right answers


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


# Refusals


@pytest.mark.parametrize("command", ["covariance", "correlation"])
@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("missing.csv", None),
        ("empty.csv", b""),
        ("blank.csv", b"\n\n\n"),
        ("words.csv", b"This is a letter.\nIt has no prices, not one.\n"),
        ("noise.csv", bytes(range(256)) * 20),
        ("zeros.csv", bytes(4096)),
        ("noise.parquet", b"PAR1" + bytes(100) + b"PAR1"),
        ("cut.parquet", b"PAR1\x15\x04"),
        ("header.csv", b"time,EURUSD,GBPUSD\n"),
        ("one.csv", b"time,EURUSD,GBPUSD\n2025-01-01,1.1,1.2\n"),
        ("bad.csv", b"time,EURUSD\n2025-01-01,abc\n2025-01-02,def\n"),
    ],
)
def test_a_file_that_is_no_price_table_is_refused(
    run: Run, tmp_path: Path, command: str, name: str, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    before = sorted(tmp_path.iterdir())
    refused(run(command, name, "-o", "out.csv", "--engine", "numpy"))
    assert sorted(tmp_path.iterdir()) == before, "no half-written and no temporary file"


def test_a_damaged_parquet_is_refused_by_its_name(run: Run, shared: Path) -> None:
    path = shared / "data" / "parquet_damaged_d1_US500_a.parquet"
    refused(run("covariance", str(path)), "parquet_damaged_d1_US500_a.parquet")


def test_a_folder_without_files_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    refused(run("covariance", "empty"), "empty")
    refused(run("covariance", "*.csv"), "*.csv")


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads every file")
def test_a_file_that_may_not_be_read_is_refused(run: Run, prices: Path) -> None:
    prices.chmod(0)
    refused(run("covariance", "prices.csv"), "prices.csv")


def test_a_symbol_that_is_not_there_is_refused_with_its_name(prices: Path, run: Run) -> None:
    refused(run("covariance", "prices.csv", "--symbols", "EURUSD,NOSUCH"), "NOSUCH")


@pytest.mark.parametrize("ddof", ["199", "5000"])
def test_ddof_as_large_as_the_rows_is_refused(prices: Path, run: Run, tmp_path: Path, ddof: str) -> None:
    refused(run("covariance", "prices.csv", "--ddof", ddof, "-o", "c.csv"), ddof)
    assert not (tmp_path / "c.csv").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("--from", "yesterday"), ("--to", "2025-13-45"), ("--from", "2090-01-01"), ("--to", "1970-01-01")],
)
def test_times_that_are_none_or_leave_nothing_are_refused(
    prices: Path, run: Run, option: str, value: str
) -> None:
    refused(run("covariance", "prices.csv", option, value, "--engine", "numpy"))


@pytest.mark.parametrize("name", ["c.xlsx", "c", "c.csv.gz"])
def test_an_unknown_output_is_refused_before_the_work(prices: Path, run: Run, name: str) -> None:
    refused(run("covariance", "prices.csv", "-o", name), name, ".parquet")
    refused(run("multiply", "none.npy", "none.npy", "-o", name), name, ".parquet")


@pytest.mark.parametrize("command", ["covariance", "sample"])
def test_an_output_folder_that_is_not_there_is_refused(
    prices: Path, run: Run, tmp_path: Path, command: str
) -> None:
    source = () if command == "sample" else ("prices.csv", "--engine", "numpy")
    refused(run(command, *source, "-o", "nowhere/c.csv"), "nowhere")
    assert [path.name for path in tmp_path.iterdir()] == ["prices.csv"]


def test_an_output_that_is_a_folder_is_refused(prices: Path, run: Run, tmp_path: Path) -> None:
    (tmp_path / "c.csv").mkdir()
    refused(run("covariance", "prices.csv", "-o", "c.csv", "--engine", "numpy"), "c.csv", "folder")


@pytest.mark.parametrize(
    ("left", "right", "words"),
    [
        ("1,2,3\n", "1\n2\n", "A has 3 columns but B has 2 rows"),
        ("1,two\n", "1\n2\n", "'two'"),
        ("1,2\n3\n", "1\n2\n", "empty cells"),
        ("1,2\n3,4,5\n", "1\n2\n", "a.csv"),
        ("", "1\n", "a.csv"),
        ("a,b\n1,2\n", "1\n2\n", "'a'"),
        ("123456789012345678901234567890,x\n", "1\n2\n", "'x'"),
    ],
)
def test_matrices_that_do_not_fit_or_are_none_are_refused(
    run: Run, tmp_path: Path, left: str, right: str, words: str
) -> None:
    (tmp_path / "a.csv").write_text(left)
    (tmp_path / "b.csv").write_text(right)
    refused(run("multiply", "a.csv", "b.csv", "-o", "c.csv", "--engine", "numpy"), words)
    assert not (tmp_path / "c.csv").exists()


@pytest.mark.parametrize("cell", ["123456789012345678901234567890", "1e400", "-0", "0x10"])
def test_a_strange_cell_is_a_number_or_one_sentence(run: Run, tmp_path: Path, cell: str) -> None:
    (tmp_path / "a.csv").write_text(f"{cell}\n")
    (tmp_path / "b.csv").write_text("1\n")
    code, out, err = run("multiply", "a.csv", "b.csv", "--engine", "numpy")
    assert "Traceback" not in err
    assert code == 0 or (code == 1 and err.count("mtbridge: ") == 1)
    if code == 0:
        assert float(out.split()[-1]) == pytest.approx(float(cell), rel=1e-3)


def test_a_word_is_no_number_even_if_it_is_true(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("True\n")
    refused(run("multiply", "a.csv", "a.csv", "--engine", "numpy"), "True")


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"no array", b"\x93NUMPY\x01\x00v\x00{'descr'"])
def test_a_damaged_npy_is_refused_by_its_name(run: Run, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.npy").write_bytes(content)
    refused(run("multiply", "a.npy", "a.npy"), "a.npy")


def test_an_npy_of_objects_or_of_three_dimensions_is_refused(run: Run, tmp_path: Path) -> None:
    np.save(tmp_path / "o.npy", np.array([["a", None]], object))
    np.save(tmp_path / "t.npy", np.array([["a", "b"]]))
    np.save(tmp_path / "d.npy", np.ones((2, 2, 2)))
    for name in ("o.npy", "t.npy", "d.npy", "."):
        refused(run("multiply", name, name), name)


def test_no_worker_listening_is_refused_in_time(run: Run) -> None:
    with socket.socket() as held:
        # bound but not listening: nobody can answer there
        held.bind(("127.0.0.1", 0))
        endpoint = f"tcp://127.0.0.1:{held.getsockname()[1]}"
        refused(run("ping", "--endpoint", endpoint, "--timeout", "0.3"), endpoint)


@pytest.mark.parametrize("endpoint", ["nonsense", "tcp://", "tcp://127.0.0.1", "tcp://127.0.0.1:99999", ""])
def test_an_address_that_is_none_is_refused(run: Run, endpoint: str) -> None:
    refused(run("ping", "--endpoint", endpoint, "--timeout", "0.3"))
    refused(run("serve", "--bind", endpoint, "--engine", "numpy"))


@pytest.mark.parametrize("command", ["covariance prices.csv", "demo", "serve --bind tcp://127.0.0.1:0"])
def test_a_device_that_is_not_there_is_refused(
    prices: Path, run: Run, command: str, verdict: Verdict
) -> None:
    refused(run(*command.split(), "--engine", "opencl", "--device", "Voodoo 2"), "Voodoo 2", "0: ")
