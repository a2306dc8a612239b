"""Many price files to one table, joined on time: what `covariance` and `correlation` start from."""

from __future__ import annotations

import difflib
import glob
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path

import numpy as np
import pandas as pd

from mtbridge.errors import OptionError, PriceFileError
from mtbridge.history.clock import parse_moment
from mtbridge.history.sniff import read_table
from mtbridge.history.table import Table

PRICES = ("open", "high", "low", "close")
SUFFIXES = (".csv", ".txt", ".parquet")


@dataclass(frozen=True, slots=True)
class Source:
    """What one file gave: its family, its clock, its symbols, and the rows from first to last."""

    path: Path
    family: str
    clock: str
    symbols: tuple[str, ...]
    rows: int
    first: pd.Timestamp
    last: pd.Timestamp


@dataclass(frozen=True, slots=True, eq=False)
class Prices:
    """Prices of several symbols on one axis of time.

    Attributes
    ----------
    frame : float64 frame of shape (times, symbols)
        Every time of any file, ascending, in an index called "time"; NaN where a symbol has no price. Where
        symbols were chosen, the times at which one of them has a price.
    sources : one for each file, in the order read
    notes : sentences for people about what was decided on the way
    """

    frame: pd.DataFrame
    sources: tuple[Source, ...]
    notes: tuple[str, ...]


def read_prices(
    paths: str | Path | Iterable[str | Path],
    *,
    symbols: Sequence[str] | None = None,
    start: str | date | datetime | np.datetime64 | None = None,
    end: str | date | datetime | np.datetime64 | None = None,
    price: str = "close",
) -> Prices:
    """Read price files and join them on time, never by position.

    Parameters
    ----------
    paths : files, folders or patterns such as ``exports/*_H1.csv``
        A folder gives its .csv, .txt and .parquet files by name.
    symbols : which columns, in which order; by default all, in the order of the files
    start, end : the first and the last time, both included; a bare day as `end` counts whole
        On the files' own clock. A time without a zone is UTC where the files are.
    price : "open", "high", "low" or "close", taken from files of bars

    Raises
    ------
    PriceFileError
        If nothing matches, a file is not a price table that is read, a symbol is in two files, some files'
        times have a zone and others' have none, a symbol is not there, or no time is left.
    OptionError
        If `price`, `start` or `end` is not allowed.
    """
    if price not in PRICES:
        raise OptionError(f"price {price!r} is not one of {', '.join(PRICES)}.")
    first = None if start is None else parse_moment(start)
    last = None if end is None else parse_moment(end, end=True)
    tables = [read_table(path, price=price) for path in find_files(paths)]
    _check_symbols_once(tables)
    _check_zones(tables)
    frame = _joined(tables)
    notes = [*_grouped_notes(tables), *_clock_notes(tables)]
    if symbols is not None:
        frame = _selected(frame, symbols)
    frame = _between(frame, first, last)
    if symbols is not None:
        # a time that only symbols left out had is none of this table's
        frame = frame[frame.notna().any(axis=1)]
    sources = tuple(
        Source(
            table.path,
            table.family,
            table.clock,
            table.symbols,
            len(table.frame),
            table.times[0],
            table.times[-1],
        )
        for table in tables
    )
    return Prices(frame, sources, tuple(notes))


def find_files(paths: str | Path | Iterable[str | Path]) -> list[Path]:
    """Return the files that `paths` name, each once: folders and patterns are replaced by what is in them.

    Raises
    ------
    PriceFileError
        If there are no paths, or one of them matches nothing.
    """
    given = [paths] if isinstance(paths, str | Path) else list(paths)
    if not given:
        raise PriceFileError(
            "No price file was given; name files, a folder or a pattern such as 'exports/*.csv'."
        )
    found: dict[Path, Path] = {}
    for one in given:
        for path in _expanded(one):
            # unlike Path.resolve, this takes a link to itself as it is; whoever opens it says what is wrong
            found.setdefault(Path(os.path.realpath(path)), path)
    return list(found.values())


def _expanded(given: str | Path) -> list[Path]:
    path = Path(given).expanduser()
    try:
        path.lstat()
    except FileNotFoundError:
        pass
    except OSError:
        # no name that a file can have; whoever opens it says why
        return [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in SUFFIXES and file.is_file())
        if not files:
            raise PriceFileError(
                f"The folder {given} has no {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]} file."
            )
        return files
    # a file may have brackets in its name, so what exists is no pattern
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    # pathlib's glob takes no absolute pattern
    files = sorted(Path(match) for match in glob.glob(str(path), recursive=True))  # noqa: PTH207
    files = [file for file in files if file.is_file()]
    if not files:
        raise PriceFileError(f"No file matches {str(given)!r}; check the folder and the pattern.")
    return files


