"""The kernels split_mma.cl with their instructions, run as C++: no GPU needed.

What a tensor core reads and writes is done by the instruction's definition (lanes.hpp), so which item holds
which number, when copies arrive and who may overwrite what is tested here; how a real one rounds is not.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from given_lanes import compiled
from numpy.typing import NDArray

from mtbridge.compute.forms import HALVES, upper_triangle, whole_grid
from mtbridge.compute.split_mma import HEADERS
from mtbridge.matrix import Matrix
from mtbridge.sources import kernel_text, program_text

HERE = Path(__file__).parent
GUARD = 3
"""Elements behind each row of the result; with it, rows of an odd number of columns start on even ones."""
GROUPS = 2
"""They have several blocks each."""
DEFINES = {"PTX": 1, "SUM_BITS": 64, "GUARD": GUARD, "KEPT_INNER": 64, "WIDE_INNER": 128}
SETTINGS = [
    {"ROW_PANELS": 1, "COLUMN_PANELS": 1, "STAGES": 2},
    {"ROW_PANELS": 1, "COLUMN_PANELS": 2, "WARP_ROWS": 32, "WARP_COLUMNS": 32, "STAGES": 3},
    {"ROW_PANELS": 2, "COLUMN_PANELS": 2, "STAGES": 2, "KEPT_INNER": 128},
]
"""One run of 32 items, eight with a quarter of a panel each, and four with a panel by a panel."""

Panels = NDArray[np.uint16]
Run = Callable[[Matrix, int, int, int], tuple[Matrix, Matrix]]
Multiply = Callable[[Matrix, Matrix, int, int], tuple[Matrix, Matrix]]


def program(folder: Path, name: str, defines: dict[str, int]) -> Path:
    """Compile kernels/`name`/split_mma.cl for this machine."""
    panels, sizes, *others = (file for file in HEADERS if file not in (HALVES, "split_mma_ptx.clh"))
    kernel = "\n".join(map(kernel_text, (*others, f"{name}/split_mma.cl")))
    # items of a group share what lies in local memory
    kernel = kernel.replace("__local uint4 stages[", "static uint4 stages[")
    parts = (
        program_text((panels, sizes), {**DEFINES, **defines, "TWO_FACTORS": int(name == "multiply")}),
        (HERE / "lanes.hpp").read_text(),
        kernel,
        (HERE / "mma_lanes.cpp").read_text(),
    )
    return compiled(folder, parts)


def computed(
    program: Path, sizes: tuple[int, ...], block: tuple[int, int], *arrays: NDArray[Any]
) -> tuple[Matrix, Matrix]:
    """Run it on panels, tables and blocks; return the result with its guards, and the parts."""
    rows, columns, _, _, slices = sizes
    files = [program.parent / name for name in ("left", "right", "largest", "blocks", "results")]
    for file, array in zip(files, arrays, strict=False):
        array.tofile(file)
    subprocess.run([program, *map(str, sizes), str(GROUPS), *files], check=True, timeout=100)
    found, size = np.fromfile(files[-1]), rows * (columns + GUARD)
    return found[:size].reshape(rows, -1), found[size:].reshape(-1, slices, *block)


def block_of(settings: dict[str, int]) -> tuple[int, int]:
    return 64 * settings["ROW_PANELS"], 64 * settings["COLUMN_PANELS"]


@pytest.fixture(scope="module", params=SETTINGS, ids=["one run", "eight runs", "four runs"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compile the kernel of X'X; return what computes ``1024**2 z'z`` and parts of it from z."""
    gram_program = program(tmp_path_factory.mktemp("lanes"), "gram", request.param)
    block = block_of(request.param)

    def gram(z: Matrix, whole: int, slices: int, columns: int) -> tuple[Matrix, Matrix]:
        blocks = upper_triangle(columns, block)
        sizes = (columns, columns, len(z), min(whole, len(blocks)), slices)
        none = np.zeros(0, np.uint32)
        return computed(gram_program, sizes, block, panels(1024 * z), none, none, blocks)

    return gram


@pytest.fixture(scope="module", params=[3, 2, 1], ids="{} products".format)
def products(request: pytest.FixtureRequest) -> int:
    """Products of halves for one product."""
    found: int = request.param
    return found


