"""Expanding and exponentially weighted statistics against exact fractions and against pandas."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import exact
import mpmath
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mtbridge.compute.decay import Decay
from mtbridge.compute.host_decay import HostDecay
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.sequence import MatrixSequence, Statistic, Wanted
from mtbridge.compute.serial_decay import SerialDecay

EPS = 2.0**-52
# a handful of roundings for each row that is taken in
ROUNDINGS = 12
HOSTILE = [
    0.0,
    0.1,
    1.0,
    -1.0,
    3.0,
    1e8,
    1e8 + 1,
    1e17,
    -2.5e-3,
    1e-170,
    3e-170,
    1e200,
    -7e199,
    math.nan,
    math.inf,
]
"""Values that exact arithmetic takes in its stride."""

Open = Callable[[NDArray[np.float64], Decay, Wanted], MatrixSequence]


@pytest.fixture(scope="module")
def ways(opencl_engine: OpenCLEngine) -> dict[str, Open]:
    from mtbridge.compute.opencl_decay import OpenCLDecay

    def on_device(gpu: bool) -> Open:
        device = opencl_engine.kernels_device
        return lambda X, plan, wanted: OpenCLDecay(device, X, plan, wanted, limit=1 << 24, gpu=gpu)

    return {"host": HostDecay, "serial": SerialDecay, "opencl": on_device(False), "gpu": on_device(True)}


def written(sequence: MatrixSequence) -> NDArray[Any]:
    out = np.empty((sequence.count, *sequence.shape), sequence.wanted.dtype)
    sequence.write(out)
    return out


def exact_weights(seen: list[bool], plan: Decay) -> list[Fraction]:
    """The weights of the rows of a pair after the last of them, by the definition of pandas."""
    weights = [Fraction(0)] * len(seen)
    for t, present in enumerate(seen):
        if present or not plan.ignore_na:
            weights = [w * Fraction(plan.factor[t]) for w in weights]
        if present:
            weights[t] = Fraction(plan.weight) if any(weights) else Fraction(1)
            if not plan.adjust:
                total = sum(weights)
                weights = [w / total for w in weights]
    return weights


def exact_value(x: list[float], y: list[float], plan: Decay, wanted: Wanted) -> tuple[float, float]:
    """The statistic of the rows of a pair, correctly rounded, and the size that its error is a share of."""
    seen = [not (math.isnan(a) or math.isnan(b)) for a, b in zip(x, y, strict=True)]
    weights = exact_weights(seen, plan)
    found = exact.sums(x, y, weights)
    if found is None or found[0] < max(wanted.min_periods, 1):
        return math.nan, 1.0
    rows, product, left, right = found
    with mpmath.workdps(60):
        root = mpmath.sqrt(mpmath.mpf((left * right).numerator) / mpmath.mpf((left * right).denominator))
        if wanted.statistic == "correlation":
            defined = bool(left and right)
            share = mpmath.mpf(product.numerator) / mpmath.mpf(product.denominator)
            return float(share / root) if defined else math.nan, 1.0
        if wanted.statistic == "beta":
            if not left:
                return math.nan, 1.0
            size = mpmath.sqrt(mpmath.mpf((right / left).numerator) / mpmath.mpf((right / left).denominator))
            return exact.to_float(product / left), float(size)
        total, squares = sum(weights), sum(w * w for w in weights)
        if plan.counted:
            divisor = Fraction(rows - wanted.ddof)
        elif wanted.ddof:
            divisor = total - squares / total
        else:
            divisor = Fraction(total)
        if divisor <= 0:
            return math.nan, 1.0
        size = root * divisor.denominator / divisor.numerator
        return exact.to_float(product / divisor), float(size)


@st.composite
def hostile_histories(draw: st.DrawFn) -> NDArray[np.float64]:
    rows, columns = draw(st.integers(1, 9)), draw(st.integers(1, 3))
    pool = draw(
        st.sampled_from([HOSTILE, HOSTILE[:7], HOSTILE[:3], [*HOSTILE[9:13], math.nan], HOSTILE[:-1]])
    )
    return np.array([[draw(st.sampled_from(pool)) for _ in range(columns)] for _ in range(rows)])


@st.composite
def plans(draw: st.DrawFn, rows: int) -> Decay:
    kind = draw(st.sampled_from(["expanding", "exponential", "by time"]))
    if kind == "expanding":
        return Decay.expanding(rows)
    if kind == "by time":
        # steps of whole half-lives, so that the factors are exact
        times = np.cumsum(draw(st.lists(st.integers(1, 5), min_size=rows, max_size=rows)))
        return Decay.by_time(10 * times.astype(np.int64), 10, draw(st.booleans()))
    alpha = draw(st.sampled_from([0.125, 0.5, 0.75, 1 - 2.0**-20]))
    return Decay.exponential(rows, alpha, draw(st.booleans()), draw(st.booleans()))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_every_value_is_that_of_exact_arithmetic(ways: dict[str, Open], data: st.DataObject) -> None:
    X = data.draw(hostile_histories())
    plan = data.draw(plans(len(X)))
    statistic: Statistic = data.draw(st.sampled_from(["covariance", "correlation", "beta"]))
    wanted = Wanted(statistic, ddof=data.draw(st.integers(0, 1)), min_periods=data.draw(st.integers(1, 3)))
    columns = X.T.tolist()
    found = {name: written(way(X, plan, wanted)) for name, way in ways.items()}
    for t, i, j in itertools.product(range(len(X)), range(X.shape[1]), range(X.shape[1])):
        part = Decay(plan.factor[: t + 1], plan.weight, plan.adjust, plan.ignore_na, plan.counted)
        right, size = exact_value(columns[i][: t + 1], columns[j][: t + 1], part, wanted)
        for name, matrices in found.items():
            value = float(matrices[t, i, j])
            assert math.isnan(value) == math.isnan(right), f"{name}: {value} for {right} at {t, i, j}"
            if value != right and not math.isnan(right):
                assert abs(value - right) <= ROUNDINGS * (t + 1) * EPS * size + 5e-324, (name, t, i, j)


@pytest.mark.parametrize("name", ["host", "serial", "opencl", "gpu"])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_ordinary_numbers_get_the_answers_of_pandas(ways: dict[str, Open], name: str, missing: float) -> None:
    random = np.random.default_rng(5)
    rows, columns = 60, 4
    X = random.standard_normal((rows, columns)).cumsum(axis=0)
    X[random.random(X.shape) < missing] = np.nan
    frame, shape = pd.DataFrame(X), (rows, columns, columns)
    present = (~np.isnan(X)).astype(np.int64)
    counts = np.einsum("ti,tj->tij", present, present).cumsum(axis=0)

    def compare(plan: Decay, wanted: Wanted, expected: pd.DataFrame) -> None:
        right = expected.to_numpy().reshape(shape)
        # where one row is there pandas has 0 / 0 as whatever rounding made of it
        right = np.where(
            (counts == 1) & ((wanted.ddof == 1) | (wanted.statistic != "covariance")), np.nan, right
        )
        # and its means have lost some digits
        np.testing.assert_allclose(written(ways[name](X, plan, wanted)), right, rtol=1e-9, atol=1e-11)

    for adjust, ignore, least in itertools.product([True, False], [True, False], [1, 5]):
        weighted = frame.ewm(span=10, adjust=adjust, ignore_na=ignore, min_periods=least)
        plan = Decay.exponential(rows, 2 / 11, adjust, ignore)
        for ddof in (0, 1):
            compare(plan, Wanted(ddof=ddof, min_periods=least), weighted.cov(bias=ddof == 0))
        compare(plan, Wanted("correlation", min_periods=least), weighted.corr())
    for least in (1, 5):
        compare(Decay.expanding(rows), Wanted(min_periods=least), frame.expanding(least).cov())
        compare(
            Decay.expanding(rows), Wanted("correlation", min_periods=least), frame.expanding(least).corr()
        )


@pytest.mark.parametrize("name", ["host", "serial", "opencl", "gpu"])
def test_an_alpha_of_one_forgets_everything_as_in_pandas(ways: dict[str, Open], name: str) -> None:
    X = np.random.default_rng(6).standard_normal((9, 2))
    X[4, 1] = np.nan
    plan = Decay.exponential(9, 1.0)
    expected = pd.DataFrame(X).ewm(alpha=1.0).cov(bias=True).to_numpy().reshape(9, 2, 2)
    assert np.array_equal(written(ways[name](X, plan, Wanted(ddof=0))), expected, equal_nan=True)
    for wanted in (Wanted(), Wanted("correlation"), Wanted("beta")):
        assert np.isnan(written(ways[name](X, plan, wanted))).all()


@pytest.mark.parametrize("name", ["host", "serial", "opencl", "gpu"])
@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_irregular_times_weigh_by_age(ways: dict[str, Open], name: str, missing: float) -> None:
    random = np.random.default_rng(7)
    rows, halflife = 50, 36_000_000_000
    times = random.integers(1, halflife, rows).cumsum()
    X = random.standard_normal((rows, 3)) + 1e5
    X[random.random(X.shape) < missing] = np.nan
    found = written(ways[name](X, Decay.by_time(times, halflife), Wanted()))
    for t, i, j in itertools.product(range(20, rows), range(3), range(3)):
        both = ~np.isnan(X[: t + 1, i] + X[: t + 1, j])
        w = 0.5 ** ((times[t] - times[: t + 1][both]) / halflife)
        Z = X[: t + 1][both][:, [i, j]] - 1e5
        Z = Z - w @ Z / w.sum()
        right = (w * Z[:, 0]) @ Z[:, 1] / (w.sum() - (w**2).sum() / w.sum())
        assert found[t, i, j] == pytest.approx(right, rel=1e-9, abs=1e-12)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 2**32), missing=st.sampled_from([0.0, 0.2]), power=st.integers(-60, 60))
def test_order_scale_and_other_columns_change_no_bit(
    ways: dict[str, Open], seed: int, missing: float, power: int
) -> None:
    random = np.random.default_rng(seed)
    X = random.standard_normal((25, 6)) + 10
    X[random.random(X.shape) < missing] = np.nan
    plan, order = Decay.exponential(25, 0.2), random.permutation(6)
    wanted = Wanted()
    for way in ways.values():
        whole = written(way(X, plan, wanted))
        turned = written(way(X[:, order], plan, wanted))
        assert np.array_equal(turned, whole[:, order][:, :, order], equal_nan=True)
        scaled = written(way(X * 2.0**power, plan, wanted))
        assert np.array_equal(scaled, whole * 4.0**power, equal_nan=True)
        if missing:
            X[3, 5] = np.nan
            few = written(way(X[:, [0, 1, 5]], plan, wanted))
            many = written(way(X, plan, wanted))
            assert np.array_equal(few, many[:, [0, 1, 5]][:, :, [0, 1, 5]], equal_nan=True)


def test_a_spike_leaves_only_its_weight(ways: dict[str, Open]) -> None:
    """After 1e17 come ordinary values; far later the answer is theirs again, to the last digits."""
    random = np.random.default_rng(8)
    X = random.standard_normal((400, 2)) + 1.0
    spiked = X.copy()
    spiked[3] = 1e17, -1e17
    plan = Decay.exponential(400, 0.5)
    for missing in (False, True):
        if missing:
            X[9, 0] = spiked[9, 0] = np.nan
        for name, way in ways.items():
            found, right = written(way(spiked, plan, Wanted())), written(way(X, plan, Wanted()))
            np.testing.assert_allclose(found[200:], right[200:], rtol=1e-12, atol=1e-14, err_msg=name)
