"""MetaTrader 5: Symbols window, Bars, 'Export bars'.

<DATE>, <TIME> (not in files of days and longer), <OPEN>, <HIGH>, <LOW>, <CLOSE>, <TICKVOL>, <VOL>, <SPREAD>,
divided by tabs; re-saved copies have commas, or the names without their angle brackets. Dates are YYYY.MM.DD
on the broker's server clock. The symbol stands in the file's name alone.
"""

from __future__ import annotations

import pandas as pd
import pyarrow.compute as pc

from mtbridge.history.cells import read_columns
from mtbridge.history.clock import SERVER
from mtbridge.history.names import mt5_symbol
from mtbridge.history.table import Table, make_table
from mtbridge.history.text import TextFile
from mtbridge.history.timed import times_of

FAMILY = "MT5 bars"
_NEEDED = {"DATE", "OPEN", "HIGH", "LOW", "CLOSE"}


def recognise(source: TextFile) -> bool:
    """Tell whether the first line is the header of exported bars."""
    header = source.rows[0]
    fields = _fields(header)
    bracketed = all(cell.startswith("<") and cell.endswith(">") for cell in header)
    # <TICKER> is Stooq's and Finam's; without brackets only TICKVOL tells the header from any other table of
    # bars
    return set(fields) >= _NEEDED and "TICKER" not in fields and (bracketed or "TICKVOL" in fields)


def read(source: TextFile, *, price: str = "close") -> Table:
    """Return one price of each bar as a `Table` of one symbol.

    Parameters
    ----------
    price : "open", "high", "low" or "close"
    """
    fields = _fields(source.rows[0])
    stamps = [fields.index(name) for name in ("DATE", "TIME") if name in fields]
    columns, values = read_columns(
        source, source.rows[0], texts=stamps, numbers=[fields.index(price.upper())], header_lines=1
    )
    times = times_of(source, pc.binary_join_element_wise(*columns, " "), header_lines=1, clock=SERVER)
    frame = pd.DataFrame(values, index=times.index, columns=[mt5_symbol(source.path)])
    return make_table(source.path, FAMILY, times.clock, frame, (*source.notes, *times.notes))


def _fields(header: tuple[str, ...]) -> list[str]:
    return [cell.strip("<>").upper() for cell in header]
