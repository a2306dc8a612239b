"""Which OpenCL devices there are, which of them work, and which one is meant.

A device's first use happens in a child process (probe.py). Its verdict is kept in the cache folder
under the platform's and the driver's version, so that it costs a second once and nothing after.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec

from mtbridge.compute.embedded import cache_folder, linkers, prepare
from mtbridge.compute.probe import Answer, Listed
from mtbridge.errors import DeviceError

PROBE_SECONDS = 120
VARIABLE = "MTBRIDGE_DEVICE"


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
    """Every device of this installation, and what was wrong with the loader itself, if anything."""

    verdicts: tuple[Verdict, ...]
    fault: str = ""


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
    store.parent.mkdir(parents=True, exist_ok=True)
    draft = store.with_suffix(f".{os.getpid()}")
    draft.write_bytes(msgspec.json.encode({mark: found}))
    draft.replace(store)
    return found


def examine() -> Survey:
    """Look at every device, each in a child process."""
    if not linkers():
        options: tuple[str, ...] = ("system",)
    else:
        options = linkers()
    output, fault = child(options[0])
    if fault:
        return Survey((), f"OpenCL could not be loaded: {fault}")
    verdicts = []
    for index, device in enumerate(msgspec.json.decode(output, type=list[Listed])):
        answer, linker = Answer(ok=False), options[0]
        for linker in options:
            output, fault = child(linker, str(index))
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
    return Survey(tuple(verdicts))


def child(*arguments: str) -> tuple[str, str]:
    """Run the probe; return its line and what went wrong, one of them empty."""
    try:
        # the arguments are ours: a linker's name and an index
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "mtbridge.compute.probe", *arguments],
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return "", f"no answer within {PROBE_SECONDS} s"
    if done.returncode == 0 and done.stdout.strip():
        return done.stdout.strip().splitlines()[-1], ""
    said = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    # PoCL names its reason before it aborts; Python puts it last
    ending = next(
        (line for line in said if "doesn't exist" in line or "linking" in line), said[-1] if said else ""
    )
    how = (
        f"ended by signal {-done.returncode}" if done.returncode < 0 else f"ended with code {done.returncode}"
    )
    return "", f"its first use {how}: {ending}" if ending else f"its first use {how}"


def fingerprint() -> str:
    """A text that changes when an OpenCL runtime, a linker or the processor does."""
    import importlib.metadata
    import platform
    import shutil

    parts = [
        importlib.metadata.version("pyopencl"),
        sys.prefix,
        platform.processor(),
        str(shutil.which("ld")),
    ]
    folders = [Path("/etc/OpenCL/vendors"), Path(sys.prefix) / "etc" / "OpenCL" / "vendors"]
    vendors = os.environ.get("OCL_ICD_VENDORS")
    if vendors:
        parts.append(vendors)
        folders.append(Path(vendors))
    parts += [os.environ.get(name, "") for name in ("OCL_ICD_FILENAMES", "POCL_DEVICES", "LD_LIBRARY_PATH")]
    spec = importlib.metadata.distribution("pyopencl").locate_file("pyopencl/.libs")
    folders.append(Path(str(spec)))
    for folder in folders:
        if folder.is_dir():
            parts += [f"{path} {path.stat().st_mtime_ns}" for path in sorted(folder.iterdir())]
    try:
        cpu = Path("/proc/cpuinfo").read_text(encoding="utf-8")
        parts += [line for line in cpu.splitlines() if line.startswith(("model name", "flags"))][:2]
    except OSError:
        pass
    import hashlib

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
            raise DeviceError(nothing_usable(seen))
        return next((verdict for verdict in usable if verdict.kind == "gpu"), usable[0])
    meant = named(seen.verdicts, wanted)
    if not meant:
        there = ", ".join(f"{index}: {v.name}" for index, v in enumerate(seen.verdicts)) or "none at all"
        raise DeviceError(f"there is no OpenCL device {wanted!r}; there are {there}.")
    working = [verdict for verdict in meant if verdict.ok]
    if not working:
        raise DeviceError(f"the OpenCL device {meant[0].name} does not work: {meant[0].reason}.")
    return working[0]


def named(verdicts: tuple[Verdict, ...], wanted: str) -> list[Verdict]:
    if wanted.isdecimal():
        return [verdicts[int(wanted)]] if int(wanted) < len(verdicts) else []
    if wanted.lower() in ("gpu", "cpu"):
        return [verdict for verdict in verdicts if verdict.kind == wanted.lower()]
    part = wanted.casefold()
    return [verdict for verdict in verdicts if part in f"{verdict.name} {verdict.platform}".casefold()]


def nothing_usable(seen: Survey) -> str:
    if seen.fault:
        return f"{seen.fault}; `mtbridge devices` tells more."
    if seen.verdicts:
        first = seen.verdicts[0]
        return f"no OpenCL device works ({first.name}: {first.reason}); `mtbridge devices` tells more."
    return "no OpenCL device was found; install a driver, or `pip install mtbridge[cpu]` for the processor."


def load(verdict: Verdict) -> None:
    """Prepare this process for the device's runtime, before pyopencl is imported."""
    prepare(verdict.linker)
