"""`mtbridge bench gpu` on a processor: every case and contender, its file, and the tables of it."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from given_bench_gpu import Row, Run, bench_gpu, of

from mtbridge.bench.gpu_report import is_of_gpu, markdown_tables, text_table
from mtbridge.compute.devices import Verdict
from mtbridge.matrix import DTYPES

SIDE = 37
"""Of the matrices: no tile divides it."""

ROLLED = "rolling corr 2x78x60"
TITLES = [
    f"gram {SIDE}x{SIDE}",
    f"multiply {SIDE}x{SIDE}x{SIDE}",
    f"covariance {SIDE}x{SIDE}",
    ROLLED,
    f"pairwise cov {SIDE}x{SIDE} scattered",
    f"pairwise cov {SIDE}x{SIDE} leading",
    f"covariance host {2 * SIDE}x{SIDE}",
    f"batch {SIDE}x60x2",
    f"several {SIDE}x{SIDE}",
]
REDUCED = ["opencl mean", "opencl pairs", "opencl variance", "opencl top pairs", "opencl eigenvalue"]
KEYS = {
    *("case", "dtype", "contender", "device", "threads", "median_s", "spread_s", "gflops", "error", "note"),
    *("versus", "fastest_s", "slowest_s", "wall_s", "gb_per_s", "shares", "bias", "same_bits"),
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run `mtbridge bench gpu` with arguments, in an empty folder."""
    with bench_gpu(tmp_path_factory.mktemp("gpu")) as called:
        yield called


