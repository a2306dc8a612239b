"""Bytes of a file to text with a separator: the one place where encodings are known.

MQL5 programs write UTF-16 with a byte order mark unless they are told otherwise, spreadsheets write UTF-8
with one or an old Windows code page, and terminals write plain ASCII. Readers get UTF-8 bytes, whatever it
was.
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from dataclasses import dataclass
from pathlib import Path

from mtbridge.errors import PriceFileError

_FILLED = re.compile(rb"[^\s;,]")
_SAMPLE_ROWS = 30
_SAMPLE_BYTES = 8 << 20
_MARKS = (
    # UTF-32's little-endian mark begins with UTF-16's, so it is asked first
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


@dataclass(frozen=True, slots=True, eq=False)
class TextFile:
    """A text file, decoded, with its first rows split into cells.

    Attributes
    ----------
    path : the file
    data : UTF-8, without a byte order mark, beginning with the first line that is not blank
    skipped : blank lines before it
    separator : tab, semicolon or comma
    rows : the first rows, each a tuple of cells with blanks around them taken off
    notes : what was decided about the encoding
    """

    path: Path
    data: bytes
    skipped: int
    separator: str
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def start_of_rows(self, header_lines: int) -> int:
        """Return where in `data` the first row after the header begins; its length when there is none."""
        start = 0
        for _ in range(header_lines):
            start = self.data.find(b"\n", start) + 1
            if start == 0:
                return len(self.data)
        return start if _FILLED.search(self.data, start) else len(self.data)


def decode(content: bytes) -> tuple[bytes, tuple[str, ...]]:
    """Return `content` as UTF-8 without a byte order mark, and a note where its encoding had to be inferred.

    Raises
    ------
    UnicodeDecodeError
        If the bytes are not what their byte order mark says, or no text in any of these encodings.
    """
    for mark, encoding in _MARKS:
        if content.startswith(mark):
            return (
                content[len(mark) :] if encoding == "utf-8-sig" else content.decode(encoding).encode()
            ), ()
    odd, even = content[1:512:2], content[0:512:2]
    if len(odd) > 1 and odd.count(0) > 0.8 * len(odd) and not even.count(0):
        return content.decode("utf-16-le").encode(), ("text is UTF-16 without a byte order mark",)
    try:
        content.decode()
    except UnicodeDecodeError:
        # almost any byte means something in cp1252, so this proves nothing and is said
        return content.decode("cp1252").encode(), (
            "text is not UTF-8; it was read as Windows code page 1252",
        )
    return content, ()


def open_text(path: Path, content: bytes) -> TextFile:
    """Return the `TextFile` of a file's bytes.

    Raises
    ------
    PriceFileError
        If there is no text in it.
    """
    try:
        data, notes = decode(content)
    except UnicodeDecodeError as error:
        raise PriceFileError(
            f"{path} is no UTF-8, UTF-16 or Windows text ({error.reason} at byte {error.start}); save it as "
            "UTF-8."
        ) from error
    if b"\n" not in data:
        # line ends of old Macs
        data = data.replace(b"\r", b"\n")
    filled = _FILLED.search(data)
    if filled is None:
        raise PriceFileError(f"{path} is empty; export it again.")
    # the header of a column of row numbers or of pandas' index is an empty cell, so the line begins before
    # `filled`
    start = data.rfind(b"\n", 0, filled.start()) + 1
    skipped, data = data[:start].count(b"\n"), data[start:]
    try:
        separator, rows = _split(data[:_SAMPLE_BYTES].decode(errors="ignore"))
    except csv.Error as error:
        raise PriceFileError(f"{path} cannot be divided into cells ({error}); export it again.") from error
    return TextFile(path, data, skipped, separator, rows, notes)


def _split(text: str) -> tuple[str, tuple[tuple[str, ...], ...]]:
    """Return the first of tab, semicolon and comma that divides every row, and the first rows' cells."""
    split = {separator: _sample(text, separator) for separator in ("\t", ";", ",")}
    for separator, rows in split.items():
        if min(map(len, rows)) > 1:
            return separator, rows
    # no separator divides every row, so some row is broken; the header then tells best
    separator = max(split, key=lambda candidate: len(split[candidate][0]))
    return separator, split[separator]


def _sample(text: str, separator: str) -> tuple[tuple[str, ...], ...]:
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    filled = (tuple(cell.strip() for cell in row) for row in rows if row)
    return tuple(itertools.islice(filled, _SAMPLE_ROWS))
