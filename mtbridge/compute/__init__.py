"""Arrays in, arrays out: the engines, the moments and the operations on them."""

from __future__ import annotations

import os

from mtbridge.allowed import refuse_other, short
from mtbridge.compute.devices import VARIABLE, choose
from mtbridge.compute.engine import Engine
from mtbridge.compute.moments import Moments
from mtbridge.compute.precision import PRECISIONS
from mtbridge.errors import DeviceError, OptionError

__all__ = ["ENGINES", "Engine", "Moments", "device_or_numpy", "open_engine"]

ENGINES = ("auto", "opencl", "numpy", "serial")


def open_engine(name: str = "auto", *, device: str | None = None, precision: str = "full") -> Engine:
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
    precision : of products of float32; float64 is always itself
        "full": the error of an element is at most ``inner * eps * (|A| |B|)``. "split" and "single" are for
        the tensor cores of some NVIDIA GPUs and several times as fast: the error is a few 2**-22, or 2**-11
        as in TF32, of ``|a_i| |b_j|``, the norms of a row and a column, so what is small in them has fewer
        digits. Covariances are with "split" what they are with "full"; with "single" they too are as TF32.

    Raises
    ------
    OptionError
        If there is no such engine or precision, or the engine has none but "full".
    DeviceError
        If OpenCL is asked for and no device is usable, or none is `device`, or they are not of one kind, or
        the device has no kernels for `precision`.
    """
    refuse_other("precision", precision, PRECISIONS)
    if not isinstance(name, str) or name not in ENGINES:
        raise OptionError(f"there is no engine {short(name)}; choose one of {', '.join(ENGINES)}.")
    by_device = name == "opencl" or (name == "auto" and (device is not None or os.environ.get(VARIABLE)))
    if precision != "full" and not by_device:
        raise OptionError(
            f"precision {precision} is for the opencl engine on an NVIDIA GPU; name it (--engine opencl), or "
            "take precision full."
        )
    if name == "numpy":
        from mtbridge.compute.host import NumpyEngine

        return NumpyEngine()
    if name == "serial":
        from mtbridge.compute.serial import SerialEngine

        return SerialEngine()
    if not by_device:
        return _open_auto()
    from mtbridge.compute.several import open_devices

    # an index may come as a number
    return open_devices(None if device is None else str(device), precision=precision)


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
