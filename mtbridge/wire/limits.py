"""How much one message may hold, and how much its answer may."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

from mtbridge.errors import OptionError, ProtocolError
from mtbridge.wire.codes import Status

_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")


def readable_bytes(number: int) -> str:
    """Return a count of bytes as people write it: 24000 gives "23.4 KiB"."""
    if number < 1024:
        return f"{number} bytes"
    power = min((number.bit_length() - 1) // 10, len(_UNITS) - 1)
    return f"{number / 1024**power:.1f} {_UNITS[power]}"


@dataclass(frozen=True, slots=True)
class Limits:
    """What a worker accepts; `ping` tells it to clients.

    Attributes
    ----------
    frame_bytes : the largest frame, in a request or in its answer
    arrays : the most array frames of a message
    rows : the most rows of a matrix
    columns : the most columns of a matrix
    options_bytes : the longest options frame

    Raises
    ------
    OptionError
        If one of them is not a whole number of at least 1.
    """

    frame_bytes: int = 1 << 30
    arrays: int = 8
    rows: int = (1 << 31) - 1
    columns: int = 1 << 20
    options_bytes: int = 1 << 16

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not isinstance(value, int) or value < 1:
                raise OptionError(
                    f"The limit {field.name} is {value!r}; it must be a whole number of at least 1."
                )

    def check_result(
        self, shape: Sequence[int], item_bytes: int, *, mend: str = "send fewer columns at a time"
    ) -> None:
        """Refuse an answer of this shape that would not fit one frame.

        Asked before anything is computed: a request of a few megabytes can have an answer of many gigabytes.

        Parameters
        ----------
        shape : of the answer; Python's integers, so that no product of them overflows
        item_bytes : of one element
        mend : what to do instead

        Raises
        ------
        ProtocolError
            With status too_large.
        """
        size = math.prod(shape) * item_bytes
        if size > self.frame_bytes:
            raise ProtocolError(
                f"The result of {'x'.join(map(str, shape))} elements would take {readable_bytes(size)}, "
                f"but a frame may have {readable_bytes(self.frame_bytes)}; {mend}.",
                Status.TOO_LARGE,
            )
