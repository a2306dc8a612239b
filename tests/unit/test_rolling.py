"""Rolling matrices of every engine against each window by itself in exact arithmetic.

An error of a co-moment is a share of ``sqrt(V_i V_j)`` of the window. Sums of n rows whose squares about the
origin are Q lose up to a factor Q / V of that; beyond 2**10 a pair is done again: 2**10 * n * eps is a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import exact
import mpmath
import numpy as np
import pytest
from numpy.typing import NDArray

from mtbridge.compute import Engine, opencl_rolling_cpu
from mtbridge.compute.host_rolling import HostRolling
from mtbridge.compute.opencl_rolling import OpenCLRolling
from mtbridge.compute.sequence import MatrixSequence, Statistic, Wanted
from mtbridge.compute.serial_rolling import SerialRolling
from mtbridge.compute.windows import Rolling
from mtbridge.errors import OptionError, ShapeError

Opener = Callable[..., MatrixSequence]
Floats = NDArray[np.float64]
ROWS, WINDOW = 36, 9
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


def on_device(engine: Engine, *, gpu: bool = False) -> Opener:
    device = engine.kernels_device  # type: ignore[attr-defined]

    def opened(X: Any, plan: Rolling, wanted: Wanted, *, limit: int = 1 << 28) -> MatrixSequence:
        return OpenCLRolling(device, X, plan, wanted, limit=limit, gpu=gpu)

    return opened


def answers(opened: Opener, X: Any, plan: Rolling, *pieces: int, **options: Any) -> NDArray[Any]:
    """The whole answer, written in pieces of these lengths and the rest."""
    wanted = Wanted(**options)
    sequence = opened(X, plan, wanted)
    out = np.full((len(plan), *sequence.shape), -777, wanted.dtype)
    for length in pieces:
        sequence.write(out[sequence.done : sequence.done + length])
    sequence.write(out[sequence.done :])
    assert sequence.done == len(plan)
    return out


def history(name: str) -> Floats:
    random = np.random.default_rng(11)
    X = random.standard_normal((ROWS, 5)).cumsum(axis=0)
    match name:
        case "high level":
            X = np.round(X, 2) + np.array([1e7, 1.1, 2400, 1e5, -3e8])
        case "constants":
            X[:, 1] = 0.1
            X[10:25, 2] = 1.81
            X[:, 3] = X[:, 0]
        case "spikes":
            X[7, 0] = 1e12
            X[20, 1] = -1e12
            X[21, 1] = 1e7
        case "magnitudes":
            X *= [1e-170, 1e200, 1.0, 1e-308, 1e307]
            X[12, 0] = 1e200
            X[13, 2] = 1e-170
            X[14, 1] = 1e-170
        case "constants among magnitudes":
            X *= [1e-300, 1.0, 1e-170, 1.0, 1e170]
            X[:, 1], X[:, 3] = 1e200 / 3, 5e-324
            X[20:, 0], X[23::4, 0] = 0.0, 5e-324
        case "missing":
            X[random.random(X.shape) < 0.2] = np.nan
            X[:17, 1] = np.nan
            X[:, 2] = np.nan
            X[9:24, 4] = np.nan
        case "missing constants":
            X[:, 1] = 0.1
            X[10:25, 2] = 1.81
            X[random.random(X.shape) < 0.2] = np.nan
        case "infinite":
            X[5, 0] = np.inf
            X[15, 1], X[16, 1] = -np.inf, np.inf
            X[10:25, 2] = 1.81
        case "infinite and missing":
            X[random.random(X.shape) < 0.2] = np.nan
            X[5, 0] = np.inf
            X[6, 1], X[24, 1] = -np.inf, np.inf
        case "missing and still":
            X = np.round(X)
            X[:, 1] = 0.1
            X[:20, 3] = 1e-200
            X[5, 3], X[9, 3] = 2e-200, 3e-190
            X[random.random(X.shape) < 0.2] = np.nan
        case "missing magnitudes":
            X *= [1e-170, 1e200, 1.0, 1e-308, 1e12]
            X[random.random(X.shape) < 0.2] = np.nan
            X[12, 0] = 1e200
        case "ordinary":
            pass
        case _:
            raise AssertionError(name)
    return X


HISTORIES = (
    *("ordinary", "high level", "constants", "spikes", "magnitudes", "constants among magnitudes"),
    *("missing", "missing constants", "missing magnitudes", "missing and still"),
    *("infinite", "infinite and missing"),
)


@cache
def exact_sums(name: str, window: int) -> list[dict[tuple[int, int], Any]]:
    """What `exact.sums` says of each pair in each window."""
    X = history(name)
    found = []
    for end in range(1, ROWS + 1):
        part = X[max(end - window, 0) : end].T.tolist()
        found.append({(i, j): exact.sums(part[i], part[j]) for i in range(X.shape[1]) for j in range(i + 1)})
    return found


def exact_answer(
    name: str, window: int, statistic: Statistic, ddof: int = 1, min_periods: int = 1
) -> tuple[Floats, Floats]:
    """The exact answer, and the numbers of which an error is a share."""
    columns = history(name).shape[1]
    right = np.full((ROWS, columns, columns), np.nan)
    size = np.ones_like(right)
    with mpmath.workdps(40):
        for k, pairs in enumerate(exact_sums(name, window)):
            for pair, found in pairs.items():
                for i, j in {pair, pair[::-1]}:
                    if found is None or found[0] < max(min_periods, 1):
                        continue
                    n, product, *squares = found
                    # of the columns in their order in `pair`, which is turned below the diagonal
                    one, other = squares if (i, j) == pair else squares[::-1]
                    roots = [mpmath.sqrt(mpmath.mpf(v.numerator) / v.denominator) for v in (one, other)]
                    value = mpmath.mpf(product.numerator) / product.denominator
                    if statistic == "covariance" and n > ddof:
                        right[k, i, j] = float(value / (n - ddof))
                        size[k, i, j] = float(roots[0] * roots[1] / (n - ddof))
                    elif statistic == "correlation" and one and other:
                        right[k, i, j] = float(value / (roots[0] * roots[1]))
                    elif statistic == "beta" and one:
                        right[k, i, j] = float(value / roots[0] ** 2)
                        size[k, i, j] = float(roots[1] / roots[0])
    return right, size


def check(found: NDArray[Any], right: Floats, size: Floats, bound: float) -> None:
    __tracebackhide__ = True
    assert found.shape == right.shape
    wrong = np.isnan(found) != np.isnan(right)
    assert not wrong.any(), f"NaN or not at {np.argwhere(wrong)[:5].tolist()}"
    # an answer past the range of float64 is inf, at its small end it has few digits
    same = (found == right) | np.isnan(right)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.where(same, 0, np.abs(found - right) / np.maximum(size, 5e-324 / bound * 4))
    assert off.max() <= bound, f"{off.max()} at {np.argwhere(off > bound)[:5].tolist()}"


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


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 8, 9, 66])
@pytest.mark.parametrize("gaps", [0.0, 0.03])
def test_every_number_of_columns_has_its_edges_right(
    opencl_engine: Engine, columns: int, gaps: float
) -> None:
    random = np.random.default_rng(columns)
    X = random.standard_normal((150, columns)).cumsum(axis=0)
    X[random.random(X.shape) < gaps] = np.nan
    plan = Rolling.by_rows(150, 20)
    left = (columns - 1, 0, columns // 2)
    for options in ({}, {"packed": True}, {"left": left}):
        found = answers(on_device(opencl_engine), X, plan, **options)
        right = answers(HostRolling, X, plan, **options)
        np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("window", [63, 64, 65, 255, 257, 700])
@pytest.mark.parametrize("gaps", [0.0, 0.01])
def test_long_windows_are_right(opencl_engine: Engine, window: int, gaps: float) -> None:
    random = np.random.default_rng(window)
    X = random.standard_normal((800, 3)).cumsum(axis=0) + 100
    X[random.random(X.shape) < gaps] = np.nan
    plan = Rolling.by_rows(800, window)
    found = answers(on_device(opencl_engine), X, plan, statistic="correlation")
    right = answers(HostRolling, X, plan, statistic="correlation")
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["ordinary", "spikes", "infinite and missing"])
@pytest.mark.parametrize("pieces", [(1, 1, 1), (5, 20), (0, 35), (13,)])
def test_the_bits_do_not_depend_on_the_pieces(opened: Opener, name: str, pieces: tuple[int, ...]) -> None:
    X, plan = history(name), Rolling.by_rows(ROWS, WINDOW)
    whole = answers(opened, X, plan, statistic="correlation")
    parts = answers(opened, X, plan, *pieces, statistic="correlation")
    assert np.array_equal(whole.view(np.int64), parts.view(np.int64))


def test_the_bits_do_not_depend_on_the_largest_buffer(opencl_engine: Engine) -> None:
    X, plan = history("spikes"), Rolling.by_rows(ROWS, WINDOW)
    device = on_device(opencl_engine)

    def tight(*arguments: Any) -> MatrixSequence:
        return device(*arguments, limit=1000)

    assert np.array_equal(answers(device, X, plan), answers(tight, X, plan), equal_nan=True)


@pytest.mark.parametrize("name", ["ordinary", "magnitudes", "infinite and missing"])
def test_the_bits_do_not_depend_on_the_batches(
    opencl_engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    X, plan = history(name), Rolling.by_rows(ROWS, WINDOW)
    device = on_device(opencl_engine)
    whole = answers(device, X, plan, statistic="correlation")
    monkeypatch.setattr(opencl_rolling_cpu, "TABLE_BYTES", 800)
    parts = answers(device, X, plan, 4, 9, statistic="correlation")
    assert np.array_equal(whole.view(np.int64), parts.view(np.int64))


@pytest.mark.parametrize("late", [0, 1, 30])
def test_a_late_listing_changes_no_other_pair(opencl_engine: Engine, late: int) -> None:
    X = np.random.default_rng(12).standard_normal((60, 20)).cumsum(axis=0)
    plan = Rolling.by_rows(60, 15)
    device = on_device(opencl_engine)
    whole = answers(device, X, plan, statistic="correlation")
    X[:late, 7] = np.nan
    found = answers(device, X, plan, statistic="correlation")
    others = np.delete(np.arange(20), 7)
    # beside it in a vector, the same sums are taken another way
    np.testing.assert_allclose(found[:, others][:, :, others], whole[:, others][:, :, others], atol=1e-12)
    assert np.isnan(found[: late + 1, 7]).all()
    assert not np.isnan(found[late + 1 :, 7]).any()


def test_two_sequences_on_one_device_do_not_disturb_each_other(opencl_engine: Engine) -> None:
    device, plan = on_device(opencl_engine), Rolling.by_rows(ROWS, WINDOW)
    histories = [history("ordinary"), history("missing")]
    sequences = [device(X, plan, Wanted()) for X in histories]
    found = [np.empty((ROWS, 5, 5)) for _ in sequences]
    for start in range(0, ROWS, 6):
        for sequence, out in zip(sequences, found, strict=True):
            sequence.write(out[start : start + 6])
    for X, out in zip(histories, found, strict=True):
        assert np.array_equal(out, answers(device, X, plan), equal_nan=True)


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
