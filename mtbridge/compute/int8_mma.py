"""Float64 products by integers of 8 bits, on NVIDIA's GPUs that have hardly any float64: where, and whether.

kernels/int8.clh says how, and why the answer is as good as float64's; int8_products.py has the products.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from mtbridge.compute.forms import Form
from mtbridge.compute.int8_products import DEPTH, DOWN
from mtbridge.compute.moments import Moments
from mtbridge.compute.nvidia import right_answer
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

CAPABILITIES = (86, 89, 120)
"""Those that do float64 at 1/64 of the rate of float32, by NVIDIA's tables; OpenCL has no question for that.
Capability 7.5 is another, but its tensor cores take other shapes."""

SETTINGS = {"TILE": 64, "SLICES": 7, "STAGES": 2, "WIDE_INNER": 16384}
"""Of kernels/int8.clh: 56 KB of local memory, and 64 x 64 sums a group."""

NARROW_SETTINGS = {**SETTINGS, "TILE": 32}
"""For a driver that allows 48 KB of local memory only: every number is read twice as often."""

SMALL_SETTINGS = {**NARROW_SETTINGS, "WIDE_INNER": 1024}
"""For devices without tensor cores, where the form is there to be tested."""

SMALL_GROUP = 64
"""Items of the largest group of the portable kernels, which do what is not for digits in the check."""

SHAPES = ((1, 1), (37, 130), (1000, 257), (5003, 131), (17_003, 9))
"""(rows, columns) of what is checked: ragged, deep ones cut into slices, and more than int32 can add up."""


def int8_form(capability: int, settings: Mapping[str, int] | None = None) -> Form:
    """Return the form of float64 products in digits of 8 bits; with capability 0, in plain OpenCL C."""
    chosen = {**(settings or (SETTINGS if capability else SMALL_SETTINGS)), "PTX": int(capability > 0)}
    tile = chosen["TILE"]
    return Form(
        headers=("int8.clh", "split_mma_ptx.clh", "int8_ptx.clh", "int8_tile.clh"),
        file="int8_mma",
        defines=chosen,
        left=tile,
        right=tile,
        rows=tile,
        columns=tile,
        inner=DEPTH,
        group=32 * (tile // 16) * (tile // 32),
        squares=DOWN,
        shared=True,
        mirrors=True,
    )


def built_form(device: Device, capability: int, settings: Mapping[str, int] | None = None) -> Form:
    """Return the form of `settings`, or else the first one whose kernels can be built.

    Raises
    ------
    DeviceError
        If there is none.
    """
    if settings or not capability:
        return _built(device, int8_form(capability, settings))
    try:
        return _built(device, int8_form(capability))
    except DeviceError:
        return _built(device, int8_form(capability, NARROW_SETTINGS))


def _built(device: Device, form: Form) -> Form:
    defines = {**form.defines, "REAL_BITS": 64, "SUM_BITS": 64}
    for name in ("gram", "multiply"):
        device.kernel(name, (*form.headers, f"{name}/{form.file}.cl"), defines)
    return form


def fault_of(device: Device, capability: int, settings: Mapping[str, int] | None = None) -> str:
    """Return what the kernels of `capability` do wrong on `device`, without an end mark, or nothing."""
    from mtbridge.compute.opencl_engine import OpenCLEngine

    # what is not for digits is right anyway, by small portable kernels
    engine, random = OpenCLEngine(device, tiled=SMALL_GROUP), np.random.default_rng(1)
    engine.centred_from = 0
    engine.use_int8(capability, settings, least=0)
    for shape in SHAPES:
        X = 1000 + random.standard_normal(shape) * np.exp(random.standard_normal(shape[1]))
        # one heavy tail, one column that never changes, one that another repeats, and one to be left out
        X[:, 0] += random.standard_t(2, len(X))
        if shape[1] > 3:
            X[:, 1], X[:, -1], X[-1, 2] = 7, X[:, 0], np.nan
        what = f"the moments of {shape[0]} x {shape[1]}"
        found, again = engine.moments(X), engine.moments(X)
        if found.comoment.tobytes() != again.comoment.tobytes():
            return f"{what} have other bits each time"
        if fault := fault_in(found, X):
            return f"{what} {fault}"
    A, B = random.standard_normal((131, 3000)), random.standard_normal((3000, 70))
    if not (right_answer(engine.multiply(A, B), A, B) and right_answer(engine.gram(B), B.T, B)):
        return f"a product of {A.shape} by {B.shape} is wrong"
    return ""


def fault_in(found: Moments, X: Matrix) -> str:
    """Return what is wrong with the `Moments` of `X`, without an end mark; nothing if all is right."""
    with np.errstate(invalid="ignore"):
        Z = np.where(np.isfinite(X).all(axis=0), X - X.mean(axis=0), np.nan)
        Z = np.ldexp(Z, -found.exponent.astype(np.int32))
    Z -= Z.mean(axis=0)
    exact = Z.T @ Z
    norms = np.sqrt(np.diagonal(exact))
    # what both answers together may be wrong by, and the columns that are left out
    bound = 4 * len(X) * np.finfo(np.float64).eps * np.outer(norms, norms)
    left_out = np.isnan(found.comoment) & np.isnan(exact)
    if not ((np.abs(found.comoment - exact) <= bound) | left_out).all():
        return "are wrong by more than float64 may be"
    return "" if np.array_equal(found.comoment, found.comoment.T, equal_nan=True) else "are not symmetric"
