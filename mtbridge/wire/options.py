"""The options frame of a request: a JSON object, read strictly.

A key that is not known is refused, not skipped: a misspelt `ddof` must not give another covariance.
"""

from __future__ import annotations

from typing import Annotated, Final, TypeAlias

import msgspec

from mtbridge.errors import ProtocolError
from mtbridge.wire.codes import Operation, Status


class NoOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """For operations that have none."""


class CovarianceOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`ddof` is taken from the rows in the divisor, 1 by default as in pandas."""

    ddof: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 1


Options: TypeAlias = NoOptions | CovarianceOptions

_TYPES: Final[dict[int, type[Options]]] = {
    Operation.PING: NoOptions,
    Operation.MULTIPLY: NoOptions,
    Operation.GRAM: NoOptions,
    Operation.COVARIANCE: CovarianceOptions,
    Operation.CORRELATION: NoOptions,
}
_DECODERS: Final = {operation: msgspec.json.Decoder(options) for operation, options in _TYPES.items()}
_DEFAULTS: Final[dict[int, Options]] = {operation: options() for operation, options in _TYPES.items()}


def decode_options(operation: int, frame: bytes) -> Options:
    """Return the options of a request; an empty frame means the defaults.

    Raises
    ------
    ProtocolError
        With status bad_options: no JSON object, or a key or a value that is not allowed.
    """
    if not frame:
        return _DEFAULTS[operation]
    try:
        options: Options = _DECODERS[operation].decode(frame)
    except RecursionError:
        raise ProtocolError("The options are nested too deeply.", Status.BAD_OPTIONS) from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        known = ", ".join(_TYPES[operation].__struct_fields__) or "none"
        raise ProtocolError(
            f"The options cannot be used: {str(error).rstrip('.')}. Options of this operation: {known}.",
            Status.BAD_OPTIONS,
        ) from None
    return options


def encode_options(options: Options) -> bytes:
    """Return the options frame for `options`; empty where all are at their defaults."""
    return b"" if options == type(options)() else msgspec.json.encode(options)
