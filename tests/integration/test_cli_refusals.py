"""What the commands refuse: one sentence on stderr, and no file half written."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, refused

from mtbridge.compute.devices import Verdict


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
