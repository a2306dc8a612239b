"""How a program of the client fails: the kinds of MtBridge/Errors.mqh, and what a probe prints of one."""

from __future__ import annotations

import numpy as np

from harness.programs import Run, Runner

ARGUMENT, TESTER, NOT_ALLOWED, NO_WORKER, NOT_WORKER, LOST, TIMEOUT, STOPPED, TOO_LARGE, REFUSED = range(
    1, 11
)
NUMBERS = np.arange(9.0)
ANSWER = NUMBERS.astype("<f8").tobytes()


def covariance(run: Runner, port: int, **settings: object) -> Run:
    return run("ClientProbe", **{"InpPort": port, "InpActions": "connect,covariance", **settings})


def failure(done: Run, action: str = "covariance") -> tuple[int, str]:
    """Kind and sentence of the error that an action gave."""
    kind, _, sentence = done.line(f"{action}: error").partition(" status 0: ")
    return int(kind), sentence
