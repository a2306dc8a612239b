"""Options that nobody should send: each gets one sentence, whatever its type does when it is compared."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

import mtbridge
from mtbridge.allowed import is_number, is_whole, refuse_other, short
from mtbridge.compute.decay import alpha_of
from mtbridge.compute.reducers import TopPairs
from mtbridge.compute.sequence import Wanted
from mtbridge.compute.windows import whole
from mtbridge.errors import InputError, MtbridgeError, OptionError

X = np.random.default_rng(0).standard_normal((12, 3))
GAPPED = np.where(X > 1, np.nan, X)
SPAN = np.timedelta64(3, "h")
STRANGE = [np.array([1, 2]), pd.NA, pd.Series([1.0]), [], SPAN, b"drop", 3, None]


def test_a_timedelta64_is_no_whole_number_though_numpy_calls_it_an_integer() -> None:
    assert isinstance(SPAN, np.integer)
    assert not is_whole(SPAN)
    assert not is_number(SPAN)
    assert not is_whole(True)
    assert is_whole(np.int8(3))
    assert is_number(np.float32(3))


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
def test_a_word_is_refused_by_its_value_and_the_words_that_there_are(value: Any) -> None:
    with pytest.raises(OptionError, match=r"missing is .*; it can be 'drop' or 'error'\.$"):
        refuse_other("missing", value, ("drop", "error"))
    refuse_other("missing", "drop", ("drop", "error"))


def test_a_value_is_shown_on_one_short_line() -> None:
    assert short("x" * 5000).startswith("'xxx")
    assert len(short("x" * 5000)) < 80
    assert len(short(10**400)) < 80
    assert "\n" not in short(pd.DataFrame({"a": [1, 2]}))
    assert short(np.int64(-5)) == "-5"


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: type(value).__name__)
def test_words_of_every_function_may_be_of_any_type(value: Any) -> None:
    for call in (
        lambda: mtbridge.covariance(X, missing=value, engine="numpy"),
        lambda: mtbridge.rolling(X, 5, engine="numpy").row(0, statistic=value),
        lambda: mtbridge.rolling(X, 5, engine="numpy").top_pairs(1, by=value),
        lambda: Wanted(value),
        lambda: TopPairs(1, by=value),
        lambda: mtbridge.open_engine(value),
    ):
        with pytest.raises(OptionError) as refused:
            call()
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [SPAN, np.timedelta64("NaT"), "3", 3.0, np.array([3]), pd.NA])
def test_counts_are_whole_numbers_and_nothing_that_looks_like_one(value: Any) -> None:
    for call in (
        lambda: mtbridge.covariance(X, ddof=value, engine="numpy"),
        lambda: mtbridge.lagged_covariance(X, 2, ddof=value, engine="numpy"),
        lambda: mtbridge.lagged_covariance(X, value, engine="numpy"),
        lambda: mtbridge.rolling(X, 5, step=value, engine="numpy"),
        lambda: mtbridge.rolling(X, 5, engine="numpy").top_pairs(value),
        lambda: whole("size", value, "windows"),
    ):
        with pytest.raises(OptionError, match="whole number"):
            call()


@pytest.mark.parametrize("ddof", [10**400, 2**64, np.uint64(2**64 - 1)])
@pytest.mark.parametrize("data", [X, GAPPED], ids=["complete", "gapped"])
def test_a_ddof_past_every_number_of_rows_gives_nan(data: Any, ddof: Any) -> None:
    assert np.isnan(mtbridge.covariance(data, ddof=ddof, engine="numpy")).all()
    assert np.isnan(mtbridge.lagged_covariance(data, 2, ddof=ddof, engine="numpy")).all()
    complete = np.isfinite(data).all(axis=1)
    weighted = mtbridge.covariance(data[complete], weights=complete[complete], ddof=ddof, engine="numpy")
    assert np.isnan(weighted).all()


@pytest.mark.parametrize("name", ["com", "span", "halflife", "alpha"])
@pytest.mark.parametrize("value", [10**400, SPAN, np.timedelta64("NaT"), True, "3", pd.NA])
def test_a_decay_is_a_number_that_float64_holds(name: str, value: Any) -> None:
    with pytest.raises(OptionError, match=rf"^{name} is "):
        alpha_of(**{name: value})


@pytest.mark.parametrize("engine", ["numpy", "serial"])
@pytest.mark.parametrize("data", [X, GAPPED], ids=["complete", "gapped"])
def test_lags_past_the_last_row_are_nan_and_cost_nothing(data: Any, engine: str) -> None:
    near = mtbridge.lagged_correlation(data, len(data) - 1, engine=engine)
    start = time.perf_counter()
    far = mtbridge.lagged_correlation(data, 200_000, engine=engine, full=True)
    assert time.perf_counter() - start < 10
    middle = slice(200_000 - len(data) + 1, 200_000 + len(data))
    np.testing.assert_array_equal(far.matrix[middle], near)
    assert np.isnan(far.matrix[: middle.start]).all()
    assert np.isnan(far.matrix[middle.stop :]).all()
    assert not far.counts[: middle.start].any()


@pytest.mark.parametrize("lags", [2**50, 10**30, 10**400])
def test_lags_that_no_memory_holds_are_refused_with_their_size(lags: int) -> None:
    with pytest.raises(InputError, match=r"lags take .* GB, more than there is"):
        mtbridge.lagged_correlation(X, lags, engine="numpy")


def test_lags_of_a_narrow_type_do_not_overflow() -> None:
    narrow: Any = np.int8(100)
    found = mtbridge.lagged_correlation(X, narrow, engine="numpy")
    assert found.shape == (201, 3, 3)


@pytest.mark.parametrize("dtype", ["\ud800", "99999999999D", "float16", SPAN, pd.NA])
def test_memory_for_a_device_is_of_the_two_types_of_float(dtype: Any) -> None:
    with pytest.raises(OptionError, match=r"^dtype is "):
        mtbridge.empty_pinned((2, 2), dtype, engine="numpy")


def test_no_refusal_of_a_long_text_is_long() -> None:
    with pytest.raises(MtbridgeError) as refused:
        mtbridge.covariance(X, missing="x" * 5000, engine="numpy")  # type: ignore[call-overload]
    assert len(str(refused.value)) < 200
