"""Work of the host that several threads share: its parts are taken in turn by whoever is free.

For arrays so large that one thread would take longer than everything else. numpy lets other threads run while
it is at one, but not those in which a part is smaller than some thousand elements.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TypeAlias

Job: TypeAlias = Callable[["Parts", int], None]
"""What a thread does, by its number: something with each part that it takes."""

BLOCK_BYTES = 1 << 20
"""Rows of a block: what is made of them on the way stays in a processor's cache."""

SHARED_BYTES = 1 << 25
"""From this size on it pays to start threads."""

MOST_THREADS = 8
"""More do not read memory faster."""


class Parts:
    """Numbers from 0, each of which one thread takes.

    Attributes
    ----------
    closed : nobody takes another one, or begins to
    """

    def __init__(self, count: int) -> None:
        self.closed = False
        self._left = iter(range(count))
        self._lock = threading.Condition()
        self._busy = 0
        self._failure: BaseException | None = None

    def __iter__(self) -> Iterator[int]:
        while True:
            with self._lock:
                part = None if self.closed else next(self._left, None)
            if part is None:
                return
            yield part

    def serve(self, job: Job, number: int) -> None:
        """Do a job in a thread beside the caller's; what it raises is raised where the work ends."""
        with self._lock:
            if self.closed:
                return
            self._busy += 1
        try:
            job(self, number)
        except BaseException as failure:
            self._fail(failure)
        finally:
            with self._lock:
                self._busy -= 1
                self._lock.notify_all()

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Wait at the end until nobody is busy, whatever interrupts; then raise what went wrong."""
        try:
            yield
        except BaseException as failure:
            self._fail(failure)
        while True:
            try:
                with self._lock:
                    self._lock.wait_for(lambda: not self._busy)
                    self.closed = True
                break
            except KeyboardInterrupt as interrupt:
                self._fail(interrupt)
        if self._failure is not None:
            try:
                raise self._failure
            finally:
                # else it would keep itself, and the arrays, until the next collection of garbage
                self._failure = None

    def _fail(self, failure: BaseException) -> None:
        self._failure = self._failure or failure
        self.closed = True


def share(job: Job, parts: int, *, threads: int, pool: ThreadPoolExecutor) -> None:
    """Do a job in the caller's thread and in others of `pool`, `threads` in all.

    None of them is at it any more when this returns, or raises what one of them did.
    """
    taken = Parts(parts)
    with taken.ended():
        # where no thread can be had, as when Python ends, the caller's does all
        with suppress(RuntimeError):
            for number in range(1, min(threads, parts)):
                pool.submit(taken.serve, job, number)
        job(taken, 0)


def by_rows(work: Callable[[slice], None], rows: int, row_bytes: int) -> None:
    """Do `work` on blocks of rows, in several threads where `rows` of `row_bytes` are many."""
    step = max(BLOCK_BYTES // max(row_bytes, 1), 1)
    spans = [slice(first, min(first + step, rows)) for first in range(0, rows, step)]
    threads = min(MOST_THREADS, os.cpu_count() or 1) if rows * row_bytes >= SHARED_BYTES else 1
    if threads == 1:
        for span in spans:
            work(span)
        return

    def job(parts: Parts, number: int) -> None:
        for part in parts:
            work(spans[part])

    with ThreadPoolExecutor(threads, thread_name_prefix="mtbridge-rows") as pool:
        share(job, len(spans), threads=threads, pool=pool)
