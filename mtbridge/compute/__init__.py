"""Arrays in, arrays out: the engines, the moments and the operations on them."""

from __future__ import annotations

import os
import sys

from mtbridge.compute.devices import VARIABLE
from mtbridge.compute.engine import Engine
from mtbridge.compute.moments import Moments
from mtbridge.errors import DeviceError, OptionError

__all__ = ["ENGINES", "Engine", "Moments", "open_engine"]

ENGINES = ("auto", "opencl", "numpy", "serial")


def open_engine(name: str = "auto", *, device: str | None = None) -> Engine:
    """Open an engine; close it, or use it in a `with` statement.

    Parameters
    ----------
    name : "auto", "opencl", "numpy" or "serial"
        `auto` is OpenCL where a device is usable, and numpy with a line on stderr where none is.
    device : which OpenCL device: an index of `mtbridge devices`, a part of a name, "gpu" or "cpu"
        By default the environment variable MTBRIDGE_DEVICE, else the first GPU, else the first device.

    Raises
    ------
    OptionError
        If there is no such engine.
    DeviceError
        If OpenCL is asked for and no device is usable, or none is `device`.
    """
    if name not in ENGINES:
        raise OptionError(f"there is no engine {name!r}; choose one of {', '.join(ENGINES)}.")
    if name == "numpy":
        from mtbridge.compute.host import NumpyEngine

        return NumpyEngine()
    if name == "serial":
        from mtbridge.compute.serial import SerialEngine

        return SerialEngine()
    try:
        from mtbridge.compute.opencl_engine import open_opencl

        # an index may come as a number
        return open_opencl(None if device is None else str(device))
    except DeviceError as error:
        if name == "opencl" or device is not None or os.environ.get(VARIABLE):
            raise
        print(f"mtbridge: numpy is used, since {error}", file=sys.stderr)
        return open_engine("numpy")
