"""Ordinary float32 products in halves: kernels and scales everywhere, tensor cores where there are some."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_split import BITS, CHOICES, Open, bound, far_apart

from mtbridge.compute import opencl_moments, opencl_split, precision
from mtbridge.compute.forms import whole_grid
from mtbridge.compute.launches import Launches
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.opencl_moments import SUM, Uncentred
from mtbridge.compute.opencl_split import queue_products, ready, with_products
from mtbridge.compute.precision import fault_in, fault_of
from mtbridge.compute.several import SeveralEngine
from mtbridge.compute.tensor_cores import form_of
from mtbridge.matrix import Matrix

FLOAT32 = np.dtype(np.float32)
AWKWARD = [(1, 1, 1), (2, 3, 1), (1, 5, 33), (31, 32, 65), (33, 31, 32), (37, 130, 70), (129, 64, 40)]
"""(rows, inner, columns): beside a stage, a tile, and the sums in registers of the small settings."""
ORDERS = ["CC", "CF", "FC", "FF"]


@pytest.fixture
def plain(processor: OpenCLEngine) -> OpenCLEngine:
    processor.use_precision("split", form_of("split_mma", 0))
    return processor


def lying(X: Matrix, order: str) -> Matrix:
    return np.asfortranarray(X) if order == "F" else np.ascontiguousarray(X)


@pytest.mark.parametrize(("family", "wanted"), CHOICES)
@pytest.mark.parametrize("shape", AWKWARD, ids=str)
def test_products_are_within_the_bound_of_norms_at_awkward_sizes(
    asked: Open, family: str, wanted: str, shape: tuple[int, int, int]
) -> None:
    engine, (rows, inner, columns) = asked(family, wanted), shape
    A, B = far_apart(rows, inner, 0), far_apart(inner, columns, 1, seed=2)
    exact = A.astype(np.float64) @ B.astype(np.float64)
    for order in ORDERS:
        found = engine.multiply(lying(A, order[0]), lying(B, order[1]))
        assert found.dtype == np.float32
        assert (np.abs(found - exact) <= bound(A, B, BITS[wanted])).all()


@pytest.mark.parametrize(("family", "wanted"), CHOICES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_grams_are_symmetric_and_within_the_bound(asked: Open, family: str, wanted: str, order: str) -> None:
    engine, X = asked(family, wanted), lying(far_apart(130, 70, 1), order)
    found = engine.gram(X)
    exact = X.T.astype(np.float64) @ X.astype(np.float64)
    assert (np.abs(found - exact) <= bound(X.T, X, BITS[wanted])).all()
    assert np.array_equal(found, found.T)


@pytest.mark.parametrize(("inner", "names"), [(300, []), (9001, ["largest"])])
def test_a_product_is_a_few_launches_one_right_after_the_other(
    plain: OpenCLEngine, inner: int, names: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each costs a device some 10 us, and waiting for the host between them as much again."""
    device, queued = plain.kernels_device, list[str]()
    enqueue = device._enqueue

    def noted(kernel: Any, *place: Any) -> Any:
        queued.append(kernel.name)
        return enqueue(kernel, *place)

    monkeypatch.setattr(device, "_enqueue", noted)
    monkeypatch.setattr(opencl_moments, "LOOKED", 1 << 20)
    X = far_apart(inner, 40, 1)
    plain.gram(X)
    once = [*names, "pack_centred", "gram", "infinite_strips"]
    assert [name for name in queued if name != "add_parts"] == once
    queued.clear()
    plain.multiply(X.T, X)
    twice = [*names, *names, "pack_centred", "pack_centred", "multiply", "infinite_strips"]
    assert [name for name in queued if name != "add_parts"] == twice


