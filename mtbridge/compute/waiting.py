"""Launches that wait for others, so that all are queued one right after the other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any


class Waiting:
    """Kernels with their arguments, and with where they are to run, in the order in which they came."""

    def __init__(self) -> None:
        self._launches: list[tuple[Any, tuple[Any, ...], tuple[Any, ...]]] = []

    def __len__(self) -> int:
        return len(self._launches)

    def add(self, kernel: Any, arguments: tuple[Any, ...], *place: Any) -> None:
        """Take a launch; `place` is handed to the queue as it is."""
        self._launches.append((kernel, arguments, place))

    def queue(self, enqueue: Callable[..., Any]) -> None:
        """Call `enqueue` with each kernel and its place, and forget them.

        A kernel has one set of arguments at a time: it is given in advance where it runs once.
        """
        launches, self._launches = self._launches, []
        times = Counter(id(kernel) for kernel, *_ in launches)
        for kernel, arguments, _ in launches:
            if times[id(kernel)] == 1:
                kernel.handle.set_args(*arguments)
        for kernel, arguments, place in launches:
            if times[id(kernel)] > 1:
                kernel.handle.set_args(*arguments)
            enqueue(kernel, *place)
