"""The benchmark of the statistics: every peer computes the same thing, and errors would be seen."""

from __future__ import annotations

import numpy as np
import pytest

from mtbridge.bench import statistic_peers as peers
from mtbridge.bench import statistic_references as exact
from mtbridge.bench.statistic_cases import CASES, WINDOW, history
from mtbridge.bench.statistics import error, measure_statistics, peer, stack
from mtbridge.compute.devices import Verdict


def silent(text: str) -> None:
    """Say nothing."""


@pytest.mark.parametrize("name", CASES)
def test_every_contender_of_a_case_gives_the_exact_answer(name: str, verdict: Verdict) -> None:
    rows = measure_statistics(
        silent, names=(name,), shape=(150, 6), device="cpu", peers=("pandas", "polars", "numpy"), rounds=1
    )
    assert [row["contender"] for row in rows[:4]] == ["opencl", "opencl frame", "numpy", "serial"]
    assert any(row["contender"] == "pandas" for row in rows)
    for row in rows:
        assert row["median_s"] is not None, row["note"]
        assert row["error"] < 1e-11, row["contender"]
        assert row["case"] == f"{name} 150x6"
    assert set(rows[0]["versus"]) == {row["contender"] for row in rows[4:]}


def test_a_wrong_answer_shows_in_the_error() -> None:
    case = CASES["rolling corr"][1]((100, 4))
    right = peers.rolling_correlations(case.X, WINDOW)
    some = np.array([10, WINDOW, 99])
    assert error(case, right[some], some).max() < 1e-12
    wrong = right.copy()
    wrong[99, 1, 2] += 1e-3
    assert error(case, wrong[some], some).max() == pytest.approx(1e-3)
    wrong[10] = 0.0
    assert error(case, wrong[some], some).max() == np.inf


def test_a_peer_that_is_not_installed_says_so() -> None:
    row = peer("nowhere function", lambda: None)
    assert row.work is None
    assert "nowhere is not installed" in row.note


def test_a_frame_of_matrices_below_each_other_is_a_stack() -> None:
    matrices = np.arange(24.0).reshape(6, 2, 2)
    np.testing.assert_array_equal(stack(matrices.reshape(12, 2), 2), matrices)


def test_references_leave_out_rows_with_a_gap() -> None:
    X = history((40, 2), gaps=0.3)
    both = ~np.isnan(X).any(axis=1)
    expected = np.corrcoef(X[both].T)[0, 1]
    assert exact.pair(X[:, 0], X[:, 1], correlated=True) == pytest.approx(expected, rel=1e-12)
