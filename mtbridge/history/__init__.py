"""Price files and terminals to tables of prices: readers, the join on time, returns, and a made-up sample.

`read_prices` and `prepare` are the way through; each family of files has a reader of its own, and `sniff`
chooses.
"""

from __future__ import annotations

from mtbridge.history.align import RETURNS, Panel, complete_rows, prepare, returns
from mtbridge.history.atomic import check_destination, replace_file
from mtbridge.history.download import TIMEFRAMES, download, open_terminal
from mtbridge.history.prices import PRICES, Prices, Source, find_files, read_prices
from mtbridge.history.sample import sample_panel, write_sample
from mtbridge.history.sniff import read_table
from mtbridge.history.table import Table
from mtbridge.history.write import write_prices

__all__ = [
    "PRICES",
    "RETURNS",
    "TIMEFRAMES",
    "Panel",
    "Prices",
    "Source",
    "Table",
    "check_destination",
    "complete_rows",
    "download",
    "find_files",
    "open_terminal",
    "prepare",
    "read_prices",
    "read_table",
    "replace_file",
    "returns",
    "sample_panel",
    "write_prices",
    "write_sample",
]
