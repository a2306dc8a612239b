"""Bytes to text with a separator."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtbridge.errors import PriceFileError
from mtbridge.history.text import decode, open_text

TABLE = "time,EURUSD,Золото\r\n2025-03-03,1.1,2400\r\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_every_unicode_encoding_with_a_mark_gives_the_same_text(encoding: str) -> None:
    assert decode(TABLE.encode(encoding)) == (TABLE.encode(), ())


@pytest.mark.parametrize("endian", ["le", "be"])
def test_utf16_of_either_byte_order_is_read_by_its_mark(endian: str) -> None:
    assert decode(("\ufeff" + TABLE).encode(f"utf-16-{endian}")) == (TABLE.encode(), ())


def test_utf16_without_a_mark_is_recognised_and_said() -> None:
    text = "time,EURUSD\n2025-03-03,1.1\n"
    data, notes = decode(text.encode("utf-16-le"))
    assert data == text.encode()
    assert "UTF-16" in notes[0]


def test_text_that_is_no_utf8_is_read_as_code_page_1252_and_said() -> None:
    data, notes = decode("time,EURUSD.£\n".encode("cp1252"))
    assert data.decode() == "time,EURUSD.£\n"
    assert "1252" in notes[0]


def test_a_cut_utf16_file_is_an_error_that_names_the_file() -> None:
    with pytest.raises(PriceFileError, match=r"cut\.csv.*save it as UTF-8"):
        open_text(Path("cut.csv"), "\ufefftime".encode("utf-16-le")[:-1])


@pytest.mark.parametrize("separator", ["\t", ";", ","])
def test_the_separator_is_the_one_that_divides_every_line(separator: str) -> None:
    rows = (("time", "A", "B"), ("2025-03-03 00:00", "1.5", "2"))
    source = open_text(Path("x.csv"), "\n".join(separator.join(row) for row in rows).encode())
    assert (source.separator, source.rows) == (separator, rows)


def test_decimal_commas_do_not_make_the_comma_the_separator() -> None:
    source = open_text(Path("x.csv"), b"time;A;B\n2025-03-03;1,5;2,5\n")
    assert source.separator == ";"


def test_a_quoted_name_may_hold_another_separator() -> None:
    source = open_text(Path("x.csv"), b'"time","A;B","C"\n2025-03-03,1,2\n')
    assert source.rows[0] == ("time", "A;B", "C")


def test_blank_lines_before_the_header_are_counted_for_line_numbers() -> None:
    source = open_text(Path("x.csv"), b"\r\n\r\n,A,B\r\n2025-03-03,1,2\r\n")
    assert (source.skipped, source.rows[0]) == (2, ("", "A", "B"))


def test_line_ends_of_old_macs_are_line_ends() -> None:
    source = open_text(Path("x.csv"), b"time,A\r2025-03-03,1\r")
    assert source.rows == (("time", "A"), ("2025-03-03", "1"))


@pytest.mark.parametrize("content", [b" ", b"\n\n", b"\xef\xbb\xbf", b";;;\n;;;\n"])
def test_a_file_of_blanks_and_separators_is_empty(content: bytes) -> None:
    with pytest.raises(PriceFileError, match="is empty"):
        open_text(Path("x.csv"), content)
