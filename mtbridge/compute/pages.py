"""Makes the memory of a new array before anything is copied there, in threads that have nothing else to do.

Memory that a process is given has no pages yet. The system makes each where it is first written to, and sets
it to 0, which takes as long as what is then copied there.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Bytes: TypeAlias = NDArray[np.uint8]

PAGED_BYTES = 1 << 26
"""Bytes of an array from which on it pays."""

PAGE_BYTES = 1 << 12
"""Of the smallest page of any system here."""

PART_BYTES = 1 << 22
"""What a thread takes at a time, whole large pages; for less numpy would keep other threads waiting."""


class Pages:
    """The pages of an array, of which several threads make some until one of them says that it is enough.

    Parameters
    ----------
    array : C-ordered, whose contents nobody needs; None for nothing to do, as it is for a small one

    Attributes
    ----------
    wanted : whether there was something to do
    """

    def __init__(self, array: NDArray[Any] | None = None) -> None:
        self.wanted = array is not None and array.nbytes >= PAGED_BYTES
        self._parts = iter(()) if array is None or not self.wanted else cut(array, PART_BYTES)
        self._ended = False
        self._making = 0
        self._changed = threading.Condition()

    def make(self) -> None:
        """Write to pages until all are there, or `end` is called."""
        while True:
            with self._changed:
                part = None if self._ended else next(self._parts, None)
                if part is None:
                    return
                self._making += 1
            try:
                part[::PAGE_BYTES] = 0
            finally:
                with self._changed:
                    self._making -= 1
                    self._changed.notify_all()

    def end(self) -> None:
        """Return when nobody writes any more; may be called by several threads, and twice."""
        with self._changed:
            self._ended = True
            self._changed.wait_for(lambda: not self._making)


def cut(array: NDArray[Any], size: int) -> Iterator[Bytes]:
    """Cut the bytes of a C-ordered array where memory is cut into parts of `size`."""
    whole = array.reshape(-1).view(np.uint8)
    edges = [0, *range(size - array.ctypes.data % size, array.nbytes, size), array.nbytes]
    return (whole[start:stop] for start, stop in pairwise(edges))
