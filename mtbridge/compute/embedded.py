"""Make the OpenCL runtimes from PyPI work on a bare machine. Knows no pyopencl.

Three faults were found in them, and each has its cure here:

- PoCL links every kernel with the program `ld`, and aborts the whole process where there is none or
  where no libc to link with is installed (a bare Debian). Our kernels need no library, so a wrapper
  named `ld` that calls the linker of the ziglang wheel, without the libraries, is put on PATH.
- PoCL 3.0 asks its compiler for the processor "generic" where its LLVM (of 2022) does not know the
  processor's model, and the compiler refuses that name. `name_the_processor` writes a name that it knows.
- Intel's wheel for Windows does not register itself with the loader; its library is named in
  OCL_ICD_FILENAMES. (Not run by us: there was no Windows machine.)
- Intel's wheel for Linux registers itself in a folder that no loader reads, under a path that is not
  there. `intel_library` finds its library, and devices.py offers it to the loader beside all others. It
  also needs the wheel intel-cmplr-lib-rt, which it does not declare.

All of it happens before or just after the runtime is loaded, and is tried in a child process first.
"""

from __future__ import annotations

import atexit
import ctypes
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import struct
import sys
import tempfile
from functools import cache
from pathlib import Path

WRAPPER = """#!/bin/sh
# Link a kernel of PoCL without a compiler installed: kernels call no library, so none is linked.
for argument; do
  shift
  case "$argument" in
    -lc|-lgcc|-lgcc_s|-lm|*/crt*.o|crt*.o) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{python}" -P -m ziglang ld.lld "$@"
"""

# Names that LLVM 14 knows, with what each needs; the first that the processor has is taken.
PROCESSORS = (
    ("skylake-avx512", ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "bmi2", "fma")),
    ("haswell", ("avx2", "bmi2", "fma", "movbe", "f16c")),
    ("x86-64", ()),
)


def cache_folder() -> Path:
    """Return the folder of things that can be made again: $XDG_CACHE_HOME/mtbridge or its like."""
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "mtbridge"


def writable_cache() -> Path:
    """Return the cache folder, made; where it cannot be written to, one that ends with this process.

    XDG_CACHE_HOME then names that one: pyopencl keeps files there too, and fails where it cannot.
    """
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if os.access(folder, os.W_OK):
            return folder
    except OSError:
        pass
    if sys.platform == "win32":
        return _passing_folder()
    os.environ["XDG_CACHE_HOME"] = str(_passing_folder())
    folder = cache_folder()
    folder.mkdir(exist_ok=True)
    return folder


@cache
def _passing_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="mtbridge-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def has_ziglang() -> bool:
    return importlib.util.find_spec("ziglang") is not None


def intel_library() -> Path | None:
    """Return the library of Intel's runtime for the processor where its wheel for Linux is installed."""
    if sys.platform != "linux":
        return None
    try:
        files = importlib.metadata.distribution("intel-opencl-rt").files or []
    except importlib.metadata.PackageNotFoundError:
        return None
    # the wheel's own entry says where: below sys.prefix, or in the user's folder
    places = (Path(str(file.locate())).resolve() for file in files if file.name == "libintelocl.so")
    return next((place for place in places if place.is_file()), None)


def intel_libraries_version() -> str:
    """Return the version of the wheel whose libraries Intel's runtime needs; nothing where it is missing."""
    try:
        return importlib.metadata.version("intel-cmplr-lib-rt")
    except importlib.metadata.PackageNotFoundError:
        return ""


def wrap_linker() -> None:
    """Put our `ld` first on PATH, made in the cache folder when it is not there yet."""
    folder = writable_cache() / "linker"
    wrapper = folder / "ld"
    text = WRAPPER.format(python=sys.executable)
    if not wrapper.exists() or wrapper.read_text(encoding="utf-8") != text:
        folder.mkdir(parents=True, exist_ok=True)
        draft = folder / f"ld.{os.getpid()}"
        draft.write_text(text, encoding="utf-8")
        draft.chmod(0o755)
        draft.replace(wrapper)
    path = os.environ.get("PATH", "")
    if str(folder) not in path.split(os.pathsep):
        os.environ["PATH"] = f"{folder}{os.pathsep}{path}"


def prepare(linker: str, vendors: str = "") -> None:
    """Set up the environment in which the runtimes are loaded.

    Parameters
    ----------
    linker : what PoCL links kernels with, "system" or "ziglang"
    vendors : a folder of .icd files to load instead of the system's
    """
    if vendors:
        os.environ["OCL_ICD_VENDORS"] = vendors
    if linker == "ziglang":
        wrap_linker()
    if sys.platform == "linux" and platform.machine() == "x86_64":
        # PoCL's own cache may not tell two names of the processor apart
        os.environ.setdefault("POCL_CACHE_DIR", str(writable_cache() / f"pocl-{processor_name()}"))
    if sys.platform == "win32":
        library = Path(sys.prefix) / "Library" / "bin" / "intelocl64.dll"
        if library.exists():
            os.environ.setdefault("OCL_ICD_FILENAMES", str(library))


def system_linker() -> str | None:
    """Return the system's own `ld`; our wrapper, which `wrap_linker` put on PATH, is not it."""
    wrapper = str(cache_folder() / "linker")
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return shutil.which("ld", path=os.pathsep.join(folder for folder in folders if folder != wrapper))


def linkers() -> tuple[str, ...]:
    """Return the linkers worth a try, the better first."""
    found = ("system",) if system_linker() or sys.platform != "linux" else ()
    return (*found, "ziglang") if sys.platform == "linux" and has_ziglang() else found


def processor_name() -> str:
    """Return a name of this processor that LLVM 14 knows and whose instructions it has."""
    flags: set[str] = set()
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("flags"):
            flags = set(line.split(":", 1)[1].split())
            break
    return next(name for name, needs in PROCESSORS if flags.issuperset(needs))


def name_the_processor(device_address: int, driver: str) -> str | None:
    """Replace "generic" by a processor's name in PoCL 3.0's record of a device; return the name.

    Nothing but this version's record is touched: it is found as the pointer to "generic" that follows
    the pointer to the target triple, read through /proc so that a wrong guess cannot crash. None if there
    was nothing to replace.
    """
    if not driver.startswith("3.0") or sys.platform != "linux" or platform.machine() != "x86_64":
        return None
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:

        def read(address: int, size: int) -> bytes:
            try:
                memory.seek(address)
                return memory.read(size) or b""
            except (OSError, OverflowError, ValueError):
                return b""

        record = read(device_address, 1024)
        for offset in range(8, len(record) - 7, 8):
            before, here = struct.unpack_from("<QQ", record, offset - 8)
            if read(before, 7) == b"x86_64-" and read(here, 8) == b"generic\0":
                name = processor_name()
                ctypes.c_uint64.from_address(device_address + offset).value = _lasting(name)
                return name
    return None


def _lasting(name: str) -> int:
    """The address of a C string that lives as long as the process, as the runtime's own do."""
    duplicate = ctypes.CDLL(None).strdup
    duplicate.restype, duplicate.argtypes = ctypes.c_void_p, (ctypes.c_char_p,)
    return int(duplicate(name.encode()))
