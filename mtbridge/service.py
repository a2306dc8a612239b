"""A request in, a reply out: what the worker does with a message, with no socket in sight.

Everything that a request can get wrong ends here as an error reply with a stable status. Nothing a
client sends may raise out of `answer`, and no reply carries a traceback.
"""

from __future__ import annotations

import logging
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

import mtbridge
from mtbridge.compute import Engine, operations
from mtbridge.errors import (
    DeviceError,
    InputError,
    MissingValueError,
    MtbridgeError,
    OptionError,
    ProtocolError,
    ShapeError,
)
from mtbridge.matrix import Matrix, Result
from mtbridge.wire import (
    VERSION,
    Array,
    CovarianceOptions,
    Kind,
    Limits,
    Message,
    Operation,
    Role,
    Status,
    decode_options,
    error,
    result,
)

log = logging.getLogger(__name__)

# Which arrays an operation needs, and which it may have besides.
_ROLES: Final[dict[int, tuple[tuple[Role, ...], tuple[Role, ...]]]] = {
    Operation.PING: ((), ()),
    Operation.MULTIPLY: ((Role.A, Role.B), ()),
    Operation.GRAM: ((Role.DATA,), ()),
    Operation.COVARIANCE: ((Role.DATA,), (Role.SYMBOLS,)),
    Operation.CORRELATION: ((Role.DATA,), (Role.SYMBOLS,)),
}

# The first that fits names the status, so a subclass stands before its base.
_STATUSES: Final[tuple[tuple[type[Exception], Status], ...]] = (
    (ShapeError, Status.BAD_SHAPE),
    (MissingValueError, Status.BAD_VALUE),
    (OptionError, Status.BAD_OPTIONS),
    (InputError, Status.BAD_VALUE),
    (DeviceError, Status.DEVICE),
    (MemoryError, Status.TOO_LARGE),
)


class Service:
    """Answers requests with one engine; one thread at a time, as the engine.

    Parameters
    ----------
    engine : where it is computed; the caller closes it
    limits : what is accepted, and told to clients by `ping`
    """

    def __init__(self, engine: Engine, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.description = f"mtbridge {mtbridge.__version__}, {engine.name} on {engine.device}"
        self._engine = engine
        names = f"mtbridge {mtbridge.__version__}\n{engine.name}\n{engine.device}"
        allowed = self.limits
        self._pong = (
            Array(
                Role.RESULT,
                np.array(
                    [VERSION, VERSION, allowed.frame_bytes, allowed.arrays, allowed.rows, allowed.columns],
                    np.int64,
                ),
            ),
            Array(Role.COUNTS, np.array(list(Operation), np.int64)),
            Array(Role.NAMES, np.frombuffer(names.encode(), np.uint8)),
        )

    def answer(self, message: Message) -> Message:
        """Return the one reply to `message`: a result, or an error with its status.

        A `ping` does not touch the engine, so it may be answered by another thread meanwhile.
        """
        try:
            return self._answer(message)
        except Exception as failure:
            return refuse(message.head.request, message.head.operation, failure)

    def _answer(self, message: Message) -> Message:
        head = message.head
        if head.kind is not Kind.REQUEST:
            raise ProtocolError(
                f"A {head.kind.name.lower()} is nothing to send to a worker; send a request.",
                Status.UNSUPPORTED,
            )
        _check_roles(message)
        options = decode_options(head.operation, message.options)
        if head.operation == Operation.PING:
            return result(head, self._pong, text=self.description)
        if head.operation == Operation.MULTIPLY:
            A, B = _matrix(message, Role.A), _matrix(message, Role.B)
            _check_factors(A, B)
            self.limits.check_result(len(A), B.shape[1], A.itemsize)
            return result(head, _arrays(operations.multiply(A, B, engine=self._engine)))
        X = _matrix(message, Role.DATA)
        columns = X.shape[1]
        if head.operation == Operation.GRAM:
            self.limits.check_result(columns, columns, X.itemsize)
            return result(head, _arrays(operations.gram(X, engine=self._engine)))
        # the counts come back too, and take 8 bytes an element
        self.limits.check_result(columns, columns, 8)
        names = message.find(Role.SYMBOLS)
        symbols = None if names is None else _symbols(names, columns)
        if isinstance(options, CovarianceOptions):
            found = operations.covariance(X, engine=self._engine, ddof=options.ddof, symbols=symbols)
        else:
            found = operations.correlation(X, engine=self._engine, symbols=symbols)
        return result(head, _arrays(found, names))


def refuse(request: int, operation: int, failure: Exception) -> Message:
    """Return the error reply for `failure`; of one not foreseen it tells the type, the log the rest."""
    if isinstance(failure, ProtocolError):
        return error(request, operation, failure.status, str(failure))
    for kind, status in _STATUSES:
        if isinstance(failure, kind):
            text = str(failure)
            if isinstance(failure, MemoryError):
                text = "The worker has too little memory for this request; send fewer rows or columns."
            elif not isinstance(failure, MtbridgeError):
                text = f"The worker could not answer ({type(failure).__name__})."
            return error(request, operation, status, text)
    log.error("request #%d, operation %d failed", request, operation, exc_info=failure)
    return error(
        request,
        operation,
        Status.INTERNAL,
        f"The worker failed on this request ({type(failure).__name__}); its log says more.",
    )


def _check_roles(message: Message) -> None:
    required, optional = _ROLES[message.head.operation]
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


def _name(message: Message) -> str:
    return Operation(message.head.operation).name.lower()


def _matrix(message: Message, role: Role) -> Matrix:
    """Return the matrix with this role, copied once where its frame lies at an odd address."""
    array = message.find(role)
    assert array is not None, "_check_roles has seen it"  # noqa: S101 - for the type checker
    name = role.name.lower()
    if array.dtype.kind != "f":
        raise ProtocolError(
            f"The array {name} is {array.dtype}; send float32 or float64.", Status.UNSUPPORTED
        )
    if array.ndim != 2:
        raise ShapeError(f"The array {name} has {array.ndim} dimensions; send a matrix, rows x columns.")
    return np.require(array, requirements="A")


def _check_factors(A: Matrix, B: Matrix) -> None:
    """Refuse factors of two types before the size of their product is worked out."""
    if A.dtype != B.dtype:
        raise ProtocolError(f"a is {A.dtype} but b is {B.dtype}; send both in one dtype.", Status.UNSUPPORTED)
    if A.shape[1] != B.shape[0]:
        raise ShapeError(f"a has {A.shape[1]} columns but b has {B.shape[0]} rows; they must be equal.")


def _symbols(names: NDArray[Any], columns: int) -> tuple[str, ...]:
    """Return the names of the columns: UTF-8, one a line, a last line end allowed."""
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


def _arrays(found: Result, names: NDArray[Any] | None = None) -> list[Array]:
    """Return the arrays of a reply; the symbols go back byte for byte as they came."""
    arrays = [Array(Role.RESULT, _gapless(found.matrix))]
    if found.counts is not None:
        arrays.append(Array(Role.COUNTS, _gapless(found.counts)))
    if names is not None:
        arrays.append(Array(Role.SYMBOLS, names))
    return arrays


def _gapless(array: NDArray[Any]) -> NDArray[Any]:
    return array if array.flags.forc else np.ascontiguousarray(array)
