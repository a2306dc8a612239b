"""The kernels of kernels/moments by themselves: what they write, and which origins a device chooses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mtbridge.compute import opencl_moments
from mtbridge.compute.centre import MODERATE, VAST, ordinary_centre
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.opencl_moments import SUM, Uncentred
from mtbridge.matrix import DTYPES, Matrix
from mtbridge.sources import program_text

GUARD = 64
SIZES = [(1, 1), (127, 31), (128, 32), (129, 33), (300, 70)]


def prices(rows: int, columns: int) -> Matrix:
    random = np.random.default_rng(rows + columns)
    return (2000 + random.standard_normal((rows, columns)).cumsum(axis=0)).astype(np.float32)


class Bench:
    """Kernels on buffers between guards."""

    def __init__(self, engine: OpenCLEngine) -> None:
        self.context, self.queue = engine._device._context, engine._device._queue

    def buffer(self, array: Any) -> Any:
        import pyopencl as cl

        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        return cl.Buffer(self.context, flags, hostbuf=np.ascontiguousarray(array))

    def guarded(self, shape: tuple[int, ...], dtype: str) -> tuple[Matrix, Any, Any]:
        whole = np.full(2 * GUARD + int(np.prod(shape)), -777, dtype)
        buffer, size = self.buffer(whole), whole.itemsize
        return whole, buffer, buffer.get_sub_region(GUARD * size, (whole.size - 2 * GUARD) * size)

    def read(self, whole: Matrix, buffer: Any, shape: tuple[int, ...]) -> Matrix:
        import pyopencl as cl

        cl.enqueue_copy(self.queue, whole, buffer)
        assert (whole[:GUARD] == -777).all()
        assert (whole[-GUARD:] == -777).all()
        return whole[GUARD:-GUARD].reshape(shape)

    def run(
        self,
        files: tuple[str, ...],
        defines: dict[str, int],
        groups: tuple[int, int],
        local: tuple[int, int],
        *arguments: Any,
        first_row: int = 0,
    ) -> None:
        import pyopencl as cl

        (kernel,) = cl.Program(self.context, program_text(files, defines)).build().all_kernels()
        kernel.set_args(*arguments)
        items = (groups[0] * local[0], groups[1] * local[1])
        cl.enqueue_nd_range_kernel(self.queue, kernel, items, local, (0, first_row))


def strides(rows: int, columns: int, turned: bool) -> tuple[np.int64, np.int64]:
    return (np.int64(1), np.int64(rows)) if turned else (np.int64(columns), np.int64(1))


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_what_is_measured_of_each_chunk_and_nothing_else_is_written(
    opencl_engine: OpenCLEngine, rows: int, columns: int, turned: bool, squares: bool
) -> None:
    bench, X = Bench(opencl_engine), prices(rows, columns)
    chunk, local, add = (128, (32, 2), "_squares") if squares else (100, (1, 1), "")
    chunks = -(-rows // chunk)
    whole, buffer, inside = bench.guarded((chunks, 3, columns), "float64")
    defines = {"SOURCE_BITS": 32, "SUM_BITS": 64} | ({"SQUARE": 32, "DOWN": 2} if squares else {})
    sizes = (np.int32(columns), np.int32(rows), np.int32(chunk))
    source, steps = bench.buffer(X.T if turned else X), strides(rows, columns, turned)
    headers = ("measuring.clh",) if squares else ()
    files, groups = (*headers, f"moments/columns{add}.cl"), (-(-columns // 32), chunks)
    bench.run(files, defines, groups, local, source, inside, *sizes, *steps)
    found = bench.read(whole, buffer, (chunks, 3, columns))
    for part, begin in zip(found, range(0, rows, chunk), strict=True):
        some = X[begin : begin + chunk]
        assert np.allclose(part[0], some.sum(axis=0, dtype=float), rtol=1e-14)
        assert np.array_equal(part[1], some.min(axis=0))
        assert np.array_equal(part[2], some.max(axis=0))


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("squares", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("rows", "columns"), SIZES)
def test_panels_and_what_is_found_and_nothing_else_is_written(
    opencl_engine: OpenCLEngine, rows: int, columns: int, turned: bool, squares: bool, more: int, source: str
) -> None:
    bench, X = Bench(opencl_engine), prices(rows, columns).astype(source)
    # two rows before those that are packed, as in a slab that is not the first
    laid = np.vstack([np.full((2, columns), 7, source), X])
    held, steps = bench.buffer(laid.T if turned else laid), strides(rows + 2, columns, turned)
    panel, chunk, local = (64, 128, (32, 2)) if squares else (24, 100, (1, 1))
    depth, width = -(-rows // 8) * 8, -(-columns // panel) * panel
    table = np.zeros((2, width))
    table[:, :columns] = [[2000.25], [0.5]]
    chunks = -(-depth // chunk)
    shape = (width // panel, depth, panel)
    whole, buffer, inside = bench.guarded(shape, "float32")
    sums, sums_buffer, sums_inside = bench.guarded((chunks + 2, width), "float64")
    defines = {"SOURCE_BITS": 8 * X.itemsize, "REAL_BITS": 32, "SUM_BITS": 64, "PANEL": panel}
    files: tuple[str, ...] = ("moments/pack_centred.cl",)
    given = (columns, rows, depth, chunk, more)
    if squares:
        defines |= {"SQUARE": 32, "DOWN": 2, "SPAN": 256 // X.itemsize}
        files, given = (
            ("centring.clh", "packing.clh", "moments/pack_centred_squares.cl"),
            (*given[:4], 0, rows, more),
        )
    buffers = (held, inside, bench.buffer(table), sums_inside)
    groups = (width // (32 if squares else panel), chunks)
    bench.run(files, defines, groups, local, *buffers, *map(np.int32, given), *steps, first_row=2)
    panels = bench.read(whole, buffer, shape)
    Z = np.zeros((depth, width))
    Z[:rows, :columns] = (X - 2000.25) * 0.5
    assert np.array_equal(panels.transpose(1, 0, 2).reshape(depth, width), Z.astype(np.float32))
    found = bench.read(sums, sums_buffer, (chunks + 2, width))
    # of float32 a GPU needs no sums: those of the origin were exact enough
    seen = np.zeros_like(Z) if squares and source == "float32" else Z
    expected = [seen[begin : begin + chunk].sum(axis=0) - 777 * more for begin in range(0, depth, chunk)]
    assert np.allclose(found[:-2], expected, rtol=1e-12, atol=1e-9)
    assert np.array_equal(found[-2:], np.full((2, width), -777) if more else table)


def hostile(rows: int) -> Matrix:
    """Columns that are ordinary, constant, not finite, vast, or of deviations that are hardly moderate."""
    random = np.random.default_rng(rows)
    X = np.empty((rows, 16))
    X[...] = random.standard_normal(X.shape)
    X[:, 1] = 0.1
    X[:, 2] = -0.0
    X[:, 3] = 2.0**-1060
    X[:, 4] *= 2.0**-MODERATE
    X[:, 5] = np.linspace(0, 1, rows) * 2.0**-MODERATE / 4
    X[:, 6] = np.linspace(0, 1, rows) * 2.0 ** (MODERATE - 1)
    X[:, 7] = np.linspace(0, 1, rows) * 2.0**MODERATE
    X[:, 8] = np.linspace(0, 1, rows) * 2.0**-1060
    X[:, 9] = VAST
    X[:, 10] = VAST * 2
    X[:, 11] = np.linspace(-1, 1, rows) * 1e308
    X[:, 12] += 1e9 + 0.1
    X[rows // 2, 13] = np.nan
    X[0, 14] = np.inf
    X[0, 15], X[-1, 15] = np.inf, -np.inf
    return X


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize("looked", [0, 1 << 26], ids=["launch", "own"])
@pytest.mark.parametrize("rows", [2, 3, 128, 1000, 20_000])
def test_a_device_chooses_the_centre_that_the_host_does_bit_for_bit(
    tiled_engine: OpenCLEngine,
    rows: int,
    looked: int,
    source: str,
    dtype: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Columns are measured by a launch of their own, or of float32 by every group that packs."""
    monkeypatch.setattr(opencl_moments, "LOOKED", looked)
    device, form = tiled_engine.kernels_device, tiled_engine.form_in_use(dtype)
    with np.errstate(over="ignore"):
        X = hostile(rows).astype(source)
    slabs = [slice(0, rows)]
    ways = []
    for column in range(X.shape[1]):
        # two of them: numpy adds up the chunks of one column in another order
        held = np.ascontiguousarray(X[:, [column, column]])
        raw = Uncentred(device.send("right source", held), held.shape, (2, 1), X.dtype, np.dtype(dtype), form)
        total, low, high = raw.measured(device)
        expected = ordinary_centre(total, low, high, rows=rows, dtype=np.dtype(dtype))
        centring = raw.self_centred(device, slabs)
        own = bool(looked) and source == dtype == "float32"
        assert (centring.centre.buffer is None) == own
        centring.packed(device, slabs[0])
        found = centring.chosen(device)
        finite = bool(np.isfinite(held).all())
        if expected is not None:
            assert found is not None
            assert found[0].tobytes() == expected[0].tobytes()
            assert np.array_equal(found[1], expected[1])
        elif finite:
            assert found is None
        else:
            assert found is not None
            assert np.isnan(found[0]).all()
            assert not found[1].any()
        ways.append((expected is None, finite))
    assert set(ways) >= {(False, True), (True, False)}


