"""Prices to returns: first the rows that all symbols share, then the change from one such row to the next.

The order matters. Returns taken in each file before the join would span different times in different columns:
a symbol that misses a bar has a return over two bars where the others have one, and the pair no longer fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from mtbridge.errors import OptionError, PriceFileError
from mtbridge.history.prices import Prices

RETURNS = ("log", "simple", "difference", "none")
MISSING = ("drop", "pairwise")
_MOST_RANGES = 24


@dataclass(frozen=True, slots=True, eq=False)
class Panel:
    """What goes into a covariance.

    Attributes
    ----------
    frame : float64 frame of shape (rows, symbols), oldest row first; NaN only where `missing` is "pairwise"
        Returns, or prices when `returns` is "none". A row's time is that of the later of its two prices.
    returns : "log", "simple", "difference" or "none"
    kept : times that had a price of every symbol, or of any where `missing` is "pairwise"
    dropped : all other times
    notes : sentences for people
    """

    frame: pd.DataFrame
    returns: str
    kept: int
    dropped: int
    notes: tuple[str, ...]


def prepare(prices: Prices, *, returns: str = "log", missing: str = "drop") -> Panel:
    """Return the panel of `prices`: rows, then returns of the chosen kind.

    Parameters
    ----------
    returns : "log", "simple", "difference" or "none"
    missing : "drop" or "pairwise"
        "drop" takes the times at which every symbol has a price. "pairwise" takes all; a missing price leaves
        both returns around it missing, and none is made up over the gap.

    Raises
    ------
    PriceFileError
        If the symbols share no time, fewer than 2 rows are left, or a price does not allow the return.
    OptionError
        If `returns` or `missing` is another word.
    """
    _check_kind(returns)
    if missing not in MISSING:
        raise OptionError(f"missing {missing!r} is not one of {', '.join(MISSING)}.")
    files = [f"{source.path} {source.first} to {source.last}" for source in prices.sources]
    notes = list(prices.notes)
    if missing == "pairwise":
        taken, dropped = prices.frame.dropna(how="all"), 0
        if gaps := int(np.isnan(taken.to_numpy()).sum()):
            notes.append(
                f"{gaps:,} prices of {taken.size:,} are missing; each pair is taken on its own rows."
            )
    else:
        taken, dropped = complete_rows(prices.frame, ranges=files if len(files) > 1 else None)
        if dropped:
            notes.append(_drop_note(prices.frame, len(taken), dropped))
    changes = _returns(taken, returns)
    if len(changes) < 2:
        what = "price" if returns == "none" else f"{returns} return"
        raise PriceFileError(
            f"Complete rows of prices: {len(taken)}, rows of {what}s made of them: {len(changes)}; at "
            "least 2 are needed, so give a longer history or fewer symbols."
        )
    if returns == "none":
        notes.append(
            "Price levels are used as they are, and prices that merely trend look correlated; log returns "
            "are the usual choice."
        )
    return Panel(changes, returns, len(taken), dropped, tuple(notes))


def complete_rows(frame: pd.DataFrame, *, ranges: Sequence[str] | None = None) -> tuple[pd.DataFrame, int]:
    """Return the rows in which every symbol has a price, and how many rows were dropped.

    Raises
    ------
    PriceFileError
        If no row is complete; the message has `ranges`, by default each symbol's own.
    """
    complete = ~np.isnan(frame.to_numpy()).any(axis=1)
    if not complete.any():
        spans = _listed(ranges or _ranges(frame))
        raise PriceFileError(
            f"No time has a price of all {frame.shape[1]} symbols ({spans}); choose symbols or files that "
            "overlap."
        )
    dropped = len(frame) - int(complete.sum())
    return (frame[complete] if dropped else frame), dropped


def returns(frame: pd.DataFrame, kind: str = "log") -> pd.DataFrame:
    """Return the change of each row from the one before, one row fewer than `frame` has.

    Parameters
    ----------
    frame : prices of shape (rows, symbols), oldest row first; NaN gives NaN
    kind : str
        "log" is log(p / p before), "simple" is p / p before - 1, "difference" is p - p before, and "none" is
        `frame` itself, all its rows.

    Raises
    ------
    PriceFileError
        For log, if a price is zero or negative; for simple, if one that is divided by is zero.
    OptionError
        If `kind` is none of these.
    """
    _check_kind(kind)
    return _returns(frame, kind)


def _returns(frame: pd.DataFrame, kind: str) -> pd.DataFrame:
    if kind == "none":
        return frame
    prices = frame.to_numpy(dtype=np.float64)
    before, after = prices[:-1], prices[1:]
    if kind == "log":
        _refuse(frame, prices <= 0, "a log return needs prices above zero; use simple or difference returns")
        changes = np.log(after / before)
    elif kind == "simple":
        _refuse(frame, before == 0, "a simple return cannot be taken from zero; use difference returns")
        changes = after / before - 1
    else:
        changes = after - before
    return pd.DataFrame(changes, index=frame.index[1:], columns=frame.columns)


def _check_kind(kind: str) -> None:
    if kind not in RETURNS:
        raise OptionError(f"returns {kind!r} is not one of {', '.join(RETURNS)}.")


def _refuse(frame: pd.DataFrame, wrong: NDArray[np.bool_], why: str) -> None:
    """Raise the error of the first cell, in time, that is wrong."""
    if wrong.any():
        row, column = map(int, np.argwhere(wrong)[0])
        price = float(frame.to_numpy()[row, column])
        raise PriceFileError(
            f"The price of {frame.columns[column]!s} at {frame.index[row]!s} is {price:g}: {why}."
        )


def _drop_note(frame: pd.DataFrame, kept: int, dropped: int) -> str:
    missing = np.isnan(frame.to_numpy()).sum(axis=0)
    worst = int(missing.argmax())
    return (
        f"{kept:,} of {len(frame):,} times have a price of every symbol; {dropped:,} were dropped "
        f"({frame.columns[worst]} lacks {missing[worst]:,})."
    )


def _listed(ranges: Sequence[str]) -> str:
    more = f"; and {len(ranges) - _MOST_RANGES} more" if len(ranges) > _MOST_RANGES else ""
    return "; ".join(ranges[:_MOST_RANGES]) + more


def _ranges(frame: pd.DataFrame) -> list[str]:
    """Return each symbol's first and last time, those without a price first."""
    spans: list[tuple[int, str]] = []
    for name in frame.columns:
        first, last = frame[name].first_valid_index(), frame[name].last_valid_index()
        spans.append((0, f"{name!s} has none") if first is None else (1, f"{name!s} {first!s} to {last!s}"))
    return [text for _, text in sorted(spans, key=lambda span: span[0])]
