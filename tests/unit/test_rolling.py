"""Rolling matrices of every engine against each window by itself in exact arithmetic.

An error of a co-moment is a share of ``sqrt(V_i V_j)`` of the window. Sums of n rows whose squares about the
origin are Q lose up to a factor Q / V of that; beyond 2**10 a pair is done again: 2**10 * n * eps is a bound.
"""

from __future__ import annotations

from typing import Any

import exact
import numpy as np
import pytest
from given_rolling import HISTORIES, ROWS, WINDOW, Opener, answers, check, exact_answer, history, on_device

from mtbridge.compute.host_rolling import HostRolling
from mtbridge.compute.sequence import Statistic, Wanted
from mtbridge.compute.serial_rolling import SerialRolling
from mtbridge.compute.windows import Rolling
from mtbridge.errors import OptionError, ShapeError

BOUND = 2**10 * WINDOW * float(np.finfo(float).eps)
STATISTICS: tuple[Statistic, ...] = ("covariance", "correlation", "beta")


@pytest.fixture(params=["host", "serial", "opencl", "opencl tiled"])
def opened(request: pytest.FixtureRequest) -> Opener:
    """Open a sequence on one engine after the other."""
    if request.param == "host":
        return HostRolling
    if request.param == "serial":
        return SerialRolling
    name = "tiled_engine" if request.param == "opencl tiled" else "opencl_engine"
    return on_device(request.getfixturevalue(name), gpu=request.param == "opencl tiled")


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("name", HISTORIES)
def test_each_window_is_right_by_itself(opened: Opener, name: str, statistic: Statistic) -> None:
    X, plan = history(name), Rolling.by_rows(ROWS, WINDOW)
    found = answers(opened, X, plan, statistic=statistic)
    check(found, *exact_answer(name, WINDOW, statistic), BOUND)
    if statistic == "correlation":
        diagonal = np.diagonal(found, axis1=1, axis2=2)
        assert ((diagonal == 1) | np.isnan(diagonal)).all()
        assert not (np.abs(found) > 1).any()
    if statistic != "beta":
        # one NaN is as good as another
        numbers = np.where(np.isnan(found), np.nan, found)
        assert np.array_equal(numbers.view(np.int64), np.swapaxes(numbers, 1, 2).copy().view(np.int64))


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize(("ddof", "min_periods"), [(0, 1), (2, 4), (1, 9), (1, 10), (9, 1)])
@pytest.mark.parametrize("name", ["constants", "missing"])
def test_rows_that_are_too_few_give_nan(
    opened: Opener, name: str, ddof: int, min_periods: int, statistic: Statistic
) -> None:
    plan = Rolling.by_rows(ROWS, WINDOW)
    found = answers(opened, history(name), plan, statistic=statistic, ddof=ddof, min_periods=min_periods)
    right, size = exact_answer(name, WINDOW, statistic, ddof, min_periods)
    check(found, right, size, BOUND)


@pytest.mark.parametrize("name", ["constants", "infinite and missing"])
@pytest.mark.parametrize("window", [1, 2, ROWS, 100])
def test_windows_of_any_length_are_right(opened: Opener, name: str, window: int) -> None:
    plan = Rolling.by_rows(ROWS, window)
    for statistic in STATISTICS:
        right, size = exact_answer(name, window, statistic)
        check(answers(opened, history(name), plan, statistic=statistic), right, size, BOUND * window / WINDOW)


@pytest.mark.parametrize("name", ["ordinary", "infinite and missing", "magnitudes"])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_left_packed_and_float32_are_parts_of_the_same_answer(
    opened: Opener, name: str, statistic: Statistic
) -> None:
    X, plan = history(name), Rolling.by_rows(ROWS, WINDOW)
    whole = answers(opened, X, plan, statistic=statistic)
    size = exact_answer(name, WINDOW, statistic)[1]
    left = answers(opened, X, plan, statistic=statistic, left=(3, 0))
    check(left, whole[:, [3, 0]], size[:, [3, 0]], BOUND)
    one = answers(opened, X, plan, statistic=statistic, left=(2,))
    check(one, whole[:, [2]], size[:, [2]], BOUND)
    with np.errstate(over="ignore", under="ignore"):
        small = answers(opened, X, plan, statistic=statistic, dtype=np.dtype(np.float32))
        assert np.array_equal(small, whole.astype(np.float32), equal_nan=True)
    if statistic != "beta":
        upper = np.triu_indices(X.shape[1])
        packed = answers(opened, X, plan, statistic=statistic, packed=True)
        assert np.array_equal(packed, whole[:, upper[0], upper[1]], equal_nan=True)


