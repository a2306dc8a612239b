"""A way to end another thread's poll, from a thread or from a signal handler."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self


class Wakeup:
    """A pair of sockets: `wake` writes one byte, the poller sees the other end readable.

    Not a ZeroMQ socket, because those belong to one thread and a signal may come in any; not a pipe,
    because Windows cannot poll one.
    """

    def __init__(self) -> None:
        self.reader, self._writer = socket.socketpair()
        self.reader.setblocking(False)
        self._writer.setblocking(False)

    def wake(self) -> None:
        """Make the reader readable. Never blocks and never raises."""
        try:
            self._writer.send(b"\0")
        except OSError:
            # Full: the poll will end anyway. Closed: nobody polls any more.
            return

    def clear(self) -> None:
        """Forget the wakes so far; call it before looking at what they were about."""
        try:
            self.reader.recv(4096)
        except BlockingIOError:
            return

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        self.reader.close()
