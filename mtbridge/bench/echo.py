"""The yardstick of the bridge: a bare pyzmq ROUTER that sends every message back as it came.

It runs in a process of its own, as the worker does, and knows nothing of our messages.
"""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Self

import zmq

from mtbridge.errors import EndpointError

START_SECONDS = 60.0


class EchoServer:
    """An echo in a child process, at `endpoint`, between `with` and its end.

    Raises
    ------
    EndpointError
        If the child does not start.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, self._child_pipe = context.Pipe()
        self._process = context.Process(target=_echo, args=(self._child_pipe,), name="mtbridge-echo")
        self.endpoint = ""

    def __enter__(self) -> Self:
        self._process.start()
        self._child_pipe.close()
        try:
            if self._pipe.poll(START_SECONDS):
                self.endpoint = self._pipe.recv()
        except EOFError:
            pass
        if not self.endpoint:
            self.close()
            raise EndpointError("The echo did not start, so there is nothing to compare the bridge with.")
        return self

    def close(self) -> None:
        """End the child: it stops when its pipe closes, and is killed where it has not done so in time."""
        self._pipe.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _echo(pipe: Connection) -> None:
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.LINGER, 0)
        router.bind("tcp://127.0.0.1:*")
        pipe.send(router.getsockopt_string(zmq.LAST_ENDPOINT))
        while not pipe.poll():
            # wait for a message, echo all that come meanwhile, and look at the pipe when there is a pause
            while router.poll(200):
                router.send_multipart(router.recv_multipart())
