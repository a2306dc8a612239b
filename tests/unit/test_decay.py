"""Plans of weights: what they hold, and what they refuse."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

from mtbridge.compute.decay import Decay, alpha_of
from mtbridge.errors import OptionError, ShapeError


@pytest.mark.parametrize(
    "given",
    [
        {"com": 0},
        {"com": 9.5},
        {"span": 1},
        {"span": 60},
        {"halflife": 0.1},
        {"halflife": 30},
        {"alpha": 1},
        {"alpha": 0.25},
    ],
    ids=str,
)
def test_alpha_is_that_of_pandas(given: dict[str, float]) -> None:
    series = pd.Series([0.0, 1.0])
    # without adjustment, a step from 0 to 1 shows alpha itself
    expected = series.ewm(**given, adjust=False).mean().iloc[1]
    assert alpha_of(**given) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({}, "none of com, span, halflife and alpha is given"),
        ({"com": 1, "span": 3}, "com and span is given; give exactly one"),
        ({"com": -0.5}, "com is -0.5; it must be at least 0"),
        ({"span": 0.5}, "span is 0.5; it must be at least 1"),
        ({"halflife": 0}, r"halflife is 0\.0; it must be above 0"),
        ({"halflife": -3.0}, r"halflife is -3\.0; it must be above 0"),
        ({"alpha": 0}, r"alpha is 0\.0; it must be above 0 and at most 1"),
        ({"alpha": 1.5}, r"alpha is 1\.5; it must be above 0 and at most 1"),
        ({"alpha": math.nan}, "alpha is nan"),
        ({"span": math.inf}, "span is inf"),
        ({"span": "60"}, "span is '60'; it must be a number"),
        ({"com": True}, "com is True; it must be a number"),
    ],
    ids=str,
)
def test_alpha_refuses_in_a_sentence(given: dict[str, float], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        alpha_of(**given)


def test_an_expanding_plan_keeps_every_weight() -> None:
    plan = Decay.expanding(3)
    assert len(plan) == 3
    assert plan.counted
    assert plan.factor.tolist() == [1, 1, 1]


def test_an_exponential_plan_falls_by_the_same_factor() -> None:
    plan = Decay.exponential(3, 0.25, adjust=False, ignore_na=True)
    assert plan.factor.tolist() == [1, 0.75, 0.75]
    assert (plan.weight, plan.adjust, plan.ignore_na, plan.counted) == (0.25, False, True, False)
    assert Decay.exponential(2, 0.25).weight == 1
    with pytest.raises(OptionError, match="alpha is"):
        Decay.exponential(3, 0.0)


def test_times_decide_how_far_weights_fall() -> None:
    plan = Decay.by_time(np.array([-5, 5, 15, 45]), 10)
    assert plan.factor.tolist() == [1, 0.5, 0.5, 0.125]


def test_a_pause_leaves_the_rows_before_it_some_weight() -> None:
    plan = Decay.by_time(np.array([0, 400, 10**9]), 1)
    assert plan.factor.tolist() == [1, 2.0**-400, 2.0**-400]


def test_times_may_span_all_of_int64() -> None:
    ends = np.iinfo(np.int64)
    plan = Decay.by_time(np.array([ends.min, ends.max]), 2.0**64)
    assert plan.factor[1] == 0.5


@pytest.mark.parametrize("halflife", [0, -1.0, math.nan, math.inf])
def test_a_half_life_must_be_above_zero(halflife: float) -> None:
    with pytest.raises(OptionError, match="it must be above 0"):
        Decay.by_time(np.array([1, 2]), halflife)


@pytest.mark.parametrize("times", [[1, 1, 2], [1, 3, 2]])
def test_times_must_increase(times: list[int]) -> None:
    with pytest.raises(OptionError, match=r"is not after .*; sort the rows and keep one of each time\."):
        Decay.by_time(np.array(times), 1.0)


def test_times_must_be_whole_numbers_one_a_row() -> None:
    with pytest.raises(ShapeError, match=r"times are float64 of shape \(2,\)"):
        Decay.by_time(np.array([1.0, 2.0]), 1.0)
    with pytest.raises(ShapeError, match=r"of shape \(1, 2\)"):
        Decay.by_time(np.array([[1, 2]]), 1.0)
