"""Sums of small matrices with the instructions of tensor cores, run as C++.

What a tensor core reads and writes is done by the instruction's definition (batch_lanes.cpp), so which item
holds which number is tested here, without a GPU; how a real one rounds is not.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from given_lanes import compiled

from mtbridge.compute.batch_plan import Card
from mtbridge.compute.parameters import Limits
from mtbridge.matrix import Matrix
from mtbridge.sources import kernel_text, program_text

HERE = Path(__file__).parent
LIMITS = Limits(vector_bytes=0, largest_group=1024, local_bytes=48 << 10)
DEFINES = {"REAL_BITS": 64, "SUM_BITS": 64, "SOURCE_BITS": 64}

Run = Callable[[Matrix, Matrix | None], Matrix]


def as_calls(kernel: str) -> str:
    """The text with its instructions as calls of functions of their names, with the same operands."""
    joined = kernel.replace("\\\n", " ")
    calls, count = re.subn(r'asm\("mma\.sync\.aligned\.(\w+)\.[^"]*"\s*:', r"\1(", joined)
    assert count == 2
    return re.sub(r'\s:\s*"d"', ", ", calls).replace('"+d"', "").replace('"d"', "")


@pytest.fixture(scope="module", params=[80, 90])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Compile the sums; return what computes the upper triangle of X'X, -777 below, or L'R."""
    folder = tmp_path_factory.mktemp("lanes")
    harness = (HERE / "batch_lanes.cpp").read_text()
    parts = (
        program_text((), {**DEFINES, "CAPABILITY": request.param}),
        f"#define FIRST_PART 1\n{harness}",
        kernel_text("batch/group_gpu.clh"),
        as_calls(kernel_text("dmma_multiply.clh")),
        kernel_text("batch/tile_dmma.clh"),
        f"#undef FIRST_PART\n#define FIRST_PART 0\n{harness}",
    )
    program = compiled(folder, parts)

    def computed(L: Matrix, R: Matrix | None) -> Matrix:
        (inner, rows), columns = L.shape, (L if R is None else R).shape[1]
        card = Card(LIMITS, request.param)
        plan = card.gram((inner, columns), 8, None) if R is None else card.product((rows, inner, columns), 8)
        assert plan is not None
        files = [folder / name for name in ("left", "right", "result")]
        for file, panel in zip(files, (L, L if R is None else R), strict=False):
            panels(panel).tofile(file)
        sizes = map(str, (rows, columns, inner, int(R is None), plan.items))
        subprocess.run([program, *sizes, *files], check=True, timeout=100)
        return np.fromfile(files[2]).reshape(rows, columns)

    return computed


def panels(X: Matrix) -> Matrix:
    """A panel as local memory holds it: zeros up to whole instructions, and NaN where no column is."""
    inner, columns = X.shape
    out = np.full((-(-inner // 4) * 4, -(-columns // 16) * 16 + 4), np.nan)
    out[:inner, :columns] = X
    out[inner:, :columns] = 0
    return out


@pytest.mark.parametrize(("inner", "columns"), [(1, 1), (4, 16), (7, 17), (60, 50), (33, 96), (9, 128)])
def test_every_sum_of_the_upper_triangle_is_right(run: Run, inner: int, columns: int) -> None:
    X = np.random.default_rng(columns).standard_normal((inner, columns))
    found = run(X, None)
    upper = np.triu(np.ones(found.shape, bool))
    bound = inner * np.finfo(float).eps * (np.abs(X).T @ np.abs(X))
    assert (np.abs(found - X.T @ X) <= bound)[upper].all()
    assert (found[~upper] == -777).all()


@pytest.mark.parametrize(
    ("rows", "inner", "columns"), [(1, 1, 1), (16, 4, 32), (17, 9, 33), (50, 60, 7), (3, 5, 90)]
)
def test_every_sum_of_a_product_is_right(run: Run, rows: int, inner: int, columns: int) -> None:
    random = np.random.default_rng(rows)
    L, R = random.standard_normal((inner, rows)), random.standard_normal((inner, columns))
    bound = inner * np.finfo(float).eps * (np.abs(L).T @ np.abs(R))
    assert (np.abs(run(L, R) - L.T @ R) <= bound).all()