@pytest.fixture(scope="module")
def outcome(run: Run, verdict: Verdict) -> tuple[str, str, dict[str, Any]]:
    """What one run of every case says, and the file that it writes."""
    code, out, err = run("--device", "cpu", "--sizes", str(SIDE), "--rounds", "2", "--json", "gpu.json")
    assert code == 0, err
    return out, err, json.loads(Path("gpu.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rows(outcome: tuple[str, str, dict[str, Any]]) -> list[Row]:
    found: list[Row] = outcome[2]["rows"]
    return found


def test_every_case_has_the_chosen_kernels_each_family_and_each_peer(rows: list[Row]) -> None:
    assert list(dict.fromkeys(row["case"] for row in rows)) == ["ceiling fma", "ceiling copy", *TITLES]
    for dtype in DTYPES:
        families = ["opencl", "register_tiled"]
        tensor = ["dmma"] if dtype == "float64" else []
        dense = ["dmma", "int8_mma"] if dtype == "float64" else ["split", "single"]
        split = ["split_wgmma", "split_mma", "single"] if dtype == "float32" else ["dmma", "int8_mma"]
        matrices = ["opencl", "opencl packed", "floor", "floor packed"]
        expected = {
            TITLES[0]: [*families, *dense, "cublas", "cublas syrk"],
            TITLES[1]: [*families, *dense, "cublas"],
            TITLES[2]: [*families, *split, "torch"],
            ROLLED: [*matrices, *(REDUCED if dtype == "float64" else []), "torch"],
            TITLES[4]: [*families, *tensor, "dense", "torch"],
            TITLES[5]: [*families, *tensor, "dense", "torch"],
            TITLES[6]: ["opencl", "opencl pinned", "torch", "torch pinned", "numpy"],
            TITLES[7]: ["opencl", "register_tiled", "one by one", "torch"],
            TITLES[8]: ["all"],
        }
        for title, names in expected.items():
            assert list(of(rows, title, dtype)) == names


def test_what_ran_is_right_and_the_same_each_time(rows: list[Row]) -> None:
    ran = [row for row in rows if row["median_s"] is not None and row["same_bits"] is not None]
    assert {row["contender"] for row in ran} >= {
        "opencl",
        "register_tiled",
        "opencl packed",
        "dense",
        *REDUCED,
    }
    for row in ran:
        terms = 60 if row["case"] in (ROLLED, TITLES[7]) else SIDE
        allowed = 1e-8 if row["contender"] == "opencl eigenvalue" else terms * np.finfo(row["dtype"]).eps
        assert row["error"] <= allowed, row
        assert row["same_bits"], row
        assert (row["bias"] is not None) == (" cov" in row["case"] or row["case"].startswith("cov")), row
        # variances that are all too small would pass the error's bound
        assert row["bias"] is None or abs(row["bias"]) <= np.finfo(row["dtype"]).eps, row


def test_rows_have_the_keys_of_all_benchmarks_and_their_own(rows: list[Row]) -> None:
    assert is_of_gpu(rows)
    for row in rows:
        assert set(row) == KEYS
        if row["same_bits"] is not None:
            assert 0 < row["fastest_s"] <= row["median_s"] <= row["slowest_s"]
            assert row["wall_s"] > 0


def test_a_family_that_the_device_lacks_says_what_it_needs(rows: list[Row]) -> None:
    families = ("dmma", "int8_mma", "split_wgmma", "split_mma", "split", "single")
    lacking = [row for row in rows if row["contender"] in families]
    assert len(lacking) == 5 + 3 + 2 + 2 * 2 + 1
    for row in lacking:
        assert row["median_s"] is None
        assert row["versus"] == row["shares"] == {}
        first = "9.0" if row["contender"] == "split_wgmma" else "8.0"
        assert f"compute capability {first}" in row["note"]
        assert not row["note"].endswith(".")


def test_a_peer_without_a_card_or_a_package_says_so(rows: list[Row]) -> None:
    peers = [row for row in rows if row["contender"] in ("cublas", "cublas syrk", "torch")]
    assert peers
    for row in peers:
        package = "cupy" if row["contender"] == "cublas syrk" else "torch"
        absent = row["note"].startswith((f"{package} cannot be imported", f"{package} finds no CUDA device"))
        assert absent == (row["median_s"] is None), row


def test_shares_and_ratios_are_those_of_the_same_run(rows: list[Row]) -> None:
    ceilings = {(row["case"], row["dtype"]): row for row in rows if row["case"].startswith("ceiling")}
    assert set(ceilings) == {("ceiling fma", dtype) for dtype in DTYPES} | {("ceiling copy", "float32")}
    for dtype in DTYPES:
        peak = ceilings["ceiling fma", dtype]["gflops"]
        for title, flops in ((TITLES[0], SIDE**3), (TITLES[1], 2 * SIDE**3), (TITLES[2], SIDE**3)):
            row = of(rows, title, dtype)["opencl"]
            assert row["gflops"] == pytest.approx(1e-9 * flops / row["median_s"])
            assert row["shares"] == {"fma": pytest.approx(row["gflops"] / peak)}
        rolled = of(rows, ROLLED, dtype)
        moved = 19 * 2 * 2 * np.dtype(dtype).itemsize
        assert rolled["opencl"]["gb_per_s"] == pytest.approx(1e-9 * moved / rolled["opencl"]["median_s"])
        copied = ceilings["ceiling copy", "float32"]["gb_per_s"]
        assert rolled["opencl"]["shares"]["copy"] == pytest.approx(rolled["opencl"]["gb_per_s"] / copied)
        for name, floor in (("opencl", "floor"), ("opencl packed", "floor packed")):
            ratio = rolled[floor]["median_s"] / rolled[name]["median_s"]
            assert rolled[name]["versus"][floor] == pytest.approx(ratio)
        for title in TITLES[4:6]:
            found = of(rows, title, dtype)
            ratio = found["dense"]["median_s"] / found["register_tiled"]["median_s"]
            assert found["register_tiled"]["versus"]["dense"] == pytest.approx(ratio)
        host = of(rows, TITLES[6], dtype)
        ratio = host["numpy"]["median_s"] / host["opencl"]["median_s"]
        assert host["opencl"]["versus"]["numpy"] == pytest.approx(ratio)
        assert host["opencl"]["shares"] == {}, "its time is that of copies"
        small = of(rows, TITLES[7], dtype)
        ratio = small["one by one"]["median_s"] / small["opencl"]["median_s"]
        assert small["opencl"]["versus"]["one by one"] == pytest.approx(ratio)


def test_the_file_has_the_machine_and_the_words_go_to_stderr(
    outcome: tuple[str, str, dict[str, Any]],
) -> None:
    out, err, result = outcome
    assert {"drivers", "commit", "cards", "processor", "time"} <= set(result["machine"])
    assert "is a processor" in err
    assert "--rounds 2 is a glance" in err
    for title in TITLES:
        assert f"{title}, float64\n" in out
        assert f"{title}, float64\n" in err
    assert "opencl packed is checked\n" in err
    assert "is checked" not in out


def test_the_chosen_kernels_are_named(rows: list[Row]) -> None:
    assert of(rows, TITLES[0], "float64")["opencl"]["note"].endswith("packed chosen")


def test_the_tables_name_every_contender_and_its_reason(outcome: tuple[str, str, dict[str, Any]]) -> None:
    result = outcome[2]
    given = {"name": "Card", "power.limit": "700 W", "clocks.sm": "1.9 GHz", "clocks.max.sm": "2 GHz"}
    machine = {**result["machine"], "cards": [{**given, "driver_version": "1.2"}]}
    text = "\n".join(markdown_tables({**result, "machine": machine}))
    assert "Card, driver 1.2, power limit 700 W, clock at the end 1.9 GHz of 2 GHz." in text
    for row in result["rows"]:
        assert f"**{row['case']}, {row['dtype']}**" in text
        assert f"| {row['contender']} |" in text
        assert row["note"] in text
    widths = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert len(widths) == 1, "every line of a table has as many columns"
    assert text_table(result["rows"]) == outcome[0].rstrip("\n")


def test_the_page_on_performance_has_the_tables_of_such_a_file(
    outcome: tuple[str, str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # which sets how wide help is laid out
    for name in ("COLUMNS", "TERMINAL_WIDTH", "NO_COLOR"):
        monkeypatch.setenv(name, "100")
    path = Path(__file__).resolve().parents[2] / "docs" / "generate.py"
    spec = importlib.util.spec_from_file_location("generate", path)
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    (tmp_path / "card-gpu.json").write_text(json.dumps(outcome[2]), encoding="utf-8")
    monkeypatch.setattr(generate, "RESULTS", tmp_path)
    page = generate.performance_page()
    assert "## card-gpu" in page
    assert "\n".join(markdown_tables(outcome[2])) in page
