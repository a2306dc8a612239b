"""Makes the memory of a new array before anything is written there, while all threads wait for the devices.

Memory that a process is given has no pages yet. The system makes each where it is first written to, and sets
it to 0, which takes as long as what is then copied there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from mtbridge.matrix import Matrix

PAGE_BYTES = 1 << 12
"""Of the smallest page of any system here."""

PART_BYTES = 1 << 22
"""What a thread takes at a time, whole large pages; for less numpy would keep other threads waiting."""


class Pages:
    """Threads that write to each page of an array until `end`, or until all are there.

    Parameters
    ----------
    array : whose contents nobody needs; None for nothing to do
    threads : as many
    """

    def __init__(self, array: Matrix | None, threads: int) -> None:
        self._ended = False
        self._lock = threading.Lock()
        self._parts = iter(()) if array is None else parts(array)
        self._threads = [
            threading.Thread(target=self._make, name="mtbridge-pages")
            for _ in range(0 if array is None else threads)
        ]

    def begin(self) -> None:
        """Start the threads."""
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        """Return when none of them writes any more; may be called by several threads, and twice."""
        self._ended = True
        for thread in self._threads:
            # one whose start was interrupted cannot be joined
            if thread.ident is not None:
                thread.join()

    def _make(self) -> None:
        while not self._ended:
            with self._lock:
                part = next(self._parts, None)
            if part is None:
                return
            part[::PAGE_BYTES] = 0


def parts(array: Matrix) -> Iterator[np.ndarray[tuple[int], np.dtype[np.uint8]]]:
    """Cut a C-ordered array into parts of PART_BYTES, as memory is cut, and smaller ones at the ends."""
    flat = array.reshape(-1).view(np.uint8)
    edges = [0, *range(PART_BYTES - array.ctypes.data % PART_BYTES, flat.size, PART_BYTES), flat.size]
    return (flat[start:stop] for start, stop in pairwise(edges))
