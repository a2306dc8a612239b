"""Covariances on every card of a kind in `mtbridge bench gpu`: one of them alone, and all that share.

By the clock of the host, since cards have a clock each: from the call until the last of them is done. The
matrix lies on all of them, and each keeps its part of the answer; from array to array both copies count.

To be imported after `devices.load`, as everything that imports pyopencl.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.bench.gpu_cases import Named
from mtbridge.bench.gpu_data import Case, Lines
from mtbridge.bench.gpu_device import write_all
from mtbridge.bench.gpu_families import SMALL_GROUP
from mtbridge.bench.gpu_host import NOTE, HostTrial
from mtbridge.bench.gpu_trial import Contender, Trial
from mtbridge.compute import Engine, devices, operations
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.several import SeveralEngine
from mtbridge.compute.shared_matrix import SharedAnswer, SharedMatrix

OPERATION = "several"
ONE, ALL, BROUGHT = "one", "all", "array to array"


class Cards:
    """The devices of one kind, opened when they are needed.

    Parameters
    ----------
    key : of the devices (`Verdict.key`)
    """

    def __init__(self, key: str) -> None:
        self._key = key
        self._engines: dict[int, OpenCLEngine] = {}

    def lacking(self, named: Named) -> str:
        """Return why a case cannot run, or nothing."""
        if named.operation != OPERATION or len(numbers_of(self._key)) > 1:
            return ""
        return "it needs two devices of one kind or more, and there is one"

    @property
    def engines(self) -> dict[int, OpenCLEngine]:
        """The engines of all devices, by their numbers."""
        if not self._engines:
            with ExitStack() as opened:
                found = {number: opened.enter_context(opened_at(number)) for number in numbers_of(self._key)}
                opened.pop_all()
            self._engines = found
        return self._engines

    def contenders(self, case: Case, copies: int) -> list[Contender]:
        """Return the rows of a case: of one device and of all, resident and from array to array."""
        engines = self.engines
        number, first = next(iter(engines.items()))
        every, usual = SeveralEngine(engines, least=1), SeveralEngine(engines)
        held: list[SharedMatrix] = []
        lines: list[NDArray[Any]] = []

        def there(engine: SeveralEngine) -> Trial:
            if not held:
                # of a matrix, what an engine of several devices uploads is a SharedMatrix
                uploaded: list[Any] = [every.upload(*case.inputs) for _ in range(copies)]
                held.extend(uploaded)
            # what all of them have, the first has too
            matrices = held if engine is every else [SharedMatrix.of([X.copies[0]]) for X in held]
            return SharedTrial(engine, matrices, lines)

        def brought(engine: Engine) -> Trial:
            return HostTrial(case.inputs, lambda X: operations.covariance(X, engine=engine).matrix)

        # what copies take is no share of a ceiling
        copied = copy(case)
        copied.flops = None
        alone, several = "1 device", f"{len(engines)} devices"
        one = Contender(
            name=ONE,
            device=first.device,
            make=lambda: there(SeveralEngine({number: first}, least=1)),
            note=f"{alone}, resident, wall time",
            case=case,
        )
        every_one = Contender(
            name=ALL,
            device=every.device,
            make=lambda: there(every),
            note=f"{several}, resident, wall time",
            case=case,
            against=(ONE,),
        )
        return [
            one,
            every_one,
            replace(
                one,
                name=f"{ONE}, {BROUGHT}",
                make=lambda: brought(first),
                note=f"{alone}, {NOTE}",
                case=copied,
            ),
            replace(
                every_one,
                name=f"{ALL}, {BROUGHT}",
                make=lambda: brought(usual),
                note=f"{several}, {NOTE}",
                case=copied,
                against=(f"{ONE}, {BROUGHT}",),
            ),
        ]

    def release(self) -> None:
        """Give back the memory that is kept for repeated calls."""
        for engine in self._engines.values():
            engine.kernels_device.release_kept()

    def close(self) -> None:
        """Close all that were opened; may be called twice."""
        engines, self._engines = self._engines, {}
        for engine in engines.values():
            engine.close()


class SharedTrial(Trial):
    """A covariance matrix of which each device keeps a part, in the same memory each time.

    Parameters
    ----------
    matrices : copies of the input, taken in turn
    compared : the lines that the first of the trials that share it gave; others must give the same bits
    """

    def __init__(
        self, engine: SeveralEngine, matrices: Sequence[SharedMatrix], compared: list[NDArray[Any]]
    ) -> None:
        self._engine, self._matrices, self._compared = engine, matrices, compared
        self._answer: SharedAnswer | None = None

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        X = self._matrices[turn % len(self._matrices)]
        if poisoned:
            answer = self._engine.covariance_on_device(X)
            for part in answer.parts:
                write_all(part.matrix.device, part.matrix.buffer, part.matrix.nbytes)
            self._answer = answer
            self._engine.finish()
        start = time.perf_counter()
        self._answer = self._engine.covariance_on_device(X, out=self._answer)
        self._engine.finish()
        return time.perf_counter() - start

    def lines(self, some: Lines) -> NDArray[Any]:
        found = self._engine.download(self._answer)[some] if self._answer else np.empty(0)
        if not self._compared:
            self._compared.append(found)
        if self._compared[0].tobytes() != found.tobytes():
            raise ArithmeticError("wrong: its bits are not those of one device")
        return found


def numbers_of(key: str) -> list[int]:
    """Return the numbers of the devices that work and have this key."""
    return [number for number, one in enumerate(devices.survey().verdicts) if one.ok and one.key == key]


def opened_at(number: int) -> OpenCLEngine:
    """Open the engine on the device of this number; of a processor with a card's kernels."""
    verdict = devices.choose(str(number))
    return open_opencl(str(number), tiled=SMALL_GROUP if verdict.kind == "cpu" else 0)
