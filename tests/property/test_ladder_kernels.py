"""Every rung of the kernel ladder: right for any sizes, in both types, and inside its buffers.

Each buffer lies between guards. Those of A and B are NaN, so a read past an end that counts spoils the
answer. That of C, and C itself, hold a number that no product gives, so a write past an end shows, and an
element that was left out. The formula of the bound is `inner * eps * |A| |B|`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mtbridge.compute.devices import Verdict
from mtbridge.compute.ladder import LADDER, VARIANTS, Rung, rung
from mtbridge.matrix import DTYPES, Matrix

RUNGS = [found for found in (*LADDER, *VARIANTS) if found.runner == "kernel"]
CHUNKED = ["private_row", "local_column", "dot4_cast", "dot4", "dot8"]
AWKWARD = [
    (1, 1, 1), (2, 3, 1), (3, 2, 3), (31, 31, 31), (37, 11, 5), (255, 3, 257), (257, 2, 255),
    (15, 17, 16), (16, 15, 17), (17, 16, 15), (1000, 7, 3), (7, 1000, 7), (3, 7, 1000),
    (4, 8, 8), (64, 64, 64),
]  # fmt: skip
GUARD = 64
POISON = -777.0


@pytest.fixture(scope="module")
def device(verdict: Verdict) -> Iterator[Any]:
    from mtbridge.compute.opencl_profiling import open_profiling

    opened = open_profiling(verdict)
    yield opened
    opened.close()


def product(
    device: Any,
    found: Rung,
    A: Matrix,
    B: Matrix,
    *,
    local: tuple[int, ...] | None = None,
    defines: Mapping[str, int] | None = None,
    more_rows: int = 0,
) -> Matrix:
    """Return A B by a rung, after looking at the guards; `more_rows` are rows that are not there."""
    import pyopencl as cl

    from mtbridge.compute.opencl_profiling import lying

    dtype = A.dtype
    sizes = (A.shape[0], A.shape[1], B.shape[1])
    copied = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR

    def guarded(values: Matrix, guard: float) -> tuple[Any, Matrix, Any]:
        whole = np.full(values.size + 2 * GUARD, guard, dtype)
        whole[GUARD : GUARD + values.size] = values.ravel()
        held = cl.Buffer(device._context, copied, hostbuf=whole)
        # a sub-buffer starts on a boundary of the device, so the guard is one
        return held, whole, held.get_sub_region(GUARD * dtype.itemsize, values.nbytes)

    _, _, first = guarded(A, np.nan)
    if found.second == "image":
        placed = device.place(found, sizes, dtype)
        device.fill(placed, A, lying(found, B))
        second = placed.second
    else:
        _, _, second = guarded(lying(found, B), np.nan)
    held, whole, third = guarded(np.full((sizes[0], sizes[2]), POISON, dtype), POISON)
    told = (sizes[0] + more_rows, sizes[1], sizes[2])
    device.launch(found, told, dtype, (first, second, third), local=local, defines=defines)
    assert device.seconds() >= 0
    cl.enqueue_copy(device._queue, whole, held)
    count = sizes[0] * sizes[2]
    assert (whole[:GUARD] == POISON).all(), f"{found.name} wrote before C"
    assert (whole[GUARD + count :] == POISON).all(), f"{found.name} wrote behind C"
    return whole[GUARD : GUARD + count].reshape(sizes[0], sizes[2])


def check(
    device: Any,
    found: Rung,
    sizes: tuple[int, int, int],
    dtype: str,
    *,
    local: tuple[int, ...] | None = None,
    defines: Mapping[str, int] | None = None,
    seed: int = 0,
) -> None:
    rows, inner, columns = sizes
    random = np.random.default_rng(seed)
    A = random.standard_normal((rows, inner)).astype(dtype)
    B = random.standard_normal((inner, columns)).astype(dtype)
    C = product(device, found, A, B, local=local, defines=defines)
    wide = np.float64 if dtype == "float32" else np.longdouble
    error = np.abs(C - A.astype(wide) @ B.astype(wide))
    bound = inner * np.finfo(dtype).eps * (np.abs(A).astype(wide) @ np.abs(B).astype(wide))
    assert (error <= bound).all(), f"{found.name} is wrong at {sizes}, local size {local}, {defines}"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("found", RUNGS, ids=lambda found: found.name)
def test_a_rung_is_right_at_awkward_sizes_and_stays_in_its_buffers(
    device: Any, found: Rung, dtype: str
) -> None:
    for seed, sizes in enumerate(AWKWARD):
        check(device, found, sizes, dtype, seed=seed)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CHUNKED)
def test_a_row_longer_than_a_chunk_is_right(device: Any, name: str, dtype: str) -> None:
    for inner in (15, 16, 17, 31, 33, 48, 49):
        check(device, rung(name), (19, inner, 5), dtype, defines={"CHUNK": 16})


@pytest.mark.parametrize("name", ["local_column", "dot4_cast", "dot4", "dot8"])
@pytest.mark.parametrize("local", [1, 2, 3, 7, 16, 31, 50, 64, 100, 128, 255, 256])
def test_a_shared_column_is_right_for_every_local_size(device: Any, name: str, local: int) -> None:
    check(device, rung(name), (101, 37, 3), "float32", local=(local,), defines={"CHUNK": 32})


def test_a_local_column_is_right_for_each_local_size_up_to_64_and_the_largest(device: Any) -> None:
    for local in (*range(1, 65), device.largest_group):
        check(device, rung("local_column"), (67, 37, 2), "float64", local=(local,), defines={"CHUNK": 32})


@pytest.mark.parametrize(
    "name", ["naive", "coalesced", "private_sum", "row_per_item", "macro_tile", "texture"]
)
def test_a_rung_without_local_memory_is_right_for_every_local_size(device: Any, name: str) -> None:
    found = rung(name)
    for local in [(1, 1), (3, 5), (64, 1), (1, 64)]:
        check(device, found, (45, 13, 29), "float64", local=local[: len(found.walks)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["dot4_cast", "dot4", "dot8"])
def test_the_built_in_dot_gives_the_same(device: Any, name: str, dtype: str) -> None:
    check(device, rung(name), (21, 45, 6), dtype, defines={"BUILT_IN_DOT": 1})


@pytest.mark.parametrize(
    ("name", "defines"),
    [
        ("tiled", {"TILE": 8}),
        ("tiled_padded", {"TILE": 8, "PAD": 3}),
        ("macro_tile", {"STEP": 4}),
        ("texture", {"ITEM_ROWS": 3}),
    ],
    ids=str,
)
def test_another_setting_gives_the_same(device: Any, name: str, defines: dict[str, int]) -> None:
    found = rung(name)
    # a tile is the local size, and the rows of an item decide how many items there must be
    if "TILE" in defines:
        check(device, found, (29, 18, 43), "float32", defines=defines, local=(8, 8))
    elif name == "texture":
        check(device, found, (3, 18, 43), "float32", defines=defines)
    else:
        check(device, found, (29, 18, 43), "float32", defines=defines)


@settings(max_examples=60, deadline=None)
@given(
    found=st.sampled_from(RUNGS),
    rows=st.integers(1, 70),
    inner=st.integers(1, 70),
    columns=st.integers(1, 70),
    dtype=st.sampled_from(DTYPES),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_rung_is_right_at_any_sizes(
    device: Any, found: Rung, rows: int, inner: int, columns: int, dtype: str, seed: int
) -> None:
    check(device, found, (rows, inner, columns), dtype, seed=seed)


def test_the_guards_notice_a_write_past_the_end(device: Any) -> None:
    A, B = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
    naive = rung("naive")
    assert np.array_equal(product(device, naive, A, B), A @ B)
    with pytest.raises(AssertionError, match="wrote behind C"):
        product(device, naive, A, B, more_rows=1)
