"""Which OpenCL devices there are, which of them work, and which one is meant; runtimes.py finds the runtimes.

A device's first use happens in a child process (probe.py). Its verdict is kept in the cache folder
under the platform's and the driver's version, so that it costs a second once and nothing after.
"""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

import msgspec

from mtbridge.compute.embedded import cache_folder, linkers, prepare, writable_cache
from mtbridge.compute.probe import Answer, Listed
from mtbridge.compute.runtimes import (
    asked_vendors,
    beside_the_others,
    child,
    fingerprint,
    library_fault,
    loadable,
    offered_library,
    vendor_files,
)
from mtbridge.errors import DeviceError

VARIABLE = "MTBRIDGE_DEVICE"
TENSOR_CORES = "tensor_cores.json"
EVERY_GPU = "all"
INDICES = re.compile(r"\d+(\+\d+)+")
WAYS_TO_NAME = "an index, several of one kind as 0+1, all for every GPU, gpu, cpu or a part of a name"


class Verdict(msgspec.Struct, frozen=True):
    """What is known of one device.

    `linker` is what PoCL links kernels with ("system" or "ziglang"); `reason` says why a device is left out.
    Cards of one kind have one key; `twin` is how many of it come before.
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
    twin: int = 0


class Survey(msgspec.Struct, frozen=True):
    """Every device of this installation.

    `faults` are sentences about runtimes that could not be loaded at all; `vendors` is the folder of .icd
    files to load where one of the system's takes the loader down or Intel's runtime comes from PyPI, else
    empty.
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
        # a folder that was cleared away would leave the loader with nothing
        if mark in kept and (not kept[mark].vendors or Path(kept[mark].vendors).is_dir()):
            return numbered(kept[mark])
    found = numbered(examine())
    draft = writable_cache() / f"devices.{secrets.token_hex(4)}"
    draft.write_bytes(msgspec.json.encode({mark: found}))
    draft.replace(draft.with_name("devices.json"))
    # what tensor cores do wrong is looked for again, too
    draft.with_name(TENSOR_CORES).unlink(missing_ok=True)
    return found


def numbered(seen: Survey) -> Survey:
    """Return `seen` with the `twin` of each device, which no older cache knows."""
    keys = [verdict.key for verdict in seen.verdicts]
    twins = (keys[:index].count(key) for index, key in enumerate(keys))
    found = (msgspec.structs.replace(v, twin=twin) for v, twin in zip(seen.verdicts, twins, strict=True))
    return msgspec.structs.replace(seen, verdicts=tuple(found))


def examine() -> Survey:
    """Look at every runtime and every device, each in a child process."""
    options = linkers() or ("system",)
    faults = [fault for path in vendor_files() if (fault := library_fault(path))]
    vendors = ""
    output, fault = child(options[0], "list")
    if not fault and not faults and (intel := offered_library()):
        vendors, trouble = beside_the_others(options[0], output)
        if trouble:
            faults.append(f"{intel} is left out: {trouble}")
        else:
            output, fault = child(options[0], "list", vendors=vendors)
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


def choose(wanted: str | None = None) -> Verdict:
    """Return the device that is meant, of several that are to share the first; see `choose_all`."""
    return next(iter(choose_all(wanted).values()))


def choose_all(wanted: str | None = None) -> dict[int, Verdict]:
    """Return the devices that are meant, by their indices: one, or several that share big matrices.

    Parameters
    ----------
    wanted : an index of `mtbridge devices`, indices such as "0+1", "all" for every GPU that works, a part of
        a device's or platform's name, "gpu" or "cpu"
        By default the environment variable MTBRIDGE_DEVICE, else the first GPU, else the processor by
        Intel's runtime where it is installed, else the first device. Of several of a name or kind likewise.

    Raises
    ------
    DeviceError
        If no device is usable, none is meant, or one that is meant does not work; if devices that are to
        share differ in name or driver, for then an answer's last bits would tell which of them computed what.
    """
    wanted = wanted or os.environ.get(VARIABLE) or None
    seen = survey()
    if wanted is None:
        usable = {index: verdict for index, verdict in enumerate(seen.verdicts) if verdict.ok}
        if not usable:
            raise DeviceError(
                f"{nothing_usable(seen)}; `mtbridge devices --fresh` tries again and tells more."
            )
        return first_by_rank(usable)
    shared = INDICES.fullmatch(wanted) is not None
    meant: dict[int, Verdict] = {}
    for part in wanted.split("+") if shared else [wanted]:
        found = named(seen.verdicts, part)
        if not found:
            there = ", ".join(f"{index}: {v.name}" for index, v in enumerate(seen.verdicts)) or "none at all"
            what = "GPU among the OpenCL devices" if part.lower() == EVERY_GPU else f"OpenCL device {part!r}"
            raise DeviceError(f"there is no {what}; there are {there}; type {WAYS_TO_NAME}.")
        if meant.keys() & found.keys():
            raise DeviceError(f"{wanted!r} names the OpenCL device {part} twice; name each once.")
        meant |= found
    working = {index: verdict for index, verdict in meant.items() if verdict.ok}
    if not working or (shared and len(working) < len(meant)):
        broken = next(verdict for verdict in meant.values() if not verdict.ok)
        raise DeviceError(
            f"the OpenCL device {broken.name} does not work: {broken.reason}; "
            "`mtbridge devices --fresh` tries again."
        )
    if not shared and wanted.lower() != EVERY_GPU:
        return first_by_rank(working)
    refuse_unlike(working, wanted)
    return working


def first_by_rank(verdicts: dict[int, Verdict]) -> dict[int, Verdict]:
    index = min(verdicts, key=lambda at: rank(verdicts[at]))
    return {index: verdicts[index]}


def refuse_unlike(verdicts: dict[int, Verdict], wanted: str) -> None:
    """Refuse devices that are to share their work and are not of one name and driver."""
    alike: dict[str, list[str]] = {}
    for index, verdict in verdicts.items():
        alike.setdefault(verdict.key, []).append(str(index))
    if len(alike) > 1:
        most = max(alike.values(), key=lambda indices: len(indices))
        differing = ", ".join(f"{'+'.join(indices)}: {key}" for key, indices in alike.items())
        raise DeviceError(
            f"the OpenCL devices {wanted!r} differ ({differing}); only those of one name and driver share a "
            f"matrix: type --device {'+'.join(most)}."
        )


def rank(verdict: Verdict) -> int:
    """Order devices by what they are worth, the best first: GPUs, then Intel's runtime on any processor."""
    if verdict.kind == "gpu":
        return 0
    return 1 if verdict.kind == "cpu" and "Intel" in verdict.platform else 2


def named(verdicts: tuple[Verdict, ...], wanted: str) -> dict[int, Verdict]:
    """Return the devices that one index, word or part of a name means, by their indices."""
    word = wanted.casefold()
    kind = {"gpu": "gpu", "cpu": "cpu", EVERY_GPU: "gpu"}.get(word)

    def meant(index: int, verdict: Verdict) -> bool:
        if wanted.isdecimal():
            return index == int(wanted)
        if kind:
            return verdict.kind == kind
        return word in f"{verdict.name} {verdict.platform}".casefold()

    return {index: verdict for index, verdict in enumerate(verdicts) if meant(index, verdict)}


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
