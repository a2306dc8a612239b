"""MetaTrader 4: History Center, export to CSV.

No header: YYYY.MM.DD,HH:MM,open,high,low,close,volume, on the broker's server clock. The file's name is the
symbol and the period in minutes. HistData's files for MetaTrader look the same but for a volume of 0 in every
row, and keep New York's winter time all year, so that is said.
"""

from __future__ import annotations

import re

import pandas as pd
import pyarrow.compute as pc

from mtbridge.history.cells import is_number, read_columns
from mtbridge.history.clock import SERVER
from mtbridge.history.names import mt4_symbol
from mtbridge.history.table import Table, make_table
from mtbridge.history.text import TextFile
from mtbridge.history.timed import times_of

FAMILY = "MT4 history"
_COLUMNS = ("date", "time", "open", "high", "low", "close", "volume")
_DATE = re.compile(r"\d{4}\.\d{2}\.\d{2}")
_TIME = re.compile(r"\d{2}:\d{2}(:\d{2})?")


def recognise(source: TextFile) -> bool:
    """Tell whether the first line is a bar of MT4, which has no header."""
    cells = source.rows[0]
    return (
        len(cells) == len(_COLUMNS)
        and _DATE.fullmatch(cells[0]) is not None
        and _TIME.fullmatch(cells[1]) is not None
        and all(map(is_number, cells[2:]))
    )


def read(source: TextFile, *, price: str = "close") -> Table:
    """Return one price of each bar as a `Table` of one symbol.

    Parameters
    ----------
    price : "open", "high", "low" or "close"
    """
    columns, values = read_columns(
        source,
        _COLUMNS,
        texts=[0, 1],
        numbers=[_COLUMNS.index(price), _COLUMNS.index("volume")],
        header_lines=0,
    )
    times = times_of(source, pc.binary_join_element_wise(*columns, " "), header_lines=0, clock=SERVER)
    notes = (*source.notes, *times.notes)
    if not values[:, 1].any():
        notes += (
            "every volume is 0, as in HistData's files, whose clock is UTC-5 all year and not the server's",
        )
    symbol, naming = mt4_symbol(source.path, times.index.sort_values())
    frame = pd.DataFrame(values[:, :1], index=times.index, columns=[symbol])
    return make_table(source.path, FAMILY, times.clock, frame, notes + naming)
