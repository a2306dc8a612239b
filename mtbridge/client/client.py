"""Matrices in, matrices out: what a user of a worker calls."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray

from mtbridge.client.connection import Connection
from mtbridge.errors import InputError, NoReplyError, OptionError, ProtocolError, ShapeError
from mtbridge.frame import factors, names, product_table, square, table, without_level
from mtbridge.matrix import Matrix, Result
from mtbridge.wire import (
    DEFAULT_ENDPOINT,
    Array,
    CovarianceOptions,
    Limits,
    Message,
    Operation,
    Role,
    Status,
    encode_options,
    readable_bytes,
)

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


class Client:
    """Sends matrices to a worker and returns what it answers. For one thread at a time.

    Each call waits at most `timeout` seconds; the first large one as long again, since it asks for the
    worker's limits before it sends. A call after a failed one works again as soon as there is a
    worker: nothing has to be made anew.

    Parameters
    ----------
    endpoint : where the worker listens
    timeout : seconds that a call may take

    Raises
    ------
    EndpointError
        If `endpoint` is no address.
    OptionError
        If `timeout` is not a positive number of seconds.
    """

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

    @overload
    def multiply(self, A: Any, B: Any, *, full: Literal[True]) -> Result: ...
    @overload
    def multiply(self, A: Any, B: Any, *, full: bool = False) -> Any: ...
    def multiply(self, A: Any, B: Any, *, full: bool = False) -> Any:
        """Return the product of `A` and `B`.

        Parameters
        ----------
        A : float array or DataFrame of shape (rows, inner)
        B : float array or DataFrame of shape (inner, columns)
            Two float32 matrices give a float32 product, all else float64.
        full : return a `Result` with engine, device and the seconds of the round trip

        Returns
        -------
        float array of shape (rows, columns)
            NaN as in IEEE arithmetic. A DataFrame if `A` or `B` is one, with the labels that there are.

        Raises
        ------
        ShapeError
            If the inner labels of two DataFrames differ.
        RemoteError
            If the worker refuses: its `status` and its sentence say why.
        NoReplyError
            If there is no worker, or it does not answer in time.
        """
        left, right = factors(A, B)
        arrays = [Array(Role.A, _sendable(left, "A")), Array(Role.B, _sendable(right, "B"))]
        found = self._compute(Operation.MULTIPLY, arrays, rows=len(left), symbols=None, full=full)
        return found if full else product_table(found.matrix, A, B)

    @overload
    def gram(self, X: Any, *, full: Literal[True]) -> Result: ...
    @overload
    def gram(self, X: Any, *, full: bool = False) -> Any: ...
    def gram(self, X: Any, *, full: bool = False) -> Any:
        """Return X'X, of shape (columns, columns), for `X` of shape (rows, columns); not centred.

        Symmetric bit for bit; in the dtype of `X`; NaN as in IEEE arithmetic. Else as `multiply`.
        """
        return self._of_columns(Operation.GRAM, X, None, full=full)

    @overload
    def covariance(
        self, X: Any, *, ddof: int = 1, symbols: Sequence[str] | None = None, full: Literal[True]
    ) -> Result: ...
    @overload
    def covariance(
        self, X: Any, *, ddof: int = 1, symbols: Sequence[str] | None = None, full: bool = False
    ) -> Any: ...
    def covariance(
        self, X: Any, *, ddof: int = 1, symbols: Sequence[str] | None = None, full: bool = False
    ) -> Any:
        """Return the covariance matrix of the columns of `X`.

        Parameters
        ----------
        X : float array or DataFrame of shape (rows, columns)
            Rows are bars, the oldest first. NaN is refused.
        ddof : taken from the rows in the divisor; 0 or more
        symbols : names of the columns, for messages and the `Result`; a DataFrame brings its own
        full : return a `Result` with counts, engine, device and the seconds of the round trip

        Returns
        -------
        float array of shape (columns, columns)
            In the dtype of `X`; NaN if ``rows <= ddof``. A DataFrame, labelled on both sides, if `X` is one.

        Raises
        ------
        RemoteError
            If the worker refuses: its `status` and its sentence say why.
        NoReplyError
            If there is no worker, or it does not answer in time.
        """
        if isinstance(ddof, bool) or not isinstance(ddof, (int, np.integer)):
            raise OptionError(f"ddof is {ddof!r}; it must be a whole number, 1 is usual.")
        options = encode_options(CovarianceOptions(ddof=int(ddof)))
        return self._of_columns(Operation.COVARIANCE, X, symbols, full=full, options=options)

    @overload
    def correlation(self, X: Any, *, symbols: Sequence[str] | None = None, full: Literal[True]) -> Result: ...
    @overload
    def correlation(self, X: Any, *, symbols: Sequence[str] | None = None, full: bool = False) -> Any: ...
    def correlation(self, X: Any, *, symbols: Sequence[str] | None = None, full: bool = False) -> Any:
        """Return the correlation matrix of the columns of `X`; NaN for a column that never changes.

        Parameters, result and errors as for `covariance`.
        """
        return self._of_columns(Operation.CORRELATION, X, symbols, full=full)

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
        return f"Client({self.endpoint!r}, timeout={self.timeout:g})"

    def _of_columns(
        self,
        operation: Operation,
        X: Any,
        symbols: Sequence[str] | None,
        *,
        full: bool,
        options: bytes = b"",
    ) -> Any:
        matrix, labels = table(X if operation is Operation.GRAM else without_level(X))
        arrays = [Array(Role.DATA, _sendable(matrix, "data"))]
        known = names(labels) if symbols is None else tuple(symbols)
        if known is not None and operation is not Operation.GRAM:
            arrays.append(Array(Role.SYMBOLS, _encoded(known, matrix.shape[1])))
        found = self._compute(operation, arrays, rows=len(matrix), symbols=known, full=full, options=options)
        return found if full else square(found, labels)

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
        if full and self._known is None:
            self.ping()
        self._check_limits(arrays)
        start = time.perf_counter()
        reply = self._call(operation, arrays, options)
        seconds = time.perf_counter() - start
        matrix, counts = reply.find(Role.RESULT), reply.find(Role.COUNTS)
        if matrix is None:
            raise ProtocolError(f"The answer of {self.endpoint} has no result.", Status.MALFORMED)
        return Result(
            matrix=_owned(matrix),
            symbols=symbols,
            counts=None if counts is None else _owned(counts),
            rows=rows,
            engine=self._known.engine if self._known else "",
            device=self._known.device if self._known else "",
            seconds=seconds,
        )

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


def _sendable(matrix: Matrix, name: str) -> Matrix:
    """Return `matrix` without gaps in memory, copied only where it has some."""
    if 0 in matrix.shape:
        raise ShapeError(
            f"{name} has {matrix.shape[0]} rows and {matrix.shape[1]} columns; there is nothing to compute."
        )
    return matrix if matrix.flags.forc else np.ascontiguousarray(matrix)


def _encoded(symbols: tuple[str, ...], columns: int) -> NDArray[np.uint8]:
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


def _owned(array: NDArray[Any]) -> NDArray[Any]:
    """Return a result that the caller may keep and change; a small one must not pin its whole frame."""
    if array.nbytes <= _SMALL_BYTES or not array.flags.aligned or not array.flags.writeable:
        return array.copy(order="K")
    return array
