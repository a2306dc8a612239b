"""What `mtbridge bench gpu` compares: its cases, how faults are seen, and the peers on a processor."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtbridge.bench import gpu_ceilings, gpu_trial
from mtbridge.bench.gpu import wrong
from mtbridge.bench.gpu_cases import FURTHER, OPERATIONS, SIZES, Named, chosen, listed
from mtbridge.bench.gpu_ceilings import cards
from mtbridge.bench.gpu_data import Case, Lines, PackedCorrelation, RollingCorrelation, case_of, spread_over
from mtbridge.bench.gpu_peers import TORCH, TorchTrial
from mtbridge.bench.gpu_trial import Trial, checked, in_turn
from mtbridge.errors import DeviceError, OptionError
from mtbridge.matrix import DTYPES


def test_the_usual_cases_have_the_names_that_results_are_kept_under() -> None:
    titles = [case.title for case in listed()]
    assert titles[:2] == ["gram 8192x8192", "gram 4096x4096"]
    for size in SIZES:
        for name in (f"gram {size}x{size}", f"multiply {size}x{size}x{size}", f"covariance {size}x{size}"):
            assert name in titles
        assert {f"pairwise cov {size}x{size} {gaps}" for gaps in ("scattered", "leading")} <= set(titles)
    for rows, columns in FURTHER:
        assert {f"gram {rows}x{columns}", f"covariance {rows}x{columns}"} <= set(titles)
    assert "rolling corr 500x5000x60" in titles
    assert {case.operation for case in listed()} == set(OPERATIONS)


def test_cases_are_chosen_by_whole_words_in_their_own_order() -> None:
    every = listed([8, 64])
    titles = [case.title for case in chosen(every, ["rolling", "gram 64x64"])]
    assert titles == ["gram 64x64", "rolling corr 2x64x60", "rolling corr 4x92x60"]
    assert chosen(every, ["gram", "gram 8x8"]) == tuple(case for case in every if case.operation == "gram")
    for name in ("gra", "gram 6", "corr", ""):
        with pytest.raises(OptionError, match="--cases"):
            chosen(every, [name])


# faults are seen


class Given(Trial):
    """Answers that lie ready, one after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.turns: list[int] = []
        self.answer = answers[0]

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        self.answer = self.answers[turn % len(self.answers)]
        self.turns.append(turn)
        return 1e-3 * (1 + turn % 2)

    def lines(self, some: Lines) -> Any:
        return self.answer[some]


def exact_of(case: Case) -> Any:
    """The answer of a case by numpy."""
    with np.errstate(invalid="ignore"):
        if case.named.operation == "multiply":
            return case.inputs[0] @ case.inputs[1]
        if case.named.operation == "gram":
            return case.inputs[0].T @ case.inputs[0]
        return np.cov(case.inputs[0], rowvar=False)


@pytest.mark.parametrize("operation", ["gram", "multiply", "covariance"])
def test_an_answer_that_is_not_written_or_wrong_is_not_timed(operation: str) -> None:
    case = case_of(Named(operation, (9, 9, 9) if operation == "multiply" else (9, 9)), "float64")
    right = exact_of(case)
    passed = checked(Given(right, right), case)
    assert passed.error < 1e-14
    assert passed.same_bits
    hole = right.copy()
    hole[8, 3] = np.nan
    with pytest.raises(ArithmeticError, match="1 of 81 numbers"):
        checked(Given(hole, right), case)
    off = right.copy()
    off[3, 5] += 1e-9
    with pytest.raises(ArithmeticError, match="the error is"):
        checked(Given(off, right), case)
    other = right.copy()
    other[0, 0] = np.nextafter(other[0, 0], 9)
    assert not checked(Given(right, other), case).same_bits


def test_sums_that_are_cut_off_show_in_the_bias_and_not_in_the_error() -> None:
    case = case_of(Named("covariance", (5000, 4)), "float32")
    right = np.cov(case.inputs[0].astype(np.float64), rowvar=False)
    assert abs(checked(Given(right, right), case).bias or 0) < 1e-12
    short = (right * (1 - 6e-5)).astype(np.float32)
    found = checked(Given(short, short), case)
    assert found.error < 1e-4
    assert found.bias == pytest.approx(-6e-5, rel=1e-2)


