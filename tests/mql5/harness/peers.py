"""Other sides of a connection: one that speaks ZMTP by hand, and one that stands between two others.

The real worker is used wherever it can show the behaviour. These show what it never does.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Self

GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00NULL" + bytes(16) + bytes(32)
PING = 1
RESULT = ((8, 2, (3, 3), 72),)
"""The descriptor of a 3 x 3 matrix of doubles, as `head` takes it."""


def frame(data: bytes, *, more: bool = False, command: bool = False) -> bytes:
    """Bytes of one ZMTP frame."""
    flags = more | (len(data) > 255) << 1 | command << 2
    return bytes([flags]) + len(data).to_bytes(8 if len(data) > 255 else 1, "big") + data


def message(*frames: bytes) -> bytes:
    """Bytes of a message of these frames."""
    return b"".join(frame(data, more=i < len(frames) - 1) for i, data in enumerate(frames))


def ready(socket_type: bytes = b"ROUTER") -> bytes:
    """Bytes of a READY command."""
    return frame(
        b"\x05READY\x0bSocket-Type" + len(socket_type).to_bytes(4, "big") + socket_type, command=True
    )


def head(
    operation: int,
    request: int,
    arrays: tuple[tuple[int, int, tuple[int, ...], int], ...] = (),
    *,
    kind: int = 2,
    status: int = 0,
    magic: int = 0x3142544D,
    version: int = 1,
    head_bytes: int | None = None,
    flags: int = 0,
) -> bytes:
    """A reply's head by struct alone; `arrays` are (role, dtype, shape, bytes)."""
    size = 64 + 48 * len(arrays) if head_bytes is None else head_bytes
    data = struct.pack(
        "<IHHHHIQQQIHHHH12x",
        magic,
        version,
        size,
        kind,
        operation,
        status,
        request,
        0,
        0,
        0,
        0,
        1,
        len(arrays),
        flags,
    )
    for role, dtype, shape, size in arrays:
        lengths = (*shape, 0, 0, 0, 0)[:4]
        data += struct.pack("<HHBB2x4QQ", role, dtype, len(shape), 0, *lengths, size)
    return data


def pong(request: int) -> bytes:
    """The answer to a ping, as a whole message."""
    names = b"mtbridge 0.0.0\nby hand\nnothing"
    arrays = ((8, 3, (6,), 48), (9, 3, (1,), 8), (11, 4, (len(names),), len(names)))
    limits = struct.pack("<6q", 1, 1, 1 << 30, 8, 1 << 30, 1 << 20)
    return message(b"", head(PING, request, arrays), b"by hand", limits, struct.pack("<q", 1), names)


class Conversation:
    """One accepted connection, seen from the peer."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def read(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            piece = self.connection.recv(count - len(data))
            if not piece:
                raise ConnectionError
            data += piece
        return data

    def read_frame(self) -> tuple[int, bytes]:
        flags, size = self.read(2)
        if flags & 2:
            size = int.from_bytes(bytes([size]) + self.read(7), "big")
        return flags, self.read(size)

    def read_message(self) -> list[bytes]:
        """Frames of the next message; commands are passed over."""
        frames = []
        while True:
            flags, data = self.read_frame()
            if flags & 4:
                continue
            frames.append(data)
            if not flags & 1:
                return frames

    def shake_hands(self, socket_type: bytes = b"ROUTER") -> None:
        self.send(GREETING)
        self.read(64)
        self.send(ready(socket_type))
        self.read_frame()

    def next_request(self) -> int:
        """Number of the next request that is no ping; pings are answered."""
        while True:
            data = self.read_message()[1]
            (operation,) = struct.unpack_from("<H", data, 10)
            (request,) = struct.unpack_from("<Q", data, 16)
            if operation != PING:
                return int(request)
            self.send(pong(request))

    def answer_ping(self) -> bytes:
        """Answer the next request, which must be a ping; its head."""
        data = self.read_message()[1]
        operation, request = struct.unpack_from("<H4xQ", data, 10)
        assert operation == PING
        self.send(pong(request))
        return data

    def wait_for_end(self) -> None:
        """Read until the other side closes."""
        while self.connection.recv(1 << 16):
            pass


class Peer:
    """Listens on a free port and has one conversation after the other, until the `with` ends."""

    def __init__(self, talk: Callable[[Conversation], None]) -> None:
        self._talk = talk
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: list[socket.socket] = []
        self.port: int = self._listener.getsockname()[1]
        self.conversations = 0
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._open.append(connection)
            self.conversations += 1
            with connection, contextlib.suppress(OSError):
                self._talk(Conversation(connection))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for item in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)
            item.close()
        self._thread.join(5)


def talker(frames: Callable[[int], bytes]) -> Callable[[Conversation], None]:
    """A peer that answers the request of number n with the bytes frames(n)."""

    def talk(conversation: Conversation) -> None:
        conversation.shake_hands()
        conversation.send(frames(conversation.next_request()))
        conversation.wait_for_end()

    return talk


@contextlib.contextmanager
def cutting_proxy(worker_port: int, *, after_bytes: int, at_cut: Callable[[], None]) -> Iterator[int]:
    """Between a client and the worker: calls `at_cut` and closes when that much of the replies has passed."""

    def talk(conversation: Conversation) -> None:
        with socket.create_connection(("127.0.0.1", worker_port)) as worker:
            up = threading.Thread(target=_pump, args=(conversation.connection, worker))
            up.start()
            left = after_bytes
            while left > 0 and (data := worker.recv(min(left, 4096))):
                conversation.send(data)
                left -= len(data)
            at_cut()
            for end in (worker, conversation.connection):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
            up.join(5)

    with Peer(talk) as peer:
        yield peer.port


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            target.sendall(data)
