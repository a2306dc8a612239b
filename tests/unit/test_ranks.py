"""Spearman's rank correlation and Kendall's tau-b, on every engine and in both forms of the kernel."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from mtbridge.compute import Engine, opencl_kendall, opencl_ranks, ranks, serial_ranks
from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.opencl_engine import open_opencl
from mtbridge.compute.ordering import Ordering
from mtbridge.compute.serial import loop_of
from mtbridge.matrix import DTYPES

METHODS = ("spearman", "kendall")
BY_SCIPY = {"spearman": stats.spearmanr, "kendall": stats.kendalltau}
NAN, INF = math.nan, math.inf
GUARD = 1 << 12
"""Bytes before and behind a buffer; a part of one must start on a boundary of the device."""


def hostile(rows: int, columns: int, *, gaps: float, seed: int = 0) -> NDArray[np.float64]:
    """Columns without ties, with some and with many, in turn, and every fourth without a gap."""
    random = np.random.default_rng(seed)
    X = random.standard_normal((rows, columns))
    X[:, 1::4] = np.round(X[:, 1::4] * 40)
    X[:, 2::4] = np.round(X[:, 2::4])
    X[random.random(X.shape) < gaps] = NAN
    X[:, 3::4] = random.standard_normal(X[:, 3::4].shape)
    return X


def by_scipy(method: str, X: NDArray[Any]) -> NDArray[np.float64]:
    """Pair by pair on the common rows."""
    columns = X.shape[1]
    found = np.full((columns, columns), NAN)
    for i in range(columns):
        for j in range(columns):
            both = ~np.isnan(X[:, i]) & ~np.isnan(X[:, j])
            # scipy answers in the type that it is given
            x, y = X[both, i].astype(np.float64), X[both, j].astype(np.float64)
            if len(x) > 1 and np.ptp(x) > 0 and np.ptp(y) > 0:
                found[i, j] = BY_SCIPY[method](x, y)[0]
    return found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(2, 3), (9, 11), (40, 21)])
@pytest.mark.parametrize("method", METHODS)
def test_each_pair_is_ranked_on_its_own_rows(
    engine: Engine, method: str, shape: tuple[int, int], dtype: str
) -> None:
    X = hostile(*shape, gaps=0.2).astype(dtype)
    matrix, counts = getattr(engine, method)(X)
    here = (~np.isnan(X)).astype(int)
    assert np.array_equal(counts, here.T @ here)
    assert counts.dtype == np.int64
    assert matrix.dtype == np.float64
    np.testing.assert_allclose(matrix, by_scipy(method, X), rtol=0, atol=1e-14)
    assert np.array_equal(matrix, matrix.T, equal_nan=True)


@pytest.mark.parametrize("method", METHODS)
def test_a_matrix_without_gaps_is_ranked_once(engine: Engine, method: str) -> None:
    X = hostile(57, 9, gaps=0)
    matrix, counts = getattr(engine, method)(X)
    np.testing.assert_allclose(matrix, by_scipy(method, X), rtol=0, atol=1e-14)
    assert (counts == 57).all()


@pytest.mark.parametrize("method", METHODS)
def test_all_engines_agree_to_the_last_bits(
    opencl_engine: Engine, tiled_engine: Engine, numpy_engine: Engine, serial_engine: Engine, method: str
) -> None:
    X = hostile(70, 37, gaps=0.1)
    X[3, 0], X[4, 0], X[5, 1] = INF, -INF, INF
    first, counts = getattr(serial_engine, method)(X)
    for engine in (opencl_engine, tiled_engine, numpy_engine):
        matrix, n = getattr(engine, method)(X)
        np.testing.assert_allclose(matrix, first, rtol=4e-16, atol=0)
        assert np.array_equal(n, counts)


def test_a_missing_row_changes_the_ranks_of_the_others(engine: Engine) -> None:
    X = np.array([[10, 1], [NAN, 2], [1, 3], [5, NAN], [7, 5], [3, 4]])
    matrix, counts = engine.spearman(X)
    assert matrix[0, 1] == pytest.approx(-0.2, abs=1e-16)
    assert counts.tolist() == [[5, 4], [4, 5]]


@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_equal_and_opposite_orders_correlate_by_exactly_one(engine: Engine, method: str, gap: bool) -> None:
    x = np.random.default_rng(3).standard_normal(101)
    x[7:20] = x[7]
    if gap:
        x[50] = NAN
    matrix, _ = getattr(engine, method)(np.stack([x, np.exp(x), -(x**3)], axis=1))
    assert matrix.tolist() == [[1, 1, -1], [1, 1, -1], [-1, -1, 1]]


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_be_ranked_is_nan(engine: Engine, method: str) -> None:
    X = np.array(
        [
            # constant; constant where the last is present; missing; a single value; ordinary
            [0.1, 5, NAN, NAN, 1],
            [0.1, 5, NAN, NAN, 2],
            [0.1, 5, NAN, 4, 3],
            [0.1, 6, NAN, NAN, NAN],
        ]
    )
    matrix, counts = getattr(engine, method)(X)
    expected = np.full((5, 5), NAN)
    expected[1, 1] = expected[4, 4] = 1
    assert np.array_equal(matrix, expected, equal_nan=True)
    assert counts[2].tolist() == [0, 0, 0, 0, 0]
    assert counts[3].tolist() == [1, 1, 0, 1, 1]


@pytest.mark.parametrize("method", METHODS)
def test_an_infinity_has_a_rank_and_zeros_of_both_signs_are_tied(engine: Engine, method: str) -> None:
    X = np.array([[-INF, 1], [-0.0, 2], [0.0, 2], [INF, 9], [INF, 9], [3, 3], [NAN, 0]])
    assert getattr(engine, method)(X)[0].tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (1, 2), (4, 0), (3, 1)])
@pytest.mark.parametrize("method", METHODS)
def test_few_rows_or_columns_are_answered_too(engine: Engine, method: str, shape: tuple[int, int]) -> None:
    X = np.arange(float(math.prod(shape))).reshape(shape)
    matrix, counts = getattr(engine, method)(X)
    assert matrix.shape == counts.shape == (shape[1], shape[1])
    assert (counts == shape[0]).all()
    assert (np.isnan(matrix) if shape[0] < 2 else matrix == 1).all()


@pytest.mark.parametrize("fixture", ["opencl_engine", "tiled_engine"])
def test_ranks_past_sixteen_bits_are_counted_in_thirty_two(
    request: pytest.FixtureRequest, numpy_engine: Engine, fixture: str
) -> None:
    engine: Engine = request.getfixturevalue(fixture)
    for rows in (opencl_ranks.SHORT_ROWS, opencl_ranks.SHORT_ROWS + 1):
        X = hostile(rows, 3, gaps=0.01)
        matrix, counts = engine.spearman(X)
        expected, n = numpy_engine.spearman(X)
        np.testing.assert_allclose(matrix, expected, rtol=4e-16, atol=0)
        assert np.array_equal(counts, n)


@pytest.mark.parametrize("fixture", ["opencl_engine", "tiled_engine"])
def test_places_past_sixteen_bits_are_counted_in_thirty_two(
    request: pytest.FixtureRequest, fixture: str
) -> None:
    engine: Engine = request.getfixturevalue(fixture)
    for rows in (opencl_kendall.SHORT_ROWS, opencl_kendall.SHORT_ROWS + 1):
        X = hostile(rows, 2, gaps=0.01)
        expected = by_scipy("kendall", X)
        np.testing.assert_allclose(engine.kendall(X)[0], expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("fixture", ["opencl_engine", "tiled_engine"])
def test_sums_that_do_not_fit_into_one_block_come_in_several(
    request: pytest.FixtureRequest, fixture: str, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine: Engine = request.getfixturevalue(fixture)
    columns, share = (75, 1) if method == "spearman" else (20, 32 * 50)
    X = hostile(30, columns, gaps=0.1)
    whole = getattr(engine, method)(X)
    monkeypatch.setattr(opencl_ranks, "SUMS_BYTES", share)
    monkeypatch.setattr(opencl_kendall, "SUMS_BYTES", share)
    parts = getattr(engine, method)(X)
    for one, other in zip(whole, parts, strict=True):
        assert np.array_equal(one, other, equal_nan=True)


def test_squares_past_the_whole_numbers_are_no_trouble() -> None:
    large = np.array([2**40, 2**62])
    assert ranks.rank_correlation(large, large, large).tolist() == [1, 1]


def test_a_device_without_the_memory_leaves_it_to_the_host(opencl_engine: Any) -> None:
    X = hostile(300, 20, gaps=0.1)
    device = opencl_engine.kernels_device
    for method in (opencl_ranks.spearman, opencl_kendall.kendall):
        with pytest.raises(MemoryError, match="larger than a buffer"):
            method(device, X, limit=1000)
    for method, most in (
        (opencl_ranks.spearman, opencl_ranks.MOST_ROWS),
        (opencl_kendall.kendall, opencl_kendall.MOST_ROWS),
    ):
        with pytest.raises(MemoryError, match="on the host"):
            method(device, np.broadcast_to(0.0, (most + 1, 1)), limit=1 << 30)
    with open_opencl("cpu", largest_buffer=1 << 13) as small:
        for name in METHODS:
            expected = getattr(opencl_engine, name)(X)[0]
            np.testing.assert_allclose(getattr(small, name)(X)[0], expected, rtol=4e-16, atol=0)


def test_long_columns_are_ranked_in_smaller_blocks(
    numpy_engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = hostile(40, 13, gaps=0.1)
    whole = ranks.host_spearman(numpy_engine, X)
    signs = ranks.kendall(numpy_engine, X)
    monkeypatch.setattr(ranks, "BLOCK_ELEMENTS", 40 * 3 * 3)
    monkeypatch.setattr(ranks, "SIGN_BYTES", 1)
    for one, other in zip(whole, ranks.host_spearman(numpy_engine, X), strict=True):
        assert np.array_equal(one, other, equal_nan=True)
    for one, other in zip(signs, ranks.kendall(numpy_engine, X), strict=True):
        assert np.array_equal(one, other, equal_nan=True)


class Guarded:
    """A CPU device whose buffers lie between guards that nothing may write to."""

    def __init__(self, device: Any) -> None:
        self.device = device
        self.kept: list[NDArray[np.uint8]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.device, name)

    def buffer(self, slot: str, size: int) -> Any:
        import pyopencl as cl

        whole = aligned_empty((GUARD + size + GUARD,), np.dtype(np.uint8))
        whole[:] = 0xA5
        self.kept.append(whole)
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.USE_HOST_PTR
        target = cl.Buffer(self.device.queue.context, flags, hostbuf=whole)
        return target.get_sub_region(GUARD, size)

    def over(self, slot: str, array: NDArray[Any]) -> Any:
        return self.buffer(slot, array.nbytes)

    def receive(self, source: Any, array: NDArray[Any]) -> NDArray[Any]:
        import pyopencl as cl

        cl.enqueue_copy(self.device.queue, array, source)
        return array

    def check(self) -> None:
        assert len(self.kept) > 1
        for whole in self.kept:
            assert (whole[:GUARD] == 0xA5).all()
            assert (whole[-GUARD:] == 0xA5).all()


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("compute", [opencl_ranks.spearman, opencl_kendall.kendall])
@pytest.mark.parametrize("shape", [(1, 2), (63, 8), (64, 9), (65, 65), (129, 20)])
def test_a_kernel_writes_nothing_outside_its_buffers(
    opencl_engine: Any, numpy_engine: Engine, compute: Any, shape: tuple[int, int], packed: bool
) -> None:
    X = hostile(*shape, gaps=0.1)
    device = Guarded(opencl_engine.kernels_device)
    matrix, _ = compute(device, X, limit=1 << 30, packed=packed)
    device.check()
    expected, _ = getattr(numpy_engine, compute.__name__)(X)
    np.testing.assert_allclose(matrix, expected, rtol=4e-16, atol=0)


@pytest.mark.parametrize("loop", [serial_ranks.spearman_loop, serial_ranks.kendall_loop])
def test_the_plain_loops_are_the_compiled_ones(loop: Any) -> None:
    X = np.ascontiguousarray(hostile(12, 5, gaps=0.2).T)
    slow, fast = np.empty((5, 5)), np.empty((5, 5))
    n, m = np.empty((5, 5), np.int64), np.empty((5, 5), np.int64)
    loop(X, slow, n)
    loop_of(loop, serial_ranks.SIGNATURE)(X, fast, m)
    assert np.array_equal(slow, fast, equal_nan=True)
    assert np.array_equal(n, m)


def test_an_ordering_names_rows_ties_and_gaps() -> None:
    X = np.array([[3, 1], [NAN, 1], [-INF, 1], [3, 1], [2, 0]])
    ordering = Ordering.of(X)
    assert sorted(ordering.order[0, 2:4].tolist()) == [0, 3]
    assert ordering.order[0, [0, 1, 4]].tolist() == [2, 4, 1]
    assert ordering.present.tolist() == [4, 5]
    assert ordering.complete.tolist() == [False, True]
    assert ordering.changing(np.arange(2)).tolist() == [True, True]
    assert [part.tolist() for part in ordering.ties(np.arange(2))] == [[0, 1], [2, 1], [4, 5]]
    assert [part.tolist() for part in ordering.groups(0)] == [[0, 1, 2], [1, 2, 4]]
    # doubled mean ranks of 1 1 1 1 0 are 7 7 7 7 2, their mean 6
    assert ordering.doubled_ranks(np.array([1])).tolist() == [[1], [1], [1], [1], [-4]]
    assert ordering.counted(1, np.array([0])).ravel().tolist()[-1] == 4
