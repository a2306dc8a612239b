"""Programs for instructions of sm_90a, which NVIDIA's OpenCL compiler does not take: by way of its own PTX.

The compiler makes PTX for sm_90 of OpenCL C, and the driver takes PTX for a program. So instructions of
sm_90a stand in the OpenCL C as comments of PTX, behind MARK; here the PTX is taken out of the program and
retargeted, the marks are removed, and a program is made of it again. None of that is promised by anyone:
whatever looks otherwise than it did when this was written is a DeviceError, and the caller has other kernels.
"""

from __future__ import annotations

import re

import pyopencl as cl

from mtbridge.errors import DeviceError

ROUTE = "RETARGET"
"""A program with this macro, and not 0, is built here."""

MARK = "//@"
"""Before an instruction of sm_90a, at the end of which its line ends."""

KNOWN_VERSIONS = range(78, 100)
"""Versions of PTX, 10 * major + minor, from the first one with sm_90a up to the next major one."""


def retargeted(ptx: str) -> str:
    """Return PTX for sm_90 as PTX for sm_90a, with the instructions behind marks.

    Raises
    ------
    DeviceError
        If it is not such PTX; the sentence has no end mark.
    """
    version = re.search(r"^\.version (\d+)\.(\d)\s*$", ptx, re.MULTILINE)
    if version is None:
        raise DeviceError("the compiler's binary is no PTX")
    if int(version[1] + version[2]) not in KNOWN_VERSIONS:
        raise DeviceError(f"the compiler's PTX is of version {version[1]}.{version[2]}")
    targets = re.findall(r"^\.target .*$", ptx, re.MULTILINE)
    if len(targets) != 1 or not re.fullmatch(r"\.target sm_90(,[\w, ]*)?", targets[0].rstrip()):
        raise DeviceError(f"the compiler's PTX is for {', '.join(targets) or 'no target'}, not for sm_90")
    if MARK not in ptx:
        raise DeviceError(f"the compiler's PTX has no {MARK}")
    return ptx.replace(targets[0], targets[0].replace("sm_90", "sm_90a")).replace(MARK, "")


def build(context: cl.Context, text: str, *, cache: str | None = None) -> cl.Program:
    """Build OpenCL C with marked instructions for the device of `context`; `cache` as pyopencl has it.

    Raises
    ------
    DeviceError
        If the PTX is not as expected, or the driver refuses what was made of it.
    """
    first = cl.Program(context, text).build(cache_dir=cache)
    (binary,) = first.get_info(cl.program_info.BINARIES)
    ptx = retargeted(binary.decode("utf-8", "replace"))
    try:
        program: cl.Program = cl.Program(context, context.devices, [ptx.encode()]).build()
    except cl.Error as error:
        raise DeviceError(f"the driver refuses PTX for sm_90a: {error}") from error
    return program