@pytest.mark.parametrize("gaps", ["scattered", "leading"])
def test_pairwise_cases_miss_about_a_twentieth_and_are_compared_pair_by_pair(gaps: str) -> None:
    import pandas as pd

    case = case_of(Named("pairwise cov", (400, 30), gaps), "float64")
    (X,) = case.inputs
    missing = np.isnan(X)
    assert 0.03 < missing.mean() < 0.07
    if gaps == "leading":
        assert (np.diff(missing.astype(int), axis=0) <= 0).all()
    right = pd.DataFrame(X).cov().to_numpy()
    assert checked(Given(right, right), case).error < 1e-13
    complete = X[~missing.any(axis=1)]
    dropped = np.cov(complete, rowvar=False) if len(complete) > 1 else np.zeros_like(right)
    with pytest.raises(ArithmeticError, match="the error is"):
        checked(Given(dropped, dropped), case)


def test_windows_are_compared_whole_and_packed() -> None:
    whole = RollingCorrelation(Named("rolling corr", (4, 90, 60)), "float64")
    right = np.array([np.corrcoef(whole.inputs[0][k : k + 60], rowvar=False) for k in range(31)])
    packed = PackedCorrelation(whole)
    assert checked(Given(right, right), whole).error < 1e-13
    triangles = right[:, *np.triu_indices(4)]
    assert checked(Given(triangles, triangles), packed).error < 1e-13
    shifted = np.roll(right, 1, axis=0)
    with pytest.raises(ArithmeticError, match="the error is"):
        checked(Given(shifted, shifted), whole)


def test_a_wrong_row_is_named_at_the_end() -> None:
    row = {"contender": "dmma", "case": "gram 8x8", "dtype": "float64"}
    rows = [{**row, "note": "resident"}, {**row, "note": "wrong: the error is 1.0e+00"}]
    assert list(wrong(rows)) == ["dmma of gram 8x8 in float64 is wrong: the error is 1.0e+00"]


def test_contenders_take_turns_on_changing_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_trial, "SHORTEST_WINDOW", 0.004)
    first, second = Given(0), Given(0)
    found = in_turn({"first": first, "second": second}, rounds=3)
    together = sorted(first.turns + second.turns)
    assert together == list(range(len(together))), "no turn is taken twice"
    assert {turn % 3 for turn in first.turns} == {0, 1, 2}
    for spent, walls in found.values():
        assert len(spent) == len(walls) == 3
        assert all(1e-3 <= seconds <= 2e-3 for seconds in spent)


def test_the_numbers_that_are_looked_at_reach_from_end_to_end() -> None:
    for count, most in ((1, 5), (5, 5), (7, 3), (1000, 24)):
        found = spread_over(count, most)
        assert len(found) == min(count, most)
        assert (np.diff(found) > 0).all()
        assert found[0] == 0
        assert most == 1 or found[-1] == count - 1


# what is known of a card


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program there")
def test_cards_are_what_the_drivers_program_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=None)
    assert cards() == []
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = "--query-gpu={",".join(gpu_ceilings.ASKED)}" ] || exit 2\n'
        "echo 'NVIDIA X1, 700.00 W, 345 MHz, 1980 MHz, 580.1'\n"
    )
    program.chmod(0o755)
    assert cards() == [
        dict(zip(gpu_ceilings.ASKED, ("NVIDIA X1", "700.00 W", "345 MHz", "1980 MHz", "580.1"), strict=True))
    ]
    program.write_text("#!/bin/sh\nexit 9\n")
    assert cards() == []


# peers


class OnHost(TorchTrial):
    """Work of torch on a processor, where there are no CUDA events."""

    place = "cpu"

    def _seconds(self, work: Callable[[], Any]) -> float:
        start = time.perf_counter()
        self._answer = work()
        return time.perf_counter() - start


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "named",
    [
        Named("gram", (50, 7)),
        Named("multiply", (9, 50, 7)),
        Named("covariance", (50, 7)),
        Named("pairwise cov", (200, 7), "scattered"),
        Named("rolling corr", (5, 90, 60)),
    ],
    ids=lambda named: named.title,
)
def test_torch_computes_the_same_thing(named: Named, dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    case = case_of(named, dtype)
    trial = OnHost(torch, case, 2, TORCH[named.operation][1])
    assert checked(trial, case).error < case.terms * np.finfo(dtype).eps


def test_a_fault_of_torch_is_one_sentence() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    case = case_of(Named("gram", (5, 3)), "float64")

    def work(*_: Any) -> Any:
        raise RuntimeError("out of memory\nand much more")

    with pytest.raises(DeviceError, match=r"^out of memory$"):
        OnHost(torch, case, 1, work).run(0)
