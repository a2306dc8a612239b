"""kernels/gram/split_mma.cl with its instructions, run as C++ by a thread for each work-item: no GPU needed.

What a tensor core reads and writes is done by the instruction's definition (lanes.hpp), so which item holds
which number, when copies arrive and who may overwrite what is tested here; how a real one rounds is not.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mtbridge.compute.forms import upper_triangle
from mtbridge.matrix import Matrix
from mtbridge.sources import kernel_text, program_text

HERE = Path(__file__).parent
DEFINES = {"PTX": 1, "SUM_BITS": 64, "WIDE_INNER": 64}
SETTINGS = [
    {"TILE": 32, "WARP_ROWS": 32, "STAGES": 2},
    {"TILE": 64, "WARP_ROWS": 64, "STAGES": 4},
]
"""One run of 32 items, and two whose parts of the tile have the shape of those on a GPU."""

Run = Callable[[Matrix, int, int, int], tuple[Matrix, Matrix]]


@pytest.fixture(scope="module", params=SETTINGS, ids=["one run", "two runs"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compile the kernel; return what computes ``1024**2 z'z`` and parts of it from z."""
    pytest.importorskip("ziglang", reason="ziglang, the compiler, is not installed")
    folder = tmp_path_factory.mktemp("lanes")
    defines = {**DEFINES, **request.param}
    tile = request.param["TILE"]
    kernel = "\n".join(map(kernel_text, ("split_mma.clh", "split_mma_tile.clh", "gram/split_mma.cl")))
    # items of a group share what lies in local memory
    kernel = kernel.replace("__local uint4 stages[", "static uint4 stages[")
    parts = (
        program_text((), defines),
        (HERE / "lanes.hpp").read_text(),
        kernel,
        (HERE / "lanes.cpp").read_text(),
    )
    source, program = folder / "lanes_of_kernel.cpp", folder / "lanes"
    source.write_text("\n".join(parts))
    options = ("-std=c++20", "-O2", "-w", "-pthread")
    command = [sys.executable, "-m", "ziglang", "c++", *options, str(source), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]

    def computed(z: Matrix, whole: int, slices: int, columns: int) -> tuple[Matrix, Matrix]:
        blocks = upper_triangle(columns, (tile, tile))
        panels(z, tile).tofile(folder / "panels")
        blocks.tofile(folder / "blocks")
        numbers = map(str, (columns, len(z), len(blocks) - whole, slices))
        files = (folder / "panels", folder / "blocks", folder / "results")
        subprocess.run([program, *numbers, *files], check=True, timeout=100)
        found = np.fromfile(folder / "results")
        size = columns * (columns + 3)
        return found[:size].reshape(columns, -1), found[size:].reshape(-1, slices, tile, tile)

    return computed


def panels(z: Matrix, tile: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint16]]:
    """Panels of halves of z, by the formula at the head of moments/pack_centred_split.cl."""
    inner, width = z.shape
    hi = (1024 * z).astype(np.float32).astype(np.float16)
    lo = (1024 * z - hi).astype(np.float32).astype(np.float16)
    out = np.zeros((width // tile, inner // 2, 2, tile, 2), np.uint16)
    k, c = np.indices((inner, width))
    unit = ((c & 3) * 2 + (c % 32 >> 4)) ^ (2 * (k // 2 & 3))
    place = c % tile // 32 * 32 + unit * 4 + (c >> 2 & 3)
    for part, half in ((0, hi), (1, lo)):
        out[c // tile, k // 2, part, place, k % 2] = half.view(np.uint16)
    return out


def deviations(inner: int, columns: int) -> Matrix:
    """z within 1, (inner, columns), with zeros up to whole tiles of 64 columns."""
    z = np.random.default_rng(inner).uniform(-1, 1, (inner, columns))
    return np.pad(z, ((0, 0), (0, -columns % 64)))


@pytest.mark.parametrize(("inner", "columns"), [(32, 1), (64, 33), (160, 70), (416, 65)])
def test_every_sum_is_right_on_both_sides_and_nothing_else_is_written(
    run: Run, inner: int, columns: int
) -> None:
    z = deviations(inner, columns)
    found, _ = run(z, 0, 1, columns)
    used = z[:, :columns]
    exact = used.T @ used
    assert (np.abs(found[:, :columns] - exact) <= 1e-6 * inner).all()
    assert np.array_equal(found[:, :columns], found[:, :columns].T)
    assert (found[:, columns:] == -777).all()


def test_slices_of_a_block_add_up_to_it(run: Run) -> None:
    inner, columns, slices = 32 * 11, 70, 3
    z = deviations(inner, columns)
    found, parts = run(z, 1, slices, columns)
    tile = parts.shape[-1]
    row, column = upper_triangle(columns, (tile, tile))[-1] * tile
    exact = z[:, row : row + tile].T @ z[:, column : column + tile]
    assert (np.abs(parts[0].sum(axis=0) - exact) <= 1e-6 * inner).all()
    # the block is left to the kernel that adds parts up
    assert (found[row:columns, column:columns] == -777).all()
