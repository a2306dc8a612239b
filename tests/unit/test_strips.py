"""How products on a CPU device are cut into strips and chunks, and arrays that its runtime would copy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mtbridge.compute.aligned import ALIGNMENT, aligned_empty
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import open_opencl
from mtbridge.compute.strips import EVEN, TALLEST, THINNEST, chunk_rows, row_bytes, strip_macros
from mtbridge.matrix import DTYPES, Matrix


@pytest.mark.parametrize("units", [1, 2, 16, 128])
@pytest.mark.parametrize("micro", [2, 8, 12])
@pytest.mark.parametrize("rows", [1, 2, 7, 127, 128, 129, 997, 100_003])
@pytest.mark.parametrize("strips", [1, 3, 21, 500])
def test_chunks_are_whole_micro_tiles_of_enough_rows_and_keep_every_unit_busy(
    rows: int, strips: int, micro: int, units: int
) -> None:
    chunk = chunk_rows(rows, strips=strips, micro=micro, units=units)
    groups = -(-rows // chunk) * strips
    assert chunk % micro == 0
    assert chunk - micro < max(rows, micro)
    assert min(rows, THINNEST) <= chunk < TALLEST + micro
    # fewer groups than wanted only where chunks would be too thin, or a rounding away from it
    assert groups >= EVEN * units or chunk < 2 * THINNEST + micro or groups > 0.9 * EVEN * units


@pytest.mark.parametrize("local_bytes", [1, 191, 192, 4000, 1 << 20])
def test_a_strip_is_as_deep_as_local_memory_allows(local_bytes: int) -> None:
    defines = {"MICRO_COLUMNS": 48, "REAL_BITS": 32, "STRIP_INNER": 1024}
    deep = strip_macros(defines, local_bytes)["STRIP_INNER"]
    assert 1 <= deep <= 1024
    assert deep * row_bytes(defines) <= max(local_bytes, row_bytes(defines))
    assert deep == 1024 or (deep + 1) * row_bytes(defines) > local_bytes


@pytest.mark.parametrize("dtype", DTYPES)
def test_little_local_memory_is_enough(verdict: Verdict, monkeypatch: pytest.MonkeyPatch, dtype: str) -> None:
    random = np.random.default_rng(1)
    A, B = (random.standard_normal(shape).astype(dtype) for shape in ((40, 203), (203, 101)))
    with open_opencl("cpu") as engine:
        monkeypatch.setattr(engine._device, "local_bytes", 5000)
        C = engine.multiply(A, B)
    bound: Any = 203 * np.finfo(dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
    assert (np.abs(C - A.astype(np.longdouble) @ B.astype(np.longdouble)) <= bound).all()


def lying_at(offset: int, values: Matrix) -> Matrix:
    """`values` in an array that starts `offset` bytes behind a boundary."""
    raw = aligned_empty((values.nbytes + offset,), np.dtype(np.uint8))
    array: Matrix = raw[offset:].view(values.dtype).reshape(values.shape)
    array[...] = values
    return array


@pytest.mark.parametrize("boundary", [1, ALIGNMENT])
@pytest.mark.parametrize("offset", [0, 8, 64])
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_at_any_address_give_the_same_product(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch, dtype: str, offset: int, boundary: int
) -> None:
    """Whether the device reads them where they lie or gets a copy, and from call to call."""
    random = np.random.default_rng(offset)
    with open_opencl("cpu") as engine:
        monkeypatch.setattr(engine._device, "_boundary", boundary)
        for rows, inner, columns in ((37, 41, 53), (3, 5, 7), (64, 1030, 50)):
            shapes = ((rows, inner), (inner, columns))
            A, B = (lying_at(offset, random.standard_normal(shape).astype(dtype)) for shape in shapes)
            C = engine.multiply(A, B)
            assert C.tobytes() == engine.multiply(A, B).tobytes()
            bound: Any = inner * np.finfo(dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
            assert (np.abs(C - A.astype(np.longdouble) @ B.astype(np.longdouble)) <= bound).all()
            G = engine.gram(lying_at(offset, B))
            assert G.tobytes() == engine.gram(B).tobytes()
        copied = {"left source", "right source"} & set(engine._device._slots)
        assert bool(copied) == (offset % boundary != 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("orders", ["CC", "CF", "FC", "FF"])
@pytest.mark.parametrize("shape", [(1, 1025, 1), (9, 2049, 49), (130, 3, 51), (50, 1024, 95), (3, 1, 200)])
def test_products_are_right_in_every_order_and_the_same_bits_again(
    verdict: Verdict, dtype: str, orders: Any, shape: tuple[int, int, int]
) -> None:
    rows, inner, columns = shape
    random = np.random.default_rng(shape)
    A = random.standard_normal((rows, inner)).astype(dtype, order=orders[0])
    B = random.standard_normal((inner, columns)).astype(dtype, order=orders[1])
    with open_opencl("cpu") as engine:
        C = engine.multiply(A, B)
        exact = A.astype(np.longdouble) @ B.astype(np.longdouble)
        bound = inner * np.finfo(dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
        assert (np.abs(C - exact) <= bound).all()
        again = engine.multiply(np.ascontiguousarray(A), np.asfortranarray(B))
        assert again.tobytes() == C.tobytes()
