"""Ending a worker by SIGTERM or SIGINT (Ctrl-C)."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Callable
from types import FrameType

from mtbridge.server.worker import Server

log = logging.getLogger(__name__)


def serve_until_signalled(server: Server, *, ready: Callable[[str], None] | None = None) -> None:
    """Run `server` in the main thread until SIGTERM or SIGINT; the handlers of before are put back.

    Where the engine does not end its job in time, the process is left at once with exit code 0: the
    client has its answer, and a thread that computes cannot be ended otherwise.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        server.stop()

    numbers = [signal.SIGINT, signal.SIGTERM]
    if sys.platform == "win32":
        # what another process can send on Windows
        numbers.append(signal.SIGBREAK)
    before = {number: signal.signal(number, stop) for number in numbers}
    try:
        server.run(ready=ready)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if server.abandoned:
        log.warning("the engine was still computing; the process ends without it")
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