@pytest.mark.parametrize(
    ("size", "other"), [(1e-43, 1e30), (3e-39, 1e36), (1e38, 1e-38), (3e38, 1e-43), (1e19, 1e19), (1, 1)]
)
def test_the_ends_of_the_range_lose_nothing_but_what_float32_cannot_hold(
    asked: Open, size: float, other: float
) -> None:
    """Scales are powers of two from 2**-118 to 2**159: they are put on and undone without a loss."""
    engine = asked("split_mma", "split")
    random = np.random.default_rng(5)
    A = (random.uniform(0.5, 1, (3, 40)) * size).astype(np.float32)
    B = (random.uniform(-1, 1, (40, 5)) * other).astype(np.float32)
    exact = A.astype(np.float64) @ B.astype(np.float64)
    with np.errstate(over="ignore", under="ignore"):
        rounded = exact.astype(np.float32)
    found = engine.multiply(A, B)
    smallest = np.finfo(np.float32).smallest_subnormal
    near = np.abs(found - exact) <= bound(A, B, 22) + smallest
    assert np.where(np.isinf(rounded), found == rounded, near).all()


def test_products_past_the_range_are_inf_with_their_sign(asked: Open) -> None:
    engine = asked("split_mma", "split")
    A = np.full((2, 3), 1e30, np.float32)
    B = np.array([[1e30, -1e30]] * 3, np.float32)
    assert np.array_equal(engine.multiply(A, B), [[np.inf, -np.inf]] * 2)


def test_zeros_are_zeros(asked: Open) -> None:
    engine = asked("split_mma", "split")
    A, B = far_apart(40, 50, 0), far_apart(50, 34, 1)
    A[7], B[:, 33] = 0, 0
    found = engine.multiply(A, B)
    assert not found[7].any()
    assert not found[:, 33].any()
    assert found[:7, :33].all()


@pytest.mark.parametrize(("family", "wanted"), CHOICES)
def test_nan_and_inf_are_data_and_leave_other_pairs_their_bits(asked: Open, family: str, wanted: str) -> None:
    engine = asked(family, wanted)
    A, B = far_apart(70, 45, 0, spread=2), far_apart(45, 66, 1, spread=2)
    # what multiplies an inf below may be 0, or so small that nothing of it is left in halves
    B[3, 1], B[4, 2] = 0, 1e-30
    A[1, 5], A[2, 6] = 0, -1e-30
    before = engine.multiply(A, B)
    A[0, 3], A[69, 4], A[33, 8], A[33, 9] = np.inf, -np.inf, np.inf, -np.inf
    A[40, 2] = np.nan
    B[5, 65], B[6, 30], B[44, 0] = np.inf, -np.inf, np.nan
    B[3, 9] = np.inf
    after = engine.multiply(A, B)
    with np.errstate(invalid="ignore"):
        exact = A.astype(np.float64) @ B.astype(np.float64)
    rows, columns = np.isfinite(A).all(axis=1), np.isfinite(B).all(axis=0)
    assert np.isnan(exact[0, 1])
    assert np.isinf(exact[0, 9])
    touched = ~np.outer(rows, columns)
    assert np.array_equal(after[touched], exact[touched].astype(np.float32), equal_nan=True)
    assert np.array_equal(after[~touched], before[~touched])


def test_an_inf_in_x_is_on_both_sides_of_the_diagonal(asked: Open) -> None:
    engine = asked("split_mma", "split")
    X = far_apart(50, 40, 1, spread=1)
    X[9, 3], X[8, 39], X[7, 20], X[30, 5] = np.inf, -np.inf, np.nan, 0
    before = engine.gram(np.where(np.isfinite(X), X, 0))
    found = engine.gram(X)
    with np.errstate(invalid="ignore"):
        exact = X.T.astype(np.float64) @ X.astype(np.float64)
    lost = np.isin(np.arange(40), (3, 39, 20))
    touched = lost[:, np.newaxis] | lost
    assert np.array_equal(found[touched], exact[touched].astype(np.float32), equal_nan=True)
    assert np.array_equal(found[~touched], before[~touched])
    assert found.tobytes() == np.ascontiguousarray(found.T).tobytes()


def test_uploaded_matrices_are_multiplied_where_they_lie(asked: Open) -> None:
    engine = asked("split_mma", "split")
    A, B = far_apart(33, 70, 0, spread=1), far_apart(70, 20, 1, spread=1)
    chain: Any = engine.multiply(engine.upload(A), engine.upload(B))
    assert np.array_equal(engine.download(chain), engine.multiply(A, B))
    square: Any = engine.gram(chain)
    assert np.array_equal(engine.download(square), engine.gram(engine.download(chain)))


