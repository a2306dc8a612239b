"""Slabs and slices of the inner size: where products are cut, and that cutting changes no answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from mtbridge.compute import slices, strips
from mtbridge.compute.devices import Verdict
from mtbridge.compute.forms import packed_form, tiled_form, upper_triangle, whole_grid
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.slices import slab_depth, slice_count
from mtbridge.matrix import DTYPES, Matrix

FORMS = {"packed": packed_form("float64", 64), "tiled": tiled_form("float64", 256)}
UNITS = {"packed": 2, "tiled": 132}
SHAPES = [
    (50, 1_000_000, 50),
    (60, 100_000, 60),
    (1, 300_000, 1),
    (7, 513, 9),
    (1, 5000, 5000),
    (500, 2000, 500),
]


def groups(kind: str, rows: int, columns: int) -> int:
    form = FORMS[kind]
    return len(whole_grid(rows, columns, (form.rows, form.columns)))


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("side", [1, 16, 100, 255, 512, 1000, 2048, 8192])
def test_a_square_product_is_neither_sliced_nor_packed_in_slabs(kind: str, side: int) -> None:
    form, shape = FORMS[kind], (side, side, side)
    triangle = len(upper_triangle(side, (form.rows, form.columns)))
    assert slab_depth(form, shape, size=8, units=UNITS[kind]) == side
    for count in (groups(kind, side, side), triangle):
        assert slice_count(form, shape, groups=count, units=UNITS[kind], total=8, limit=1 << 40) == 1


@pytest.mark.parametrize("kind", FORMS)
def test_a_tall_product_gives_every_compute_unit_work(kind: str) -> None:
    count = groups(kind, 50, 50)
    found = slice_count(
        FORMS[kind], (50, 1_000_000, 50), groups=count, units=UNITS[kind], total=8, limit=1 << 40
    )
    assert 2 * UNITS[kind] <= found * count <= 8 * UNITS[kind]


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("limit", [8, 1 << 12, 1 << 20, 1 << 40])
def test_partial_results_fit_the_limit_and_slices_are_thick(
    kind: str, shape: tuple[int, int, int], limit: int
) -> None:
    rows, inner, columns = shape
    form = FORMS[kind]
    found = slice_count(
        form, shape, groups=groups(kind, rows, columns), units=UNITS[kind], total=8, limit=limit
    )
    assert found >= 1
    if found > 1:
        assert found * rows * columns * 8 <= limit
        assert inner // found >= max(form.defines.get("BLOCK_INNER", 0), min(rows, columns))


@pytest.mark.parametrize("kind", FORMS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_slabs_are_equal_but_for_their_rest_and_their_panels_bounded(
    kind: str, shape: tuple[int, int, int]
) -> None:
    rows, inner, columns = shape
    depth = slab_depth(FORMS[kind], shape, size=8, units=UNITS[kind])
    slabs = -(-inner // depth)
    assert 1 <= depth <= inner
    assert inner - (slabs - 1) * depth > depth - slabs
    wide = max(rows, columns) + FORMS[kind].right
    assert depth * wide * 8 <= max(UNITS[kind] << 22, 2 * 16 * 8 * wide * min(rows, columns), 8192 * wide)


@pytest.fixture(params=["packed", "tiled"])
def cutting(
    request: pytest.FixtureRequest,
    verdict: Verdict,
    open_tiled: Callable[[], OpenCLEngine],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[OpenCLEngine]:
    """An engine that cuts small products as it would large ones: slabs of up to 2100 rows, in slices."""
    monkeypatch.setattr(slices, "UNIT_BYTES", 1)
    monkeypatch.setattr(slices, "DEEPER", 0)
    monkeypatch.setattr(slices, "BUSY", 64)
    monkeypatch.setattr(slices, "THINNEST", 2100)
    count = slices.slice_count

    def thin(*arguments: Any, **named: Any) -> int:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(slices, "THINNEST", 64)
            return count(*arguments, **named)

    for module in (slices, strips):
        monkeypatch.setattr(module, "slice_count", thin)
    with open_tiled() if request.param == "tiled" else open_opencl("cpu") as engine:
        yield engine


def launches(engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, tuple[int, ...]]]:
    """The kernels that the engine runs from now on, and their groups."""
    seen: list[tuple[str, tuple[int, ...]]] = []
    run = engine._device.run

    def noted(kernel: Any, sizes: tuple[int, ...], *rest: Any, **named: Any) -> Any:
        seen.append((kernel.name, sizes))
        return run(kernel, sizes, *rest, **named)

    monkeypatch.setattr(engine._device, "run", noted)
    return seen


def bound(A: Matrix, B: Matrix) -> Matrix:
    """``inner * eps * |A| |B|``, as `Engine.multiply` promises."""
    scale: Matrix = np.abs(A).astype(float) @ np.abs(B).astype(float)
    out: Matrix = A.shape[1] * np.finfo(A.dtype).eps * scale
    return out


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("inner", "rows", "columns"), [(6301, 1, 1), (4199, 7, 50), (4300, 50, 51), (2101, 75, 30), (5000, 1, 77)]
)
def test_products_cut_into_slabs_and_slices_are_within_their_bound(
    cutting: Any,
    monkeypatch: pytest.MonkeyPatch,
    dtype: str,
    order: Any,
    inner: int,
    rows: int,
    columns: int,
) -> None:
    random = np.random.default_rng([inner, rows])
    A = random.standard_normal((rows, inner)).astype(dtype, order=order)
    B = random.standard_normal((inner, columns)).astype(dtype, order=order)
    exact = A.astype(np.longdouble) @ B.astype(np.longdouble)
    seen = launches(cutting, monkeypatch)
    C = cutting.multiply(A, B)
    names = [name for name, _ in seen]
    if cutting._packed:
        # A is read where it lies and B packed by the groups, so there are no slabs
        assert names == ["multiply", "add_slices"]
    else:
        assert names.count("pack") == 2 * names.count("multiply") >= 4
    assert names.count("add_slices") == names.count("multiply")
    assert max(sizes[1] for name, sizes in seen if name == "multiply") > 1
    assert (np.abs(C - exact) <= bound(A, B)).all()
    assert cutting.multiply(A, B).tobytes() == C.tobytes()
    there = cutting.multiply(cutting.upload(A), cutting.upload(B))
    assert cutting.download(there).tobytes() == C.tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(3001, 1), (4099, 50), (2300, 73), (1101, 145)])
def test_gram_matrices_cut_into_slabs_and_slices_are_symmetric_and_within_their_bound(
    cutting: Any, dtype: str, order: Any, wide: bool, rows: int, columns: int
) -> None:
    X = np.random.default_rng([rows, columns]).standard_normal((rows, columns)).astype(dtype, order=order)
    exact = X.astype(np.longdouble)
    G = cutting._gram(X, wide=wide)
    assert G.dtype == (np.float64 if wide else X.dtype)
    assert (np.abs(G - exact.T @ exact) <= bound(X.T, X)).all()
    assert G.tobytes() == G.T.copy().tobytes()
    assert cutting._gram(X, wide=wide).tobytes() == G.tobytes()
    if not wide:
        assert cutting.download(cutting.gram(cutting.upload(X))).tobytes() == G.tobytes()


def test_wide_sums_of_slices_are_more_exact_than_the_data(cutting: OpenCLEngine) -> None:
    X = (100 + np.random.default_rng(3).standard_normal((5000, 5))).astype(np.float32)
    exact = X.astype(float).T @ X.astype(float)
    assert np.abs(cutting._gram(X, wide=True) / exact - 1).max() < 1e-6


def test_nan_in_one_slab_reaches_only_its_row_and_column(cutting: OpenCLEngine) -> None:
    X = np.ones((3000, 20))
    X[2999, 7] = np.nan
    G = cutting.gram(X)
    others = np.arange(20) != 7
    assert (G[np.ix_(others, others)] == 3000).all()
    assert np.isnan(G[7]).all()
    assert np.isnan(G[:, 7]).all()


@pytest.mark.parametrize("tiled", [False, True])
def test_a_tall_gram_matrix_is_summed_in_slices_from_small_panels(
    verdict: Verdict, open_tiled: Callable[[], OpenCLEngine], monkeypatch: pytest.MonkeyPatch, tiled: bool
) -> None:
    """With the settings as they are: 60,000 x 50 would have panels of more than 24 MB."""
    X = np.random.default_rng(1).standard_normal((60_000, 50))
    with open_tiled() if tiled else open_opencl("cpu") as engine:
        monkeypatch.setattr(engine._device, "units", 2)
        seen = launches(engine, monkeypatch)
        G = engine.gram(X)
        panels = engine._device._slots["right panels"].size
    assert (np.abs(G - X.T @ X) <= 2 * bound(X.T, X)).all()
    assert np.array_equal(G, G.T)
    assert panels <= 4 << 20
    assert all(sizes[1] >= 2 for name, sizes in seen if name == "gram")


def test_a_square_product_runs_the_kernels_that_know_no_slices(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(1).standard_normal((300, 300))
    with open_opencl("cpu") as engine:
        seen = launches(engine, monkeypatch)
        engine.gram(X)
        engine.multiply(X, X)
    assert [name for name, _ in seen] == ["pack", "gram", "multiply"]
    assert {len(sizes) for name, sizes in seen if name != "pack"} == {1}
