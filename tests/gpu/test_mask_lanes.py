"""multiply/split_wgmma.cl with two products of halves and its instructions, run as C++ on any machine.

So the sums over the rows of pairs are taken where the left factor has hi and lo, and the right one is a mask.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from given_lanes import compiled
from test_split_wgmma_lanes import deviations, panels

from mtbridge.compute.forms import HALVES, whole_grid
from mtbridge.compute.opencl_masks import bound
from mtbridge.compute.split_wgmma import HEADERS
from mtbridge.sources import kernel_text, program_text

HERE = Path(__file__).parent
GUARD = 3
SETTINGS = {"WORKERS": 2, "COLUMNS": 192, "STAGES": 3, "KEPT_INNER": 128, "WIDE_INNER": 256, "PRODUCTS": 2}
BLOCK = (128, 192)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    defines = {**SETTINGS, "RETARGET": 1, "SUM_BITS": 64, "GUARD": GUARD}
    packed, sizes, *others = (name for name in HEADERS if name not in (HALVES, "split_wgmma_ptx.clh"))
    kernel = "\n".join(map(kernel_text, (*others, "multiply/split_wgmma.cl")))
    # items of a group share what lies in local memory
    for shared in ("uint4 stages[", "ulong arrivals["):
        kernel = kernel.replace(f"__local {shared}", f"static {shared}")
    parts = (
        program_text((packed, sizes), defines),
        (HERE / "wgmma_lanes.hpp").read_text(),
        kernel,
        (HERE / "wgmma_masks.cpp").read_text(),
    )
    return compiled(tmp_path_factory.mktemp("lanes"), parts)


@pytest.mark.parametrize(
    ("inner", "rows", "columns", "whole"), [(64, 1, 1, 9), (320, 130, 195, 9), (448, 70, 200, 1)]
)
def test_sums_over_masks_are_right_and_nothing_else_is_written(
    program: Path, inner: int, rows: int, columns: int, whole: int
) -> None:
    z, folder, slices = deviations(inner, rows), program.parent, 3
    mask = np.zeros((inner, columns + -columns % 64))
    mask[:, :columns] = np.random.default_rng(1).random((inner, columns)) < 0.7
    blocks = whole_grid(rows, columns, BLOCK)
    files = [folder / name for name in ("left", "right", "blocks", "results")]
    for file, array in zip(files, (panels(z, 2), panels(mask, 1), blocks), strict=False):
        array.tofile(file)
    whole = min(whole, len(blocks))
    sizes = (rows, columns, inner, whole, slices, 2)
    subprocess.run([program, *map(str, sizes), *files], check=True, timeout=100)
    found = np.fromfile(files[-1])
    size = rows * (columns + GUARD)
    result, parts = found[:size].reshape(rows, -1), found[size:].reshape(-1, slices, *BLOCK)
    assert (result[:, columns:] == -777).all()
    exact, most = z.T @ mask, bound(z, mask)
    for number, (down, across) in enumerate(blocks):
        here = np.s_[
            down * 128 : min(down * 128 + 128, rows), across * 192 : min(across * 192 + 192, columns)
        ]
        block = result[here]
        if number >= whole:
            assert (block == -777).all()
            block = parts[number - whole].sum(axis=0)[: block.shape[0], : block.shape[1]]
        assert (np.abs(block - exact[here]) <= most[here]).all()
