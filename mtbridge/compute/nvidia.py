"""What is known of NVIDIA's devices alone: the tensor cores of double precision, and whether to trust them.

Their kernels (kernels/gram/dmma.cl, kernels/multiply/dmma.cl) are written in the device's own instructions,
which a driver may refuse and another device compute otherwise. So they are checked before their first use, in
a child process, since a wrong address takes a whole context down. The verdict is kept in the cache folder for
a device, its driver and the very kernels; where it is bad, the portable kernels are there.
"""

from __future__ import annotations

import secrets
from itertools import product
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from mtbridge.compute import devices, runtimes
from mtbridge.compute.embedded import cache_folder, writable_cache
from mtbridge.compute.forms import FINISH, MOST_SQUARES, Form
from mtbridge.compute.quarters import BLOCK, PANEL
from mtbridge.matrix import Matrix
from mtbridge.sources import kernels_hash

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

FIRST_CAPABILITY = 80
"""The first compute capability, 10 * major + minor, with tensor cores of double precision."""

STAGES = {80: 4, 87: 4, 90: 5, 100: 5, 103: 5}
"""Stages of 32 KB in local memory, where a group has more than 100 KB of it; 3 elsewhere."""

SHAPES = ((1, 1, 1), (129, 37, 130), (127, 1000, 258), (300, 5002, 131))
"""(rows, inner, columns) of the products of the check: ragged, and the deep ones cut into pieces."""

BATCHES = ((3, 37, 21), (3, 21, 50))
"""(matrices, rows, columns) of the batches of the check: ragged, and of an odd number of tiles."""

STEP, ITEMS = 16, 256
"""Of kernels/dmma.clh: inner indices of a step, items of a group."""


def capability(platform: str, handle: Any) -> int:
    """Return the compute capability of a device, 10 * major + minor; 0 if its driver is not NVIDIA's."""
    # other runtimes on the same device answer this too, but have a compiler of their own
    if "NVIDIA" not in platform or "cl_nv_device_attribute_query" not in handle.extensions:
        return 0
    return 10 * int(handle.compute_capability_major_nv) + int(handle.compute_capability_minor_nv)


def tensor_core_form(capability: int) -> Form:
    """Return the form of float64 products on tensor cores; with capability 0, the same in plain OpenCL C."""
    stages = STAGES.get(capability, 3)
    return Form(
        headers=(
            *(FINISH, "dmma.clh", "dmma_multiply.clh", "dmma_ptx.clh"),
            *("dmma_copy.clh", "dmma_tile.clh", "dmma_parts.clh"),
        ),
        file="dmma",
        defines={"CAPABILITY": capability, "STAGES": stages},
        left=PANEL,
        right=PANEL,
        rows=BLOCK,
        columns=BLOCK,
        inner=STEP,
        group=ITEMS,
        squares=MOST_SQUARES,
        mirrors=True,
        finishes=True,
        direct=True,
    )


def trusted(key: str, capability: int, *, family: str = "dmma") -> tuple[bool, str]:
    """Return whether the tensor cores of a device may be used, and a sentence if that was found out just now.

    Parameters
    ----------
    key : of the device (`Verdict.key`)
    capability : its compute capability
    family : the kernels that are meant: "dmma", "int8_mma", one of tensor_cores.py, or one of these with a
        blank and a precision, or "masks"
    """
    mark = mark_of(key, capability, family)
    store = cache_folder() / devices.TENSOR_CORES
    try:
        kept = msgspec.json.decode(store.read_bytes(), type=dict[str, str])
    except (OSError, msgspec.MsgspecError, ValueError):
        kept = {}
    if mark in kept:
        return not kept[mark], ""
    output, fault = runtimes.child("system", "tensor cores", key, str(capability), family)
    if not fault:
        fault = msgspec.json.decode(output, type=str)
    current = {old: verdict for old, verdict in kept.items() if old.endswith(kernels_hash())}
    draft = writable_cache() / f"tensor_cores.{secrets.token_hex(4)}"
    draft.write_bytes(msgspec.json.encode({**current, mark: fault}))
    draft.replace(draft.with_name(devices.TENSOR_CORES))
    return not fault, fault


