"""The memory experiments: every kernel's answer on awkward sizes, and rows that say what could not be run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from mtbridge.bench import memory, memory_kernels, memory_ways
from mtbridge.bench.memory import measure_memory, open_memory
from mtbridge.bench.memory_cases import (
    EACH,
    GROUP,
    OFFSETS,
    SIDE,
    Case,
    Contender,
    Sizes,
    bars_case,
    copy_case,
    looked_up,
    table_case,
    transpose_case,
)
from mtbridge.bench.memory_kernels import case_rows, checked, largest_error, launch_of, unable
from mtbridge.bench.memory_rows import table
from mtbridge.cli.memory import memory as command
from mtbridge.compute.devices import Verdict
from mtbridge.matrix import DTYPES

BLOCK = GROUP * EACH
KEYS = {
    *("case", "dtype", "contender", "device", "threads", "median_s", "spread_s", "gflops", "error", "note"),
    *("versus", "gb_per_s", "device_s"),
}
TINY = Sizes(copied=1 << 12, rows=33, columns=7, lookups=65, bars=65)


@pytest.fixture(scope="module")
def device(verdict: Verdict) -> Iterator[Any]:
    with open_memory("cpu") as opened:
        yield opened


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """One short window a contender, and small ways: what is looked at is the rows."""
    monkeypatch.setattr(memory_kernels, "ROUNDS", 1)
    monkeypatch.setattr(memory_kernels, "SHORTEST_WINDOW", 0.0)
    monkeypatch.setattr(memory_ways, "SIZES", (4, 4096))


def errors(device: Any, case: Case) -> list[float]:
    """Run every contender on guarded, poisoned buffers; a wrong answer raises, by name."""
    size = np.dtype(case.dtype).itemsize
    sources = [device.guarded_copy(source) for source in case.sources]
    target = device.guarded(case.expected.size * size)
    found = []
    for contender in case.contenders:
        assert unable(device, case, contender) == ""
        work = launch_of(device, case, contender, sources[contender.source], target)
        try:
            found.append(checked(device, case, work, target))
        except ArithmeticError as wrong:
            raise AssertionError(f"{case.name}, {case.dtype}, {contender.name}: {wrong}") from wrong
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("offset", OFFSETS)
def test_a_copy_is_exact_whatever_its_order_width_and_offset(device: Any, offset: int, dtype: str) -> None:
    for count in (1, 2, 3, 5, GROUP + 1, BLOCK - 1, BLOCK, 4 * BLOCK + 7):
        assert max(errors(device, copy_case(count, offset, dtype))) == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("rows", "columns"), [(1, 1), (1, 77), (77, 1), (SIDE - 1, SIDE + 1), (SIDE, SIDE), (2 * SIDE + 3, 37)]
)
def test_a_transpose_is_exact_whatever_its_padding(device: Any, rows: int, columns: int, dtype: str) -> None:
    assert max(errors(device, transpose_case(rows, columns, dtype))) == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("divergent", [False, True])
def test_a_table_gives_the_same_sums_wherever_it_lies(device: Any, divergent: bool, dtype: str) -> None:
    for count in (1, GROUP - 1, GROUP, 3 * GROUP + 5):
        assert max(errors(device, table_case(count, dtype, divergent=divergent))) == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("middle", [False, True])
def test_sums_of_bars_are_the_same_in_both_layouts(device: Any, middle: bool, dtype: str) -> None:
    for count in (1, 2, GROUP + 1, BLOCK - 1, BLOCK, 2 * BLOCK + 9):
        # EACH sums of numbers below 1; the cases themselves bound each sum more closely
        assert max(errors(device, bars_case(count, dtype, middle=middle))) < EACH**2 * np.finfo(dtype).eps


def test_sums_of_bars_are_those_of_the_prices() -> None:
    case = bars_case(300, "float64", middle=True)
    bars, fields = case.sources
    assert np.array_equal(bars.T, fields)
    assert case.expected.sum() == pytest.approx((bars[:, 1] + bars[:, 2]).sum() / 2, rel=1e-14)


def test_lookups_follow_the_formula_of_the_kernel() -> None:
    entries = np.arange(1024.0)
    state, total = 2654435761 * 6 % 2**32, 0
    for _ in range(256):
        state = (1664525 * state + 1013904223) % 2**32
        total += state >> 22
    assert looked_up(entries, np.array([5, 0, 5], np.uint32))[[0, 2]].tolist() == [total, total]


@pytest.mark.parametrize("count", [1, 63, 65, 5000])
def test_every_way_brings_the_numbers_there_and_back(device: Any, count: int) -> None:
    from mtbridge.compute.opencl_memory import WAYS

    kernel = device.kernel("negate", ("memory/negate.cl",), {})
    numbers = np.random.default_rng(count).standard_normal(count).astype(np.float32)
    for way in WAYS:
        trip = device.trip(way, kernel, count, "float32")
        for sent in (numbers, 2 * numbers):
            answer, moments = trip(sent)
            assert np.array_equal(answer, -sent), way
            assert 0 <= moments.submitted <= moments.started <= moments.ended
        trip(None)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("count", [1, 63, 64, 65])
def test_negate_turns_its_numbers_and_no_others(device: Any, count: int, dtype: str) -> None:
    bits = 8 * np.dtype(dtype).itemsize
    kernel = device.kernel("negate", ("memory/negate.cl",), {"REAL_BITS": bits, "SUM_BITS": bits})
    numbers = np.random.default_rng(count).standard_normal(count).astype(dtype)
    data = device.guarded_copy(numbers)
    device.timed(kernel, (2,), (64,), data.inside, np.int32(count))
    assert np.array_equal(device.inside(data, dtype), -numbers)


def test_a_write_outside_of_the_result_is_found(device: Any) -> None:
    """Nine numbers into room for eight: the eight are right, and still it is refused."""
    case = copy_case(9, 0, "float32")
    short = replace(case, expected=case.expected[:8])
    source, target = device.guarded_copy(case.sources[0]), device.guarded(32)
    work = launch_of(device, short, case.contenders[0], source, target)
    with pytest.raises(ArithmeticError, match="outside"):
        checked(device, short, work, target)


def test_an_answer_that_is_wrong_or_missing_is_found() -> None:
    exact = np.array([1.0, 2.0])
    assert largest_error(np.array([1.0, 2.5]), exact, 0.5) == 0.5
    for wrong in ([1.0, 2.6], [np.nan, 2.0]):
        with pytest.raises(ArithmeticError, match="1 of 2"):
            largest_error(np.array(wrong), exact, 0.5)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("local_bytes", 100, "bytes of local memory, the device has 100"),
        ("constant_bytes", 64, "bytes of constant memory, the device has 64"),
        ("largest_group", 8, "groups of 64 items, the device has at most 8"),
        ("largest_buffer", 1000, "the device has at most 1000"),
        ("fp64", False, "the device has no float64"),
    ],
)
@pytest.mark.usefixtures("quick")
def test_what_a_device_cannot_do_is_a_row_that_says_why(
    device: Any, monkeypatch: pytest.MonkeyPatch, name: str, value: int, words: str
) -> None:
    monkeypatch.setattr(device, name, value)
    rows = case_rows(device, table_case(70, "float64", divergent=True))
    left_out = [row for row in rows if row["median_s"] is None]
    assert left_out
    assert all(words in row["note"] for row in left_out)
    assert all(row["error"] is None and row["versus"] == {} for row in left_out)
    assert "not run: " in table(rows)
    ran = {row["contender"] for row in rows if row["median_s"] is not None}
    expected = {
        "local_bytes": {"__global", "__constant", "__constant, in the program"},
        "constant_bytes": {"__global", "__local"},
    }
    assert ran == expected.get(name, set())


@pytest.mark.usefixtures("quick")
def test_a_kernel_with_a_wrong_answer_is_not_timed(device: Any) -> None:
    case = copy_case(100, 4, "float32")
    wrong = replace(case, expected=case.expected[::-1].copy())
    rows = case_rows(device, wrong)
    assert [row["median_s"] for row in rows] == [None] * len(rows)
    assert all("numbers are not what they should be" in row["note"] for row in rows)


@pytest.mark.usefixtures("quick")
def test_a_kernel_that_does_not_build_is_a_row_too(device: Any) -> None:
    case = copy_case(100, 0, "float32")
    broken = Contender("broken", "copy", "no_such_kernel")
    rows = case_rows(device, replace(case, contenders=(*case.contenders[:1], broken)))
    assert rows[0]["median_s"] is not None
    assert rows[1]["median_s"] is None
    assert "failed" in rows[1]["note"]
    assert "--engine" not in rows[1]["note"]


@pytest.mark.usefixtures("quick")
def test_rows_have_the_keys_of_every_benchmark_and_two_more(device: Any) -> None:
    said: list[str] = []
    rows = measure_memory("cpu", said.append, sizes=TINY)
    assert all(set(row) == KEYS for row in rows)
    assert {row["device"] for row in rows} == {device.name}
    names = {(row["case"], row["dtype"]) for row in rows}
    assert len(names) == 1 + 2 + 2 * (len(OFFSETS) + 1 + 2 + 2)
    assert len(said) == len(names)
    assert all(row["gb_per_s"] > 0 and row["device_s"] >= 0 for row in rows if row["versus"])
    assert all("CL_DEVICE_LOCAL_MEM_TYPE" in row["note"] for row in rows if row["contender"] == "__local")
    launch = {row["contender"]: row["median_s"] for row in rows if row["case"].startswith("one launch")}
    assert list(launch) == ["QUEUED to SUBMIT", "SUBMIT to START", "START to END", "the host's wait"]
    assert sum(row["case"] in line for row in rows[:1] for line in table(rows).splitlines()) == 1


@pytest.mark.usefixtures("device", "quick")
def test_the_command_prints_a_table_and_writes_its_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(memory, "SMALL", TINY)
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, ["--device", "cpu", "--json", str(tmp_path / "memory.json")])
    assert done.exit_code == 0, done.output
    assert "structure of arrays" in done.stdout
    assert "table, uniform reads, float64\n" in done.stderr
    written = json.loads((tmp_path / "memory.json").read_text(encoding="utf-8"))
    assert set(written) == {"machine", "rows"}
    assert all(set(row) == KEYS for row in written["rows"])
