"""`mtbridge bench`: its rows, its files, and what it refuses."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest
from command_line import ROW_KEYS, Run, example, refused

from mtbridge.compute.devices import Verdict


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
