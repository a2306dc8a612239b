"""A wide price table to CSV or Parquet, in the form that `read_prices` reads back number for number."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from mtbridge.errors import OptionError
from mtbridge.history.atomic import replace_file

SUFFIXES = (".csv", ".parquet")


def check_suffix(path: str | Path) -> str:
    """Return the suffix of `path` in lower case, or raise OptionError if nothing can be written by it."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise OptionError(f"{path} does not end in {' or '.join(SUFFIXES)}, which says how to write prices.")
    return suffix


def write_prices(frame: pd.DataFrame, path: str | Path) -> None:
    """Write a wide price table by the suffix of `path`: whole, or not at all.

    Parameters
    ----------
    frame : float64 frame of shape (times, symbols) with a DatetimeIndex; NaN becomes an empty cell
    path : a name that ends in .csv or .parquet

    Raises
    ------
    OptionError
        If the suffix is another one.
    InputError
        If the file cannot be written.
    """
    suffix = check_suffix(path)
    with replace_file(path) as temporary:
        if suffix == ".parquet":
            frame.rename_axis(index="time").to_parquet(temporary, engine="pyarrow")
        else:
            index = pd.DatetimeIndex(frame.index)
            text = frame.set_axis(pd.Index(_as_text(index), name="time"), axis=0)
            text.to_csv(temporary, encoding="utf-8", lineterminator="\n")


def _as_text(index: pd.DatetimeIndex) -> list[str]:
    """Return times as short as they can be written without loss: days, minutes, seconds or fractions."""
    if index.tz is not None:
        index = index.tz_convert("UTC")
    if bool((index == index.normalize()).all()) and index.tz is None:
        form = "%Y-%m-%d"
    elif bool((index == index.floor("min")).all()):
        form = "%Y-%m-%d %H:%M"
    elif bool((index == index.floor("s")).all()):
        form = "%Y-%m-%d %H:%M:%S"
    else:
        # strftime stops at microseconds
        text = [str(time) for time in index.tz_localize(None).to_numpy()]
        return text if index.tz is None else [f"{time}+00:00" for time in text]
    return list(map(str, index.strftime(form if index.tz is None else form + "+00:00")))
