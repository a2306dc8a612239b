"""The case of several cards of `mtbridge bench gpu`: on the processor's device, opened twice."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from given_bench_gpu import Row, Run, bench_gpu, of

from mtbridge.bench.gpu_cases import Named
from mtbridge.bench.gpu_data import case_of
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.several import SeveralEngine
from mtbridge.matrix import DTYPES

SIDE = 101
TITLE = f"several {SIDE}x{SIDE}"
NAMES = ["one", "all", "one, array to array", "all, array to array"]
ARGUMENTS = ("--device", "cpu", "--peers", "", "--cases", "several", "--sizes", str(SIDE), "--rounds", "2")


@pytest.fixture
def run(tmp_path: Path, verdict: Verdict) -> Iterator[Run]:
    with bench_gpu(tmp_path) as called:
        yield called


@pytest.fixture
def opened(
    monkeypatch: pytest.MonkeyPatch, verdict: Verdict, open_tiled: Callable[[], OpenCLEngine]
) -> list[OpenCLEngine]:
    """The engines that the benchmark opens as those of two cards."""
    from mtbridge.bench import gpu_several

    found: list[OpenCLEngine] = []

    def opening(number: int) -> OpenCLEngine:
        assert number == len(found)
        found.append(open_tiled())
        return found[-1]

    monkeypatch.setattr(gpu_several, "numbers_of", lambda _: [0, 1])
    monkeypatch.setattr(gpu_several, "opened_at", opening)
    return found


def rows_of(run: Run, *arguments: str) -> tuple[list[Row], str]:
    code, out, err = run(*ARGUMENTS, "--json", "several.json", *arguments)
    assert code == 0, err
    rows = json.loads(Path("several.json").read_text(encoding="utf-8"))["rows"]
    return [row for row in rows if row["case"] == TITLE], out


def test_one_device_and_all_are_checked_timed_and_compared(run: Run, opened: list[OpenCLEngine]) -> None:
    rows, out = rows_of(run)
    assert len(opened) == 2
    for dtype in DTYPES:
        found = of(rows, TITLE, dtype)
        assert list(found) == NAMES
        for name, row in found.items():
            assert row["error"] <= SIDE * np.finfo(dtype).eps
            assert row["same_bits"]
            assert row["wall_s"] > 0
            count = "2 devices" if name.startswith("all") else "1 device"
            assert row["note"].startswith(f"{count}, ")
            assert row["device"].startswith("2 x ") == (count == "2 devices")
            assert f"({row['note']})" in out
            assert (row["gflops"] is None) == name.endswith("array")
        for one, every in (NAMES[:2], NAMES[2:]):
            assert found[one]["versus"] == {}
            ratio = found[one]["median_s"] / found[every]["median_s"]
            assert found[every]["versus"] == {one: pytest.approx(ratio)}
    for engine in opened:
        assert not engine.kernels_device._slots, "what was opened is closed"
        assert engine.kernels_device._pool.active_blocks == 0


def test_where_there_is_one_device_its_row_says_so(run: Run) -> None:
    rows, out = rows_of(run)
    assert [row["contender"] for row in rows] == ["all", "all"]
    for row in rows:
        assert row["median_s"] is None
        assert row["note"] == "it needs two devices of one kind or more, and there is one"
    assert out.count("not run: it needs two devices") == 2


def test_bits_that_are_not_those_of_one_device_are_wrong(
    run: Run, opened: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    download = SeveralEngine.download

    def other(engine: SeveralEngine, *given: Any) -> Any:
        found = download(engine, *given)
        if len(engine._members) == 2:
            found[3, 5] = np.nextafter(found[3, 5], found.dtype.type(9))
        return found

    monkeypatch.setattr(SeveralEngine, "download", other)
    code, out, err = run(*ARGUMENTS)
    assert code == 1
    assert "all of several 101x101 in float64 is wrong: its bits are not those of one device" in err
    assert out.count("not run: wrong: its bits") == 2


def test_what_no_device_wrote_is_wrong(
    run: Run, opened: list[OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    from mtbridge.compute.several_work import Triangle

    compute = Triangle.compute

    def first_alone(work: Triangle, stripe: slice, answer: Any) -> None:
        if stripe.start == 0:
            compute(work, stripe, answer)

    covariance = SeveralEngine.covariance_on_device

    def leaving(engine: SeveralEngine, X: Any, **options: Any) -> Any:
        with monkeypatch.context() as patched:
            if options.get("out") is not None:
                patched.setattr(Triangle, "compute", first_alone)
            return covariance(engine, X, **options)

    # the memory has the right numbers of a run before, unless it is filled with NaN
    monkeypatch.setattr(SeveralEngine, "covariance_on_device", leaving)
    code, _, err = run(*ARGUMENTS)
    assert code == 1
    assert "all of several 101x101 in float64 is wrong" in err


def test_the_case_is_a_covariance() -> None:
    case = case_of(Named("several", (30, 20)), "float64")
    assert case.flops == 30 * 20**2
    right = np.cov(case.inputs[0], rowvar=False)
    assert case.error(right, np.arange(20)) < 1e-14
