"""What the tests of the service share: a history with gaps, requests about it, and their replies."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd

from mtbridge.compute import Engine
from mtbridge.service import Service
from mtbridge.wire import Array, Kind, Message, Operation, Role, encode, request

ROLLING, EXPANDING, EWM, LAGGED = Operation.ROLLING, Operation.EXPANDING, Operation.EWM, Operation.LAGGED
COVARIANCE, CORRELATION = Operation.COVARIANCE, Operation.CORRELATION
RANDOM = np.random.default_rng(7)
X = RANDOM.standard_normal((40, 4)).cumsum(axis=0)
X[RANDOM.random(X.shape) < 0.1] = np.nan
FRAME = pd.DataFrame(X)
DATA = Array(Role.DATA, X)
TIMES = 1767225600000 + np.arange(40) * 60_000 + RANDOM.integers(0, 40_000, 40)


class Idle(Engine):
    """Any use of it would be an error."""

    name = device = "idle"

    def _product(self, A: Any, B: Any) -> Any:
        raise AssertionError

    def _gram(self, X: Any, *, wide: bool) -> Any:
        raise AssertionError

    def sequence(self, X: Any, plan: Any, wanted: Any) -> Any:
        raise AssertionError

    def lagged_moments(self, X: Any, lags: Any, *, dtype: Any = None) -> Any:
        raise AssertionError


def ask(service: Service, operation: Operation, options: Any, *arrays: Array) -> Message:
    frame = options if isinstance(options, bytes) else json.dumps(options).encode()
    reply = service.answer(request(operation, 99, arrays or [DATA], options=frame))
    encode(reply)
    return reply


def found(
    service: Service, operation: Operation, options: Any, *arrays: Array, role: Role = Role.RESULT
) -> Any:
    reply = ask(service, operation, options, *arrays)
    assert reply.head.kind is Kind.RESULT, reply.text
    array = reply.find(role)
    assert array is not None
    return array


def refusal(service: Service, operation: Operation, options: Any, *arrays: Array) -> tuple[int, str]:
    reply = ask(service, operation, options, *arrays)
    assert reply.head.kind is Kind.ERROR, reply
    assert reply.text.endswith(".")
    return reply.head.status, reply.text
