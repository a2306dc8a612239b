"""What every call of a client does: limits first, then the request, then a `Result` of the reply."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from mtbridge.client.connection import Connection
from mtbridge.errors import InputError, NoReplyError, OptionError, ProtocolError, ShapeError
from mtbridge.frame.options import refuse_no_flags
from mtbridge.matrix import Matrix, Result
from mtbridge.wire import DEFAULT_ENDPOINT, Array, Limits, Message, Operation, Role, Status, readable_bytes

# Up to this a request is sent without knowing the worker's limits, and a result is copied out of its frame.
_SMALL_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Ping:
    """What a worker tells about itself.

    Attributes
    ----------
    versions : first and last version of the protocol that it speaks
    limits : what it accepts
    operations : the numbers of the operations that it serves
    worker : its name and version
    engine, device : where it computes
    seconds : the round trip
    """

    versions: tuple[int, int]
    limits: Limits
    operations: tuple[int, ...]
    worker: str
    engine: str
    device: str
    seconds: float

    def __str__(self) -> str:
        return f"{self.worker}, {self.engine} on {self.device}"


class Calls:
    """One connection and the way of a request through it; `Client` has the operations."""

    def __init__(self, endpoint: str = DEFAULT_ENDPOINT, *, timeout: float = 30.0) -> None:
        if not (isinstance(timeout, (int, float)) and 0 < timeout < math.inf):
            raise OptionError(f"timeout is {timeout!r}; it must be a positive number of seconds.")
        self.endpoint = endpoint
        self.timeout = float(timeout)
        self._known: Ping | None = None
        self._connection = Connection(endpoint, self.timeout)

    @property
    def late_replies(self) -> int:
        """Replies that came after their call had given up, and were dropped."""
        return self._connection.late_replies

    def ping(self) -> Ping:
        """Return what the worker tells about itself.

        Raises
        ------
        NoReplyError
            If there is no worker, or it does not answer in time.
        """
        start = time.perf_counter()
        reply = self._call(Operation.PING)
        seconds = time.perf_counter() - start
        numbers, served, words = map(reply.find, (Role.RESULT, Role.COUNTS, Role.NAMES))
        if numbers is None or served is None or words is None or numbers.size < 6 or numbers.min() < 1:
            raise ProtocolError(f"The answer of {self.endpoint} to a ping is incomplete.", Status.MALFORMED)
        first, last, *allowed = map(int, numbers.ravel()[:6])
        lines = words.tobytes().decode("utf-8", errors="replace").split("\n")
        worker, engine, device = (*lines, "", "", "")[:3]
        self._known = Ping(
            versions=(first, last),
            limits=Limits(*allowed),
            operations=tuple(map(int, served.ravel())),
            worker=worker,
            engine=engine,
            device=device,
            seconds=seconds,
        )
        return self._known

    def close(self) -> None:
        """Close the connection; may be called twice."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.endpoint!r}, timeout={self.timeout:g})"

    def _compute(
        self,
        operation: Operation,
        arrays: list[Array],
        *,
        rows: int,
        symbols: tuple[str, ...] | None,
        full: bool = False,
        options: bytes = b"",
    ) -> Result:
        """Return the answer to a request; with `full` also who computed it."""
        return self._answered(operation, arrays, rows=rows, symbols=symbols, full=full, options=options)[0]

    def _answered(
        self,
        operation: Operation,
        arrays: list[Array],
        *,
        rows: int,
        symbols: tuple[str, ...] | None,
        full: bool = False,
        options: bytes = b"",
    ) -> tuple[Result, Message]:
        """Return the answer to a request, and the reply for what else it holds."""
        refuse_no_flags(full=full)
        if full and self._known is None:
            self.ping()
        self._check_limits(arrays)
        start = time.perf_counter()
        reply = self._call(operation, arrays, options)
        seconds = time.perf_counter() - start
        matrix, counts = reply.find(Role.RESULT), reply.find(Role.COUNTS)
        if matrix is None:
            raise ProtocolError(f"The answer of {self.endpoint} has no result.", Status.MALFORMED)
        result = Result(
            matrix=owned(matrix),
            symbols=symbols,
            counts=None if counts is None else owned(counts),
            rows=rows,
            engine=self._known.engine if self._known else "",
            device=self._known.device if self._known else "",
            seconds=seconds,
            notes=(reply.text,) if reply.text else (),
        )
        return result, reply

    def _call(self, operation: Operation, arrays: Sequence[Array] = (), options: bytes = b"") -> Message:
        try:
            return self._connection.call(operation, arrays, options)
        except NoReplyError:
            # who answers next may be another worker, with other limits
            self._known = None
            raise

    def _check_limits(self, arrays: list[Array]) -> None:
        """Refuse what the worker would: ZeroMQ cuts the connection of a frame too large without a word."""
        if self._known is None:
            if sum(array.data.nbytes for array in arrays) <= _SMALL_BYTES:
                return
            self.ping()
        assert self._known is not None  # noqa: S101 - for the type checker
        limits = self._known.limits
        for array in arrays:
            name, data = array.role.name.lower(), array.data
            if data.nbytes > limits.frame_bytes:
                raise InputError(
                    f"{name} takes {readable_bytes(data.nbytes)}, but the worker at {self.endpoint} accepts "
                    f"{readable_bytes(limits.frame_bytes)} at most; send fewer rows or columns."
                )
            if data.ndim == 2 and (data.shape[0] > limits.rows or data.shape[1] > limits.columns):
                raise InputError(
                    f"{name} is {data.shape[0]}x{data.shape[1]}, but the worker at {self.endpoint} accepts "
                    f"{limits.rows} rows and {limits.columns} columns at most; send less at a time."
                )


def sendable(matrix: Matrix, name: str) -> Matrix:
    """Return `matrix` without gaps in memory, copied only where it has some."""
    if 0 in matrix.shape:
        raise ShapeError(
            f"{name} has {matrix.shape[0]} rows and {matrix.shape[1]} columns; there is nothing to compute."
        )
    return matrix if matrix.flags.forc else np.ascontiguousarray(matrix)


def encoded(symbols: tuple[str, ...], columns: int) -> NDArray[np.uint8]:
    """Return names as the wire has them: UTF-8, one a line."""
    if len(symbols) != columns:
        raise ShapeError(f"there are {len(symbols)} symbols for {columns} columns; they must be equal.")
    for symbol in symbols:
        if "\n" in symbol or not symbol:
            raise OptionError(f"The symbol {symbol!r} cannot be sent; a name is one line and not empty.")
    try:
        return np.frombuffer("\n".join(symbols).encode(), np.uint8)
    except UnicodeEncodeError as failure:
        raise OptionError(f"The symbols cannot be written as UTF-8: {failure.reason}.") from None


def owned(array: NDArray[Any]) -> NDArray[Any]:
    """Return a result that the caller may keep and change; a small one must not pin its whole frame."""
    if array.nbytes <= _SMALL_BYTES or not array.flags.aligned or not array.flags.writeable:
        return array.copy(order="K")
    return array
