"""The arrays of a request, read and held against each other before anything is computed."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from mtbridge.errors import InputError, ProtocolError, ShapeError
from mtbridge.matrix import Matrix, Result
from mtbridge.wire import Array, Message, Operation, Role, Status

ROLES: Final[dict[int, tuple[tuple[Role, ...], tuple[Role, ...]]]] = {
    Operation.PING: ((), ()),
    Operation.MULTIPLY: ((Role.A, Role.B), ()),
    Operation.GRAM: ((Role.DATA,), ()),
    Operation.COVARIANCE: ((Role.DATA,), (Role.SYMBOLS, Role.WEIGHTS)),
    Operation.CORRELATION: ((Role.DATA,), (Role.SYMBOLS, Role.WEIGHTS)),
    Operation.ROLLING: ((Role.DATA,), (Role.SYMBOLS, Role.TIMES, Role.WEIGHTS)),
    Operation.EXPANDING: ((Role.DATA,), (Role.SYMBOLS, Role.WEIGHTS)),
    Operation.EWM: ((Role.DATA,), (Role.SYMBOLS, Role.TIMES, Role.WEIGHTS)),
    Operation.LAGGED: ((Role.DATA,), (Role.SYMBOLS,)),
}
"""Which arrays an operation needs, and which it may have besides."""


def check_roles(message: Message) -> None:
    """Refuse arrays that are missing, not known to the operation, or there twice."""
    required, optional = ROLES[message.head.operation]
    seen: set[Role] = set()
    for array in message.arrays:
        if array.role not in required and array.role not in optional:
            raise ProtocolError(
                f"{_name(message)} takes no array with the role {array.role.name.lower()}; leave it out.",
                Status.UNSUPPORTED,
            )
        if array.role in seen:
            raise ProtocolError(
                f"The message has two arrays with the role {array.role.name.lower()}; send one.",
                Status.MALFORMED,
            )
        seen.add(array.role)
    for role in required:
        if role not in seen:
            raise ProtocolError(
                f"{_name(message)} needs an array with the role {role.name.lower()}, but none came.",
                Status.MALFORMED,
            )


def matrix(message: Message, role: Role) -> Matrix:
    """Return the matrix with this role, copied once where its frame lies at an odd address."""
    array = _present(message, role)
    _check_floats(array, role)
    if array.ndim != 2:
        raise ShapeError(
            f"The array {role.name.lower()} has {array.ndim} dimensions; send a matrix, rows x columns."
        )
    return np.require(array, requirements="A")


def check_factors(A: Matrix, B: Matrix) -> None:
    """Refuse factors of two types before the size of their product is worked out."""
    if A.dtype != B.dtype:
        raise ProtocolError(f"a is {A.dtype} but b is {B.dtype}; send both in one dtype.", Status.UNSUPPORTED)
    if A.shape[1] != B.shape[0]:
        raise ShapeError(f"a has {A.shape[1]} columns but b has {B.shape[0]} rows; they must be equal.")


def symbols(message: Message, columns: int) -> tuple[str, ...] | None:
    """Return the names of the columns: UTF-8, one a line, a last line end allowed; None where none came."""
    names = message.find(Role.SYMBOLS)
    if names is None:
        return None
    if names.dtype != np.uint8 or names.ndim != 1:
        raise ProtocolError(
            f"The array symbols has {names.ndim} dimensions of {names.dtype}; "
            "send UTF-8 text as uint8, one name a line.",
            Status.UNSUPPORTED,
        )
    # counted first: the lines of a large frame, as texts, would take many times its memory
    ends = names == ord("\n")
    lines = int(np.count_nonzero(ends)) + int(np.count_nonzero(~ends[-1:]))
    if lines != columns:
        raise ShapeError(f"there are {lines} symbols for {columns} columns; they must be equal.")
    try:
        text = names.tobytes().decode("utf-8")
    except UnicodeDecodeError as failure:
        raise ProtocolError(
            f"The symbols are not UTF-8: byte {failure.start} is {names[failure.start]:#04x}.",
            Status.BAD_VALUE,
        ) from None
    return tuple(text.removesuffix("\n").split("\n"))


def row_weights(message: Message, rows: int) -> NDArray[Any] | None:
    """Return the weights of the rows, float64 or int64, or None where none came."""
    array = message.find(Role.WEIGHTS)
    if array is None:
        return None
    if array.dtype != np.int64:
        _check_floats(array, Role.WEIGHTS)
        array = array.astype(np.float64, copy=False)
    if array.shape != (rows,):
        raise ShapeError(
            f"the weights have the shape {array.shape} but there are {rows} rows; send one a row."
        )
    return np.require(array, requirements="A")


def portfolio_weights(message: Message, windows: int, columns: int) -> NDArray[np.float64] | None:
    """Return the weights of the symbols in a portfolio, one row of them or one a window, or None."""
    array = message.find(Role.WEIGHTS)
    if array is None:
        return None
    _check_floats(array, Role.WEIGHTS)
    if array.shape not in ((columns,), (windows, columns)):
        raise ShapeError(
            f"the weights have the shape {array.shape}; send ({columns},), one a column, or "
            f"({windows}, {columns}), a row for each window."
        )
    if not np.isfinite(array).all():
        raise InputError("the weights hold NaN or inf; send finite numbers, 0 for a symbol that is not held.")
    return np.require(array.astype(np.float64, copy=False), requirements="A")


def times(message: Message, rows: int) -> NDArray[np.int64] | None:
    """Return the times of the rows, int64 milliseconds that increase, or None where none came."""
    array = message.find(Role.TIMES)
    if array is None:
        return None
    if array.dtype != np.int64:
        raise ProtocolError(
            f"The array times is {array.dtype}; send int64, milliseconds of any one clock.",
            Status.UNSUPPORTED,
        )
    if array.shape != (rows,):
        raise ShapeError(f"the times have the shape {array.shape} but there are {rows} rows; send one a row.")
    moments = np.require(array, requirements="A")
    # compared and not subtracted: a difference may be past int64
    wrong = np.flatnonzero(moments[1:] <= moments[:-1])
    if wrong.size:
        row = int(wrong[0]) + 1
        raise InputError(
            f"the times must increase, but that of row {row} is {moments[row]} after {moments[row - 1]}; "
            "sort the rows and drop those of one time."
        )
    return moments


def answer(found: Result, message: Message) -> list[Array]:
    """Return the arrays of a reply; the symbols go back byte for byte as they came."""
    arrays = [Array(Role.RESULT, gapless(found.matrix))]
    if found.counts is not None:
        arrays.append(Array(Role.COUNTS, gapless(found.counts)))
    return arrays + echoed(message)


def echoed(message: Message) -> list[Array]:
    """Return the symbols of the request, for its reply."""
    names = message.find(Role.SYMBOLS)
    return [] if names is None else [Array(Role.SYMBOLS, names)]


def gapless(array: NDArray[Any]) -> NDArray[Any]:
    """Return `array` as the wire can carry it: without gaps, of one dimension at least."""
    array = np.atleast_1d(array)
    return array if array.flags.forc else np.ascontiguousarray(array)


def _present(message: Message, role: Role) -> NDArray[Any]:
    array = message.find(role)
    assert array is not None, "check_roles has seen it"  # noqa: S101 - for the type checker
    return array


def _check_floats(array: NDArray[Any], role: Role) -> None:
    if array.dtype.kind != "f":
        raise ProtocolError(
            f"The array {role.name.lower()} is {array.dtype}; send float32 or float64.", Status.UNSUPPORTED
        )


def _name(message: Message) -> str:
    return Operation(message.head.operation).name.lower()
