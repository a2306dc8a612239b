"""The frames that ZeroMQ puts before a message, and that go back with its reply as they came."""

from __future__ import annotations

from collections.abc import Sequence

import zmq

from mtbridge.wire import MAGIC

# A proxy puts a frame before the delimiter, and so does a REQ socket with ZMQ_REQ_CORRELATE.
MAX_ROUTING_FRAMES = 4
MAX_ROUTING_BYTES = 255

_MAGIC = MAGIC.to_bytes(4, "little")


def find_body(frames: Sequence[zmq.Frame]) -> int | None:
    """Return where the head is, after the first empty frame, or None where no such delimiter came.

    Before it are the identity that the ROUTER adds and, where there are proxies, theirs.
    """
    for index in range(1, min(len(frames), MAX_ROUTING_FRAMES + 2)):
        frame = frames[index]
        length = len(frame)
        if length == 0:
            return index + 1
        # a client that forgot the delimiter, whose empty options must not be taken for one
        if length > MAX_ROUTING_BYTES or frame.bytes.startswith(_MAGIC):
            return None
    return None
