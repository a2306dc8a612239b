"""Every error that mtbridge raises on purpose.

MtbridgeError
├── InputError            what the caller handed over is wrong (also a ValueError)
│   ├── ShapeError        sizes that do not fit together
│   ├── MissingValueError NaN where a number is needed
│   ├── PriceFileError    a file that is not the price table it should be
│   └── OptionError       an option whose value is not allowed
├── DeviceError           no usable OpenCL device, or a device that failed
└── WireError             something between client and worker
    ├── StatusError       one that carries a status of the protocol
    │   ├── ProtocolError the peer's bytes are not a message
    │   └── RemoteError   the worker answered with an error
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


class StatusError(WireError):
    """An error with `status`, the stable code that an error reply carries (docs/protocol.md)."""

    def __init__(self, text: str, status: int) -> None:
        # both are arguments of the exception, so that it can be sent between processes
        super().__init__(text, status)
        self.status = status

    def __str__(self) -> str:
        return str(self.args[0])


class ProtocolError(StatusError):
    """The peer's bytes are not a message."""


class RemoteError(StatusError):
    """The worker answered with an error."""


class NoReplyError(WireError):
    """No worker, or no answer in time."""


class EndpointError(WireError):
    """An address that cannot be bound or connected to."""
