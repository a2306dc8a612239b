"""The opencl engine's own matters: blocks, kept buffers, threads, forms, and what it says when it cannot."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from together import together

from mtbridge.compute import forms
from mtbridge.compute.blocks import spans
from mtbridge.compute.devices import Verdict
from mtbridge.compute.launches import contiguous
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES, Matrix
from mtbridge.sources import tuned

REGISTERS = (64, 32, 16, 0)


def bound(A: Matrix, B: Matrix) -> Matrix:
    """``inner * eps * |A| |B|``; blocks may double the number of additions that round, never more."""
    return 2 * A.shape[1] * np.finfo(A.dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))


@pytest.fixture(params=["packed", "tiled"])
def opened(
    request: pytest.FixtureRequest, verdict: Verdict, open_tiled: Callable[[int | None], OpenCLEngine]
) -> Callable[[int | None], OpenCLEngine]:
    """Open an engine in one form with buffers of at most so many bytes."""
    if request.param == "tiled":
        return open_tiled
    return lambda largest_buffer: open_opencl("cpu", largest_buffer=largest_buffer)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("largest_buffer", [4096, 10_000, 65_536, 300_001])
def test_small_buffers_give_the_same_answer(
    opened: Callable[[int | None], OpenCLEngine], dtype: str, largest_buffer: int
) -> None:
    random = np.random.default_rng(3)
    A = random.standard_normal((133, 301)).astype(dtype)
    B = random.standard_normal((301, 97)).astype(dtype)
    with opened(largest_buffer) as engine:
        C, G, M = engine.multiply(A, B), engine.gram(B), engine.moments(B)
    assert (np.abs(C - A.astype(np.longdouble) @ B.astype(np.longdouble)) <= bound(A, B)).all()
    wide = B.astype(np.longdouble)
    assert (np.abs(G - wide.T @ wide) <= bound(B.T, B)).all()
    assert np.array_equal(G, G.T)
    exact = np.cov(B.astype(float), rowvar=False)
    assert np.abs(M.covariance() - exact).max() < (1e-6 if dtype == "float32" else 1e-13)
    assert np.array_equal(M.comoment, M.comoment.T)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 500), (500, 1), (1000, 2), (2, 200)])
def test_small_buffers_give_the_same_answer_for_lean_shapes(
    opened: Callable[[int | None], OpenCLEngine], dtype: str, rows: int, columns: int
) -> None:
    X = np.random.default_rng(5).standard_normal((rows, columns)).astype(dtype)
    with opened(8192) as engine:
        G, C = engine.gram(X), engine.multiply(X, X.T.copy())
    wide = X.astype(np.longdouble)
    assert (np.abs(G - wide.T @ wide) <= bound(X.T, X)).all()
    assert (np.abs(C - wide @ wide.T) <= bound(X, X.T)).all()


def test_a_copy_that_the_engine_makes_lives_until_the_device_has_read_it(
    opened: Callable[[int | None], OpenCLEngine],
) -> None:
    """Freed too early, its memory holds the next array by the time that a kernel reads it."""
    random = np.random.default_rng(13)
    wrong = 0
    with opened(None) as engine:
        for _ in range(40):
            X, Y = random.standard_normal((2, 400, 400))[:, :, ::2]
            wrong += np.abs(engine.gram(X) - X.T @ X).max() > 1e-9
            wrong += np.abs(engine.multiply(X.T, Y) - X.T @ Y).max() > 1e-9
    assert wrong == 0


def test_no_buffer_is_larger_than_allowed(
    opened: Callable[[int | None], OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    with opened(20_000) as engine:
        buffer, result = engine._device.buffer, engine._device.result

        def seen_buffer(slot: str, size: int) -> object:
            sizes.append(size)
            return buffer(slot, size)

        def seen_result(slot: str, shape: tuple[int, int], dtype: np.dtype) -> object:  # type: ignore[type-arg]
            sizes.append(shape[0] * shape[1] * dtype.itemsize)
            return result(slot, shape, dtype)

        monkeypatch.setattr(engine._device, "buffer", seen_buffer)
        monkeypatch.setattr(engine._device, "result", seen_result)
        X = np.random.default_rng(6).standard_normal((211, 157))
        engine.gram(X)
        engine.multiply(X, X.T.copy())
        engine.moments(X.astype(np.float32))
    assert sizes
    assert max(sizes) <= 20_000


def test_a_buffer_too_small_for_one_tile_is_one_sentence(verdict: Verdict) -> None:
    with (
        open_opencl("cpu", largest_buffer=16) as engine,
        pytest.raises(DeviceError, match="buffers of 16 bytes only"),
    ):
        engine.gram(np.ones((50, 50)))


def test_sizes_that_shrink_and_grow_share_buffers_and_stay_right(
    opened: Callable[[int | None], OpenCLEngine],
) -> None:
    random = np.random.default_rng(8)
    with opened(None) as engine:
        for rows, columns in [(100, 40), (5, 3), (301, 77), (1, 1), (100, 40), (17, 301), (2, 2)]:
            for dtype in DTYPES:
                X = random.standard_normal((rows, columns)).astype(dtype)
                wide = X.astype(np.longdouble)
                assert (np.abs(engine.gram(X) - wide.T @ wide) <= bound(X.T, X)).all()
                assert (np.abs(engine.multiply(X, X.T) - wide @ wide.T) <= bound(X, X.T)).all()


def test_a_smaller_call_uses_the_panels_of_a_larger_one(verdict: Verdict) -> None:
    X = np.random.default_rng(8).standard_normal((100, 40))
    with open_opencl("cpu") as engine:
        engine.gram(X)
        kept = engine._device._slots["right panels"]
        engine.gram(X[:50, :20].copy())
        engine.gram(X)
        assert engine._device._slots["right panels"] is kept


def test_programs_are_built_once(verdict: Verdict) -> None:
    with open_opencl("cpu") as engine:
        engine.gram(np.ones((3, 3)))
        built = dict(engine._device._kernels)
        engine.gram(np.ones((301, 77)))
        assert engine._device._kernels == built


def test_engines_work_side_by_side_in_threads(opened: Callable[[int | None], OpenCLEngine]) -> None:
    def work(seed: int) -> None:
        random = np.random.default_rng(seed)
        with opened(None) as engine:
            for turn in range(8):
                X = random.standard_normal((50 + 37 * turn, 20 + seed * 11))
                assert np.abs(engine.gram(X) - X.T @ X).max() <= 1e-11, f"thread {seed}, turn {turn}"

    together(*(partial(work, seed) for seed in range(4)), seconds=100)


def test_two_engines_in_one_thread_do_not_disturb_each_other(verdict: Verdict) -> None:
    X = np.random.default_rng(1).standard_normal((60, 30))
    with open_opencl("cpu") as one, open_opencl("cpu") as other:
        first, second = one.gram(X), other.gram(2 * X)
        assert np.array_equal(4 * first, second)
        other.close()
        assert np.array_equal(one.gram(X), first)


def test_a_closed_engine_may_be_closed_again(verdict: Verdict) -> None:
    engine = open_opencl("cpu")
    engine.gram(np.ones((3, 3)))
    engine.close()
    engine.close()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("registers", [64, 32, 0])
def test_the_settings_for_every_register_width_compute_right(
    verdict: Verdict, registers: int, dtype: str
) -> None:
    """WIDTH 16 of float and 8 of double among them, whose built-ins PoCL 3.0 gets wrong."""
    random = np.random.default_rng(registers)
    with open_opencl("cpu") as engine:
        engine._forms = {dtype: forms.packed_form(dtype, registers)}
        for rows, inner, columns in [(1, 1, 1), (49, 600, 47), (97, 33, 145)]:
            A = random.standard_normal((rows, inner)).astype(dtype)
            B = random.standard_normal((inner, columns)).astype(dtype)
            exact = A.astype(np.longdouble) @ B.astype(np.longdouble)
            assert (np.abs(engine.multiply(A, B) - exact) <= bound(A, B)).all()
            G = engine.gram(B)
            wide = B.astype(np.longdouble)
            assert (np.abs(G - wide.T @ wide) <= bound(B.T, B)).all()
            assert np.array_equal(G, G.T)
            if dtype == "float32":
                M = engine._gram(B, wide=True)
                assert M.dtype == np.float64
                assert (np.abs(M - wide.T @ wide) <= bound(B.T, B)).all()


def test_a_device_without_float64_says_so_and_still_sums_float32_in_float64(
    verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(2).standard_normal((5000, 7)).astype(np.float32)
    with open_opencl("cpu") as engine:
        monkeypatch.setattr(engine._device, "fp64", False)
        with pytest.raises(DeviceError, match="has no float64"):
            engine.gram(np.ones((2, 2)))
        found = engine.moments(X).covariance()
    exact = np.cov(X.astype(float), rowvar=False)
    assert np.abs(found - exact).max() < 1e-6


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("registers", REGISTERS)
def test_tuned_settings_of_the_packed_kernels_obey_the_kernels_own_rules(dtype: str, registers: int) -> None:
    form = forms.packed_form(dtype, registers)
    assert form.columns % form.right == 0
    assert form.rows % form.right == 0, "rows of a block must be whole panels"
    assert form.right % form.defines["WIDTH"] == 0
    assert form.right % form.left == 0, "gram reads both operands from the right panels"


@pytest.mark.parametrize("dtype", DTYPES)
def test_tuned_settings_of_the_tiled_kernels_fit_the_group(dtype: str) -> None:
    for group in (64, 256, 4096):
        form = forms.tiled_form(dtype, group)
        assert form.group <= group
        assert form.group % 32 == 0
    assert set(tuned("gpu")) == {"large", "small"}


@pytest.mark.parametrize("block", [(8, 8), (96, 144), (72, 72), (48, 128), (5, 3)])
@pytest.mark.parametrize("columns", [1, 7, 8, 9, 143, 145, 300])
def test_the_blocks_of_a_triangle_cover_it_once(columns: int, block: tuple[int, int]) -> None:
    covered = np.zeros((columns + block[0], columns + block[1]), int)
    for down, across in forms.upper_triangle(columns, block):
        covered[down * block[0] : (down + 1) * block[0], across * block[1] : (across + 1) * block[1]] += 1
    upper = covered[:columns, :columns][np.triu_indices(columns)]
    assert (upper == 1).all()


def test_spans_cover_a_size_without_overlap() -> None:
    assert [(span.start, span.stop) for span in spans(10, 4)] == [(0, 4), (4, 8), (8, 10)]
    assert list(spans(0, 4)) == []


def test_only_an_array_in_neither_order_is_copied() -> None:
    X = np.ones((4, 6))
    assert contiguous(X) is X
    assert contiguous(X.T).base is X
    assert contiguous(X[:, ::2]).flags.c_contiguous


def test_an_interrupted_call_waits_for_the_device(
    opened: Callable[[int | None], OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = np.random.default_rng(5).standard_normal((400, 300))
    with opened(None) as engine:
        waits: list[None] = []
        finish = engine._device.finish

        def counted() -> None:
            waits.append(finish())

        def interrupted(source: object, array: Matrix) -> Matrix:
            raise KeyboardInterrupt

        monkeypatch.setattr(engine._device, "finish", counted)
        with monkeypatch.context() as patch:
            patch.setattr(engine._device, "receive", interrupted)
            for call in (lambda: engine.gram(X), lambda: engine.multiply(X.T, X)):
                with pytest.raises(KeyboardInterrupt):
                    call()
        assert len(waits) == 2
        assert np.allclose(engine.gram(X), X.T @ X)
