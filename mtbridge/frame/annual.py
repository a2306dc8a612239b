"""How many bars a year has, from the time stamps: 252 daily ones, 8,760 hours of a market that never closes.

A market is round the clock if it has bars on Saturdays and Sundays, else it has 252 trading days a year. What
cannot be told is refused, since a wrong number would go unseen.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from mtbridge.allowed import is_number, short
from mtbridge.errors import InputError, OptionError
from mtbridge.frame.times import times_of

FEWEST_ROWS = 20
"""Fewer stamps tell nothing about a calendar."""
TRADING_DAYS = 252
CALENDAR_DAYS = 365
WEEKEND_SHARE = 0.05
"""More bars on weekends than this are not a few odd ones."""
DAY = 86_400.0
LARGEST = float(np.finfo(np.float64).max)
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
"""Of a DatetimeIndex, in a second."""
USUAL_SHARE = 0.75
"""So much of the steps of a regular series must be the usual one: weekends and holidays are the rest."""


def bars_per_year(index: Any) -> tuple[float, str]:
    """Return how many bars a year has, and the sentence that says why.

    Parameters
    ----------
    index : DatetimeIndex, or other Index of time stamps; rising, at least 20 of them
        Stamps with a zone are looked at in that zone; a period is its start.

    Returns
    -------
    bars a year
        Monthly 12, quarterly 4, yearly 1, weekly 52. Daily 252, or 365 where Saturdays and Sundays have bars
        too. Within a day: 365 days of 24 hours where weekends have bars, else 252 trading days of the median
        number of bars that a day has.
    sentence

    Raises
    ------
    InputError
        If there are no time stamps, too few, not in order, or irregular ones.
    """
    seconds, dates, weekdays = _stamps(index)
    steps = np.diff(seconds)
    if (steps <= 0).any():
        raise InputError(
            "the time stamps do not rise from row to row, so bars a year cannot be told; sort them, drop "
            "those that are there twice, or pass annualise=<bars a year>."
        )
    usual = float(np.median(steps))
    if usual > 6 * DAY:
        return _longer(steps, usual)
    if usual > 1.5 * DAY:
        raise _irregular(usual, steps)
    weekends = weekdays >= 5
    round_the_clock = _round_the_clock(dates)
    if usual >= 0.9 * DAY:
        if np.mean(np.abs(steps - usual) <= 0.1 * DAY) < USUAL_SHARE:
            raise _irregular(usual, steps)
        if round_the_clock:
            return float(CALENDAR_DAYS), "365 bars a year: daily bars, weekends too."
        if weekends.mean() > WEEKEND_SHARE:
            raise InputError(
                "the daily bars have some Saturdays or Sundays but not both, so trading days a year cannot "
                "be told; drop those bars, or pass annualise=<bars a year>."
            )
        return float(TRADING_DAYS), "252 bars a year: daily bars on trading days."
    if np.mean(np.abs(steps - usual) <= 1e-6 * usual) < USUAL_SHARE:
        raise _irregular(usual, steps)
    if round_the_clock:
        bars = CALENDAR_DAYS * DAY / usual
        return (
            bars,
            f"{bars:,.6g} bars a year: one each {_span(usual)}, round the clock, 365 days.",
        )
    _, counts = np.unique(dates, return_counts=True)
    # the first and the last day may have been cut off
    inner = counts[1:-1]
    if len(inner) < 3:
        raise InputError(
            f"the time stamps cover {len(counts)} days, too few to tell how many bars a trading day has; "
            "pass annualise=<bars a year>."
        )
    daily = float(np.median(inner))
    bars = TRADING_DAYS * daily
    return bars, (
        f"{bars:,.6g} bars a year: one each {_span(usual)}, {daily:g} a trading day, 252 trading days."
    )


def factor(annualise: Any, index: Any) -> tuple[float, tuple[str, ...]]:
    """Return what `annualise` asks to multiply by, and sentences about what was inferred.

    Parameters
    ----------
    annualise : False or None, True, or a number of bars a year
    index : of the rows, None where there is none
    """
    if annualise is None or isinstance(annualise, bool | np.bool_):
        if not annualise:
            return 1.0, ()
        bars, sentence = bars_per_year(index)
        return bars, (sentence,)
    if not is_number(annualise) or not 0 < annualise <= LARGEST:
        raise OptionError(
            f"annualise is {short(annualise)}; it must be True, to read the time stamps, or bars a year "
            "above 0."
        )
    return float(annualise), ()


def _stamps(index: Any) -> tuple[Any, Any, Any]:
    """The stamps in seconds, their dates as whole numbers, and their days of the week, Monday 0."""
    index = times_of(index)
    if hasattr(index, "to_timestamp"):
        index = index.to_timestamp()
    if not hasattr(index, "tz_convert"):
        raise InputError(
            "without time stamps bars a year cannot be told; give a DataFrame with a DatetimeIndex, or pass "
            "annualise=<bars a year>."
        )
    if len(index) < FEWEST_ROWS:
        raise InputError(
            f"{len(index)} time stamps are too few to tell bars a year, {FEWEST_ROWS} are needed; "
            "pass annualise=<bars a year>."
        )
    if index.hasnans:
        raise InputError("a time stamp is missing; drop that row first.")
    # the difference of the first and the last nanosecond that there are is past int64
    whole, rest = np.divmod(index.asi8, UNITS[index.unit])
    seconds = (whole.astype(np.float64) - whole[0]) + rest / UNITS[index.unit]
    local = index.as_unit("s").tz_localize(None)
    dates = local.to_numpy().astype("datetime64[D]").astype(np.int64)
    # the first of January 1970 was a Thursday
    return seconds, dates, (dates + 3) % 7


def _round_the_clock(dates: Any) -> bool:
    """Whether most of the weekends that the dates cross have bars on both days."""
    days = np.unique(dates)
    first, last = int(days[0]), int(days[-1])
    # (day + 3) % 7 is 5 on a Saturday; its Sunday must be inside what was seen
    crossed = len(range(first + (5 - first - 3) % 7, last, 7))
    if not crossed:
        raise InputError(
            "the time stamps cross no weekend, so it cannot be told whether this market is open then; "
            "give more rows, or pass annualise=<bars a year>."
        )
    saturdays = days[(days + 3) % 7 == 5]
    return int(np.isin(saturdays + 1, days).sum()) > crossed / 2


def _longer(steps: Any, usual: float) -> tuple[float, str]:
    """Weekly bars and longer ones."""
    for bars, name, shortest, longest in (
        (52.0, "weekly", 6, 8),
        (12.0, "monthly", 27, 35),
        (4.0, "quarterly", 88, 94),
        (1.0, "yearly", 360, 370),
    ):
        fits = (steps >= shortest * DAY) & (steps <= longest * DAY)
        if shortest * DAY <= usual <= longest * DAY and fits.mean() >= USUAL_SHARE:
            return bars, f"{bars:g} bars a year: {name} bars."
    raise _irregular(usual, steps)


def _irregular(usual: float, steps: Any) -> InputError:
    return InputError(
        f"the time stamps are irregular: steps run from {_span(float(steps.min()))} to "
        f"{_span(float(steps.max()))}, half of them above {_span(usual)}; pass annualise=<bars a year>."
    )


def _span(seconds: float) -> str:
    for name, size in (("day", DAY), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0)):
        if seconds >= size:
            count = seconds / size
            return name if count == 1 else f"{count:.4g} {name}s"
    return f"{seconds:.4g} seconds"