@pytest.fixture(scope="module")
def multiply(products: int, tmp_path_factory: pytest.TempPathFactory) -> Multiply:
    """Compile the kernel of A B; return what computes it, and parts of it, from A' and B."""
    settings = SETTINGS[1]
    defines = {**settings, "PRODUCTS": products, "SCALED": 1}
    multiply_program = program(tmp_path_factory.mktemp("lanes"), "multiply", defines)
    block = block_of(settings)

    def product(left: Matrix, right: Matrix, whole: int, slices: int) -> tuple[Matrix, Matrix]:
        (inner, rows), columns = left.shape, right.shape[1]
        blocks = whole_grid(rows, columns, block)
        sizes = (rows, columns, -(-inner // 64) * 64, min(whole, len(blocks)), slices)
        padded = [
            np.pad(X, ((0, -inner % 64), (0, -X.shape[1] % 64))).astype(np.float32) for X in (left, right)
        ]
        largest = [np.abs(X).max(axis=0) for X in padded]
        scaled = [np.ldexp(X, 10 - np.frexp(most)[1]) for X, most in zip(padded, largest, strict=True)]
        planes = (min(products, 2), 2 if products == 3 else 1)
        packed = [panels(X, count) for X, count in zip(scaled, planes, strict=True)]
        table = np.concatenate(largest).view(np.uint32)
        return computed(multiply_program, sizes, block, *packed, table, blocks)

    return product


def panels(scaled: Matrix, planes: int = 2) -> Panels:
    """Panels of halves, by the formula at the head of moments/pack_centred_halves.cl."""
    inner, width = scaled.shape
    hi = scaled.astype(np.float32).astype(np.float16)
    lo = (scaled - hi).astype(np.float32).astype(np.float16)
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


@pytest.mark.parametrize(("inner", "columns"), [(64, 1), (128, 65), (320, 130), (448, 259)])
def test_every_sum_is_right_on_both_sides_and_nothing_else_is_written(
    run: Run, inner: int, columns: int
) -> None:
    z = deviations(inner, columns)
    found, _ = run(z, 1 << 20, 1, columns)
    used = z[:, :columns]
    exact = used.T @ used
    assert (np.abs(found[:, :columns] - exact) <= 1e-6 * inner).all()
    assert np.array_equal(found[:, :columns], found[:, :columns].T)
    assert (found[:, columns:] == -777).all()


def test_slices_of_a_block_add_up_to_it(run: Run) -> None:
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
        assert (np.abs(total - exact) <= 1e-6 * inner).all()
        # left to the kernel that adds parts up; what of it is below the diagonal belongs to another block
        ours = np.triu(np.ones((columns, columns), bool))[row : row + deep, column : column + wide]
        assert (found[row : row + deep, column : min(column + wide, columns)][ours] == -777).all()


def factors(inner: int, rows: int, columns: int, products: int) -> tuple[Matrix, Matrix, float]:
    """A' and B whose columns differ by orders of magnitude, and what a product may be wrong by, in norms."""
    random = np.random.default_rng(inner)
    left, right = random.standard_normal((inner, rows)), random.standard_normal((inner, columns))
    left *= np.exp(9 * random.standard_normal(rows))
    right *= np.exp(9 * random.standard_normal(columns))
    if products == 2:
        # for numbers that hi alone holds
        right = random.integers(0, 2, right.shape)
    return left.astype(np.float32), right.astype(np.float32), 1e-6 if products > 1 else 1e-3


SHAPES = [(1, 1, 1), (65, 40, 3), (33, 161, 130), (70, 416, 64)]


@pytest.mark.parametrize(("rows", "inner", "columns"), SHAPES)
def test_products_are_right_by_three_two_and_one_product_of_halves(
    multiply: Multiply, products: int, rows: int, inner: int, columns: int
) -> None:
    left, right, share = factors(inner, rows, columns, products)
    found, _ = multiply(left, right, 1 << 20, 1)
    exact = left.T.astype(np.float64) @ right
    norms = np.outer(np.linalg.norm(left, axis=0), np.linalg.norm(right, axis=0))
    assert (np.abs(found[:, :columns] - exact) <= share * norms).all()
    assert (found[:, columns:] == -777).all()


def test_slices_of_a_product_have_no_scales_left(multiply: Multiply, products: int) -> None:
    left, right, share = factors(352, 60, 50, products)
    found, parts = multiply(left, right, 0, 3)
    exact = left.T.astype(np.float64) @ right
    norms = np.outer(np.linalg.norm(left, axis=0), np.linalg.norm(right, axis=0))
    assert (np.abs(parts[0].sum(axis=0)[:60, :50] - exact) <= share * norms).all()
    assert (found == -777).all()
