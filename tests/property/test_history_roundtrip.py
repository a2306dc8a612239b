"""A wide panel that is written and read back has the same numbers at the same times."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mtbridge.errors import MtbridgeError
from mtbridge.history import read_prices, write_prices
from mtbridge.history.sniff import read_table

# names as brokers write them, without line ends; blanks around a name are the file's, not the name's
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z")), min_size=1, max_size=12)
PRICES = st.floats(allow_nan=True, allow_infinity=False, width=64)
MT5 = (
    b"<DATE>\t<TIME>\t<OPEN>\t<HIGH>\t<LOW>\t<CLOSE>\t<TICKVOL>\t<VOL>\t<SPREAD>\r\n"
    b"2025.03.03\t00:00:00\t1.1\t1.4\t1.0\t1.2\t57\t0\t12\r\n"
    b"2025.03.03\t01:00:00\t1.2\t1.5\t1.1\t1.3\t61\t0\t11\r\n"
)
MT4 = b"2025.03.03,00:00,1.1,1.4,1.0,1.2,57\r\n2025.03.03,01:00,1.2,1.5,1.1,1.3,61\r\n"
WIDE = b"time,EURUSD,#US30\n03/04/2025 00:00,1.1,37000\n13/04/2025 00:05,1.2,\n14/04/2025 00:10,,N/A\n"
DAMAGE = [b"", b"\n", b",", b";", b"\t", b'"', b"\x00", b"\xff", b"9", b"-", b".", b"e", b"<", b" ", b"\r"]
UNITS = {"D": 86_400_000_000_000, "min": 60_000_000_000, "s": 1_000_000_000, "us": 1_000, "ns": 1}


@st.composite
def panels(draw: st.DrawFn) -> pd.DataFrame:
    """Panels whose names are symbols: words of bars or dates would make it another file."""
    names = draw(st.lists(NAMES.map(lambda name: f"s{name}"), min_size=1, max_size=5, unique=True))
    unit = UNITS[draw(st.sampled_from(sorted(UNITS)))]
    stamps = draw(st.lists(st.integers(0, 2**62 // unit), min_size=1, max_size=12, unique=True))
    rows = draw(
        st.lists(
            st.lists(PRICES, min_size=len(names), max_size=len(names)),
            min_size=len(stamps),
            max_size=len(stamps),
        )
    )
    index = pd.DatetimeIndex(np.array(sorted(stamps), dtype=np.int64) * unit, name="time")
    if draw(st.booleans()):
        index = index.tz_localize("UTC")
    return pd.DataFrame(rows, index=index, columns=names, dtype=np.float64)


def same(one: pd.DataFrame, other: pd.DataFrame) -> None:
    assert list(one.columns) == list(other.columns)
    assert list(one.index) == list(other.index)
    # bit for bit, but for the sign of NaN
    assert [math.copysign(1, x) for x in one.fillna(0).to_numpy().ravel()] == [
        math.copysign(1, x) for x in other.fillna(0).to_numpy().ravel()
    ]
    np.testing.assert_array_equal(one.to_numpy(), other.to_numpy())


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@given(panel=panels())
@settings(deadline=None, max_examples=60)
def test_what_is_written_is_read_back_bit_for_bit(panel: pd.DataFrame, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"panel{suffix}"
        write_prices(panel, path)
        same(read_prices(path).frame, panel)


@given(
    panel=panels(),
    separator=st.sampled_from([",", ";", "\t"]),
    encoding=st.sampled_from(["utf-8-sig", "utf-16"]),
)
@settings(deadline=None, max_examples=40)
def test_what_pandas_writes_is_read_back_whatever_separator_and_encoding(
    panel: pd.DataFrame, separator: str, encoding: str
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "panel.csv"
        panel.to_csv(path, sep=separator, encoding=encoding)
        same(read_prices(path).frame, panel)


@st.composite
def damaged_tables(draw: st.DrawFn) -> bytes:
    """Good files of each family with some bytes replaced, and cut."""
    content = bytearray(draw(st.sampled_from([MT5, MT4, WIDE, WIDE.decode().encode("utf-16")])))
    for position in draw(st.lists(st.integers(0, len(content) - 1), max_size=5)):
        content[position : position + 1] = draw(st.sampled_from(DAMAGE))
    return bytes(content[: draw(st.integers(1, len(content)))])


@given(
    content=st.one_of(
        st.binary(max_size=300), st.text(max_size=300).map(lambda text: text.encode()), damaged_tables()
    )
)
@example(b"\xff\xfe")
@example(b"time,A\n2025-03-03,1\n\x00")
@example(b'time,"A\n2025-03-03,1\n')
@example(b"PAR1")
@example(b"\r")
@settings(deadline=None, max_examples=400)
def test_any_bytes_at_all_are_a_table_or_one_sentence(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "thing.csv"
        path.write_bytes(content)
        try:
            table = read_table(path)
        except MtbridgeError as error:
            message = str(error)
        else:
            assert table.frame.index.is_monotonic_increasing
            message = ""
        assert "\n" not in message
