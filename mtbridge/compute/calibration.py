"""How long numpy and OpenCL take on this machine: measured once, kept in the cache folder.

Four shapes are timed. Between and beyond them the time of a call is a fixed part, a part for each element
that is read or written, and a part for each multiplication. That need not be exact: where the two engines
come near each other, either will do.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np

from mtbridge.compute.embedded import cache_folder, writable_cache
from mtbridge.compute.engine import Engine
from mtbridge.compute.tuned import kept_sets
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES
from mtbridge.sources import data_folder, kernels_hash

OPERATIONS = ("multiply", "gram", "moments")
SHAPES = ((60, 50), (300, 300), (20000, 50), (1000, 1000))
"""Rows and columns of what is timed, by growing work: a small one, a middle one, a tall one, a large one."""

ROUNDS = 2
RUNS = 2
RUNS_SECONDS = 0.015
"""At least so many runs, and as many as fit into so much time, of each shape in each round."""

SLOW_SECONDS = 0.02
"""Where a run takes longer, larger shapes are left out: their times are in proportion to the work."""

PAUSE_SECONDS = 0.05
ROUNDING = 1e-12
THREAD_VARIABLES = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS")

Shape: TypeAlias = tuple[int, int, int]
"""Rows, inner size and columns of a product; X'X of (rows, columns) is (columns, rows, columns)."""

Seconds = Annotated[float, msgspec.Meta(ge=0, le=3600)]


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a calibration is good for; where anything of it changes, another one is made.

    Attributes
    ----------
    device : the device's key, with its platform and driver
    kernels : hash of the kernels
    settings : hash of the tuned settings, shipped and found here, that they are built with
    blas : numpy's version, its BLAS, and the variables that tell that how many threads to start
    processors : how many this process may use
    """

    device: str
    kernels: str
    settings: str
    blas: str
    processors: int


class Cost(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Seconds of a call: `call`, and `element` and `product` for each of them (see `extent`)."""

    call: Seconds
    element: Seconds
    product: Seconds

    def seconds(self, operation: str, shape: Shape) -> float:
        elements, products = extent(operation, shape)
        return self.call + self.element * elements + self.product * products


