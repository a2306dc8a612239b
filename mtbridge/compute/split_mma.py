"""Centred columns of float32 on NVIDIA's tensor cores: each number in two halves, three products of halves.

Columns that are centred and scaled on their way into panels lie within 1, so one power of two serves them
all, and kernels/moments/pack_centred_halves.cl cuts them into halves there. kernels/split_panels.clh says why
the answer is within 1e-6 as that of the portable kernels is, or 2e-6 where one value is most of a column's
sum of squares.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mtbridge.compute.blocks import spans
from mtbridge.compute.forms import FINISH, HALVES, MOST_SQUARES, PANEL, Form
from mtbridge.compute.opencl_moments import SUM, Uncentred
from mtbridge.compute.slices import slab_depth
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

CAPABILITIES = (80, 87, 90, 100, 103)
"""Those with 128 KB of local memory for a group. Elsewhere tensor cores add up halves at half their rate, so
three products gain little."""

SETTINGS = {
    "PTX": 1,
    "ROW_PANELS": 2,
    "COLUMN_PANELS": 2,
    "WARP_ROWS": 64,
    "WARP_COLUMNS": 32,
    "STAGES": 2,
    "KEPT_INNER": 2048,
    "WIDE_INNER": 16384,
}
"""Of kernels/split_mma.clh, for 128 KB of local memory."""

LARGE_SETTINGS = {**SETTINGS, "COLUMN_PANELS": 4, "WARP_COLUMNS": 64}
"""For 192 KB, which devices have from LARGE on: on an H200 a tenth faster."""

LARGE = 90

STAGES = {128: {2: 2, 1: 4}, 256: {2: 3, 1: 4}}
"""By the columns of a tile, where fewer products of halves are taken: stages are smaller then."""

SMALL_SETTINGS = {
    **LARGE_SETTINGS,
    "PTX": 0,
    "ROW_PANELS": 1,
    "COLUMN_PANELS": 2,
    "WARP_ROWS": 32,
    "WARP_COLUMNS": 32,
    "KEPT_INNER": 64,
    "WIDE_INNER": 128,
}
"""For devices without tensor cores, where the form is there to be tested."""

HEADERS = (
    "split_panels.clh",
    "split_mma.clh",
    HALVES,
    FINISH,
    "split_mma_ptx.clh",
    "split_put.clh",
    "split_mma_tile.clh",
    "split_plain.clh",
)

SHAPES = ((1, 1), (37, 130), (1000, 257), (5003, 131))
"""(rows, columns) of what is checked: ragged, and the deep ones cut into slices."""

MOST_ERROR = 1e-6
"""What a sum may be wrong by, in norms of its two columns."""

MOST_BIAS = 4e-7
"""What a column's own sum of squares may be wrong by on average: cut-off sums are all too small."""


def split_form(capability: int, products: int = 3, settings: dict[str, int] | None = None) -> Form:
    """Return the form of float32 products in halves; with capability 0, in plain OpenCL C.

    `products` of halves are taken for one product: 3, 2 where the right factor is exact in one half, or 1 as
    near as tf32 (opencl_split.py).
    """
    usual = LARGE_SETTINGS if capability >= LARGE else SETTINGS if capability else SMALL_SETTINGS
    chosen = {**(settings or usual), "PRODUCTS": products}
    rows, columns = PANEL * chosen["ROW_PANELS"], PANEL * chosen["COLUMN_PANELS"]
    if settings is None and products < 3:
        chosen["STAGES"] = STAGES[columns][products]
    return Form(
        headers=HEADERS,
        file="split_mma",
        defines=chosen,
        left=PANEL,
        right=PANEL,
        rows=rows,
        columns=columns,
        inner=PANEL,
        group=32 * (rows // chosen["WARP_ROWS"]) * (columns // chosen["WARP_COLUMNS"]),
        squares=MOST_SQUARES,
        shared=True,
        mirrors=True,
        halves=True,
        lasting=True,
        finishes=True,
        masks=products == 3,
    )


def fault_of(device: Device, form: Form) -> str:
    """Return what the kernels of `form` do wrong on `device`, without an end mark, or nothing."""
    random = np.random.default_rng(1)
    for shape in SHAPES:
        X = 1000 + random.standard_normal(shape) * np.exp(random.standard_normal(shape[1]))
        # one heavy tail, one column that never changes, and one that another repeats
        X[:, 0] += random.standard_t(2, len(X))
        if shape[1] > 2:
            X[:, 1], X[:, -1] = 7, X[:, 0]
        found, exact = products(device, form, X)
        again, _ = products(device, form, X)
        what = f"X'X of {shape[0]} x {shape[1]}"
        if found.tobytes() != again.tobytes():
            return f"{what} has other bits each time"
        if fault := fault_in(found, exact):
            return f"{what} {fault}"
    return ""


def fault_in(found: Matrix, exact: Matrix) -> str:
    """Return what is wrong with sums of products of float32, without an end mark; nothing if all is right."""
    squares = np.diagonal(exact)
    norms = np.sqrt(squares)
    if not (np.abs(found - exact) <= MOST_ERROR * np.outer(norms, norms)).all():
        return f"is wrong by more than {MOST_ERROR:g}"
    moving = squares > 0
    if moving.any() and not abs(np.mean(np.diagonal(found)[moving] / squares[moving] - 1)) <= MOST_BIAS:
        return f"has a diagonal that is off by more than {MOST_BIAS:g} on average"
    return "" if np.array_equal(found, found.T) else "is not symmetric"


def products(device: Device, form: Form, X: Matrix) -> tuple[Matrix, Matrix]:
    """Return z'z by `form` and in float64, where z are the ordinary columns of `X` centred and scaled."""
    from mtbridge.compute.launches import Launches

    launches, (rows, columns) = Launches(device), X.shape
    source, steps = launches.source("right", X)
    raw = Uncentred(source, X.shape, steps, X.dtype, np.dtype(np.float32), form)
    depth = slab_depth(form, (columns, rows, columns), size=raw.dtype.itemsize, units=device.units)
    centring = raw.self_centred(device, spans(rows, depth))
    target, out = device.result("product", (columns, columns), SUM)
    launches.gram(form, centring, SUM, target, device.largest_buffer)
    found = device.receive(target, out)
    chosen = centring.chosen(device)
    if chosen is None:
        raise ValueError("the columns are not ordinary")
    origin, exponent = chosen
    Z = np.ldexp(X - origin, -exponent.astype(np.int32))
    return found, Z.T @ Z
