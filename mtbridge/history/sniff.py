"""Which family a file belongs to, told by what is in it: everything is called .csv."""

from __future__ import annotations

from pathlib import Path

from mtbridge.errors import PriceFileError
from mtbridge.history import looks, mt4, mt5, parquet, wide
from mtbridge.history.clock import looks_like_time
from mtbridge.history.table import Table
from mtbridge.history.text import open_text


def read_table(path: str | Path, *, price: str = "close") -> Table:
    """Return one price file as a `Table`.

    Parameters
    ----------
    path : the file, of any name
    price : "open", "high", "low" or "close", which of a bar's prices to take

    Raises
    ------
    PriceFileError
        If the file is missing, empty, damaged, or of no family that is read; the message says what it looks
        like.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            # a Parquet file is read by its own library, which need not have it whole in memory
            content = file.read(len(parquet.MAGIC))
            if content != parquet.MAGIC:
                content += file.read()
    except FileNotFoundError:
        raise PriceFileError(f"There is no file {path}; check the name and the folder.") from None
    except OSError as error:
        raise PriceFileError(f"{path} cannot be read: {error.strerror or error}.") from error
    if not content:
        raise PriceFileError(f"{path} is empty; export it again.")
    if content == parquet.MAGIC:
        return parquet.read(path, price=price)
    if description := looks.binary(content):
        raise _refused(path, description)
    source = open_text(path, content)
    if description := looks.page(source.data[:500].decode(errors="replace")):
        raise _refused(path, description)
    header = source.rows[0]
    if len(source.rows) == 1 and len(header) > 1 and not any(map(looks_like_time, header)):
        raise PriceFileError(f"{path} has a header but no rows of prices; export it again.")
    if mt5.recognise(source):
        return mt5.read(source, price=price)
    if mt4.recognise(source):
        return mt4.read(source, price=price)
    if wide.recognise(source):
        return wide.read(source, price=price)
    raise _refused(path, looks.table(source))


def _refused(path: Path, description: str) -> PriceFileError:
    return PriceFileError(f"{path} looks like {description}.")