class Calibration(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The costs of each "engine operation dtype"; what an engine cannot compute is left out."""

    identity: Identity
    costs: dict[str, Cost]

    def seconds(self, engine: str, operation: str, dtype: str, shape: Shape) -> float:
        """Return the estimate for one call, infinite where the engine cannot do it."""
        cost = self.costs.get(label(engine, operation, dtype))
        return float("inf") if cost is None else cost.seconds(operation, shape)

    @property
    def sound(self) -> bool:
        """Whether numpy has all of its costs, and no cost is nothing at all."""
        needed = {label("numpy", operation, dtype) for operation in OPERATIONS for dtype in DTYPES}
        return needed <= self.costs.keys() and all(
            cost.call + cost.element + cost.product > 0 for cost in self.costs.values()
        )


def label(engine: str, operation: str, dtype: str) -> str:
    return f"{engine} {operation} {dtype}"


def extent(operation: str, shape: Shape) -> tuple[int, int]:
    """Return the elements that are read or written, and the multiplications of the whole product."""
    down, inner, across = shape
    read = down * inner + inner * across if operation == "multiply" else inner * across
    return read + down * across, down * inner * across


def identity_of(device: str) -> Identity:
    """Return what a calibration of the device with this key, on this host now, is good for."""
    config: Any = np.show_config(mode="dicts")
    blas = config.get("Build Dependencies", {}).get("blas", {}) if config else {}
    told = [str(blas.get(name, "")) for name in ("name", "version", "openblas configuration")]
    told += [f"{name}={os.environ[name]}" for name in THREAD_VARIABLES if os.environ.get(name)]
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    return Identity(
        device=device,
        kernels=kernels_hash(),
        settings=settings_hash(device),
        blas=" | ".join((f"numpy {np.__version__}", *filter(None, told))),
        processors=processors,
    )


def settings_hash(device: str) -> str:
    """Return a hash of the settings that a device may be driven with; `mtbridge tune` changes them."""
    digest = hashlib.sha256()
    for path in sorted((data_folder("kernels") / "tuned").glob("*.toml")):
        digest.update(path.read_bytes())
    for kept in kept_sets()[0]:
        if kept.target.device == device and kept.target.kernels == kernels_hash():
            digest.update(msgspec.json.encode(kept))
    return digest.hexdigest()


def stored(identity: Identity) -> Calibration | None:
    """Return the calibration that is kept for `identity`; None if there is none, or a damaged one."""
    try:
        found = msgspec.json.decode((cache_folder() / file_name(identity)).read_bytes(), type=Calibration)
    except (OSError, msgspec.DecodeError):
        return None
    return found if found.identity == identity and found.sound else None


def keep(calibration: Calibration) -> None:
    """Store `calibration`; a disk that is full costs another measurement later and nothing else."""
    name = file_name(calibration.identity)
    with suppress(OSError):
        target = writable_cache() / name
        target.parent.mkdir(exist_ok=True)
        draft = target.with_name(f"{target.name}.{os.getpid()}")
        draft.write_bytes(msgspec.json.format(msgspec.json.encode(calibration)))
        draft.replace(target)


def forget() -> None:
    """Remove every calibration, so that the next large call makes one anew."""
    for path in (cache_folder() / "calibrations").glob("*.json*"):
        with suppress(OSError):
            path.unlink()


def file_name(identity: Identity) -> Path:
    mark = hashlib.sha256(msgspec.json.encode(identity)).hexdigest()[:16]
    return Path("calibrations") / f"{mark}.json"


def measure(identity: Identity, *engines: Engine) -> Calibration:
    """Time every operation on each engine, in turns, so that what disturbs one for a while disturbs all."""
    shortest: dict[str, dict[Shape, float]] = {}
    for _, engine in itertools.product(range(ROUNDS), engines):
        # BLAS lets its threads spin for a while after a product, which would slow down a CPU device's
        time.sleep(PAUSE_SECONDS)
        for operation, dtype, shape, seconds in timings(engine):
            kept = shortest.setdefault(label(engine.name, operation, dtype), {})
            kept[shape] = min(seconds, kept.get(shape, seconds))
    return Calibration(
        identity,
        {name: fitted(name.split()[1], list(kept.items())) for name, kept in shortest.items()},
    )


def timings(engine: Engine) -> Iterator[tuple[str, str, Shape, float]]:
    """Time each operation and dtype on the shapes; what the engine cannot compute is left out."""
    random = np.random.default_rng(0)
    pairs = [random.standard_normal((2, rows, columns)) for rows, columns in SHAPES]
    for dtype, operation in itertools.product(DTYPES, OPERATIONS):
        for left, right in (pair.astype(dtype) for pair in pairs):
            rows, columns = right.shape
            try:
                seconds = shortest_run(call(engine, operation, left.reshape(columns, rows), right))
            except (DeviceError, MemoryError):
                break
            yield operation, dtype, (columns, rows, columns), seconds
            if seconds > SLOW_SECONDS:
                break


def call(engine: Engine, operation: str, left: Any, right: Any) -> Callable[[], Any]:
    if operation == "multiply":
        return lambda: engine.multiply(left, right)
    return lambda: engine.gram(right) if operation == "gram" else engine.moments(right)


def shortest_run(run: Callable[[], Any]) -> float:
    """Return the shortest of some runs after a first one, which may build kernels."""
    run()
    taken: list[float] = []
    while len(taken) < RUNS or sum(taken) < RUNS_SECONDS:
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return min(taken)


def fitted(operation: str, samples: Sequence[tuple[Shape, float]]) -> Cost:
    """Return the parts, none negative, whose sums are nearest to `samples` by their relative errors.

    Every choice of parts is tried, so the best one without a negative part is found; of equally good ones the
    one that grows with the work, should there be few samples.
    """
    seconds = np.array([taken for _, taken in samples])
    parts = np.array([(1, *extent(operation, shape)) for shape, _ in samples]) / seconds[:, np.newaxis]
    scale = parts.max(axis=0)
    nearest, best = np.zeros(3), float("inf")
    for count in range(1, min(3, len(samples)) + 1):
        for used in map(list, itertools.combinations((2, 1, 0), count)):
            matrix = parts[:, used] / scale[used]
            found = np.linalg.lstsq(matrix, np.ones(len(samples)), rcond=None)[0]
            error = float(np.square(matrix @ found - 1).sum())
            if (found >= 0).all() and error < best - ROUNDING:
                nearest, best = np.zeros(3), error
                nearest[used] = found / scale[used]
    return Cost(*map(float, nearest))
