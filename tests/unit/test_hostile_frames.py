"""Frames, weights and flags that nobody should send: an answer, or one short sentence."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from given_frames import hourly_moves

import mtbridge
from mtbridge.client import Client
from mtbridge.errors import InputError, OptionError, ShapeError

X = np.random.default_rng(0).standard_normal((12, 3))
STRANGE = [np.array([1, 0]), pd.NA, pd.Series([1.0]), [], "yes", 1, None, pd.DataFrame({"a": [1]})]


def type_name(value: Any) -> str:
    return type(value).__name__


@pytest.mark.parametrize(
    "weights",
    [
        ["1", "2", "3"],
        [np.timedelta64("NaT")] * 3,
        [1j, 0, 0],
        [10**400, 0, 0],
        [None, 1, 1],
        [Decimal("sNaN")] * 3,
    ],
    ids=["text", "nat", "complex", "large", "none", "signalling"],
)
def test_weights_of_a_portfolio_are_real_finite_numbers(weights: list[Any]) -> None:
    for given in (weights, np.array(weights), pd.Series(weights), [weights] * 12):
        with pytest.raises(InputError, match=r"not numbers; convert|past the range|NaN or inf"):
            mtbridge.rolling(X, 5, engine="numpy").portfolio_variance(given)


def test_weights_of_a_portfolio_may_be_decimals_and_not_ragged() -> None:
    windows = mtbridge.rolling(X, 5, engine="numpy")
    exact = [Decimal("0.5"), Fraction(1, 4), 0.25]
    np.testing.assert_array_equal(
        windows.portfolio_variance(exact), windows.portfolio_variance([0.5, 0.25, 0.25])
    )
    with pytest.raises(ShapeError, match="different length"):
        windows.portfolio_variance([[1, 2, 3], [1]])


def test_weights_that_are_masked_are_not_taken_from_under_the_mask() -> None:
    masked = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
    with pytest.raises(InputError, match="a weight is masked"):
        mtbridge.rolling(X, 5, engine="numpy").portfolio_variance(masked)
    with pytest.raises(InputError, match="a weight is masked"):
        mtbridge.covariance(X[:3], weights=masked, engine="numpy")


def test_weights_with_other_levels_than_the_columns_are_refused() -> None:
    levels = pd.MultiIndex.from_product([["EUR"], ["open", "high", "close"]])
    windows = mtbridge.rolling(pd.DataFrame(X, columns=levels), 5, engine="numpy")
    with pytest.raises(InputError, match="is only in one of them"):
        windows.portfolio_variance(pd.Series({"EUR": 1.0}))
    held = windows.portfolio_variance(pd.Series([1.0, 2.0, 3.0], levels[::-1]))
    plain = mtbridge.rolling(X, 5, engine="numpy").portfolio_variance([3.0, 2.0, 1.0])
    np.testing.assert_array_equal(held, plain)


def column(values: list[Any]) -> pd.DataFrame:
    return pd.DataFrame({"x": [1.0, 2.0, 4.0], "odd": pd.Series(values, dtype=object)})


@pytest.mark.parametrize(
    "values",
    [
        [Decimal("1e400"), 1, 2],
        [Decimal("1e1000000"), 1, 2],
        [10**400, 1, -(10**400)],
        [10**5000, 1, 2],
        [1, 2, Fraction(10**400, 3)],
        [np.nan, None, Decimal("-1e999999999")],
    ],
    ids=["e400", "e1000000", "whole", "long", "fraction", "largest"],
)
def test_objects_past_the_range_of_float64_are_refused(values: list[Any]) -> None:
    for data in (column(values), column(values).to_numpy(), {"odd": column(values)["odd"]}):
        with pytest.raises(InputError, match=r"past the range of float64; divide it") as refused:
            mtbridge.covariance(data, engine="numpy")
        assert len(str(refused.value)) < 200


@pytest.mark.parametrize("odd", [Decimal("sNaN"), Decimal("NaN"), pd.NA, None], ids=str)
def test_an_object_that_is_no_number_yet_is_missing(odd: Any) -> None:
    found = mtbridge.covariance(column([odd, Decimal(2), 5]), engine="numpy")
    assert found.loc["odd", "odd"] == pytest.approx(4.5)


@pytest.mark.parametrize(
    ("values", "variance"),
    [
        ([Decimal("1e-999999999"), Decimal(2**60 + 1), Decimal(2**60 + 1)], None),
        ([Decimal(2**60 + 1), Decimal(2**60 + 2), Decimal(2**60 + 3)], 1.0),
        ([np.int64(-(2**63)), np.int64(-(2**63) + 1), np.int64(-(2**63) + 2)], 1.0),
        pytest.param(
            [np.longdouble(2) ** 60 + step for step in (1, 2, 3)],
            1.0,
            marks=pytest.mark.skipif(
                np.finfo(np.longdouble).nmant < 63, reason="long double is float64 here"
            ),
        ),
        ([np.float16(1), np.float32(2), np.uint8(3)], 1.0),
        ([1e17, 0.1, 1.0], np.var([1e17, 0.1, 1.0], ddof=1)),
        ([Decimal("inf"), Decimal(2**60 + 1), Decimal(2**60 + 2)], np.nan),
    ],
    ids=["tiny", "decimals", "smallest", "long-doubles", "narrow", "floats", "infinite"],
)
def test_objects_of_any_size_are_exact_or_refused(values: list[Any], variance: float | None) -> None:
    if variance is None:
        with pytest.raises(InputError, match="which float64 would round"):
            mtbridge.covariance(column(values), engine="numpy")
        return
    found = mtbridge.covariance(column(values), engine="numpy").loc["odd", "odd"]
    assert found == pytest.approx(variance, rel=1e-14, nan_ok=True)


@pytest.mark.parametrize("kind", ["int64", "Int64", "int64[pyarrow]", "object"])
def test_whole_numbers_too_far_apart_for_float64_are_refused_and_not_rounded(kind: Any) -> None:
    wide = [[-(2**62), 1], [2**62 + 1, 2], [2**62 + 2, 3], [2**62 + 4, 5]]
    frame = pd.DataFrame(wide).astype(kind)
    with pytest.raises(InputError, match="which float64 would round"):
        mtbridge.rolling(frame, 3, engine="numpy")
    near = mtbridge.rolling(frame.iloc[1:], 3, engine="numpy").covariance(last=True)
    np.testing.assert_allclose(near, np.full((2, 2), 7 / 3), rtol=1e-15)
    if kind == "int64":
        with pytest.raises(InputError, match="which float64 would round"):
            mtbridge.rolling(wide, 3, engine="numpy")


def test_booleans_of_arrow_are_numbers_as_those_of_numpy_are() -> None:
    frame = pd.DataFrame({"a": [True, False, True], "b": [1.0, 2.0, 4.0]})
    right = mtbridge.covariance(frame, engine="numpy")
    found = mtbridge.covariance(frame.astype({"a": "bool[pyarrow]"}), engine="numpy")
    pd.testing.assert_frame_equal(found, right)


def test_columns_of_two_levels_have_largest_pairs() -> None:
    moves = hourly_moves()
    levels = pd.MultiIndex.from_product([["EUR", "USD"], ["open", "close"]])
    found = mtbridge.rolling(moves.set_axis(levels, axis=1), 5, engine="numpy").top_pairs(2)
    plain = mtbridge.rolling(moves, 5, engine="numpy").top_pairs(2)
    named = dict(zip(moves.columns, levels, strict=True))
    np.testing.assert_array_equal(found["correlation"], plain["correlation"])
    for side in ("left", "right"):
        defined = plain[side].notna()
        assert list(found[side][defined]) == [named[label] for label in plain[side][defined]]
    pairs = mtbridge.rolling(moves.set_axis(levels, axis=1), 5, engine="numpy").pairs(
        [(levels[0], levels[3])]
    )
    assert list(pairs.columns) == [(levels[0], levels[3])]


@pytest.mark.parametrize(
    "symbol",
    [[3], {}, slice(None), np.array([1]), pd.NA, "x" * 5000, pd.DataFrame({"a": [1]})],
    ids=type_name,
)
def test_what_is_no_label_of_a_column_is_refused(symbol: Any) -> None:
    for data in (hourly_moves(), X):
        windows = mtbridge.rolling(data, 5, engine="numpy")
        with pytest.raises(InputError) as refused:
            windows.beta(symbol)
        assert len(str(refused.value)) < 200
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("engine", [[], {}, None, 3, np.array(["numpy"])], ids=type_name)
def test_an_engine_is_a_name_or_an_engine(engine: Any) -> None:
    with pytest.raises(OptionError, match="there is no engine"):
        mtbridge.covariance(X, engine=engine)


@pytest.mark.parametrize(
    "bars",
    [10**400, -(10**400), 10**5000, pd.NA, np.array([1, 2]), [], 1j, np.timedelta64(3, "D")],
    ids=type_name,
)
def test_bars_a_year_are_a_number_that_float64_holds(bars: Any) -> None:
    with pytest.raises(OptionError, match=r"^annualise is .*bars a year above 0\.$"):
        mtbridge.covariance(X, annualise=bars, engine="numpy")


def test_a_tiny_covariance_of_a_year_is_scaled_in_float64_and_refused_past_float32() -> None:
    tiny = np.array([[1e-20], [-1e-20]], np.float32)
    found = mtbridge.covariance(tiny, annualise=1e60, engine="numpy")
    assert found.dtype == np.float32
    assert found[0, 0] == pytest.approx(2e20, rel=1e-4)
    with pytest.raises(InputError, match="a covariance of a year is past the range of float32"):
        mtbridge.covariance(tiny, annualise=1e308, engine="numpy")


@pytest.mark.parametrize("value", STRANGE, ids=type_name)
@pytest.mark.parametrize("name", ["sort", "full", "last", "packed", "frame", "adjust", "ignore_na", "bias"])
def test_flags_are_true_or_false(name: str, value: Any) -> None:
    flag = {name: value}
    calls: dict[str, list[Any]] = {
        "sort": [mtbridge.expanding, lambda data, **sort: mtbridge.lagged_covariance(data, 2, **sort)],
        "full": [
            mtbridge.covariance,
            mtbridge.correlation,
            lambda data, **full: mtbridge.multiply(data, data.T, **full),
        ],
        "adjust": [lambda data, **adjust: mtbridge.ewm(data, span=3, **adjust)],
        "ignore_na": [lambda data, **ignore_na: mtbridge.ewm(data, span=3, **ignore_na)],
        "bias": [lambda data, **bias: mtbridge.ewm(data, span=3, engine="numpy").covariance(**bias)],
    }
    windows = [lambda data, **flag: mtbridge.rolling(data, 5, engine="numpy").covariance(**flag)]
    for call in calls.get(name, windows):
        with pytest.raises(OptionError, match=rf"^{name} is .*; it can be True or False\.$"):
            call(X, **flag)


@pytest.mark.parametrize("value", [*STRANGE[:-2], pd.DataFrame({"a": [1]})], ids=type_name)
def test_words_and_progress_of_any_type_are_refused_in_a_sentence(value: Any) -> None:
    calls: list[tuple[str, Callable[[], Any]]] = [
        ("dtype", lambda: mtbridge.covariance(X, dtype=value, engine="numpy")),
        ("dtype", lambda: mtbridge.multiply(X, X.T, dtype=value, engine="numpy")),
        ("dtype", lambda: mtbridge.rolling(X, 5, engine="numpy").correlation(dtype=value)),
        ("method", lambda: mtbridge.correlation(X, method=value, engine="numpy")),
        ("weight_kind", lambda: mtbridge.correlation(X, weight_kind=value, engine="numpy")),
        ("weight_kind", lambda: mtbridge.covariance(X, weight_kind=value, engine="numpy")),
        ("progress", lambda: mtbridge.rolling(X, 5, engine="numpy").covariance(progress=value)),
    ]
    for name, call in calls:
        with pytest.raises(OptionError, match=rf"^{name} is ") as refused:
            call()
        assert "\n" not in str(refused.value)


def test_a_numpy_dtype_is_taken_by_its_name() -> None:
    kind: Any = np.dtype(np.float32)
    assert mtbridge.rolling(X, 5, engine="numpy").covariance(dtype=kind).dtype == np.float32


def test_columns_whose_names_are_no_utf8_have_pairs() -> None:
    labels = pd.Index(["\ud800", "b", "c"], dtype=object)
    windows = mtbridge.rolling(pd.DataFrame(X).set_axis(labels, axis=1), 5, engine="numpy")
    assert windows.covariance(packed=True).columns[1] == ("\ud800", "b")
    assert windows.covariance(packed=True, last=True).index[5] == ("c", "c")
    assert windows.pairs([("b", "\ud800")]).columns[0] == ("b", "\ud800")
    assert windows.top_pairs(1).shape == (12, 3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"weights": ["1"] * 12}, "not numbers"),
        ({"weights": [1j] * 12}, "not numbers"),
        ({"weights": [[1], [1, 2]]}, "different length"),
        ({"weights": [1.0]}, "there are 12 rows"),
        ({"weights": pd.Series(1.0, range(1, 13))}, "different labels"),
        ({"full": pd.NA}, "full is <NA>; it can be True or False"),
    ],
    ids=["text", "complex", "ragged", "few", "labels", "full"],
)
def test_a_client_refuses_the_same_before_it_looks_for_a_worker(
    options: dict[str, Any], message: str
) -> None:
    with Client("tcp://127.0.0.1:9", timeout=0.2) as client, pytest.raises(InputError, match=message):
        client.covariance(pd.DataFrame(X), **options)
