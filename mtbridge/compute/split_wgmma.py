"""Centred columns of float32 in halves by wgmma, the instruction of NVIDIA's Hopper that reads local memory.

Numbers are cut and checked as in split_mma.py; kernels/split_panels.clh says how they lie.
"""

from __future__ import annotations

from mtbridge.compute.forms import FINISH, HALVES, MOST_SQUARES, PANEL, Form

CAPABILITIES = (90,)
"""Those with wgmma: the only one, since Blackwell has it no more."""

SETTINGS = {
    "RETARGET": 1,
    "WORKERS": 2,
    "COLUMNS": 192,
    "STAGES": 2,
    "KEPT_INNER": 4096,
    "WIDE_INNER": 16384,
    "REGISTERS": 240,
}
"""Of kernels/split_wgmma.clh."""

MORE_STAGES = {1: 5, 2: 4}
"""In place of those in SETTINGS where fewer products of halves are taken."""

SMALL_SETTINGS = {
    **SETTINGS,
    "RETARGET": 0,
    "WORKERS": 1,
    "COLUMNS": 128,
    "KEPT_INNER": 64,
    "WIDE_INNER": 128,
}
"""For devices without wgmma, where the form is there to be tested."""

HEADERS = (
    "split_panels.clh",
    "split_wgmma.clh",
    HALVES,
    FINISH,
    "split_wgmma_ptx.clh",
    "split_put.clh",
    "split_wgmma_tile.clh",
    "split_plain.clh",
)

PACE = 6
"""By which a unit is faster than with float64, for which shares.py was measured."""

ITEMS = 128
"""Items of a worker, and of those that copy."""


def wgmma_form(capability: int, products: int = 3, settings: dict[str, int] | None = None) -> Form:
    """Return the form of centred float32 products in halves by wgmma; with capability 0, in plain OpenCL C.

    `products` of halves are taken for one product: 3, 2 where the right factor is exact in one half, or 1 as
    near as tf32.
    """
    chosen = {**(settings or (SETTINGS if capability else SMALL_SETTINGS)), "PRODUCTS": products}
    if products in MORE_STAGES and settings is None:
        # stages are smaller
        chosen["STAGES"] = MORE_STAGES[products]
    return Form(
        headers=HEADERS,
        file="split_wgmma",
        defines=chosen,
        left=PANEL,
        right=PANEL,
        rows=PANEL * chosen["WORKERS"],
        columns=chosen["COLUMNS"],
        inner=PANEL,
        group=ITEMS * (chosen["WORKERS"] + chosen["RETARGET"]),
        squares=MOST_SQUARES,
        shared=True,
        mirrors=True,
        halves=True,
        lasting=True,
        finishes=True,
        pace=PACE,
        masks=products == 3,
    )
