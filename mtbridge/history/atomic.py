"""The one way that mtbridge writes a file: whole, or not at all.

Whoever reads the destination sees the old content or the new one, never half of either: the work goes to a
temporary file beside the destination, which is renamed over it when everything has been written.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mtbridge.errors import InputError

# what a file system says of itself or of the name; Windows has no EDQUOT
_NAMES = ("ENOENT", "ENOSPC", "EDQUOT", "EROFS", "EFBIG", "ENAMETOOLONG")
_REFUSALS = {getattr(errno, name) for name in _NAMES if hasattr(errno, name)}


@contextmanager
def replace_file(path: str | Path) -> Iterator[Path]:
    """Yield a temporary path to write to; it becomes `path` when the block ends without an error.

    The temporary file lies in the folder of `path` (a rename does not cross file systems) and keeps its
    suffix, by which writers such as ``numpy.savez`` choose what to do. When the block raises, it is removed
    and `path` is as it was. A symbolic link is followed: its target is replaced, the link stays. A device or
    a pipe (``/dev/stdout``) cannot be renamed over, so it is yielded itself.

    Parameters
    ----------
    path : where the finished file shall be

    Raises
    ------
    InputError
        If the folder does not exist or may not be written to, `path` is a folder, or the disk is full.

    Examples
    --------
    >>> with replace_file("matrix.csv") as temporary:  # doctest: +SKIP
    ...     frame.to_csv(temporary)
    """
    try:
        with _replacement(Path(os.path.realpath(path)), path) as temporary:
            yield temporary
    except PermissionError as error:
        raise InputError(
            f"{path} cannot be written ({error.strerror or error}); choose another folder, or close the file "
            "where it is open."
        ) from error
    except OSError as error:
        if error.errno not in _REFUSALS:
            raise
        raise InputError(
            f"{path} cannot be written ({error.strerror or error}); make room or choose another name."
        ) from error


def check_destination(path: str | Path) -> None:
    """Refuse a folder, and a file in a folder that does not exist: this can be told before any work."""
    destination = Path(os.path.realpath(path))
    if destination.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file to write.")
    if not destination.exists() and not destination.parent.is_dir():
        raise InputError(
            f"{path} cannot be written: the folder {destination.parent} does not exist; make it first."
        )


@contextmanager
def _replacement(destination: Path, path: str | Path) -> Iterator[Path]:
    check_destination(path)
    if destination.exists() and not destination.is_file():
        yield destination
        return
    temporary = destination.with_name(f".{destination.stem}.{secrets.token_hex(4)}{destination.suffix}")
    try:
        yield temporary
        temporary.replace(destination)
    finally:
        # after a successful rename there is nothing left to remove
        temporary.unlink(missing_ok=True)
