"""The first use of a device, in a child process: `python -m mtbridge.compute.probe`.

A broken runtime may abort, crash or hang; here that ends a child and becomes a verdict. The child
prints one line of JSON. Its arguments are a linker, and then `list` for the devices that the loader
lists, an index for what that device answered to kernels/probe.cl, `tensor cores KEY CAPABILITY FAMILY` for
what that device's tensor cores do wrong with a family of kernels, or `library FILE` for whether that library,
or the one that an .icd file names, can be opened.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import msgspec
import numpy as np

from mtbridge.compute.embedded import prepare


class Listed(msgspec.Struct, frozen=True):
    """A device as the loader lists it."""

    key: str
    platform: str
    name: str
    kind: str


class Answer(msgspec.Struct, frozen=True):
    """What a device answered: `vector_bytes` of its compiler's registers, 0 if unknown."""

    ok: bool
    reason: str = ""
    fp64: bool = False
    vector_bytes: int = 0


def listed() -> list[Listed]:
    from mtbridge.compute.opencl import enumerate_devices

    return [Listed(found.key, found.platform, found.name, found.kind) for found in enumerate_devices()]


def probed(index: int) -> Answer:
    from mtbridge.compute.opencl import Device, enumerate_devices

    device = Device(enumerate_devices()[index])
    data = np.arange(1, 5, dtype=np.float32)
    source = device.send("source", data)
    target, out = device.result("out", (1, 4), np.dtype(np.float32))
    kernel = device.kernel("probe", ("probe.cl",), {})
    device.run(kernel, (1,), (1,), source, target)
    answer = device.receive(target, out)[0]
    if answer[0] != 42 or answer[1] != 10:
        return Answer(ok=False, reason=f"it computed {answer[1]} for 1 + 2 + 3 + 4")
    # only PoCL reports a width that its compiler does not use; only Intel's compiler does not name its own
    vector_bytes = int(answer[2]) or device.native_bytes
    return Answer(ok=True, fp64=device.fp64, vector_bytes=vector_bytes)


def tensor_cores(key: str, capability: int, family: str) -> str:
    """Return what the device does wrong with a family of kernels; nothing if they are right."""
    from mtbridge.compute import finish, int8_mma, nvidia, opencl_masks, precision, split_mma
    from mtbridge.compute.opencl import Device, enumerate_devices
    from mtbridge.compute.opencl_moments import SUM
    from mtbridge.compute.tensor_cores import form_of
    from mtbridge.errors import DeviceError

    device = Device(next(found for found in enumerate_devices() if found.key == key))
    try:
        name, _, asked = family.partition(" ")
        if asked == "masks":
            return opencl_masks.fault_of(device, form_of(name, capability))
        if asked:
            form = form_of(name, capability, precision.PRODUCTS[asked])
            return precision.fault_of(device, form, np.dtype(np.float32))
        if family.startswith("split_"):
            form = form_of(family, capability)
            fault = split_mma.fault_of(device, form) or precision.fault_of(device, form, SUM)
            return fault or finish.fault_of(device, form)
        if family == "int8_mma":
            return int8_mma.fault_of(device, capability)
        fault = nvidia.fault_of(device, nvidia.tensor_core_form(capability))
        return fault or nvidia.fault_of_batches(device, capability)
    except (DeviceError, MemoryError) as error:
        return str(error)


def opened(path: Path) -> bool:
    """Open a library, or the one that an .icd file names, as the loader would."""
    name = path.read_text(encoding="utf-8").strip() if path.suffix == ".icd" else str(path)
    try:
        ctypes.CDLL(name)
    except OSError as error:
        sys.exit(f"{name} cannot be loaded ({error})")
    return True


def main() -> None:
    linker, what, *rest = sys.argv[1:]
    prepare(linker)
    message: list[Listed] | Answer | bool | str
    if what == "library":
        message = opened(Path(rest[0]))
    elif what == "tensor cores":
        message = tensor_cores(rest[0], int(rest[1]), rest[2])
    else:
        message = listed() if what == "list" else probed(int(what))
    print(msgspec.json.encode(message).decode(), flush=True)


if __name__ == "__main__":
    main()
