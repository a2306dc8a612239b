"""What a file that we do not read looks like, so that its owner is told more than "cannot be parsed".

The same words keep other layouts out of the wide reader: a table of one symbol's open, high, low and close
has the shape of a wide table of four symbols, and correlating these would be a wrong answer without a sound.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mtbridge.history.cells import is_missing
from mtbridge.history.clock import looks_like_time
from mtbridge.history.text import TextFile

READABLE = (
    "mtbridge reads wide CSV or Parquet (times in one column, then a column for each symbol), "
    "MT5 'Export bars' and MT4 history files"
)

_SIGNATURES = (
    (b"\x1f\x8b", "a gzip archive; unpack it first"),
    (b"PK\x03\x04", "an Excel workbook or a zip archive; save its sheet as CSV, or unpack it first"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook; save its sheet as CSV"),
    (b"ARROW1", "a Feather file; save it as Parquet"),
    (b"FEA1", "a Feather file; save it as Parquet"),
    (b"SQLite format 3", "an SQLite database; export a table as CSV"),
    (b"\x89HDF", "an HDF5 file; save it as CSV or Parquet"),
    (b"%PDF", "a PDF document"),
)


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split(", "))


_OPEN = _words("open, otwarcie, abertura, apertura, eröffnung, ouverture")
_HIGH = _words("high, najwyzszy, najwyższy, máxima, maxima, máximo, hoch, plus haut, massimo")
_LOW = _words("low, najnizszy, najniższy, mínima, minima, mínimo, tief, plus bas, minimo")
_CLOSE = _words(
    "close, adj close, price, last, zamkniecie, zamknięcie, último, ultimo, fechamento, cierre, schluss, "
    "schlusskurs, clôture, dernier, chiusura"
)
_BESIDE = _words(
    "volume, vol, tick_volume, tickvol, real_volume, spread, openint, open interest, amount, change %, chg%, "
    "var%, wolumen"
)
_LETTERS = _words("o, h, l, c")
_LONG = _words("ticker, symbol, pair")
_TICKS = _words("bid, ask, askprice, bidprice, flags")


def binary(content: bytes) -> str | None:
    """Return what a file that is no text looks like, and what to do, or None for text."""
    for signature, description in _SIGNATURES:
        if content.startswith(signature):
            return description
    if content[:4] in (b"\x91\x01\x00\x00", b"\x90\x01\x00\x00") and b"\x00" in content[4:148]:
        return "an MT4 .hst history; export it from MT4's History Center as CSV"
    utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff") or content[1:64:2].count(0) > 24
    return f"binary data; {READABLE}" if b"\x00" in content[:4096] and not utf16 else None


def page(text: str) -> str | None:
    """Return what text that is no table at all looks like, or None."""
    start = text.lstrip()[:200]
    if start[:1] == "<" and start[:9].lower().startswith(("<!doctype", "<html", "<?xml", "<head")):
        return "an HTML page, as a server sends instead of data; download it again"
    if start[:1] in "{[":
        return f"JSON ({_short(text)}), as a server sends instead of data; download it again"
    return None


def bars_in(names: Sequence[str]) -> str | None:
    """Return what a header that has the words of bars or ticks looks like, or None.

    Open and low by themselves, and the letters among many, are symbols: there are shares called LOW, OPEN, O,
    H, L and C.
    """
    words = {name.strip(" <>.").lower() for name in names}
    shown = ",".join(names[:8])
    if words & _LONG:
        return f"a long table with a symbol in each row ({shown}); pivot it to a column for each symbol"
    if words & _TICKS:
        return f"ticks ({shown}); {READABLE}"
    values = len(names) - 1
    if values == 1 and words & _CLOSE:
        return f"the prices of one symbol without its name; call the column {names[-1]!r} by its symbol"
    ranges = words & _HIGH and words & (_LOW | _OPEN)
    letters = words.issuperset(_LETTERS) and values <= 5
    if ranges or letters or words & (_CLOSE | _BESIDE):
        return f"the bars of one symbol in another layout ({shown}); {READABLE}"
    return None


def bars_among(values: NDArray[np.float64]) -> bool:
    """Tell whether the first four columns behave as open, high, low and close of one symbol.

    In every row one column is the largest and one the smallest, both are close together and sometimes touched
    by the other two, and of those now this and now that is above: so do bars, and neither futures of one
    curve nor shares do.
    """
    rows = values[:, :4]
    rows = rows[~np.isnan(rows).any(axis=1)]
    if rows.shape[1] < 4 or values.shape[1] > 6 or len(rows) < 10:
        return False
    largest, smallest = rows.max(axis=1), rows.min(axis=1)
    tops = np.flatnonzero((rows == largest[:, None]).all(axis=0))
    bottoms = np.flatnonzero((rows == smallest[:, None]).all(axis=0))
    if tops.size != 1 or bottoms.size != 1 or smallest.min() <= 0:
        return False
    inner = np.delete(rows, [tops[0], bottoms[0]], axis=1)
    rising = np.mean(inner[:, 0] < inner[:, 1])
    touched = np.mean((inner == largest[:, None]) | (inner == smallest[:, None]))
    with np.errstate(over="ignore"):
        apart = np.median(largest / smallest)
    return bool(apart < 1.2 and 0.1 < rising < 0.9 and touched > 0)


def table(source: TextFile) -> str:
    """Return what a text that no reader recognised looks like."""
    first = source.rows[0]
    if len(first) == 1:
        if len(source.rows) == 1:
            return f"a message ({_short(source.data.decode())}) and holds no prices; download it again"
        return (
            f"one column of text ({_short(first[0])}); its cells must be divided by tab, semicolon or comma"
        )
    if any(map(looks_like_time, first)) or not any(letter.isalpha() for cell in first for letter in cell):
        return (
            f"rows without a header that are not MT4's ({_short(source.separator.join(first))}); {READABLE}"
        )
    if words := bars_in(first):
        return words
    data = source.rows[1:]
    for position, name in enumerate(first):
        cells = [row[position] for row in data if len(row) > position]
        text = [
            cell for cell in cells if not is_missing(cell) and not any(letter.isdigit() for letter in cell)
        ]
        if text and len(text) == len(cells):
            return f"a long table, with text in column {name!r}; pivot it to a column for each symbol"
    return f"a table without a column of times ({_short(','.join(first))}); {READABLE}"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return repr(line if len(line) <= 60 else f"{line[:57]}...")
