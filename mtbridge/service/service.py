"""`Service`: which operation answers a request, and what every refusal looks like."""

from __future__ import annotations

import logging
from typing import Final

import numpy as np

import mtbridge
from mtbridge.compute import Engine
from mtbridge.errors import (
    DeviceError,
    InputError,
    MissingValueError,
    MtbridgeError,
    OptionError,
    ProtocolError,
    ShapeError,
)
from mtbridge.service import matrices, moving
from mtbridge.service.arrays import check_roles
from mtbridge.wire import (
    VERSION,
    Array,
    CorrelationOptions,
    CovarianceOptions,
    Kind,
    LaggedOptions,
    Limits,
    Message,
    MovingOptions,
    Operation,
    Role,
    Status,
    decode_options,
    error,
    result,
)

log = logging.getLogger(__name__)

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
        check_roles(message)
        options = decode_options(head.operation, message.options)
        if head.operation == Operation.PING:
            return result(head, self._pong, text=self.description)
        engine, limits = self._engine, self.limits
        text = ""
        if isinstance(options, MovingOptions):
            arrays, text = moving.answer(message, options, engine, limits)
        elif isinstance(options, LaggedOptions):
            arrays = matrices.lagged(message, options, engine, limits)
        elif isinstance(options, CovarianceOptions | CorrelationOptions):
            arrays = matrices.covariance(message, options, engine, limits)
        elif head.operation == Operation.MULTIPLY:
            arrays = matrices.multiply(message, engine, limits)
        else:
            arrays = matrices.gram(message, engine, limits)
        return result(head, arrays, text=text)


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
