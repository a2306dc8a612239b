"""kernels/multiply/dmma.cl with its instructions, run as C++: no GPU needed.

What a tensor core reads and writes is done by the instruction's definition (dmma_lanes.hpp), so which item
holds which number, when copies arrive, who may overwrite what and who adds up which parts is tested here.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from given_lanes import compiled

from mtbridge.compute.opencl_direct import COLUMNS, ROWS
from mtbridge.compute.pieces import COUNT, pieces_of
from mtbridge.compute.quarters import PANEL, gram_quarters, product_quarters
from mtbridge.matrix import Matrix
from mtbridge.sources import kernel_text, program_text

HERE = Path(__file__).parent
FILES = ("finish.clh", "dmma.clh", "dmma_copy.clh", "dmma_tile.clh", "dmma_parts.clh", "multiply/dmma.cl")
LYING = [(ROWS, ROWS, 3), (COLUMNS, ROWS, 4), (ROWS, COLUMNS, 5), (COLUMNS, COLUMNS, 3)]
"""How the left and the right operand lie, and the stages in local memory."""

Run = Callable[..., Matrix]


@pytest.fixture(scope="module", params=LYING, ids="{0[0]}{0[1]} in {0[2]} stages".format)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compile the kernel; return what computes A B with it, between guards."""
    folder = tmp_path_factory.mktemp("lanes")
    left, right, stages = request.param
    defines = {
        "CAPABILITY": 90,
        "REAL_BITS": 64,
        "STAGES": stages,
        "LEFT_LIES": left,
        "RIGHT_LIES": right,
    }
    kernel = "\n".join(map(kernel_text, FILES))
    # items of a group share what lies in local memory
    for name in ("PAIR stages[", "long arrivals[", "int seen;"):
        assert kernel.count(f"__local {name}") == 1
        kernel = kernel.replace(f"__local {name}", f"static {name}")
    parts = (
        program_text((), defines),
        (HERE / "dmma_lanes.hpp").read_text(),
        kernel,
        (HERE / "dmma_lanes.cpp").read_text(),
    )
    program = compiled(folder, parts)

    def computed(
        A: Matrix,
        B: Matrix,
        *,
        units: int = 1,
        more: bool = False,
        backwards: bool = False,
        symmetric: bool = False,
    ) -> Matrix:
        (rows, inner), columns = A.shape, B.shape[1]
        steps = []
        for name, X, lies in (("left", A.T, left), ("right", B, right)):
            held, *found = laid(X, lies)
            held.tofile(folder / name)
            steps += found
        blocks = gram_quarters(columns) if symmetric else product_quarters(rows, columns)
        table, count = pieces_of(blocks, -(-inner // 16), units=units, most=3 * units)
        assert (table[:, COUNT].max() > 1) == (units > len(blocks))
        table.tofile(folder / "pieces")
        numbers = (rows, columns, inner, columns + 3, *steps, count, int(more), int(backwards))
        files = (folder / name for name in ("left", "right", "pieces", "result"))
        subprocess.run([program, *files, *map(str, numbers)], check=True, timeout=100)
        return np.fromfile(folder / "result").reshape(rows, columns + 3)

    return computed


def laid(X: Matrix, lies: int) -> tuple[Matrix, int, int]:
    """`X`, (inner, columns), as it lies in memory, and the steps of `struct operand` (kernels/dmma.clh)."""
    turned = X.T if lies == COLUMNS else X
    # a row begins on a boundary; what lies behind its end is read, but not of columns
    stride = turned.shape[1] + turned.shape[1] % 2
    held = np.full((len(turned), stride), np.nan if lies == ROWS else 0.0)
    held[:, : turned.shape[1]] = turned
    return held, PANEL if lies == ROWS else PANEL * stride, stride


def right(found: Matrix, A: Matrix, B: Matrix) -> bool:
    """Whether `found`, with its guard, is within ``inner * eps * |A| |B|`` of the product."""
    exact = A.astype(np.longdouble) @ B.astype(np.longdouble)
    bound = A.shape[1] * np.finfo(np.float64).eps * (np.abs(A) @ np.abs(B))
    columns = B.shape[1]
    return bool((np.abs(found[:, :columns] - exact) <= bound).all() and (found[:, columns:] == -777).all())


def operands(rows: int, inner: int, columns: int) -> tuple[Matrix, Matrix]:
    random = np.random.default_rng([rows, inner, columns])
    return random.standard_normal((rows, inner)), random.standard_normal((inner, columns))


@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 2, 1), (130, 38, 20), (64, 16, 129)])
def test_every_sum_is_right_and_nothing_else_is_written(
    run: Run, rows: int, inner: int, columns: int
) -> None:
    A, B = operands(rows, inner, columns)
    assert right(run(A, B), A, B)


def test_pieces_of_a_block_add_up_to_it_with_the_same_bits_whoever_comes_first(run: Run) -> None:
    A, B = operands(30, 400, 60)
    found = run(A, B, units=3)
    assert right(found, A, B)
    assert run(A, B, units=3, backwards=True).tobytes() == found.tobytes()


def test_more_is_added_to_what_is_there(run: Run) -> None:
    A, B = operands(20, 40, 136)
    plain, more = run(A, B), run(A, B, more=True)
    assert np.array_equal(more[:, :-3], plain[:, :-3] - 777)
    assert (more[:, -3:] == -777).all()


@pytest.mark.parametrize("run", [kind for kind in LYING if kind[0] == kind[1]], indirect=True, ids=str)
def test_quarters_of_several_blocks_are_taken_together(run: Run) -> None:
    _, X = operands(1, 50, 300)
    found = run(X.T, X, symmetric=True)
    exact = X.T @ X
    block = np.arange(300) // 64
    wanted = block[:, np.newaxis] <= block
    assert (np.abs(found[:, :-3] - exact) <= 1e-13)[wanted].all()
    assert (found[:, :-3][~wanted] == -777).all(), "what is below the diagonal"
    assert (found[:, -3:] == -777).all()


def test_nan_and_infinity_stay_in_their_rows_and_columns(run: Run) -> None:
    A, B = np.ones((70, 37)), np.ones((37, 131))
    A[69, 36] = np.nan
    B[36, 130], B[0, 5] = np.nan, np.inf
    found = run(A, B)[:, :-3]
    assert np.isnan(found[69]).all()
    assert np.isnan(found[:, 130]).all()
    assert (found[:69, 5] == np.inf).all()
    others = np.delete(np.arange(131), [5, 130])
    assert (found[:69, others] == 37).all()
