"""Work of the host that several threads share: its parts are taken in turn by whoever is free.

For arrays so large that one thread would take longer than everything else. numpy lets other threads run while
it is at one, but not those in which a part is smaller than some thousand elements.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import TypeAlias

Job: TypeAlias = Callable[["Parts", int], None]
"""What a thread does, by its number: something with each part that it takes."""

BLOCK_BYTES = 1 << 20
"""Rows of a block: what is made of them on the way stays in a processor's cache."""

SHARED_BYTES = 1 << 25
"""From this size on it pays to start threads."""

MOST_THREADS = 8
"""More do not read memory faster."""

POLL_SECONDS = 0.2
"""So often a thread that waits for others wakes up."""


class Parts:
    """Numbers from 0, each of which one thread takes.

    Attributes
    ----------
    closed : nobody takes another one
    failure : what went wrong first
    """

    def __init__(self, count: int) -> None:
        self.closed = False
        self.failure: BaseException | None = None
        self._left = iter(range(count))
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[int]:
        while True:
            with self._lock:
                part = None if self.closed else next(self._left, None)
            if part is None:
                return
            yield part

    def serve(self, job: Job, number: int) -> None:
        """Do a job as thread `number`; keep what it raises, which ends the work of all."""
        try:
            job(self, number)
        except BaseException as failure:
            self.end(failure)

    def end(self, failure: BaseException) -> None:
        """Let nobody take another one, for a reason."""
        self.failure = self.failure or failure
        self.closed = True


def share(job: Job, parts: int, *, threads: int, pool: ThreadPoolExecutor) -> None:
    """Do a job in the caller's thread and in others of `pool`, `threads` in all.

    None of them is at it any more when this returns, or raises what one of them did; but for a second
    interrupt, which is raised at once.
    """
    shared = Parts(parts)
    others: list[Future[None]] = []
    try:
        # where no thread can be had, as when Python ends, the caller's does all
        with suppress(RuntimeError):
            for number in range(1, min(threads, parts)):
                others.append(pool.submit(shared.serve, job, number))
        shared.serve(job, 0)
    except BaseException as failure:
        shared.end(failure)
    ended(others, interrupted=isinstance(shared.failure, KeyboardInterrupt))
    if shared.failure is not None:
        try:
            raise shared.failure
        finally:
            # else it would keep itself, and the arrays, until the next collection of garbage
            shared.failure = None


def ended(threads: Iterable[Future[None]], *, interrupted: bool = False) -> None:
    """Return when none of these is at its work; those that have not begun never will.

    An interrupt is raised after that. A second one is at once, as a thread may be stuck; also the first, if
    there was one before.
    """
    # one that was cancelled may be waited for in vain
    busy = [thread for thread in threads if not thread.cancel()]
    late: BaseException | None = None
    while busy:
        try:
            # on Windows, an interrupt is not seen by a thread that waits
            busy = list(wait(busy, POLL_SECONDS).not_done)
        except KeyboardInterrupt as interrupt:
            if interrupted or late is not None:
                raise
            late = interrupt
    if late is not None:
        try:
            raise late
        finally:
            late = None


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
