"""The OpenCL device of this machine, for programs that reach it through the shim."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import sys
from pathlib import Path

from mtbridge.compute import embedded


def loader() -> Path | None:
    """The loader library that pyopencl brings; None where pyopencl takes the system's."""
    folder = Path(str(importlib.metadata.distribution("pyopencl").locate_file("pyopencl/.libs")))
    return next(iter(sorted(folder.glob("libOpenCL*"))), None) if folder.is_dir() else None


def surroundings() -> dict[str, str]:
    """Environment in which the shim finds the device, after `mtbridge.compute.devices.load`.

    With PYOPENCL_HOME set, the loader of pyopencl finds the runtimes that lie beside it.
    """
    library = loader()
    found = {"MQL_OPENCL_LIBRARY": str(library or "libOpenCL.so.1")}
    if library is not None:
        paths = [str(library.parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
        found |= {"PYOPENCL_HOME": str(library.parents[1]), "LD_LIBRARY_PATH": os.pathsep.join(paths)}
    if sys.platform == "linux" and platform.machine() == "x86_64":
        found["MQL_PROCESSOR"] = embedded.processor_name()
    return found
