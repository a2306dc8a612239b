"""How near to float32 its products are: as a choice of the user, and whether a device keeps to it.

"full" is the bound for each element that every engine promises. "split" and "single" take products in halves
on tensor cores (opencl_split.py), where the error is one of norms: fewer digits for what is small in its row
or column, at several times the speed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from mtbridge.compute.forms import Form
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

PRODUCTS = {"split": 3, "single": 1}
"""Products of halves for one product, by the precision that asks for them."""

PRECISIONS = ("full", *PRODUCTS)

MOST_ERROR = {3: 1e-6, 1: 1e-3}
"""What a product may be wrong by, in norms of its row and its column, by the products of halves. Two
roundings to 11 bits alone are up to 2**-10."""

MOST_BIAS = {3: 4e-7, 1: 1e-4}
"""What the sums of squares may be wrong by on average: sums that are cut off are all too small."""

ENOUGH = 1000
"""Elements of a factor from which on its diagonal is judged."""

SHAPES = ((1, 1, 1), (37, 130, 70), (257, 1000, 130), (131, 5003, 257))
"""(rows, inner, columns) of what is checked: ragged, and the deep ones cut into slices."""


def form_of_precision(device: Device, key: str, precision: str) -> Form:
    """Return the form of float32 products of `precision`, "split" or "single", on a device of that key.

    Raises
    ------
    DeviceError
        If the device has no such kernels, or they are wrong there.
    """
    from mtbridge.compute.nvidia import trusted
    from mtbridge.compute.tensor_cores import FAMILIES, families

    found = families(device.capability)
    if not found:
        every = {capability for family in FAMILIES for capability in family.capabilities}
        named = (f"{capability / 10:.1f}" for capability in sorted(every))
        raise DeviceError(
            f"{device.name} has no kernels for precision {precision}, which are for NVIDIA GPUs of compute "
            f"capability {', '.join(named)}; take precision full, or name such a GPU by --device."
        )
    faults = []
    for family in found:
        good, fault = trusted(key, device.capability, family=f"{family.name} {precision}")
        if good:
            return family.form(device.capability, PRODUCTS[precision])
        faults.append(fault)
    why = "; ".join(filter(None, faults)) or "as was found when they were first tried"
    raise DeviceError(
        f"the kernels for precision {precision} are wrong on {device.name} ({why}); take precision full, and "
        "`mtbridge devices --fresh` tries again."
    )


def fault_of(device: Device, form: Form, total: np.dtype[Any]) -> str:
    """Return what the kernels of `form` do wrong with ordinary matrices, without an end mark, or nothing.

    With `total` float64 they are looked at as blocks of centred columns.
    """
    random = np.random.default_rng(1)
    for rows, inner, columns in SHAPES:
        A = random.uniform(-1, 1, (rows, inner)).astype(np.float32)
        B = random.uniform(-1, 1, (inner, columns)).astype(np.float32)
        if total == np.float32:
            # strips far apart from one another, one of them with a heavy tail
            A[0] = random.standard_t(2, inner)
            A *= np.exp(5 * random.standard_normal((rows, 1))).astype(np.float32)
            B *= np.exp(5 * random.standard_normal(columns)).astype(np.float32)
        if fault := _fault_in(device, form, A, B, total):
            return fault
    # in the last strips, beside the padding, and amid the others
    values = (np.nan, np.inf, -np.inf, np.nan) if total == np.float32 else (np.nan,)
    for at, value in zip((-1, 0, 30, 5), values, strict=False):
        A[at, at] = B[at, at] = value
    return _fault_in(device, form, A, B, total)


def _fault_in(device: Device, form: Form, A: Matrix, B: Matrix, total: np.dtype[Any]) -> str:
    from mtbridge.compute.launches import Launches

    launches, limit = Launches(device), device.largest_buffer
    for name, left, right in (("product", A, B), ("X'X", B.T, B)):
        answers = []
        for _ in range(2):
            target, out = device.result("product", (left.shape[0], right.shape[1]), total)
            if name == "product":
                launches.product(form, left, right, total, target, limit)
            else:
                launches.gram(form, right, total, target, limit)
            answers.append(device.receive(target, out).copy())
        found, again = answers
        what = f"a {name} of {left.shape} by {right.shape}"
        if found.tobytes() != again.tobytes():
            return f"{what} has other bits each time"
        if fault := fault_in(found, left, right, products=form.defines["PRODUCTS"]):
            return f"{what} {fault}"
    return ""


def fault_in(found: Matrix, left: Matrix, right: Matrix, *, products: int) -> str:
    """Return what is wrong with the product of two float32 matrices, without an end mark, or nothing."""
    A, B = left.astype(np.float64), right.astype(np.float64)
    with np.errstate(invalid="ignore"):
        exact = A @ B
        norms = np.outer(np.linalg.norm(A, axis=1), np.linalg.norm(B, axis=0))
        near = np.abs(found - exact) <= MOST_ERROR[products] * norms
    same = (found == exact) | (np.isnan(found) & np.isnan(exact))
    finite = np.isfinite(exact)
    if not np.where(finite, near, same).all():
        return f"is wrong by more than {MOST_ERROR[products]:g}"
    if not np.array_equal(left, right.T, equal_nan=True):
        return ""
    squares = np.diagonal(exact)
    moving = np.isfinite(squares) & (squares > 0)
    # of few numbers, roundings to 11 bits do not even out
    if moving.any() and B.size > ENOUGH:
        bias = np.mean(np.diagonal(found)[moving] / squares[moving] - 1)
        if not abs(bias) <= MOST_BIAS[products]:
            return f"has a diagonal that is off by more than {MOST_BIAS[products]:g} on average"
    return "" if np.array_equal(found, found.T, equal_nan=True) else "is not symmetric"
