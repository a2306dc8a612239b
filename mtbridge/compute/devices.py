"""Which OpenCL devices there are, which of them work, and which one is meant.

A device's first use happens in a child process (probe.py). Its verdict is kept in the cache folder
under the platform's and the driver's version, so that it costs a second once and nothing after.
"""

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

from mtbridge.compute.embedded import cache_folder, linkers, prepare, system_linker, writable_cache
from mtbridge.compute.probe import Answer, Listed
from mtbridge.errors import DeviceError
from mtbridge.sources import PACKAGE

PROBE_SECONDS = 120
VARIABLE = "MTBRIDGE_DEVICE"
VARIABLES_OF_LOADERS = ("OCL_ICD_FILENAMES", "POCL_DEVICES", "LD_LIBRARY_PATH")


class Verdict(msgspec.Struct, frozen=True):
    """What is known of one device.

    `linker` is what PoCL links kernels with ("system" or "ziglang"); `reason` says why a device is left out.
    """

    key: str
    platform: str
    name: str
    kind: str
    ok: bool
    reason: str = ""
    linker: str = "system"
    fp64: bool = False
    vector_bytes: int = 0


class Survey(msgspec.Struct, frozen=True):
    """Every device of this installation.

    `faults` are sentences about runtimes that could not be loaded at all; `vendors` is the folder of .icd
    files to load where one of the system's takes the loader down, else empty.
    """

    verdicts: tuple[Verdict, ...]
    faults: tuple[str, ...] = ()
    vendors: str = ""


def survey(*, fresh: bool = False) -> Survey:
    """Return the verdict on every device, from the cache where nothing has changed since.

    Parameters
    ----------
    fresh : look again, whatever the cache says
    """
    store = cache_folder() / "devices.json"
    mark = fingerprint()
    if not fresh:
        try:
            kept = msgspec.json.decode(store.read_bytes(), type=dict[str, Survey])
        except (OSError, msgspec.DecodeError):
            kept = {}
        if mark in kept:
            return kept[mark]
    found = examine()
    draft = writable_cache() / f"devices.{os.getpid()}"
    draft.write_bytes(msgspec.json.encode({mark: found}))
    draft.replace(draft.with_name("devices.json"))
    return found


def examine() -> Survey:
    """Look at every runtime and every device, each in a child process."""
    options = linkers() or ("system",)
    faults = [fault for path in vendor_files() if (fault := library_fault(path))]
    vendors = ""
    output, fault = child(options[0], "list")
    if fault and not Path(asked_vendors()).is_file():
        vendors, lost = loadable(options[0])
        faults += lost
        output, fault = child(options[0], "list", vendors=vendors)
    if fault:
        named = ", ".join(map(str, vendor_files())) or "OpenCL"
        return Survey((), (*faults, f"{named} could not be loaded: {fault}"))
    verdicts = []
    for index, device in enumerate(msgspec.json.decode(output, type=list[Listed])):
        answer, linker = Answer(ok=False), options[0]
        for linker in options:
            output, fault = child(linker, str(index), vendors=vendors)
            answer = Answer(ok=False, reason=fault) if fault else msgspec.json.decode(output, type=Answer)
            if answer.ok:
                break
        verdicts.append(
            Verdict(
                key=device.key,
                platform=device.platform,
                name=device.name,
                kind=device.kind,
                ok=answer.ok,
                reason=answer.reason,
                linker=linker,
                fp64=answer.fp64,
                vector_bytes=answer.vector_bytes,
            )
        )
    return Survey(tuple(verdicts), tuple(faults), vendors)


def asked_vendors() -> str:
    """Return OCL_ICD_VENDORS as the user set it; the folder that `load` put there is our own answer."""
    value = os.environ.get("OCL_ICD_VENDORS", "")
    return "" if value == str(cache_folder() / "vendors") else value


