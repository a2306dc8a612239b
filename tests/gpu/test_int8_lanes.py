"""kernels/gram/int8_mma.cl with its instructions, run as C++: no GPU needed.

What a tensor core reads and writes is done by the instruction's definition (int8_lanes.hpp), so which item
holds which digit, when copies arrive and who may overwrite what is tested here. Whole numbers have no
rounding, so results are compared with those of Python's integers bit for bit.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from given_lanes import compiled

from mtbridge.compute.forms import upper_triangle
from mtbridge.matrix import Matrix
from mtbridge.sources import kernel_text, program_text

HERE = Path(__file__).parent
DEPTH, SLICES, WIDE_INNER = 32, 7, 64
DEFINES = {"PTX": 1, "SUM_BITS": 64, "SLICES": SLICES, "WIDE_INNER": WIDE_INNER}
SETTINGS = [{"TILE": 32, "STAGES": 2}, {"TILE": 64, "STAGES": 3}]
"""Two runs of 32 items, one below the other, and eight as on a GPU."""

Digits = np.ndarray[tuple[int, ...], np.dtype[np.int64]]
Run = Callable[[Digits, int, int, int], tuple[Matrix, Matrix]]


@pytest.fixture(scope="module", params=SETTINGS, ids=["two runs", "eight runs"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compile the kernel; return what computes X'X and parts of it from the digits of X."""
    folder = tmp_path_factory.mktemp("lanes")
    tile = request.param["TILE"]
    kernel = "\n".join(map(kernel_text, ("int8.clh", "int8_tile.clh", "gram/int8_mma.cl")))
    # items of a group share what lies in local memory
    kernel = kernel.replace("__local uint4 stages[", "static uint4 stages[")
    parts = (
        program_text((), {**DEFINES, **request.param}),
        (HERE / "lanes.hpp").read_text(),
        (HERE / "int8_lanes.hpp").read_text(),
        kernel,
        (HERE / "lanes.cpp").read_text(),
    )
    program = compiled(folder, parts)

    def computed(digits: Digits, whole: int, slices: int, columns: int) -> tuple[Matrix, Matrix]:
        blocks = upper_triangle(columns, (tile, tile))
        panels(digits, tile).tofile(folder / "panels")
        blocks.tofile(folder / "blocks")
        numbers = map(str, (columns, columns, digits.shape[1], len(blocks) - whole, slices))
        # the second factor and the scales are for kernels of two factors
        files = (*[folder / "panels"] * 3, folder / "blocks", folder / "results")
        subprocess.run([program, *numbers, *files], check=True, timeout=100)
        found = np.fromfile(folder / "results")
        size = columns * (columns + 3)
        return found[:size].reshape(columns, -1), found[size:].reshape(-1, slices, tile, tile)

    return computed


def panels(digits: Digits, tile: int) -> np.ndarray[tuple[int, ...], np.dtype[np.int8]]:
    """Panels of digits (digit, inner, column), by the formula of DIGIT_PLACE in kernels/int8.clh."""
    slices, inner, width = digits.shape
    out = np.zeros((width // tile, inner * slices * tile), np.int8)
    s, k, c = np.indices(digits.shape)
    block = ((k // DEPTH * slices + s) * (tile // 16) + c % tile // 16) * 512
    out[c // tile, block + c % 16 // 2 * 64 + k % DEPTH // 8 * 16 + c % 2 * 8 + k % 8] = digits
    return out


def random_digits(inner: int, columns: int) -> Digits:
    """Digits of every size, (digit, inner, column), with zeros up to whole tiles of 64 columns."""
    random = np.random.default_rng(inner)
    digits = random.integers(-128, 128, (SLICES, inner, columns))
    # the largest sums that there can be
    digits[:, :, 0] = -128
    return np.pad(digits, ((0, 0), (0, 0), (0, -columns % 64)))


def summed(left: Digits, right: Digits) -> Matrix:
    """What the kernel makes of some inner indices, WIDE_INNER of them at most: exact but for one rounding."""
    # sums of so few products of digits are exact in float64
    x, y = left.astype(np.float64), right.astype(np.float64)
    weights = [sum(x[s].T @ y[d - s] for s in range(d + 1)) for d in range(SLICES)]
    whole = sum(
        np.asarray(weight, np.int64).astype(object) * 256 ** (SLICES - 1 - d)
        for d, weight in enumerate(weights)
    )
    # its low part is rounded before, far below
    return np.asarray(np.asarray(whole, object) / 2 ** (8 * SLICES + 6), np.float64)


@pytest.mark.parametrize(("inner", "columns"), [(32, 1), (64, 33), (64, 70)])
def test_every_sum_is_exact_on_both_sides_and_nothing_else_is_written(
    run: Run, inner: int, columns: int
) -> None:
    digits = random_digits(inner, columns)
    found, _ = run(digits, 0, 1, columns)
    used = digits[:, :, :columns]
    exact = summed(used, used)
    assert (np.abs(found[:, :columns] - exact) <= np.spacing(np.abs(exact))).all()
    assert np.array_equal(found[:, :columns], found[:, :columns].T)
    assert (found[:, columns:] == -777).all()


def test_sums_in_int32_are_put_away_before_they_overflow(run: Run) -> None:
    inner, columns = 2 * WIDE_INNER + DEPTH, 65
    digits = random_digits(inner, columns)
    found, _ = run(digits, 0, 1, columns)
    total = np.zeros((columns, columns))
    for first in range(0, inner, WIDE_INNER):
        part = digits[:, first : first + WIDE_INNER, :columns]
        total += summed(part, part)
    assert (np.abs(found[:, :columns] - total) <= 8 * np.spacing(np.abs(total).max())).all()
    assert np.array_equal(found[:, :columns], found[:, :columns].T)


def test_slices_of_a_block_add_up_to_it(run: Run) -> None:
    inner, columns, slices = 32 * 4, 70, 3
    digits = random_digits(inner, columns)
    found, parts = run(digits, 1, slices, columns)
    tile = parts.shape[-1]
    row, column = upper_triangle(columns, (tile, tile))[-1] * tile
    left, right = digits[:, :, row : row + tile], digits[:, :, column : column + tile]
    exact = summed(left, right)
    assert (np.abs(parts[0].sum(axis=0) - exact) <= 8 * np.spacing(np.abs(exact).max())).all()
    # the block is left to the kernel that adds parts up
    assert (found[row:columns, column:columns] == -777).all()