def mark_of(key: str, capability: int, family: str) -> str:
    """Return what a verdict is kept under; other kernels are to be checked anew."""
    return f"{key} | {capability} | {family} | {kernels_hash()}"


def fault_of(device: Device, form: Form) -> str:
    """Return what the kernels of `form` do wrong on `device`, without an end mark; nothing if they do not."""
    random = np.random.default_rng(1)
    for rows, inner, columns in SHAPES:
        A, B = random.standard_normal((rows, inner)), random.standard_normal((inner, columns))
        # matrices are read where they lie, in either order
        for left, right in product((A, A.T.copy().T), (B, B.T.copy().T)):
            if fault := _fault_in(device, form, left, right):
                return fault
    # in the last rows and columns, beside the padding, and amid the others
    for at, value in ((-1, np.nan), (0, np.inf), (30, -np.inf), (5, np.nan)):
        A[at, at] = B[at, at] = value
    return _fault_in(device, form, A, B)


def _fault_in(device: Device, form: Form, A: Matrix, B: Matrix) -> str:
    from mtbridge.compute.launches import Launches

    launches, limit, total = Launches(device), device.largest_buffer, np.dtype(np.float64)
    for name, left, right in (("product", A, B), ("X'X", B.T, B)):
        shape = (left.shape[0], right.shape[1])
        answers = []
        for _ in range(2):
            target, out = device.result("product", shape, total)
            if name == "product":
                launches.product(form, left, right, total, target, limit)
            else:
                launches.gram(form, right, total, target, limit)
            answers.append(device.receive(target, out))
        found, again = answers
        if found.tobytes() != again.tobytes():
            return f"a {name} of {left.shape} by {right.shape} has other bits each time"
        if not right_answer(found, left, right):
            return f"a {name} of {left.shape} by {right.shape} is wrong"
        if name != "product" and not np.array_equal(found, found.T, equal_nan=True):
            return f"a {name} of {left.shape} by {right.shape} is not symmetric"
    return ""


def fault_of_batches(device: Device, capability: int) -> str:
    """Return what is wrong with batches (kernels/batch/tile_dmma.clh), as `fault_of` does.

    With `capability` 0 they are in plain OpenCL C. Others that have no use for tensor cores have no fault.
    """
    from mtbridge.compute.batch_plan import FULL_RATE, Card
    from mtbridge.compute.opencl_engine import OpenCLEngine

    if capability not in (0, *FULL_RATE):
        return ""
    engine = OpenCLEngine(device, tiled=device.largest_group)
    engine.batch_plans = Card(engine.limits, capability)
    random = np.random.default_rng(1)
    A, B = (random.standard_normal(shape) for shape in BATCHES)
    A[1, 36, 20] = B[1, 0, 49] = np.nan
    for name, left, right in (("product", A, B), ("X'X", B.swapaxes(1, 2), B)):
        found, again = (engine.gram(B) if name == "X'X" else engine.multiply(A, B) for _ in range(2))
        if found.tobytes() != again.tobytes():
            return f"a batch of {name} has other bits each time"
        if not all(map(right_answer, found, left, right)):
            return f"a batch of {name} is wrong"
    return ""


def right_answer(found: Matrix, left: Matrix, right: Matrix) -> bool:
    """Whether `found` is `left` times `right`, within ``inner * eps * |left| |right|`` where it is finite."""
    with np.errstate(invalid="ignore"):
        exact = left @ right
        bound = left.shape[1] * np.finfo(np.float64).eps * (np.abs(left) @ np.abs(right))
        near = np.abs(found - exact) <= bound
    same = (found == exact) | (np.isnan(found) & np.isnan(exact))
    return bool(np.where(np.isfinite(exact), near, same).all())
