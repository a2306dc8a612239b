"""One socket to one worker: a request out, the reply to that very request back.

A DEALER socket, and an id in every request by which its reply is known. A REQ socket would be of no
use after one lost reply, and could hand the late answer of one call to the next.
"""

from __future__ import annotations

import math
import secrets
import time
from collections.abc import Sequence
from typing import Final

import zmq

from mtbridge.errors import EndpointError, MtbridgeError, NoReplyError, ProtocolError, RemoteError
from mtbridge.wire import (
    DEFAULT_ENDPOINT,
    Array,
    Buffer,
    Head,
    Kind,
    Limits,
    Message,
    Operation,
    decode,
    encode,
    peek,
    request,
)

CONNECT_SECONDS = 5.0
"""How long a call waits for a connection, where its timeout is not shorter."""

# What comes has been received already, so only whether it is consistent matters.
_ANYTHING: Final = Limits(
    frame_bytes=1 << 62, arrays=64, rows=(1 << 63) - 1, columns=(1 << 63) - 1, options_bytes=1 << 30
)
# A plain number: `send_multipart` combines enumerations for each frame, which costs more than sending it.
_MORE: Final = int(zmq.SNDMORE)
_LAST_ID: Final = (1 << 64) - 1
_LONGEST_DEADLINE_MS: Final = (1 << 32) - 1


class Connection:
    """Calls a worker; for one thread at a time.

    The socket outlives failed calls: ZeroMQ connects it again to a worker that was restarted.

    Attributes
    ----------
    late_replies : messages that were not the answer to the call that waited, and were dropped

    Raises
    ------
    EndpointError
        If `endpoint` is no address.
    """

    def __init__(self, endpoint: str, timeout: float) -> None:
        self.late_replies = 0
        self._endpoint = endpoint
        self._timeout = timeout
        # A random start, so that a reply to an earlier program is never taken for one to this.
        self._number = secrets.randbits(62)
        self._context = zmq.Context()
        try:
            self._socket = self._connect()
        except BaseException:
            self._context.term()
            raise

    def call(self, operation: Operation, arrays: Sequence[Array], options: bytes) -> Message:
        """Send a request and return the result that answers it, within the timeout.

        Raises
        ------
        RemoteError
            If the worker answers with an error.
        NoReplyError
            If there is no worker, or no answer in time. An answer that still comes will be dropped.
        ProtocolError
            If the answer to this very request is damaged.
        EndpointError
            If the connection has been closed.
        """
        if self._socket.closed:
            raise EndpointError(f"The client of {self._endpoint} has been closed; make a new one.")
        end = time.monotonic() + self._timeout
        self._number = self._number % _LAST_ID + 1
        deadline_ms = min(math.ceil(self._timeout * 1000), _LONGEST_DEADLINE_MS)
        message = request(operation, self._number, arrays, options=options, deadline_ms=deadline_ms)
        try:
            self._send([b"", *encode(message)])
            return self._receive(operation, end)
        except MtbridgeError:
            raise
        except BaseException:
            # Ctrl-C between two frames would leave half a message in front of the next one.
            self._socket.close(linger=0)
            self._socket = self._connect()
            raise

    def close(self) -> None:
        """Close the socket without waiting; may be called twice."""
        self._socket.close(linger=0)
        self._context.term()

    def _send(self, frames: list[Buffer]) -> None:
        *parts, last = frames
        try:
            for part in parts:
                self._socket.send(part, _MORE, copy=False)
            self._socket.send(last, copy=False)
        except zmq.Again:
            seconds = min(self._timeout, CONNECT_SECONDS)
            raise NoReplyError(
                f"No worker could be reached at {self._endpoint} within {seconds:g} s: "
                "is `mtbridge serve` running there?"
            ) from None

    def _receive(self, operation: Operation, end: float) -> Message:
        """Return the result of the current call, dropping whatever else comes."""
        while (left := end - time.monotonic()) > 0:
            self._socket.setsockopt(zmq.RCVTIMEO, math.ceil(left * 1000))
            try:
                frame = self._socket.recv(copy=False)
            except zmq.Again:
                break
            frames = [frame]
            while frame.more:
                frame = self._socket.recv(copy=False)
                frames.append(frame)
            reply = self._read(frames, operation)
            if reply is not None:
                return reply
        self._cancel()
        raise NoReplyError(
            f"The worker at {self._endpoint} did not answer within {self._timeout:g} s: "
            "is `mtbridge serve` running there, and is the timeout long enough for this work?"
        )

    def _read(self, frames: list[zmq.Frame], operation: Operation) -> Message | None:
        """Return the result of the current call, or None for a message that is something else."""
        body = [frame.buffer for frame in frames[1:]]
        answered, _ = peek(body[0]) if body else (0, 0)
        # 0 is the id of a request whose head the worker could not read
        if answered not in (self._number, 0) or len(frames[0]):
            self.late_replies += 1
            return None
        try:
            reply = decode(body, _ANYTHING)
        except ProtocolError:
            if answered:
                raise
            # not even a head: another program
            return None
        head = reply.head
        if head.kind is Kind.ERROR:
            raise RemoteError(reply.text, head.status)
        if head.kind is not Kind.RESULT or head.request != self._number or head.operation != operation:
            return None
        return reply

    def _cancel(self) -> None:
        """Tell the worker that nobody waits any more; no matter whether this arrives."""
        frames = encode(Message(Head(Kind.CANCEL, request=self._number)))
        try:
            self._socket.send_multipart([b"", *frames], flags=zmq.DONTWAIT)
        except zmq.Again:
            return

    def _connect(self) -> zmq.Socket[bytes]:
        socket = self._context.socket(zmq.DEALER)
        socket.setsockopt(zmq.LINGER, 0)
        # A request waits for a connection, instead of being kept for a worker that starts later.
        socket.setsockopt(zmq.IMMEDIATE, 1)
        socket.setsockopt(zmq.SNDTIMEO, math.ceil(min(self._timeout, CONNECT_SECONDS) * 1000))
        socket.setsockopt(zmq.TCP_KEEPALIVE, 1)
        socket.setsockopt(zmq.IPV6, int("[" in self._endpoint))
        try:
            socket.connect(self._endpoint)
        except zmq.ZMQError as failure:
            socket.close()
            raise EndpointError(
                f"{self._endpoint!r} is no address of a worker ({failure.strerror}); "
                f"write {DEFAULT_ENDPOINT}, for example."
            ) from None
        return socket