def test_blocks_of_small_buffers_are_in_halves_too(plain: OpenCLEngine) -> None:
    A, B = far_apart(100, 90, 0), far_apart(90, 110, 1)
    with open_opencl("cpu", largest_buffer=1 << 14) as small:
        small.use_precision("split", plain.product_form)
        found, square = small.multiply(A, B), small.gram(B)
    assert (np.abs(found - A.astype(np.float64) @ B) <= 2 * bound(A, B, 22)).all()
    assert (np.abs(square - B.T.astype(np.float64) @ B) <= 2 * bound(B.T, B, 22)).all()
    assert np.array_equal(square, square.T)


def test_float64_stays_float64(plain: OpenCLEngine) -> None:
    A = np.random.default_rng(6).standard_normal((30, 40))
    with open_opencl("cpu") as full:
        assert np.array_equal(plain.multiply(A, A.T), full.multiply(A, A.T))


def test_an_engine_says_its_precision(plain: OpenCLEngine) -> None:
    from mtbridge.compute import operations

    A = np.ones((2, 2), np.float32)
    assert operations.multiply(A, A, engine=plain).device.endswith("(split float32)")


def test_covariances_in_single_are_as_near_as_tf32(asked: Open) -> None:
    engine = asked("split_mma", "single")
    engine.centred_from = 0
    X = 1000 + np.random.default_rng(7).standard_normal((500, 40))
    found = engine.moments(X, dtype=FLOAT32).correlation()
    error = np.abs(found - np.corrcoef(X, rowvar=False)).max()
    assert 1e-7 < error <= 2 * 2.0**-11


def test_blocks_off_the_diagonal_of_centred_columns_are_in_halves(plain: OpenCLEngine) -> None:
    X = 1000 + np.random.default_rng(8).standard_normal((300, 150))
    X[4, 11] = np.nan
    with open_opencl("cpu", largest_buffer=1 << 16) as engine:
        engine.centred_from = 0
        engine.use_halves(0)
        found = engine.moments(X, dtype=FLOAT32).correlation()
        built = {files[-1] for _, files, _ in engine.kernels_device._kernels}
    assert "multiply/split_mma.cl" in built
    others = np.delete(np.arange(150), 11)
    assert np.isnan(found[11]).all()
    expected = np.corrcoef(X[:, others], rowvar=False)
    assert np.abs(found[np.ix_(others, others)] - expected).max() <= 1e-6


def test_devices_share_centred_columns_in_halves(plain: OpenCLEngine) -> None:
    X = 1000 + np.random.default_rng(9).standard_normal((200, 100))
    answers = []
    for count in (1, 2):
        engines = {number: open_opencl("cpu") for number in range(count)}
        for engine in engines.values():
            engine.use_halves(0)
        with SeveralEngine(engines, least=32) as shared:
            answers.append(shared.moments(X, dtype=FLOAT32))
            assert shared.used is shared
            built = {files[-1] for _, files, _ in shared.first.kernels_device._kernels}
            assert "gram/split_mma.cl" in built
    assert np.array_equal(answers[0].comoment, answers[1].comoment)
    assert np.abs(answers[0].correlation() - np.corrcoef(X, rowvar=False)).max() <= 1e-6


@pytest.mark.parametrize("total", [FLOAT32, SUM], ids=str)
@pytest.mark.parametrize(("family", "wanted"), CHOICES)
def test_the_check_of_a_device_finds_nothing_wrong(
    asked: Open, monkeypatch: pytest.MonkeyPatch, family: str, wanted: str, total: np.dtype[Any]
) -> None:
    engine = asked(family, wanted)
    assert engine.product_form is not None
    if not engine.kernels_device.capability:
        monkeypatch.setattr(precision, "SHAPES", ((1, 1, 1), (37, 130, 70)))
    assert not fault_of(engine.kernels_device, engine.product_form, total)


