"""Files that are not read are refused with what they look like, never misread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from mtbridge.errors import PriceFileError
from mtbridge.history import read_table
from mtbridge.history.looks import bars_among, bars_in

CASES = {
    "html": (b"<!DOCTYPE html><html><body>Get an API key, 1,2</body></html>", "an HTML page"),
    "json": (b'{"Note": "limited"}', "JSON"),
    "json list": (b"[[1740960000000, 1.1]]", "JSON"),
    "words": (b"No data", "a message ('No data')"),
    "sentence": (b"Exceeded the daily hits limit, come back tomorrow", "has a header but no rows of prices"),
    "one column": (b"price\n1.1\n1.2\n", "one column of text ('price')"),
    "ticks": (b"<DATE>\t<TIME>\t<BID>\t<ASK>\n2025.03.03\t00:00:00.351\t1.0\t1.1\n", "ticks"),
    "bars": (
        b"Date,Open,High,Low,Close\n2025-03-03,1,2,0.5,1.5\n",
        "the bars of one symbol in another layout",
    ),
    "letters": (b"t,o,h,l,c,v\n2025-03-03,1,2,0.5,1.5,9\n", "the bars of one symbol in another layout"),
    "one price": (b"Date,Close\n2025-03-03,1.5\n", "call the column 'Close' by its symbol"),
    "volume": (b"Date,EURUSD,Volume\n2025-03-03,1.1,57\n", "another layout"),
    "ticker": (b"<TICKER>,<DATE>,<CLOSE>\nAAA,20250303,1\n", "a long table"),
    "long": (b"Date,name,value\n2025-03-03,AAA,1\n2025-03-03,BBB,2\n", "with text in column 'name'"),
    "no header": (b"2025-03-03,1.1,1.2\n2025-03-04,1.1,1.2\n", "rows without a header"),
    "no times": (b"A,B\n1.1,1.2\n1.3,1.4\n", "a table without a column of times"),
    "numbers": (b"1.1,1.2\n1.3,1.4\n", "rows without a header"),
    "gzip": (b"\x1f\x8b\x08\x00rest", "a gzip archive; unpack it first"),
    "excel": (b"PK\x03\x04rest", "an Excel workbook"),
    "feather": (b"ARROW1\x00\x00", "a Feather file"),
    "binary": (b"\x07\x00\x00\x01" * 200, "binary data"),
    "pdf": (b"%PDF-1.7", "a PDF document"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_of_no_known_family_is_refused_with_what_it_looks_like(case: str, tmp_path: Path) -> None:
    content, description = CASES[case]
    path = tmp_path / "thing.csv"
    path.write_bytes(content)
    with pytest.raises(PriceFileError) as refused:
        read_table(path)
    message = str(refused.value)
    assert message.startswith(str(path))
    assert description in message
    assert message.endswith(".")
    assert "\n" not in message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "is empty"),
        (b"time,A,B\n", "has a header but no rows"),
        (b"<DATE>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\n\n", "has a header but no rows"),
    ],
)
def test_a_file_without_rows_is_refused(content: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "thing.csv"
    path.write_bytes(content)
    with pytest.raises(PriceFileError, match=says):
        read_table(path)


def test_a_missing_file_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(PriceFileError, match=r"There is no file .*missing\.csv"):
        read_table(tmp_path / "missing.csv")


@pytest.mark.parametrize(
    "names",
    [
        ["time", "EURUSD", "GBPUSD"],
        ["Date", "LOW", "OPEN", "AAPL"],
        ["Date", "A", "C", "H", "L", "O", "V", "MSFT"],
        ["time", "EURUSD_close", "GBPUSD_close"],
    ],
)
def test_names_of_symbols_are_no_words_of_bars(names: list[str]) -> None:
    assert bars_in(names) is None


def make_bars(rows: int = 60) -> np.ndarray:
    random = np.random.default_rng(3)
    close = 1.1 + np.cumsum(random.normal(0, 1e-3, rows))
    opened = np.concatenate([[1.1], close[:-1]])
    high = np.maximum(opened, close) + np.maximum(random.normal(0, 5e-4, rows), 0)
    low = np.minimum(opened, close) - np.maximum(random.normal(0, 5e-4, rows), 0)
    return np.column_stack([opened, high, low, close])


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 1, 2, 0], [3, 0, 1, 2]])
def test_bars_under_unknown_names_are_noticed_in_any_order(order: list[int]) -> None:
    assert bars_among(make_bars()[:, order])


def test_bars_under_unknown_names_are_refused(tmp_path: Path) -> None:
    rows = "".join(
        f"2025-03-{day + 1:02d},{o},{h},{low},{c}\n" for day, (o, h, low, c) in enumerate(make_bars(31))
    )
    path = tmp_path / "thing.csv"
    path.write_text("päivä,avaus,ylin,alin,päätös\n" + rows, encoding="utf-8")
    with pytest.raises(PriceFileError, match="avaus, ylin, alin, päätös behave as open, high, low and close"):
        read_table(path)


def test_four_symbols_are_not_taken_for_bars() -> None:
    random = np.random.default_rng(4)
    walks = 100 * np.exp(np.cumsum(random.normal(0, 0.01, (60, 4)), axis=0))
    curve = walks[:, :1] * [1.0, 1.01, 1.02, 1.03]
    # a curve whose first two expiries meet now and then
    meeting = curve.copy()
    meeting[::2, 1] = meeting[::2, 0]
    pegged = np.round(1 + random.normal(0, 1e-4, (60, 4)), 4)
    for panel in (walks, curve, meeting, pegged, walks[:5], walks[:, :3], np.full((60, 4), 2.0)):
        assert not bars_among(panel)
