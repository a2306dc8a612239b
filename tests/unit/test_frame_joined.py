"""Series with indexes of their own, and numbers kept as objects: what is joined and what is refused."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import mtbridge
from mtbridge.errors import InputError
from mtbridge.frame.joined import gathered

DAYS = pd.date_range("2025-01-06", periods=6)


def series(values: list[float], index: pd.Index, name: str | None = None) -> pd.Series:
    return pd.Series(values, index=index, name=name)


def test_series_are_matched_by_time_and_not_by_position() -> None:
    x = series([1.0, 2.0, 4.0, 3.0], DAYS[:4], "x")
    y = series([5.0, 1.0, 3.0, 9.0], DAYS[[5, 2, 1, 3]], "y")
    right = pd.DataFrame({"x": x, "y": y}).cov()
    pd.testing.assert_frame_equal(mtbridge.covariance({"x": x, "y": y}, engine="numpy"), right, rtol=1e-13)
    pd.testing.assert_frame_equal(mtbridge.covariance([x, y], engine="numpy"), right, rtol=1e-13)
    joined = gathered([x, y])
    assert joined.index.equals(DAYS[[0, 1, 2, 3, 5]])


def test_zones_name_the_same_instants_and_give_back_utc() -> None:
    x = series([1.0, 2.0, 4.0], DAYS[:3].tz_localize("UTC"))
    y = series([1.0, 3.0, 4.0], DAYS[:3].tz_localize("UTC").tz_convert("Asia/Tokyo"))
    joined = gathered({"x": x, "y": y})
    assert str(joined.index.tz) == "UTC"
    assert joined.notna().to_numpy().all()


def test_names_are_those_of_the_dict_or_of_the_series_or_numbers() -> None:
    x, y = series([1.0, 2.0], DAYS[:2], "x"), series([1.0, 2.0], DAYS[:2])
    assert list(gathered({"A": x, ("B", 1): y}).columns) == ["A", ("B", 1)]
    assert list(gathered([x, y]).columns) == ["x", 1]
    assert list(mtbridge.covariance(x, engine="numpy").columns) == ["x"]


def test_labels_that_are_no_times_are_matched_too() -> None:
    x, y = series([1.0, 2.0, 5.0], pd.Index([3, 1, 2])), series([4.0, 8.0], pd.Index([2, 3]))
    joined = gathered({"x": x, "y": y})
    assert joined.index.tolist() == [1, 2, 3]
    np.testing.assert_array_equal(joined.to_numpy(), [[2.0, np.nan], [5.0, 4.0], [1.0, 8.0]])


def test_whole_numbers_stay_exact_where_the_join_leaves_gaps() -> None:
    level = 2**53 + 1
    x = pd.Series([level, level + 2, level + 6], DAYS[:3])
    y = pd.Series([1, 2, 4, 9], DAYS[:4])
    found = mtbridge.covariance({"x": x, "y": y}, engine="numpy")
    assert found.loc["x", "y"] == pytest.approx(14 / 3, rel=1e-15)


def test_duplicates_are_refused_with_their_name_and_number() -> None:
    x = series([1.0, 2.0, 3.0, 4.0], DAYS[[0, 1, 1, 1]])
    with pytest.raises(InputError, match="'x' has 2 labels that were there before, the first 2025-01-07"):
        mtbridge.covariance({"y": series([1.0], DAYS[:1]), "x": x}, engine="numpy")


@pytest.mark.parametrize(
    ("other", "words"),
    [(DAYS.tz_localize("UTC"), "times with a zone"), (pd.RangeIndex(6), "labels that are no times")],
    ids=["aware", "numbers"],
)
def test_times_of_different_kinds_are_refused(other: pd.Index, words: str) -> None:
    values = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    with pytest.raises(InputError, match=f"'x' has times without a zone and 'y' has {words}"):
        mtbridge.covariance({"x": series(values, DAYS), "y": series(values, other)}, engine="numpy")


def test_labels_that_cannot_be_ordered_are_refused() -> None:
    x, y = series([1.0, 2.0], pd.Index([1, 2])), series([1.0, 2.0], pd.Index(["a", "b"]))
    with pytest.raises(InputError, match="different kinds"):
        mtbridge.covariance({"x": x, "y": y}, engine="numpy")


def test_missing_times_empty_dicts_and_plain_lists_are_refused() -> None:
    with pytest.raises(InputError, match="missing"):
        mtbridge.covariance({"x": series([1.0, 2.0], pd.DatetimeIndex([DAYS[0], pd.NaT]))}, engine="numpy")
    with pytest.raises(InputError, match="empty"):
        mtbridge.covariance({}, engine="numpy")
    with pytest.raises(InputError, match="'x' is a list"):
        mtbridge.covariance({"x": [1.0, 2.0]}, engine="numpy")


def test_decimals_and_fractions_are_numbers() -> None:
    frame = pd.DataFrame(
        {
            "d": [Decimal("1.5"), Decimal("2.5"), None, Decimal("4.5")],
            "f": [Fraction(1, 2), 2, 3.5, np.nan],
            "x": [1.0, 2.0, 3.0, 4.0],
        }
    )
    plain = frame.astype(float)
    pd.testing.assert_frame_equal(mtbridge.covariance(frame, engine="numpy"), plain.cov(), rtol=1e-14)
    array = frame[["d", "x"]].to_numpy()
    np.testing.assert_allclose(mtbridge.covariance(array, engine="numpy"), plain[["d", "x"]].cov())


def test_decimals_past_2_to_53_keep_their_digits() -> None:
    level = Decimal("1e25")
    frame = pd.DataFrame({"d": [level, level + 2, level + 6], "x": [1.0, 2.0, 4.0]})
    assert mtbridge.covariance(frame, engine="numpy").loc["d", "x"] == pytest.approx(14 / 3, rel=1e-15)


def test_nullable_whole_numbers_past_2_to_53_keep_their_digits() -> None:
    level = 2**53 + 1
    frame = pd.DataFrame(
        {"n": pd.array([level, level + 2, None, level + 6], dtype="Int64"), "x": [1.0, 2.0, 3.0, 4.0]}
    )
    assert mtbridge.covariance(frame, engine="numpy").loc["n", "x"] == pytest.approx(14 / 3, rel=1e-15)


@pytest.mark.parametrize(
    "bad", [["1.5", "2.5"], [1.0, "2"], [1.0, 2j], [1.0, DAYS[0]], [1.0, [2.0]]], ids=str
)
def test_objects_that_are_no_numbers_are_refused(bad: list[object]) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "note": pd.Series(bad, dtype=object)})
    with pytest.raises(InputError, match="'note'"):
        mtbridge.covariance(frame, engine="numpy")


def test_the_accessor_has_the_functions_with_the_frame_as_their_data() -> None:
    import mtbridge.pandas  # noqa: F401 - registers the accessor

    days = pd.date_range("2025-01-06", periods=20)
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((20, 2)), days, ["A", "B"])
    pd.testing.assert_frame_equal(frame.mtbridge.covariance(ddof=0, engine="numpy"), frame.cov(ddof=0))
    pd.testing.assert_frame_equal(
        frame.mtbridge.rolling("3D", engine="numpy").correlation(), frame.rolling("3D").corr()
    )
    pd.testing.assert_frame_equal(
        frame.mtbridge.ewm(span=4, engine="numpy").covariance(), frame.ewm(span=4).cov()
    )
    pd.testing.assert_frame_equal(
        frame.mtbridge.expanding(engine="numpy").covariance(), frame.expanding().cov()
    )
    assert frame.mtbridge.lagged_correlation(1, engine="numpy").shape == (6, 2)
    assert frame.mtbridge.bars_per_year()[0] == 365