@pytest.mark.parametrize("name", ["spikes", "missing"])
@pytest.mark.parametrize(
    "plan",
    [
        Rolling.by_rows(ROWS, WINDOW, step=4),
        Rolling.by_rows(ROWS, 3, step=7),
        Rolling.by_time(np.cumsum(np.random.default_rng(3).integers(1, 30, ROWS)), 100),
        Rolling.by_time(np.cumsum(np.random.default_rng(3).integers(1, 30, ROWS)), 100, step=3),
        Rolling(np.array([0, 0, 0, 5, 5, 30]), np.array([0, 0, 30, 30, 35, 35])),
        Rolling(np.array([7]), np.array([9])),
    ],
    ids=["step", "gaps", "time", "time and step", "any", "one"],
)
def test_any_windows_are_right(opened: Opener, name: str, plan: Rolling) -> None:
    X = history(name)
    found = answers(opened, X, plan)
    for k in range(len(plan)):
        part = X[plan.first[k] : plan.last[k] + 1].T.tolist()
        for i in range(X.shape[1]):
            for j in range(X.shape[1]):
                right = exact.covariance(part[i], part[j])
                share = exact.scale(part[i], part[j]) * BOUND * 4
                assert found[k, i, j] == pytest.approx(right, rel=0, abs=share, nan_ok=True)


@pytest.mark.parametrize("name", ["ordinary", "spikes", "infinite and missing"])
@pytest.mark.parametrize("pieces", [(1, 1, 1), (5, 20), (0, 35), (13,)])
def test_the_bits_do_not_depend_on_the_pieces(opened: Opener, name: str, pieces: tuple[int, ...]) -> None:
    X, plan = history(name), Rolling.by_rows(ROWS, WINDOW)
    whole = answers(opened, X, plan, statistic="correlation")
    parts = answers(opened, X, plan, *pieces, statistic="correlation")
    assert np.array_equal(whole.view(np.int64), parts.view(np.int64))


def test_what_left_a_window_leaves_no_trace(opened: Opener) -> None:
    plain = history("ordinary")
    spoilt = plain.copy()
    spoilt[3] = 1e12
    spoilt[4, 0], spoilt[5, 1], spoilt[6, 2] = np.inf, np.nan, -1e200
    plan = Rolling.by_rows(ROWS, WINDOW)
    clean, after = (answers(opened, X, plan)[6 + WINDOW :] for X in (plain, spoilt))
    np.testing.assert_allclose(after, clean, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("gaps", [0.0, 0.05])
def test_a_constant_has_a_covariance_of_exactly_zero(opened: Opener, gaps: float) -> None:
    random = np.random.default_rng(9)
    X = random.standard_normal((170, 8))
    X[:, 1:6] = [0.1, 1.81, -9.45, 1e200 / 3, 1e-200 / 3]
    X[random.random(X.shape) < gaps] = np.nan
    plan = Rolling.by_rows(170, 90)
    found = answers(opened, X, plan, min_periods=5)[10:]
    assert (found[:, 1:6] == 0).all()
    assert (found[:, :, 1:6] == 0).all()
    correlation = answers(opened, X, plan, statistic="correlation")
    assert np.isnan(correlation[:, 1:6]).all()


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_any_layout_and_type_of_the_history_is_taken(opened: Opener, order: Any, dtype: Any) -> None:
    X, plan = history("high level").astype(dtype, order=order), Rolling.by_rows(ROWS, WINDOW)
    found = answers(opened, X, plan)
    right = answers(SerialRolling, X.astype(np.float64, order="C"), plan)
    np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-12)


def test_the_history_is_not_written_to(opened: Opener) -> None:
    X = history("missing")
    X.setflags(write=False)
    answers(opened, X, Rolling.by_rows(ROWS, WINDOW))


@pytest.mark.parametrize("opened", ["host", "serial", "opencl"], indirect=True)
def test_equal_columns_correlate_by_exactly_one(opened: Opener) -> None:
    X = np.repeat(np.random.default_rng(8).standard_normal((90, 1)).cumsum(axis=0) + 50, 20, axis=1)
    X[:, 10:] *= -1
    found = answers(opened, X, Rolling.by_rows(90, 12), statistic="correlation", min_periods=3)[2:]
    assert (found[:, :10, :10] == 1).all()
    assert (found[:, :10, 10:] == -1).all()


def test_what_does_not_fit_the_history_is_refused(opened: Opener) -> None:
    X = np.ones((5, 3))
    with pytest.raises(ShapeError, match="the last window ends at row 5 but X has 5 rows"):
        opened(X, Rolling.by_rows(6, 2), Wanted())
    with pytest.raises(OptionError, match="ddof is -1"):
        opened(X, Rolling.by_rows(5, 2), Wanted(ddof=-1))
    with pytest.raises(OptionError, match="no column 3; there are 3"):
        opened(X, Rolling.by_rows(5, 2), Wanted(left=(0, 3)))
    sequence = opened(X, Rolling.by_rows(5, 2), Wanted())
    with pytest.raises(ShapeError, match="6 matrices are asked for but 5 are left"):
        sequence.write(np.empty((6, 3, 3)))


def test_no_windows_are_written_as_none(opened: Opener) -> None:
    assert answers(opened, np.ones((4, 2)), Rolling.by_rows(0, 3)).shape == (0, 2, 2)
