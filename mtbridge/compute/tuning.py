"""The search for the fastest settings of the products on one device, for `mtbridge tune`.

Candidates come in the order of parameters.py, from the fastest set so far outwards. Each is built and
checked (tuning_check.py) before it is timed, and one that is slower by SLOWER at its first call is timed no
more. What seems faster is checked for every way that the engine sums, and timed again in turn with the best
so far, so that a disturbance of the machine does not decide. Only then is it kept.
"""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.parameters import SPACES, Settings
from mtbridge.compute.tuned import TunedSet, keep
from mtbridge.compute.tuning_check import every_error, first_error
from mtbridge.errors import DeviceError

Say = Callable[[str], None]

SLOWER = 1.5
"""A candidate whose first call takes so many times as long as the best's is dropped."""

FASTER = 1.02
"""How many times as fast as the best a candidate must be; less is noise."""

ROUNDS = 5

SIZES = {"packed": 960, "register_tiled": 4096}
"""Rows, inner size and columns of the products that are timed; halved where a device is slow or small."""

LONGEST_CALL = 0.3
"""Seconds: with longer ones a search would try too few candidates."""

SMALLEST = 480
"""Below this size, launching counts and not the kernels."""

SAY_EVERY = 5.0
"""Seconds between lines about the progress."""


@dataclass(slots=True)
class Tuning:
    """What a search found, and how its candidates ended.

    Attributes
    ----------
    best : the set that was kept
    ends : how many candidates were "refused" by the compiler, "wrong", "dropped", "slower" and "faster"
    """

    best: TunedSet
    ends: Counter[str] = field(default_factory=Counter)

    @property
    def candidates(self) -> int:
        return self.ends.total()


def tune(
    engine: OpenCLEngine,
    dtype: str,
    *,
    seconds: float,
    say: Say,
    most: int | None = None,
    size: int | None = None,
) -> Tuning:
    """Search for the fastest settings for products of `dtype`, and keep the best in the cache folder.

    The best so far is kept at once, so an interrupted search is not lost. The engine uses it afterwards.

    Parameters
    ----------
    engine : an engine on the device
    dtype : "float32" or "float64"
    seconds : when to begin no further candidate; the shipped settings are measured in any case
    say : called with a line about each step forward
    most : how many candidates to try; by default all for which there is time
    size : rows, inner size and columns of the products that are timed; by default from SIZES

    Raises
    ------
    DeviceError
        If the device cannot compute in `dtype`, or computes wrongly with the shipped settings.
    """
    end = time.perf_counter() + seconds
    return Search(engine, dtype, say, size).run(end, most)


