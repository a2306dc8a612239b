"""Threads of a test: all at once, each to its end, and what went wrong in any of them."""

from __future__ import annotations

import threading
from collections.abc import Callable


def together(*works: Callable[[], object], seconds: float = 60) -> None:
    """Call `works`, each in a thread of its own; raise what was raised first in one of them."""
    failures: list[BaseException] = []

    def caught(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=caught, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds)
    if failures:
        raise failures[0]
    assert not any(thread.is_alive() for thread in threads), f"not done within {seconds:g} s"
