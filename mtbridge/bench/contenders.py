"""What a benchmark of matrices measures: a plan of cases, contenders in each, and rows of one shape."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from mtbridge.bench.measure import ROUNDS, interleaved, spread
from mtbridge.compute import Engine, open_engine
from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.serial import SerialEngine
from mtbridge.compute.several import SeveralEngine
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix

Row = dict[str, Any]
Say = Callable[[str], None]
Shape = tuple[int, ...]

# The serial loop is the baseline; past the work of such a square it would take longer than all else together.
LARGEST_COMPILED, LARGEST_PLAIN = 1000, 128
# Rows of the result that are compared with a float64 (float32 work) or long double (float64 work) reference
CHECKED_ROWS = 16


class Plan(msgspec.Struct, frozen=True):
    """What to measure.

    Attributes
    ----------
    operation : "gram", "multiply" or "covariance"
    shapes : (rows, columns) each, for multiply (rows, inner, columns)
    device : which OpenCL device
    peers : those of `PEERS` to put beside the engines
    rounds : windows of a contender
    """

    operation: Literal["gram", "multiply", "covariance"]
    shapes: tuple[Shape, ...]
    device: str | None = None
    peers: tuple[str, ...] = ()
    rounds: int = ROUNDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One row of a case.

    Attributes
    ----------
    threads : None where it is not known
    work : returns the answer, as an array or a DataFrame; None if it cannot run, with the reason in `note`
    triangle : of the answer, only the upper triangle counts
    """

    name: str
    device: str = ""
    threads: int | None = 1
    work: Callable[[], Any] | None = None
    note: str = ""
    triangle: bool = False


class Engines:
    """The engines of this machine, opened once for all cases; `missing` says why one is not there."""

    def __init__(self, device: str | None) -> None:
        self.missing: dict[str, str] = {}
        self._open: dict[str, Engine] = {}
        self._stack = ExitStack()
        for name in ("opencl", "numpy", "serial"):
            try:
                self._open[name] = self._stack.enter_context(open_engine(name, device=device))
            except DeviceError as error:
                self.missing[name] = str(error)

    def __enter__(self) -> Engines:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def opencl(self) -> OpenCLEngine | None:
        engine = first_of(self._open.get("opencl"))
        return engine if isinstance(engine, OpenCLEngine) else None

    def contender(self, name: str, multiplications: int, work: Callable[[Engine], Any]) -> Contender:
        """Return the row of engine `name`, whose answer is that of `work`."""
        engine = self._open.get(name)
        if engine is None:
            return Contender(name=name, note=self.missing[name])
        if isinstance(engine, SerialEngine):
            largest = LARGEST_COMPILED if engine.compiled else LARGEST_PLAIN
            if multiplications > largest**3:
                note = f"not run past the work of N = {largest} ({engine.device})"
                return Contender(name=name, note=note)
        return Contender(
            name=name, device=engine.device, threads=threads_of(engine), work=lambda: work(engine)
        )


def threads_of(engine: Engine) -> int:
    """Return how many threads of this machine the engine computes with."""
    first = first_of(engine)
    if isinstance(first, OpenCLEngine):
        return first.host_threads
    return 1 if isinstance(engine, SerialEngine) else blas_threads()


def first_of(engine: Engine | None) -> Engine | None:
    """Return the engine of the first device where `engine` has several, else `engine` itself."""
    return engine.first if isinstance(engine, SeveralEngine) else engine


def blas_threads() -> int:
    """Return how many threads numpy's BLAS takes."""
    try:
        from threadpoolctl import threadpool_info
    except ImportError:
        return os.cpu_count() or 1
    return max((pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"), default=1)


def measured(
    case: str,
    dtype: str,
    contenders: Sequence[Contender],
    *,
    flops: float | None,
    error: Callable[[Matrix, NDArray[np.int64]], Matrix],
    versus: tuple[str, ...],
    rounds: int,
    read: Callable[[Any], NDArray[Any]] = np.asarray,
) -> list[Row]:
    """Run all contenders of a case beside each other and return a row for each.

    Parameters
    ----------
    flops : floating-point operations, None where they are not what the time goes into
    error : of some rows of an answer, and their numbers, the errors as shares of what they may be a share of
    versus : contenders that others are compared with
    read : makes the array whose rows are compared of an answer
    """
    works: dict[str, Callable[[], Any]] = {}
    errors: dict[str, float] = {}
    notes = {contender.name: contender.note for contender in contenders}
    for one in contenders:
        if one.work is None:
            continue
        try:
            answer = read(one.work())
        except (DeviceError, MemoryError) as fault:
            notes[one.name] = str(fault)
            continue
        some = np.linspace(0, len(answer) - 1, min(CHECKED_ROWS, len(answer))).astype(np.int64)
        found = error(answer[some], some)
        if one.triangle:
            found = found[np.arange(answer.shape[1]) >= some[:, np.newaxis]]
        errors[one.name] = float(found.max())
        works[one.name] = one.work
    seconds = interleaved(works, rounds=rounds)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    rows = []
    for one in contenders:
        ran = one.name in medians
        rows.append(
            {
                "case": case,
                "dtype": dtype,
                "contender": one.name,
                "device": one.device,
                "threads": one.threads,
                "median_s": medians[one.name] if ran else None,
                "spread_s": spread(seconds[one.name]) if ran else None,
                "gflops": flops / medians[one.name] / 1e9 if ran and flops else None,
                "error": errors.get(one.name),
                "note": notes[one.name],
                "versus": {
                    peer: medians[peer] / medians[one.name]
                    for peer in versus
                    if ran and peer != one.name and peer in medians
                },
            }
        )
    return rows


def normal(shape: tuple[int, int], dtype: str, *, seed: int) -> Matrix:
    """Return standard normal numbers, C-ordered, on a boundary that suits the vectors of every contender."""
    array = aligned_empty(shape, np.dtype(dtype))
    array[...] = np.random.default_rng(seed).standard_normal(shape)
    return array


def wider(dtype: np.dtype[Any]) -> type[np.floating[Any]]:
    """Return the type in which a reference for `dtype` is computed."""
    return np.float64 if dtype == np.float32 else np.longdouble
