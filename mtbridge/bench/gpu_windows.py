"""Rolling correlations in `mtbridge bench gpu`: whole matrices and triangles on the device, and reducers.

The history lies on the device; what each window needs to know of its columns is counted.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.bench.gpu_data import Case, Lines, RollingCorrelation, spread_over
from mtbridge.bench.gpu_device import ResidentDevice
from mtbridge.bench.gpu_trial import Trial
from mtbridge.compute.host_rolling import HostRolling
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.reduced import Largest, Reducer, reduced, reduced_on_host
from mtbridge.compute.reducers import LargestEigenvalue, MeanOffDiagonal, Pairs, QuadraticForm, TopPairs
from mtbridge.compute.sequence import Wanted
from mtbridge.compute.windows import Rolling
from mtbridge.errors import DeviceError

CHECKED_ANSWERS = 6
TOP = 10


class RollingTrial(Trial):
    """All matrices of a history, as they are or as packed triangles, into memory that several trials share.

    Parameters
    ----------
    target : buffer of ``case.written`` bytes or more
    copies : how many copies of the history there are
    """

    def __init__(
        self,
        device: ResidentDevice,
        engine: OpenCLEngine,
        case: RollingCorrelation,
        target: Any,
        copies: int,
    ) -> None:
        self._device, self._case, self._target = device, case, target
        wanted = Wanted("correlation", packed=len(case.shape) == 1, dtype=case.dtype)
        self._sequences = opened(engine, case, wanted, copies)

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        sequence = self._sequences[turn % len(self._sequences)]
        if poisoned and self._case.written:
            self._device.write_all(self._target, self._case.written)
        sequence.done = 0
        return self._device.spent(lambda: sequence.take(self._target, self._case.count)).whole

    def lines(self, some: Lines) -> NDArray[Any]:
        return self._device.lines(self._target, some, self._case.shape, self._case.dtype)


class FloorTrial(Trial):
    """One number, written to as many bytes as the answer of a case has."""

    def __init__(self, device: ResidentDevice, case: Case, target: Any) -> None:
        self._device, self._case, self._target = device, case, target

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        size = self._case.count * self._case.line_bytes
        return self._device.spent(lambda: self._device.write_all(self._target, size)).whole

    def lines(self, some: Lines) -> NDArray[Any]:
        return self._device.lines(self._target, some, self._case.shape, self._case.dtype)


class ReducedCorrelation(Case):
    """One number, or a few, of each window's matrix; an error is the distance from those of the host."""

    def __init__(self, whole: RollingCorrelation, reducer: Reducer[Any]) -> None:
        self.named, self.dtype, self.inputs = whole.named, np.dtype(np.float64), whole.inputs
        self.reducer, self.window, self.count = reducer, whole.window, whole.count
        # the largest eigenvalue of a correlation matrix is at most its size
        self.terms = whole.terms * whole.shape[0] * TOLERANCE.get(type(reducer), 1)
        self.plan = plan_of(whole)
        self.shape = self._on_host(np.zeros(1, np.int64)).shape[1:]

    def error(self, found: NDArray[Any], some: Lines) -> float:
        places = spread_over(len(some), CHECKED_ANSWERS)
        return float(np.abs(found[places] - self._on_host(some[places])).max())

    def _on_host(self, windows: Lines) -> NDArray[Any]:
        plan = Rolling(self.plan.first[windows], self.plan.last[windows])
        sequence = HostRolling(self.inputs[0], plan, self.reducer.wanted(Wanted("correlation")))
        return numbers(reduced_on_host(sequence, self.reducer))


class ReducerTrial(Trial):
    """What a reducer keeps of each window, brought to the host; the matrices stay on the device."""

    def __init__(
        self, device: ResidentDevice, engine: OpenCLEngine, case: ReducedCorrelation, copies: int
    ) -> None:
        self._device, self._case = device, case
        self._sequences = opened(engine, case, case.reducer.wanted(Wanted("correlation")), copies)
        self._answer: Any = None

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        sequence = self._sequences[turn % len(self._sequences)]
        sequence.done = 0

        def work() -> None:
            self._answer = reduced(sequence, self._case.reducer)

        return self._device.spent(work).whole

    def lines(self, some: Lines) -> NDArray[Any]:
        return numbers(self._answer)[some]


REDUCERS = ("mean", "pairs", "variance", "top pairs", "eigenvalue")
TOLERANCE: dict[type[Reducer[Any]], int] = {LargestEigenvalue: 1000}
"""How many times the rounding of a sum an answer may be off; an eigenvalue is found by steps."""


def reducer_of(name: str, symbols: int) -> Reducer[Any]:
    """Return one of REDUCERS for a history of `symbols` columns, two at least."""
    if name == "mean":
        return MeanOffDiagonal()
    if name == "pairs":
        return Pairs((0, 1), (symbols - 2, symbols - 1))
    if name == "variance":
        return QuadraticForm(np.full(symbols, 1 / symbols))
    if name == "top pairs":
        return TopPairs(min(TOP, symbols * (symbols - 1) // 2))
    return LargestEigenvalue()


def numbers(answer: Any) -> NDArray[Any]:
    """Return the numbers of what a reducer kept, one line a window."""
    return np.asarray(answer.values if isinstance(answer, Largest) else answer)


def plan_of(case: RollingCorrelation) -> Rolling:
    """Return the whole windows of a history; the early ones, which are shorter, are left out."""
    first = np.arange(case.count)
    return Rolling(first, first + case.window - 1)


def opened(
    engine: OpenCLEngine, case: RollingCorrelation | ReducedCorrelation, wanted: Wanted, copies: int
) -> list[Any]:
    """Return sequences over `copies` copies of the history."""
    if case.dtype.name not in engine.dtypes or "float64" not in engine.dtypes:
        raise DeviceError(f"{engine.device} has no float64, in which windows are summed")
    plan = case.plan if isinstance(case, ReducedCorrelation) else plan_of(case)
    return [engine.sequence(case.inputs[0], plan, wanted) for _ in range(copies)]
