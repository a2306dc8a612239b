"""Every error that mtbridge raises on purpose.

MtbridgeError
├── InputError            what the caller handed over is wrong (also a ValueError)
│   ├── ShapeError        sizes that do not fit together
│   ├── MissingValueError NaN where a number is needed
│   ├── PriceFileError    a file that is not the price table it should be
│   └── OptionError       an option whose value is not allowed
├── DeviceError           no usable OpenCL device, or a device that failed
└── WireError             something between client and worker
    ├── ProtocolError     the peer's bytes are not a message; carries a status
    ├── RemoteError       the worker answered with an error; carries its status
    ├── NoReplyError      no worker, or no answer in time
    └── EndpointError     an address that cannot be bound or connected to

A message is one sentence with the wrong value, what was expected and how to mend it.
The command line prints it and exits with code 1; anything else is a bug of ours.
"""

from __future__ import annotations


class MtbridgeError(Exception):
    """The root of the tree above."""


class InputError(MtbridgeError, ValueError):
    """The caller's mistake."""


class ShapeError(InputError):
    """Sizes that do not fit together."""


class MissingValueError(InputError):
    """NaN where a number is needed."""


class PriceFileError(InputError):
    """A file that is not the price table it should be."""


class OptionError(InputError):
    """An option whose value is not allowed."""


class DeviceError(MtbridgeError, RuntimeError):
    """No usable OpenCL device, or a device that failed."""


class WireError(MtbridgeError):
    """Something between client and worker."""


class ProtocolError(WireError):
    """The peer's bytes are not a message.

    `status` is the stable code that an error reply carries (docs/protocol.md).
    """

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class RemoteError(WireError):
    """The worker answered with an error; `status` is its stable code."""

    def __init__(self, text: str, status: int) -> None:
        super().__init__(text)
        self.status = status


class NoReplyError(WireError):
    """No worker, or no answer in time."""


class EndpointError(WireError):
    """An address that cannot be bound or connected to."""
