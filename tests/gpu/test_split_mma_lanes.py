"""The kernels split_mma.cl with their instructions, run as C++ by a thread for each work-item: no GPU needed.

What a tensor core reads and writes is done by the instruction's definition (lanes.hpp), so which item holds
which number, when copies arrive and who may overwrite what is tested here; how a real one rounds is not.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mtbridge.compute.forms import upper_triangle, whole_grid
from mtbridge.matrix import Matrix
from mtbridge.sources import kernel_text, program_text

HERE = Path(__file__).parent
DEFINES = {"PTX": 1, "SUM_BITS": 64, "WIDE_INNER": 64}
SETTINGS = [
    {"TILE": 32, "WARP_ROWS": 32, "STAGES": 2},
    {"TILE": 64, "WARP_ROWS": 64, "STAGES": 4},
]
"""One run of 32 items, and two whose parts of the tile have the shape of those on a GPU."""

Panels = NDArray[np.uint16]
Run = Callable[[Matrix, int, int, int], tuple[Matrix, Matrix]]
Multiply = Callable[[Matrix, Matrix, int, int], tuple[Matrix, Matrix]]


def program(folder: Path, name: str, defines: dict[str, int]) -> Path:
    """Compile kernels/`name`/split_mma.cl for this machine."""
    pytest.importorskip("ziglang", reason="ziglang, the compiler, is not installed")
    kernel = "\n".join(map(kernel_text, ("split_mma.clh", "split_mma_tile.clh", f"{name}/split_mma.cl")))
    # items of a group share what lies in local memory
    kernel = kernel.replace("__local uint4 stages[", "static uint4 stages[")
    parts = (
        program_text((), {**DEFINES, **defines, "TWO_FACTORS": int(name == "multiply")}),
        (HERE / "lanes.hpp").read_text(),
        kernel,
        (HERE / "lanes.cpp").read_text(),
    )
    source, compiled = folder / "lanes_of_kernel.cpp", folder / "lanes"
    source.write_text("\n".join(parts))
    options = ("-std=c++20", "-O2", "-w", "-pthread")
    command = [sys.executable, "-m", "ziglang", "c++", *options, str(source), "-o", str(compiled)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return compiled


def computed(
    compiled: Path, sizes: tuple[int, ...], tile: int, *arrays: NDArray[Any]
) -> tuple[Matrix, Matrix]:
    """Run it on panels, tables and blocks; return the result with its guards, and the parts."""
    rows, columns, _, _, slices = sizes
    files = [compiled.parent / name for name in ("left", "right", "largest", "blocks", "results")]
    for file, array in zip(files, arrays, strict=False):
        array.tofile(file)
    subprocess.run([compiled, *map(str, sizes), *files], check=True, timeout=100)
    found, size = np.fromfile(files[-1]), rows * (columns + 3)
    return found[:size].reshape(rows, -1), found[size:].reshape(-1, slices, tile, tile)


@pytest.fixture(scope="module", params=SETTINGS, ids=["one run", "two runs"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compile the kernel of X'X; return what computes ``1024**2 z'z`` and parts of it from z."""
    compiled = program(tmp_path_factory.mktemp("lanes"), "gram", request.param)
    tile = request.param["TILE"]

    def gram(z: Matrix, whole: int, slices: int, columns: int) -> tuple[Matrix, Matrix]:
        blocks = upper_triangle(columns, (tile, tile))
        sizes = (columns, columns, len(z), len(blocks) - whole, slices)
        none = np.zeros(0, np.uint32)
        return computed(compiled, sizes, tile, panels(1024 * z, tile), none, none, blocks)

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
    compiled, tile = program(tmp_path_factory.mktemp("lanes"), "multiply", defines), settings["TILE"]

    def product(left: Matrix, right: Matrix, whole: int, slices: int) -> tuple[Matrix, Matrix]:
        (inner, rows), columns = left.shape, right.shape[1]
        blocks = whole_grid(rows, columns, (tile, tile))
        sizes = (rows, columns, -(-inner // 32) * 32, len(blocks) - whole, slices)
        padded = [
            np.pad(X, ((0, -inner % 32), (0, -X.shape[1] % tile))).astype(np.float32) for X in (left, right)
        ]
        largest = [np.abs(X).max(axis=0) for X in padded]
        scaled = [np.ldexp(X, 10 - np.frexp(most)[1]) for X, most in zip(padded, largest, strict=True)]
        planes = (min(products, 2), 2 if products == 3 else 1)
        packed = [panels(X, tile, count) for X, count in zip(scaled, planes, strict=True)]
        table = np.concatenate(largest).view(np.uint32)
        return computed(compiled, sizes, tile, *packed, table, blocks)

    return product


def panels(scaled: Matrix, tile: int, planes: int = 2) -> Panels:
    """Panels of halves, by the formula at the head of moments/pack_centred_split.cl."""
    inner, width = scaled.shape
    hi = scaled.astype(np.float32).astype(np.float16)
    lo = (scaled - hi).astype(np.float32).astype(np.float16)
    out = np.zeros((width // tile, inner // 2, planes, tile, 2), np.uint16)
    k, c = np.indices((inner, width))
    unit = ((c & 3) * 2 + (c % 32 >> 4)) ^ (2 * (k // 2 & 3))
    place = c % tile // 32 * 32 + unit * 4 + (c >> 2 & 3)
    for part, half in ((0, hi), (1, lo))[:planes]:
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
    found, _ = multiply(left, right, 0, 1)
    exact = left.T.astype(np.float64) @ right
    norms = np.outer(np.linalg.norm(left, axis=0), np.linalg.norm(right, axis=0))
    assert (np.abs(found[:, :columns] - exact) <= share * norms).all()
    assert (found[:, columns:] == -777).all()


def test_slices_of_a_product_have_no_scales_left(multiply: Multiply, products: int) -> None:
    left, right, share = factors(352, 60, 50, products)
    found, parts = multiply(left, right, 1, 3)
    exact = left.T.astype(np.float64) @ right
    norms = np.outer(np.linalg.norm(left, axis=0), np.linalg.norm(right, axis=0))
    assert (np.abs(parts[0].sum(axis=0)[:60, :50] - exact) <= share * norms).all()
    assert (found == -777).all()