def _check_symbols_once(tables: Sequence[Table]) -> None:
    owners: dict[str, Path] = {}
    for table in tables:
        for symbol in table.symbols:
            if symbol in owners:
                raise PriceFileError(
                    f"Both {owners[symbol]} and {table.path} have the symbol {symbol!r}; leave one out."
                )
            owners[symbol] = table.path


def _check_zones(tables: Sequence[Table]) -> None:
    zoned = [table for table in tables if table.times.tz is not None]
    naive = [table for table in tables if table.times.tz is None]
    if zoned and naive:
        raise PriceFileError(
            f"The times in {zoned[0].path} have a zone and those in {naive[0].path} have none, so they "
            "cannot be joined; convert one of them to the other's clock."
        )


def _joined(tables: Sequence[Table]) -> pd.DataFrame:
    if len(tables) == 1:
        return tables[0].frame
    # one union of all times and one assignment a table: joining frames pair by pair would be quadratic
    times = np.unique(np.concatenate([table.times.asi8 for table in tables]))
    values = np.full((len(times), sum(len(table.symbols) for table in tables)), np.nan, order="F")
    column = 0
    for table in tables:
        rows = np.searchsorted(times, table.times.asi8)
        values[rows, column : column + len(table.symbols)] = table.frame.to_numpy()
        column += len(table.symbols)
    index = pd.DatetimeIndex(times.view("datetime64[ns]"), name="time")
    if tables[0].times.tz is not None:
        index = index.tz_localize("UTC")
    return pd.DataFrame(values, index=index, columns=[symbol for table in tables for symbol in table.symbols])


def _grouped_notes(tables: Sequence[Table]) -> list[str]:
    """Return the tables' notes with the files that each is about, one note once."""
    about: dict[str, list[str]] = {}
    for table in tables:
        for note in table.notes:
            about.setdefault(note, []).append(table.path.name)
    sentences = []
    for note, files in about.items():
        more = f" and {len(files) - 3} more files" if len(files) > 3 else ""
        sentences.append(f"{', '.join(files[:3])}{more}: {note}.")
    return sentences


def _clock_notes(tables: Sequence[Table]) -> list[str]:
    clocks = Counter(table.clock for table in tables)
    if len(clocks) < 2:
        return []
    named = ", ".join(f"{clock}: {count} file{'s' * (count > 1)}" for clock, count in clocks.items())
    return [f"The files keep different clocks ({named}); their times are joined as they are written."]


def _selected(frame: pd.DataFrame, symbols: Sequence[str]) -> pd.DataFrame:
    there = [str(name) for name in frame.columns]
    if not symbols:
        raise OptionError("No symbol was chosen; name at least one.")
    for symbol in symbols:
        if symbol not in there:
            raise PriceFileError(f"There is no symbol {symbol!r}; there are {_closest_first(symbol, there)}.")
    twice = [symbol for symbol, count in Counter(symbols).items() if count > 1]
    if twice:
        raise OptionError(f"The symbol {twice[0]!r} is chosen twice; name it once.")
    return frame[list(symbols)]


def _closest_first(symbol: str, there: Sequence[str]) -> str:
    folded: dict[str, list[str]] = {}
    for name in there:
        folded.setdefault(name.casefold(), []).append(name)
    close = difflib.get_close_matches(symbol.casefold(), folded, n=5, cutoff=0.5)
    ordered = [name for match in close for name in folded[match]]
    ordered += [name for name in there if name not in ordered]
    more = f" and {len(ordered) - 30} more" if len(ordered) > 30 else ""
    return ", ".join(ordered[:30]) + more


def _between(frame: pd.DataFrame, first: pd.Timestamp | None, last: pd.Timestamp | None) -> pd.DataFrame:
    times = pd.DatetimeIndex(frame.index)
    kept = np.ones(len(frame), dtype=bool)
    for bound, after in ((first, True), (last, False)):
        if bound is None:
            continue
        if times.tz is None and bound.tzinfo is not None:
            raise OptionError(
                f"{bound} has a zone but the files' times have none; write it without one, on their clock."
            )
        if times.tz is not None and bound.tzinfo is None:
            bound = bound.tz_localize("UTC")
        kept &= np.asarray(times >= bound if after else times <= bound)
    if kept.all():
        return frame
    if not kept.any():
        asked = f"from {'the beginning' if first is None else first} to {'the end' if last is None else last}"
        raise PriceFileError(f"No time is left {asked}; the files reach from {times[0]} to {times[-1]}.")
    return frame[kept]