def vendor_files() -> list[Path]:
    """Return the .icd files that the loader on Linux reads."""
    place = Path(asked_vendors() or "/etc/OpenCL/vendors")
    if place.is_file() and place.suffix == ".icd":
        return [place]
    # a link that outlived its driver is no file
    return sorted(path for path in place.glob("*.icd") if path.is_file()) if place.is_dir() else []


def library_fault(path: Path) -> str:
    """Return a sentence if the library that an .icd file names is not there or is no library, else nothing.

    The loader passes such a file over without a word. A library that dies is found by `loadable`.
    """
    _, fault = child("system", "library", str(path))
    return f"{path} is left out: {fault}" if "cannot be loaded" in fault else ""


def loadable(linker: str) -> tuple[str, list[str]]:
    """Return a folder with the .icd files that can be loaded alone, and sentences about the others."""
    good = writable_cache() / "vendors"
    shutil.rmtree(good, ignore_errors=True)
    good.mkdir()
    lost = []
    for path in vendor_files():
        with tempfile.TemporaryDirectory() as alone:
            shutil.copy(path, alone)
            _, fault = child(linker, "list", vendors=alone)
        if fault:
            lost.append(f"{path} is left out: {fault}")
        else:
            shutil.copy(path, good)
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
    ]
    parts += [os.environ.get(name, "") for name in VARIABLES_OF_LOADERS]
    for path in [*vendor_files(), *(sorted(libraries.iterdir()) if libraries.is_dir() else [])]:
        parts.append(f"{path} {path.stat().st_mtime_ns}")
    with contextlib.suppress(OSError):
        cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        parts += [line for line in cpu.splitlines() if line.startswith(("model name", "flags"))][:2]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def choose(wanted: str | None = None) -> Verdict:
    """Return the device that is meant.

    Parameters
    ----------
    wanted : an index of `mtbridge devices`, a part of a device's or platform's name, "gpu" or "cpu"
        By default the environment variable MTBRIDGE_DEVICE, else the first GPU, else the first device.

    Raises
    ------
    DeviceError
        If no device is usable, none is meant, or the one that is meant does not work.
    """
    wanted = wanted or os.environ.get(VARIABLE) or None
    seen = survey()
    usable = [verdict for verdict in seen.verdicts if verdict.ok]
    if wanted is None:
        if not usable:
            raise DeviceError(
                f"{nothing_usable(seen)}; `mtbridge devices --fresh` tries again and tells more."
            )
        return next((verdict for verdict in usable if verdict.kind == "gpu"), usable[0])
    meant = named(seen.verdicts, wanted)
    if not meant:
        there = ", ".join(f"{index}: {v.name}" for index, v in enumerate(seen.verdicts)) or "none at all"
        raise DeviceError(f"there is no OpenCL device {wanted!r}; there are {there}.")
    working = [verdict for verdict in meant if verdict.ok]
    if not working:
        raise DeviceError(
            f"the OpenCL device {meant[0].name} does not work: {meant[0].reason}; "
            "`mtbridge devices --fresh` tries again."
        )
    return working[0]


def named(verdicts: tuple[Verdict, ...], wanted: str) -> list[Verdict]:
    if wanted.isdecimal():
        return [verdicts[int(wanted)]] if int(wanted) < len(verdicts) else []
    if wanted.lower() in ("gpu", "cpu"):
        return [verdict for verdict in verdicts if verdict.kind == wanted.lower()]
    part = wanted.casefold()
    return [verdict for verdict in verdicts if part in f"{verdict.name} {verdict.platform}".casefold()]


def nothing_usable(seen: Survey) -> str:
    """Return why no device can be used, without an end mark."""
    if seen.verdicts:
        first = seen.verdicts[0]
        return f"no OpenCL device works ({first.name}: {first.reason})"
    if seen.faults:
        return f"no OpenCL device was found ({seen.faults[0]})"
    return "no OpenCL device was found; install a driver, or `pip install mtbridge[cpu]` for the processor"


def load(verdict: Verdict) -> None:
    """Prepare this process for the device's runtime, before pyopencl is imported."""
    prepare(verdict.linker, survey().vendors)
