"""Memory of a device: too little of it shrinks the blocks, and arrays that need no copy on the way to it."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import mtbridge
from mtbridge.compute import Engine
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_blocks import SMALLEST_LIMIT
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.errors import OptionError, ShapeError
from mtbridge.matrix import DTYPES, Matrix

MOST = 3 << 20
"""Bytes: the largest buffer that the scarce device gives, though it says that it has more."""


class Scarce:
    """An engine on a real device whose buffers above `most` bytes fail, and what was asked of it."""

    def __init__(self, verdict: Verdict, most: int) -> None:
        from mtbridge.compute.opencl import Device, enumerate_devices

        self.most = most
        self.failures = 0
        scarce = self

        class ScarceDevice(Device):
            def buffer(self, slot: str, size: int) -> Any:
                scarce.take(size)
                return super().buffer(slot, size)

            def result(self, slot: str, shape: tuple[int, int], dtype: np.dtype[Any]) -> tuple[Any, Matrix]:
                scarce.take(shape[0] * shape[1] * dtype.itemsize)
                return super().result(slot, shape, dtype)

        found = next(found for found in enumerate_devices() if found.key == verdict.key)
        self.device = ScarceDevice(found)
        self.engine = OpenCLEngine(self.device, vector_bytes=verdict.vector_bytes)

    def take(self, size: int) -> None:
        if size > self.most:
            self.failures += 1
            raise MemoryError(f"a buffer of {size} bytes")


@pytest.fixture
def scarce(verdict: Verdict) -> Iterator[Scarce]:
    made = Scarce(verdict, MOST)
    yield made
    made.engine.close()


def assert_right(C: Matrix, A: Matrix, B: Matrix) -> None:
    """Within ``2 * inner * eps * |A| |B|``: blocks may double the number of additions that round."""
    eps = np.finfo(A.dtype).eps
    bound = 2 * A.shape[1] * eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
    # in extended precision a few rows only: it is slow
    few = np.linspace(0, len(A) - 1, 7).astype(int)
    exact = A[few].astype(np.longdouble) @ B.astype(np.longdouble)
    assert (np.abs(C[few] - exact) <= bound[few]).all()
    assert (np.abs(C - A.astype(float) @ B.astype(float)) <= 2 * bound).all()


@pytest.mark.parametrize("dtype", DTYPES)
def test_too_little_memory_shrinks_the_blocks_and_goes_on(scarce: Scarce, dtype: str) -> None:
    random = np.random.default_rng(4)
    A = random.standard_normal((1203, 701)).astype(dtype)
    B = random.standard_normal((701, 1100)).astype(dtype)
    assert_right(scarce.engine.multiply(A, B), A, B)
    assert scarce.failures > 0
    G = scarce.engine.gram(B)
    assert_right(G, B.T, B)
    assert np.array_equal(G, G.T)
    failed = scarce.failures
    scarce.engine.multiply(A, B)
    scarce.engine.gram(B)
    assert scarce.failures == failed, "what was learnt is kept"


def test_moments_in_too_little_memory_are_those_of_much(scarce: Scarce) -> None:
    X = np.random.default_rng(5).standard_normal((900, 1001)).astype(np.float32)
    found = scarce.engine.moments(X).covariance()
    assert scarce.failures > 0
    assert np.abs(found - np.cov(X.astype(float), rowvar=False)).max() < 1e-6


def test_a_failure_frees_what_was_kept_of_larger_calls(scarce: Scarce) -> None:
    X = np.random.default_rng(6).standard_normal((300, 300))
    scarce.engine.gram(X)
    kept = dict(scarce.device._slots)
    assert kept
    scarce.most = 1 << 16
    with pytest.raises(MemoryError):
        scarce.engine.gram(X)
    assert scarce.device._slots == {}
    scarce.most = MOST
    assert_right(scarce.engine.gram(X), X.T, X)


def test_no_memory_at_all_is_an_error_and_the_next_call_starts_afresh(scarce: Scarce) -> None:
    X = np.random.default_rng(7).standard_normal((600, 600))
    scarce.most = 0
    for call in (lambda: scarce.engine.gram(X), lambda: scarce.engine.multiply(X, X)):
        with pytest.raises(MemoryError, match="a buffer of"):
            call()
        assert 0 < scarce.failures < 40
    assert scarce.engine._limit == scarce.engine._full_limit > SMALLEST_LIMIT
    scarce.most = 1 << 40
    failed = scarce.failures
    assert_right(scarce.engine.gram(X), X.T, X)
    assert scarce.failures == failed


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3,), (37, 11), (2, 5, 7), (0, 4), 6])
def test_every_engine_gives_an_aligned_array_to_write_to(
    engine: Engine, shape: int | tuple[int, ...], dtype: str
) -> None:
    array = engine.empty_pinned(shape, dtype)
    assert array.shape == ((shape,) if isinstance(shape, int) else shape)
    assert array.dtype == np.dtype(dtype)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert not array.size or array.ctypes.data % 64 == 0
    array[...] = 1
    assert array.sum() == array.size


@pytest.fixture(params=["a processor's memory", "memory of its own"])
def pinning(request: pytest.FixtureRequest, verdict: Verdict) -> Iterator[OpenCLEngine]:
    """An engine on a device that reads where arrays lie, and on one taken for a device that copies."""
    with open_opencl("cpu") as engine:
        engine._device.host_memory = request.param == "a processor's memory"
        yield engine


def test_products_of_pinned_arrays_are_right(pinning: OpenCLEngine) -> None:
    random = np.random.default_rng(8)
    A, B = pinning.empty_pinned((211, 67), "float32"), pinning.empty_pinned((67, 130), "float32")
    A[...], B[...] = random.standard_normal(A.shape), random.standard_normal(B.shape)
    assert_right(pinning.multiply(A, B), A, B)
    assert_right(pinning.multiply(B.T, A.T), B.T, A.T)
    assert_right(pinning.gram(A), A.T, A)


def test_a_device_matrix_comes_down_into_a_pinned_array(pinning: OpenCLEngine) -> None:
    X = np.random.default_rng(9).standard_normal((50, 21))
    held = pinning.upload(X)
    out = pinning.empty_pinned((50, 21))
    assert pinning.download(held, out) is out
    assert np.array_equal(out, X)
    turned = pinning.empty_pinned((21, 50))
    assert np.array_equal(pinning.download(held.transposed, turned), X.T)


def test_a_pinned_array_outlives_its_engine_and_keeps_its_memory_for_its_views(pinning: OpenCLEngine) -> None:
    array = pinning.empty_pinned((400, 300))
    array[...] = 2
    pinning.close()
    part = array[1:, 1:]
    del array
    gc.collect()
    assert part.sum() == 2 * 399 * 299


def test_a_processor_reads_a_pinned_array_where_it_lies(opencl_engine: Engine) -> None:
    assert isinstance(opencl_engine, OpenCLEngine)
    array = opencl_engine.empty_pinned((40, 30))
    before = set(opencl_engine._device._slots)
    opencl_engine._device.send("never kept", array)
    assert set(opencl_engine._device._slots) == before


def test_out_is_written_to_on_the_host_too(numpy_engine: Engine) -> None:
    X = np.arange(6.0).reshape(2, 3)
    out = numpy_engine.empty_pinned((2, 3))
    assert numpy_engine.download(numpy_engine.upload(X), out) is out
    assert np.array_equal(out, X)


def test_an_out_that_does_not_fit_is_refused(pinning: OpenCLEngine, numpy_engine: Engine) -> None:
    X = np.ones((2, 3))
    frozen = np.empty((2, 3))
    frozen.flags.writeable = False
    for engine in (pinning, numpy_engine):
        held = engine.upload(X)
        for out in (np.empty((3, 2)), np.empty((2, 3), np.float32)):
            with pytest.raises(ShapeError, match=r"it must be float64 of \(2, 3\)"):
                engine.download(held, out)
        for out in (np.empty((2, 3), order="F"), frozen):
            with pytest.raises(ShapeError, match="read-only or not C-ordered"):
                engine.download(held, out)


@pytest.mark.parametrize("shape", [(-1, 2), (1.5,), "x", None, ((1, 2), (3, 4))])
def test_a_shape_that_is_none_is_refused(numpy_engine: Engine, shape: Any) -> None:
    with pytest.raises(ShapeError, match="whole numbers"):
        numpy_engine.empty_pinned(shape)


@pytest.mark.parametrize("dtype", ["int8", ">f8", "junk", object()])
def test_a_dtype_that_no_engine_computes_in_is_refused(numpy_engine: Engine, dtype: Any) -> None:
    with pytest.raises(OptionError, match="'float32' or 'float64'"):
        numpy_engine.empty_pinned(2, dtype)


def test_the_package_gives_pinned_arrays_by_the_engines_name(numpy_engine: Engine) -> None:
    assert mtbridge.empty_pinned((2, 3), "float32", engine="numpy").dtype == np.float32
    assert mtbridge.empty_pinned((2, 3), engine=numpy_engine).shape == (2, 3)
