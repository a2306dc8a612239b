"""kernels/gram/split_wgmma.cl with its instructions, run as C++ on any machine.

What wgmma reads and writes, how bulk copies arrive and when barriers end a phase is done by the definition of
these instructions (wgmma_lanes.hpp); how a tensor core rounds is not.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from given_lanes import compiled

from mtbridge.compute.forms import HALVES, upper_triangle
from mtbridge.compute.split_wgmma import HEADERS
from mtbridge.matrix import Matrix
from mtbridge.sources import kernel_text, program_text

HERE = Path(__file__).parent
SETTINGS = [
    {"WORKERS": 1, "STAGES": 2, "KEPT_INNER": 64, "WIDE_INNER": 128, "PRODUCTS": 3},
    {"WORKERS": 2, "STAGES": 3, "KEPT_INNER": 128, "WIDE_INNER": 256, "PRODUCTS": 3},
    {"WORKERS": 1, "STAGES": 3, "KEPT_INNER": 64, "WIDE_INNER": 64, "PRODUCTS": 1},
    {"WORKERS": 2, "COLUMNS": 192, "STAGES": 2, "KEPT_INNER": 128, "WIDE_INNER": 128, "PRODUCTS": 3},
]
GUARD = 3
"""Elements behind each row of the result; with it, rows of an odd number of columns start on even ones."""

Run = Callable[[Matrix, int, int, int], tuple[Matrix, Matrix]]


@pytest.fixture(scope="module", params=SETTINGS, ids=lambda s: " ".join(map(str, s.values())))
def settings(request: pytest.FixtureRequest) -> dict[str, int]:
    found: dict[str, int] = request.param
    return found


@pytest.fixture(scope="module")
def run(settings: dict[str, int], tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compile the kernel; return what computes ``1024**2 z'z`` and parts of it from z."""
    folder = tmp_path_factory.mktemp("lanes")
    defines = {**settings, "RETARGET": 1, "SUM_BITS": 64, "GUARD": GUARD}
    packed, sizes, *others = (name for name in HEADERS if name not in (HALVES, "split_wgmma_ptx.clh"))
    kernel = "\n".join(map(kernel_text, (*others, "gram/split_wgmma.cl")))
    # items of a group share what lies in local memory
    for shared in ("uint4 stages[", "ulong arrivals["):
        kernel = kernel.replace(f"__local {shared}", f"static {shared}")
    parts = (
        program_text((packed, sizes), defines),
        (HERE / "wgmma_lanes.hpp").read_text(),
        kernel,
        (HERE / "wgmma_lanes.cpp").read_text(),
    )
    program = compiled(folder, parts)
    block = (64 * settings["WORKERS"], settings.get("COLUMNS", 128))

    def computed(z: Matrix, whole: int, slices: int, columns: int) -> tuple[Matrix, Matrix]:
        blocks = upper_triangle(columns, block)
        panels(z, 2 if settings["PRODUCTS"] == 3 else 1).tofile(folder / "panels")
        blocks.tofile(folder / "blocks")
        # two groups, which have several blocks each
        numbers = map(str, (columns, len(z), min(whole, len(blocks)), slices, 2))
        files = (folder / "panels", folder / "blocks", folder / "results")
        subprocess.run([program, *numbers, *files], check=True, timeout=100)
        found = np.fromfile(folder / "results")
        size = columns * (columns + GUARD)
        return found[:size].reshape(columns, -1), found[size:].reshape(-1, slices, *block)

    return computed


def panels(z: Matrix, planes: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint16]]:
    """Panels of halves of z, by the formula at the head of moments/pack_centred_halves.cl."""
    inner, width = z.shape
    hi = (1024 * z).astype(np.float32).astype(np.float16)
    lo = (1024 * z - hi).astype(np.float32).astype(np.float16)
    out = np.zeros((width // 64, inner // 64, planes, 512, 8), np.uint16)
    k, j = np.indices((inner, width))
    unit = j % 64 * 8 + ((k % 64 // 8) ^ (j % 8))
    for part, half in enumerate((hi, lo)[:planes]):
        out[j // 64, k // 64, part, unit, k % 8] = half.view(np.uint16)
    return out


def deviations(inner: int, columns: int) -> Matrix:
    """z within 1, (inner, columns), with zeros up to whole panels."""
    z = np.random.default_rng(inner).uniform(-1, 1, (inner, columns))
    return np.pad(z, ((0, 0), (0, -columns % 64)))


def most(settings: dict[str, int]) -> float:
    """What a product of numbers within 1 may be wrong by: 11 bits of both factors, or 22."""
    return 1e-6 if settings["PRODUCTS"] == 3 else 2.0**-11


@pytest.mark.parametrize(("inner", "columns"), [(64, 1), (128, 65), (320, 130), (192, 259)])
def test_every_sum_is_right_on_both_sides_and_nothing_else_is_written(
    run: Run, settings: dict[str, int], inner: int, columns: int
) -> None:
    z = deviations(inner, columns)
    found, _ = run(z, 1 << 20, 1, columns)
    used = z[:, :columns]
    exact = used.T @ used
    assert (np.abs(found[:, :columns] - exact) <= most(settings) * inner).all()
    assert np.array_equal(found[:, :columns], found[:, :columns].T)
    assert (found[:, columns:] == -777).all()


def test_slices_of_a_block_add_up_to_it(run: Run, settings: dict[str, int]) -> None:
    inner, columns, slices = 64 * 7, 200, 3
    z = deviations(inner, columns)
    found, parts = run(z, 1, slices, columns)
    deep, wide = parts.shape[2:]
    blocks = upper_triangle(columns, (deep, wide))[1:]
    assert len(blocks) == len(parts) >= 2
    for part, (down, across) in zip(parts, blocks, strict=True):
        row, column = down * deep, across * wide
        exact = z[:, row : min(row + deep, columns)].T @ z[:, column : min(column + wide, columns)]
        total = part.sum(axis=0)[: exact.shape[0], : exact.shape[1]]
        assert (np.abs(total - exact) <= most(settings) * inner).all()
        # left to the kernel that adds parts up; what of it is below the diagonal belongs to another block
        ours = (
            np.add.outer(np.arange(row, row + exact.shape[0]), -np.arange(column, column + exact.shape[1]))
            <= 0
        )
        assert (found[row : row + deep, column : min(column + wide, columns)][ours] == -777).all()
