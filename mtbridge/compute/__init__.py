"""Arrays in, arrays out: the engines, the moments and the operations on them."""

from __future__ import annotations

import os

from mtbridge.allowed import short
from mtbridge.compute.devices import VARIABLE, choose
from mtbridge.compute.engine import Engine
from mtbridge.compute.moments import Moments
from mtbridge.errors import DeviceError, OptionError

__all__ = ["ENGINES", "Engine", "Moments", "device_or_numpy", "open_engine"]

ENGINES = ("auto", "opencl", "numpy", "serial")


def open_engine(name: str = "auto", *, device: str | None = None) -> Engine:
    """Open an engine; close it, or use it in a `with` statement.

    Parameters
    ----------
    name : "auto", "opencl", "numpy" or "serial"
        `auto` takes numpy or OpenCL, by the call, whichever is faster by a measurement that is made once and
        kept; OpenCL where a device is named; numpy, with a line on stderr, where no device is usable.
    device : which OpenCL device: an index of `mtbridge devices`, a part of a name, "gpu" or "cpu"
        By default the environment variable MTBRIDGE_DEVICE, else the first GPU, else the processor by
        Intel's runtime where it is installed, else the first device. Several of one name and driver, which
        share big matrices: their indices, such as "0+1", or "all" for every GPU.

    Raises
    ------
    OptionError
        If there is no such engine.
    DeviceError
        If OpenCL is asked for and no device is usable, or none is `device`, or they are not of one kind.
    """
    if not isinstance(name, str) or name not in ENGINES:
        raise OptionError(f"there is no engine {short(name)}; choose one of {', '.join(ENGINES)}.")
    if name == "numpy":
        from mtbridge.compute.host import NumpyEngine

        return NumpyEngine()
    if name == "serial":
        from mtbridge.compute.serial import SerialEngine

        return SerialEngine()
    if name == "auto" and device is None and not os.environ.get(VARIABLE):
        return _open_auto()
    from mtbridge.compute.several import open_devices

    # an index may come as a number
    return open_devices(None if device is None else str(device))


def device_or_numpy(device: str | None = None) -> str:
    """Return "opencl" where a device is usable, else "numpy" with a line on stderr.

    Raises
    ------
    DeviceError
        If a device is named, here or by MTBRIDGE_DEVICE, and is not usable.
    """
    try:
        choose(device)
    except DeviceError as error:
        if device is not None or os.environ.get(VARIABLE):
            raise
        from mtbridge.compute.auto import say_fallback

        say_fallback(str(error))
        return "numpy"
    return "opencl"


def _open_auto() -> Engine:
    from mtbridge.compute.auto import AutoEngine, say_fallback

    try:
        return AutoEngine()
    except DeviceError as error:
        say_fallback(str(error))
        return open_engine("numpy")
