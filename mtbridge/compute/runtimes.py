"""Which OpenCL runtimes there are: what the loader reads, and a child process to look at one."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec

from mtbridge.compute.embedded import (
    cache_folder,
    intel_libraries_version,
    intel_library,
    system_linker,
    writable_cache,
)
from mtbridge.compute.probe import Listed
from mtbridge.sources import PACKAGE

PROBE_SECONDS = 120
VARIABLES_OF_LOADERS = ("OCL_ICD_FILENAMES", "POCL_DEVICES", "LD_LIBRARY_PATH")


def asked_vendors() -> str:
    """Return OCL_ICD_VENDORS as the user set it; the folder that `load` put there is our own answer."""
    value = os.environ.get("OCL_ICD_VENDORS", "")
    ours = cache_folder() / "vendors"
    return "" if ours in (Path(value), *Path(value).parents) else value


def own_vendors() -> Path:
    """Return an empty folder for the .icd files of this installation; another one has its own."""
    folder = writable_cache() / "vendors" / fingerprint()[:16]
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def register(path: Path, folder: Path) -> None:
    """Copy an .icd file to `folder`, or write one there that names a library."""
    if path.suffix == ".icd":
        shutil.copy(path, folder)
    else:
        (folder / f"{path.stem}.icd").write_text(f"{path}\n", encoding="utf-8")


def offered_library() -> Path | None:
    """Return the library of Intel's runtime from PyPI, unless the user says what the loader reads."""
    return None if asked_vendors() else intel_library()


def beside_the_others(linker: str, output: str) -> tuple[str, str]:
    """Offer Intel's runtime to the loader beside the devices of `output`, what the probe listed without it.

    Returns the folder of .icd files to load, or why it cannot be offered; one of them is empty. A loader that
    looks in other places than /etc/OpenCL/vendors would lose what it finds there: that is no bargain.
    """
    folder = own_vendors()
    for path in vendor_files():
        register(path, folder)
    more, fault = child(linker, "list", vendors=str(folder))
    if fault:
        return "", fault
    before, after = (msgspec.json.decode(text, type=list[Listed]) for text in (output, more))
    there = {device.key for device in after}
    lost = [device.name for device in before if device.key not in there]
    return ("", f"the loader would lose {', '.join(lost)}") if lost else (str(folder), "")


def vendor_files() -> list[Path]:
    """Return the .icd files that the loader on Linux reads, and the library of Intel's runtime from PyPI."""
    place = Path(asked_vendors() or "/etc/OpenCL/vendors")
    if place.is_file() and place.suffix == ".icd":
        return [place]
    # a link that outlived its driver is no file
    found = sorted(path for path in place.glob("*.icd") if path.is_file()) if place.is_dir() else []
    return [*found, *filter(None, [offered_library()])]


def library_fault(path: Path) -> str:
    """Return a sentence if the library that an .icd file names is not there or is no library, else nothing.

    The loader passes such a file over without a word. A library that dies is found by `loadable`.
    """
    _, fault = child("system", "library", str(path))
    if "cannot be loaded" not in fault:
        return ""
    mend = ""
    if path.suffix != ".icd" and not intel_libraries_version():
        mend = "; `pip install intel-cmplr-lib-rt` brings what it needs"
    return f"{path} is left out: {fault}{mend}"


def loadable(linker: str) -> tuple[str, list[str]]:
    """Return a folder with the .icd files that can be loaded alone, and sentences about the others."""
    good = own_vendors()
    lost = []
    for path in vendor_files():
        with tempfile.TemporaryDirectory() as alone:
            register(path, Path(alone))
            _, fault = child(linker, "list", vendors=alone)
        if fault:
            lost.append(f"{path} is left out: {fault}")
        else:
            register(path, good)
    return str(good), lost


def child(linker: str, *what: str, vendors: str = "") -> tuple[str, str]:
    """Run the probe; return its line and what went wrong, one of them empty."""
    # -P keeps the current folder off the child's path, where a stray file may have the name of a package;
    # this package itself may be a checkout that was found through that folder
    home = os.pathsep.join(filter(None, (str(PACKAGE.parent), os.environ.get("PYTHONPATH"))))
    environment = {**os.environ, "PYTHONPATH": home}
    if vendors:
        environment["OCL_ICD_VENDORS"] = vendors
    try:
        # the arguments are ours: a linker's name, and an index or a word and a path
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-P", "-m", "mtbridge.compute.probe", linker, *what],
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            check=False,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        return "", f"no answer within {PROBE_SECONDS} s"
    if done.returncode == 0 and done.stdout.strip():
        return done.stdout.strip().splitlines()[-1], ""
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    # PoCL names its reason before it aborts; Python puts it last
    reasons = (line for line in said if "doesn't exist" in line or "linking" in line)
    ending = next(reasons, said[-1] if said else "")
    how = (
        f"ended by signal {-done.returncode}" if done.returncode < 0 else f"ended with code {done.returncode}"
    )
    return "", f"its first use {how}: {ending}" if ending else f"its first use {how}"


def fingerprint() -> str:
    """A text that changes when an OpenCL runtime, a linker or the processor does, and not by `load`."""
    libraries = Path(str(importlib.metadata.distribution("pyopencl").locate_file("pyopencl/.libs")))
    parts = [
        importlib.metadata.version("pyopencl"),
        sys.prefix,
        platform.processor(),
        str(system_linker()),
        asked_vendors(),
        intel_libraries_version(),
    ]
    parts += [os.environ.get(name, "") for name in VARIABLES_OF_LOADERS]
    for path in [*vendor_files(), *(sorted(libraries.iterdir()) if libraries.is_dir() else [])]:
        parts.append(f"{path} {path.stat().st_mtime_ns}")
    with contextlib.suppress(OSError):
        cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        parts += [line for line in cpu.splitlines() if line.startswith(("model name", "flags"))][:2]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