def test_all_columns_together_are_chosen_as_each_alone(tiled_engine: OpenCLEngine) -> None:
    device, form = tiled_engine.kernels_device, tiled_engine.form_in_use("float64")
    X = np.ascontiguousarray(hostile(500)[:, [0, 1, 12, 13, 14]])
    raw = Uncentred(device.send("right source", X), X.shape, (5, 1), X.dtype, X.dtype, form)
    many = np.tile(X, (1, 20))
    wide = replace(raw, source=device.send("left source", many), shape=many.shape, steps=(100, 1))
    origins = []
    for one in (raw, wide):
        centring = one.self_centred(device, [slice(0, 500)])
        centring.packed(device, slice(0, 500))
        chosen = centring.chosen(device)
        assert chosen is not None
        origins.append(chosen[0])
    assert np.tile(origins[0], 20).tobytes() == origins[1].tobytes()


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize(("columns", "chunks"), [(1, 1), (31, 2), (32, 1), (33, 3), (97, 5)])
def test_a_covariance_is_made_of_one_triangle_and_nothing_else_is_written(
    opencl_engine: OpenCLEngine, columns: int, chunks: int, kind: str
) -> None:
    from mtbridge.compute.forms import upper_triangle

    bench, random = Bench(opencl_engine), np.random.default_rng(columns)
    width, count = -(-columns // 32) * 32, 1000
    sums = random.standard_normal((columns, columns)) * 1e5
    found = random.standard_normal((chunks + 2, width))
    found[-1] = 2.0 ** random.integers(-9, 9, width)
    # what lies below the diagonal is not read
    given = np.triu(sums) + np.tril(np.full_like(sums, np.nan), -1)
    whole, buffer, inside = bench.guarded((columns, columns), kind)
    blocks = upper_triangle(columns, (32, 32))
    defines = {"REAL_BITS": 8 * np.dtype(kind).itemsize, "SUM_BITS": 64, "SIDE": 32, "DOWN": 2}
    sizes = (np.int32(columns), np.int32(width), np.int32(chunks), np.float64(count), np.float64(1 / 999))
    arguments = (bench.buffer(given), inside, bench.buffer(found), *sizes, bench.buffer(blocks))
    bench.run(("moments/covariance.cl",), defines, (len(blocks), 1), (32, 2), *arguments)
    C = bench.read(whole, buffer, (columns, columns))
    mean, unit = found[:-2, :columns].sum(axis=0) / count, 1 / found[-1, :columns]
    right = (sums - count * np.outer(mean, mean)) / 999 * np.outer(unit, unit)
    right = np.triu(right) + np.triu(right, 1).T
    # a rounding each of the mean, the product, the difference and the two quotients, and one to the type
    scale = (np.abs(sums) + count * np.abs(np.outer(mean, mean))) / 999 * np.outer(unit, unit)
    scale = np.triu(scale) + np.triu(scale, 1).T
    bound = 8 * np.finfo(SUM).eps * scale + np.finfo(kind).eps * np.abs(right)
    assert (np.abs(C - right) <= bound).all()
    assert np.array_equal(C, C.T)