def test_the_check_sees_wrong_sums_lost_inf_a_bias_and_a_lost_triangle() -> None:
    A, B = far_apart(30, 60, 0, spread=1), far_apart(60, 30, 1, spread=1)
    exact = A.astype(np.float64) @ B.astype(np.float64)
    assert not fault_in(exact, A, B, products=3)
    wrong = exact.copy()
    wrong[1, 2] += 2e-6 * np.linalg.norm(A[1]) * np.linalg.norm(B[:, 2])
    assert "wrong" in fault_in(wrong, A, B, products=3)
    assert not fault_in(wrong, A, B, products=1)
    A[4, 4] = np.inf
    assert "wrong" in fault_in(exact, A, B, products=3)
    square = B.T.astype(np.float64) @ B.astype(np.float64)
    assert not fault_in(square, B.T, B, products=3)
    assert "diagonal" in fault_in(square * (1 - 6e-7), B.T, B, products=3)
    assert "symmetric" in fault_in(np.triu(square) + np.tril(square, -1) * (1 + 1e-9), B.T, B, products=3)
    assert fault_in(np.full_like(square, np.nan), B.T, B, products=3)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("looked", [0, 1 << 26], ids=["launch", "own"])
@pytest.mark.parametrize(("inner", "strips"), [(1, 1), (5, 31), (32, 32), (70, 65), (1100, 34)])
def test_panels_hold_the_halves_of_every_scaled_number(
    processor: OpenCLEngine,
    inner: int,
    strips: int,
    looked: int,
    turned: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Against the formulas at the heads of pack_centred_halves.cl and largest.cl.

    The largest of a strip is found by a launch of its own in chunks, or by every group that packs.
    """
    monkeypatch.setattr(opencl_moments, "LOOKED", looked)
    device, form = processor.kernels_device, form_of("split_mma", 0)
    X = far_apart(inner, strips, 1)
    X[:, 0] = np.float32(2.0) ** -np.arange(inner).clip(0, 40)
    held = np.ascontiguousarray(X.T) if turned else X
    steps = (1, inner) if turned else (strips, 1)
    raw = Uncentred(device.send("right source", held), X.shape, steps, FLOAT32, FLOAT32, form)
    scaled = opencl_split.scaled_by_largest(device, raw, [slice(0, inner)])
    assert (scaled.measured > 0) == (not looked)
    assert (scaled.measured > 1) == (not looked and inner > 1000)
    buffer, depth = scaled.packed(device, slice(0, inner))
    width = raw.width
    bits = device.downloaded(scaled.largest, np.empty(width, np.uint32))
    assert np.array_equal(bits[:strips], np.abs(X).max(axis=0).view(np.uint32))
    assert not bits[strips:].any()
    halves = device.downloaded(buffer, np.empty(2 * width * depth, np.uint16))

    z = np.zeros((depth, width))
    largest = np.abs(X).max(axis=0).astype(np.float64)
    z[:inner, :strips] = np.ldexp(X.astype(np.float64), 10 - np.frexp(largest)[1])
    assert ((np.abs(z).max(axis=0)[:strips] >= 512) & (np.abs(z).max(axis=0)[:strips] < 1024)).all()
    hi = z.astype(np.float16)
    lo = (z - hi).astype(np.float16)
    k, c = np.indices((depth, width))
    for part, half in ((0, hi), (1, lo)):
        plane = (c // 64 * (depth // 64) + k // 64) * 2 + part
        at = 8 * (512 * plane + c % 64 * 8 + (k % 64 // 8 ^ c & 7)) + k % 8
        assert np.array_equal(halves[at], half.view(np.uint16))


def test_a_mask_is_taken_as_a_right_operand_of_hi_alone(asked: Open) -> None:
    engine = asked("split_mma", "split")
    device, launches = engine.kernels_device, Launches(engine.kernels_device)
    assert engine.product_form is not None
    form = with_products(engine.product_form, 2)
    random = np.random.default_rng(10)
    Z = random.uniform(-1, 1, (200, 70)).astype(np.float32)
    mask = (random.random((200, 45)) < 0.5).astype(np.float32)
    slabs = [slice(0, 200)]
    left = ready(device, launches.ordinary(form, "left", Z), slabs)
    right = ready(device, launches.ordinary(with_products(form, 1), "right", mask), slabs)
    blocks = whole_grid(70, 45, (form.rows, form.columns))
    table = device.table(("mask", len(blocks)), lambda: blocks)
    target, out = device.result("product", (70, 45), SUM)
    queue_products(device, form, (left, right), table, SUM, target, device.largest_buffer)
    found = device.receive(target, out)
    exact = Z.T.astype(np.float64) @ mask
    assert (np.abs(found - exact) <= bound(Z.T, mask, 22)).all()
