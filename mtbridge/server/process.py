"""A worker in a child process, for the demo, the benchmarks and the tests."""

from __future__ import annotations

import multiprocessing
import threading
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any, Self

from mtbridge.errors import EndpointError, MtbridgeError
from mtbridge.server.signals import serve_until_signalled
from mtbridge.server.worker import Server

FREE_PORT = "tcp://127.0.0.1:0"


class WorkerProcess:
    """A `Server` in a process of its own, between `with` and its end.

    Parameters
    ----------
    bind : where to listen; a free port of this machine by default
    start_seconds : how long the engine may take to open
    options : as for `Server`

    Raises
    ------
    MtbridgeError
        What the worker raised instead of starting: no device, a port in use.
    EndpointError
        If it does not start in time, or dies.
    """

    def __init__(self, bind: str = FREE_PORT, *, start_seconds: float = 120.0, **options: Any) -> None:
        self._start_seconds = start_seconds
        # a fresh interpreter: a forked one would share the sockets and threads of this one
        context = multiprocessing.get_context("spawn")
        self._pipe, self._child_pipe = context.Pipe()
        self.process = context.Process(
            target=_serve, args=(self._child_pipe, bind, options), name="mtbridge-worker"
        )
        self.endpoint = ""

    def __enter__(self) -> Self:
        self.process.start()
        self._child_pipe.close()
        try:
            self.endpoint = self._first_words()
        except BaseException:
            self.close()
            raise
        return self

    def _first_words(self) -> str:
        """Return the endpoint that the child tells, or raise what it tells instead."""
        if not self._pipe.poll(self._start_seconds):
            raise EndpointError(f"The worker did not start within {self._start_seconds:g} s.")
        try:
            answer = self._pipe.recv()
        except EOFError:
            self.process.join(1)
            raise EndpointError(
                f"The worker process ended with exit code {self.process.exitcode} before it could listen."
            ) from None
        if isinstance(answer, MtbridgeError):
            raise answer
        return str(answer)

    def close(self, *, seconds: float = 15.0) -> None:
        """End the worker: it stops when the pipe closes, and is killed where it has not done so in time."""
        self._pipe.close()
        self.process.join(seconds)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _serve(pipe: Connection, bind: str, options: dict[str, Any]) -> None:
    ended = threading.Event()
    try:
        server = Server(bind, **options)
        watcher = threading.Thread(target=_stop_with_parent, args=(pipe, server, ended))
        watcher.start()
        try:
            serve_until_signalled(server, ready=pipe.send)
        finally:
            ended.set()
            watcher.join()
    except MtbridgeError as failure:
        pipe.send(failure)
    except BrokenPipeError:
        # the parent went away while the worker started
        return


def _stop_with_parent(pipe: Connection, server: Server, ended: threading.Event) -> None:
    """Stop the worker when the parent closes its end of the pipe, or dies."""
    while not ended.is_set():
        try:
            if pipe.poll(0.2):
                pipe.recv()
        except (EOFError, OSError):
            server.stop()
            return