class Search:
    """One search on one device; `run` once."""

    def __init__(self, engine: OpenCLEngine, dtype: str, say: Say, size: int | None = None) -> None:
        self._engine, self._dtype, self._say = engine, dtype, say
        self._target = engine.target(dtype)
        self._space = SPACES[self._target.form]
        # other numbers at every check: what an earlier one left in memory is never the right answer
        self._random = np.random.default_rng(0)
        self._size = size or SIZES[self._target.form]
        self._A: Any = None
        self._B: Any = None
        self._reference = 0.0

    def run(self, end: float, most: int | None = None) -> Tuning:
        """Search until the clock (`time.perf_counter`) says `end`, or nothing is left to try."""
        shipped = dict(self._engine.form(self._dtype).defines)
        self._engine.use(self._dtype, shipped)
        error = every_error(self._engine, self._dtype, self._random)
        if not error <= 1:
            raise DeviceError(
                f"{self._engine.device} computes {self._dtype} products wrongly with the shipped settings; "
                "use --engine numpy."
            )
        self._prepare()
        self._reference = self._seconds()
        found = Tuning(TunedSet(self._target, shipped, error, 1.0))
        keep(found.best)
        self._say(f"{self._dtype}: the shipped settings take {1e3 * self._reference:.1f} ms")
        told = time.perf_counter()
        seen = {frozenset(shipped.items())}
        order = self._outwards(shipped)
        while time.perf_counter() < end and found.candidates != most:
            candidate = unseen(order, seen)
            if candidate is None:
                break
            how, better = self._tried(candidate, found.best)
            found.ends[how] += 1
            now = time.perf_counter()
            if better is not None:
                found.best = better
                keep(better)
                order = self._outwards(better.settings)
                gain = f"{better.speedup:.2f} x the shipped settings"
                self._say(f"{self._dtype}: {gain}: {words(better.settings)}")
            elif now - told > SAY_EVERY:
                self._say(f"{self._dtype}: {found.candidates} candidates, {max(end - now, 0):.0f} s left")
            else:
                continue
            told = now
        found.best = self._confirmed(shipped, found.best)
        keep(found.best)
        self._engine.use(self._dtype, found.best.settings)
        return found

    def _confirmed(self, shipped: Settings, best: TunedSet) -> TunedSet:
        """Measure the best beside the shipped settings: of many the luckiest seems better than it is."""
        if best.settings == shipped:
            return best
        before, after = self._in_turn(shipped, best.settings)
        if before <= after:
            # every set that was kept has passed the same check as the shipped one
            return TunedSet(self._target, dict(shipped), best.error, 1.0)
        return TunedSet(self._target, best.settings, best.error, before / after)

    def _prepare(self) -> None:
        """Upload what is timed, as large as the device does it in a short time."""
        while True:
            smaller = self._size // 2
            try:
                self._A, self._B = (
                    self._engine.upload(numbers.astype(self._dtype))
                    for numbers in self._random.standard_normal((2, self._size, self._size))
                )
                self._call()
                if smaller < SMALLEST or self._call() <= LONGEST_CALL:
                    return
            except (DeviceError, MemoryError):
                # no room for matrices of this size, or no buffer so large
                if smaller < SMALLEST:
                    raise
            self._size = smaller

    def _outwards(self, start: Settings) -> Iterator[dict[str, int]]:
        return self._space.outwards(start, self._dtype, self._engine.limits)

    def _tried(self, candidate: Settings, best: TunedSet) -> tuple[str, TunedSet | None]:
        """Return how a candidate ended, and the new best if that is what it is."""
        try:
            self._engine.use(self._dtype, candidate)
            if not first_error(self._engine, self._dtype, self._random) <= 1:
                return "wrong", None
            seconds = self._seconds(limit=SLOWER * self._reference)
            if seconds > SLOWER * self._reference:
                return "dropped", None
            if seconds * FASTER > self._reference:
                return "slower", None
            error = every_error(self._engine, self._dtype, self._random)
            if not error <= 1:
                return "wrong", None
        except (DeviceError, MemoryError):
            return "refused", None
        before, after = self._in_turn(best.settings, candidate)
        self._reference = before
        if after * FASTER > before:
            return "slower", None
        self._reference = after
        return "faster", TunedSet(self._target, dict(candidate), error, best.speedup * before / after)

    def _seconds(self, *, limit: float = float("inf")) -> float:
        """Return the median of ROUNDS calls after one that warms up; past `limit`, of the first alone."""
        self._call()
        calls = [self._call()]
        while len(calls) < ROUNDS and calls[0] <= limit:
            calls.append(self._call())
        return statistics.median(calls)

    def _in_turn(self, *contenders: Settings) -> list[float]:
        """Return the median of each of the settings, measured in turn."""
        calls: list[list[float]] = [[] for _ in contenders]
        for _ in range(ROUNDS):
            for settings, seconds in zip(contenders, calls, strict=True):
                self._engine.use(self._dtype, settings)
                # the first call finds other panels in the caches than its own
                self._call()
                seconds.append(self._call())
        return [statistics.median(seconds) for seconds in calls]

    def _call(self) -> float:
        """Return the seconds of one product and one X'X."""
        start = time.perf_counter()
        self._engine.multiply(self._A, self._B)
        self._engine.gram(self._A)
        self._engine.finish()
        return time.perf_counter() - start


def unseen(order: Iterator[dict[str, int]], seen: set[frozenset[tuple[str, int]]]) -> dict[str, int] | None:
    """Return the next candidate that is not in `seen`, and put it there."""
    for candidate in order:
        mark = frozenset(candidate.items())
        if mark not in seen:
            seen.add(mark)
            return candidate
    return None


def words(settings: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {value}" for name, value in settings.items())
