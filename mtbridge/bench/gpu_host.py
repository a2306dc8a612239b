"""Covariances from array to array in `mtbridge bench gpu`: the clock of the host, and both copies counted.

Ordinary arrays are what a caller has; page-locked ones are for who computes often. Peers get the same.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.bench.gpu_data import Case, Lines
from mtbridge.bench.gpu_peers import contender, failures_named
from mtbridge.bench.gpu_trial import Contender, Trial
from mtbridge.compute import operations
from mtbridge.compute.opencl_engine import OpenCLEngine

if TYPE_CHECKING:
    from mtbridge.bench.gpu_device import ResidentDevice

NOTE = "array to array, wall time"
PINNED = f"{NOTE}; page-locked arrays"


class HostTrial(Trial):
    """Work from arrays of the host to an array of the host.

    Parameters
    ----------
    inputs : copies of the input, taken in turn
    work : takes one of them and returns the answer
    poison : called before a run whose answer is checked; makes NaN of the memory for it
    """

    def __init__(
        self,
        inputs: Sequence[Any],
        work: Callable[[Any], Any],
        poison: Callable[[bool], object] = bool,
    ) -> None:
        self._inputs, self._work, self._poison = inputs, work, poison
        self._answer: Any = None

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        X = self._inputs[turn % len(self._inputs)]
        self._answer = None
        self._poison(poisoned)
        start = time.perf_counter()
        self._answer = self._work(X)
        return time.perf_counter() - start

    def lines(self, some: Lines) -> NDArray[Any]:
        return np.asarray(self._answer)[some]


def straight_trial(device: ResidentDevice, engine: OpenCLEngine, case: Case, copies: int) -> HostTrial:
    """Return the covariance as `mtbridge.covariance` has it computed, of ordinary arrays."""
    (X,) = case.inputs

    def poison(wanted: bool) -> None:
        device.poisoning = wanted

    return HostTrial(
        [X.copy() for _ in range(copies)],
        lambda one: operations.covariance(one, engine=engine).matrix,
        poison,
    )


def pinned_trial(engine: OpenCLEngine, case: Case, copies: int) -> HostTrial:
    """Return the same of arrays that `empty_pinned` gave, into another one."""
    (X,) = case.inputs
    inputs = [engine.empty_pinned(X.shape, X.dtype) for _ in range(copies)]
    for one in inputs:
        one[...] = X
    out = engine.empty_pinned((case.count, case.count), X.dtype)
    return HostTrial(
        inputs,
        lambda one: operations.covariance(one, engine=engine, out=out).matrix,
        lambda wanted: out.fill(np.nan) if wanted else None,
    )


def torch_trial(torch: Any, case: Case, copies: int) -> HostTrial:
    """Return torch's covariance of ordinary arrays."""
    (X,) = case.inputs

    def work(one: Any) -> Any:
        with failures_named():
            return torch.cov(torch.from_numpy(one).cuda().T).cpu().numpy()

    return HostTrial([X.copy() for _ in range(copies)], work)


def torch_pinned_trial(torch: Any, case: Case, copies: int) -> HostTrial:
    """Return torch's covariance of page-locked tensors, into another one."""
    (X,) = case.inputs
    with failures_named():
        inputs = [torch.from_numpy(X.copy()).pin_memory() for _ in range(copies)]
        out = torch.empty((case.count, case.count), dtype=inputs[0].dtype).pin_memory()

    def work(one: Any) -> Any:
        with failures_named():
            out.copy_(torch.cov(one.to("cuda", non_blocking=True).T), non_blocking=True)
            torch.cuda.synchronize()
        return out.numpy()

    return HostTrial(inputs, work, lambda wanted: out.fill_(float("nan")) if wanted else None)


def peers_of_host(case: Case, packages: Sequence[str], copies: int) -> list[Contender]:
    """Return torch where it is one of `packages`, and numpy on this machine's processor."""
    found = []
    if "torch" in packages:
        found = [
            contender("torch", "torch", lambda torch: torch_trial(torch, case, copies), NOTE),
            contender("torch pinned", "torch", lambda torch: torch_pinned_trial(torch, case, copies), PINNED),
        ]
    (X,) = case.inputs
    processor = Contender(
        name="numpy",
        device=platform.processor() or platform.machine(),
        make=lambda: HostTrial([X], lambda one: np.cov(one, rowvar=False, dtype=one.dtype)),
        note="np.cov, wall time",
    )
    return [*found, processor]
