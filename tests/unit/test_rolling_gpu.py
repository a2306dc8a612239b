"""The graphics card's form of rolling matrices, on a processor, against the host's and exact arithmetic.

What all engines share is tested in test_rolling.py; here are this form's chunks, tiles and float32 products.
"""

from __future__ import annotations

from typing import Any

import exact
import numpy as np
import pytest
from numpy.typing import NDArray

from mtbridge.compute import opencl_rolling_gpu
from mtbridge.compute.host_rolling import HostRolling
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.opencl_rolling import OpenCLRolling
from mtbridge.compute.opencl_rolling_gpu import chunk_tables
from mtbridge.compute.sequence import MatrixSequence, Statistic, Wanted
from mtbridge.compute.windows import Rolling

Floats = NDArray[Any]
FLOAT32 = np.dtype(np.float32)
STATISTICS: tuple[Statistic, ...] = ("covariance", "correlation", "beta")
LOST = 2**10 * float(np.finfo(float).eps)
"""Of a variance, at most, by sums about an origin (test_rolling.py), a row."""


def written(sequence: MatrixSequence, *pieces: int) -> Floats:
    out = np.full((sequence.count, *sequence.shape), -777, sequence.wanted.dtype)
    for length in pieces:
        sequence.write(out[sequence.done : sequence.done + length])
    sequence.write(out[sequence.done :])
    return out


def tiles(
    engine: OpenCLEngine, X: Floats, plan: Rolling, *pieces: int, limit: int = 1 << 28, **options: Any
) -> Floats:
    device = engine.kernels_device
    return written(OpenCLRolling(device, X, plan, Wanted(**options), limit=limit, gpu=True), *pieces)


def walk(rows: int, columns: int) -> Floats:
    random = np.random.default_rng(rows + columns)
    return random.standard_normal((rows, columns)).cumsum(axis=0) + 100


def compare(found: Floats, X: Floats, plan: Rolling, **options: Any) -> None:
    """Against the host, whose error is no larger."""
    right = written(HostRolling(X, plan, Wanted(**options)))
    assert np.array_equal(np.isnan(found), np.isnan(right))
    size = np.ones_like(right)
    if options.get("statistic", "covariance") != "correlation":
        size += np.abs(right)
    rows = int(plan.rows.max())
    assert np.nanmax(np.abs(found - right) / size, initial=0) <= LOST * rows


@pytest.mark.parametrize("statistic", STATISTICS)
@pytest.mark.parametrize("window", [1, 2, 3, 15, 16, 31, 59, 60, 64, 65, 200])
def test_windows_of_any_length_are_right(
    tiled_engine: OpenCLEngine, window: int, statistic: Statistic
) -> None:
    X, plan = walk(215, 5), Rolling.by_rows(215, window)
    compare(tiles(tiled_engine, X, plan, statistic=statistic), X, plan, statistic=statistic)


@pytest.mark.parametrize("columns", [1, 2, 4, 31, 37, 64, 65, 132])
@pytest.mark.parametrize("gaps", [0.0, 0.01])
def test_every_number_of_columns_has_its_edges_right(
    tiled_engine: OpenCLEngine, columns: int, gaps: float
) -> None:
    X, plan = walk(60, columns), Rolling.by_rows(60, 20)
    X[np.random.default_rng(columns).random(X.shape) < gaps] = np.nan
    for options in ({}, {"packed": True}, {"left": (columns - 1, 0, columns // 2, 0)}):
        compare(tiles(tiled_engine, X, plan, **options), X, plan, **options)


@pytest.mark.parametrize("columns", [3, 36, 132])
def test_an_element_has_the_bits_of_its_mirror(tiled_engine: OpenCLEngine, columns: int) -> None:
    X, plan = walk(100, columns), Rolling.by_rows(100, 40)
    X[30, 0] = np.nan
    for options in ({"statistic": "correlation", "dtype": FLOAT32}, {"statistic": "correlation"}, {}):
        found = tiles(tiled_engine, X, plan, **options)
        assert np.array_equal(found, np.swapaxes(found, 1, 2), equal_nan=True)


@pytest.mark.parametrize("window", [32, 60, 250])
def test_float32_correlations_of_prices_are_exact_to_a_millionth(
    tiled_engine: OpenCLEngine, window: int
) -> None:
    levels = np.array([1.1, 2400, 1e5, 1e7, 150, 0.6, 30, 5e3])
    moves = np.random.default_rng(2).standard_normal((400, len(levels))) * 1e-3
    ticks = np.where(levels < 1000, 1e5, 100)
    X = np.round(levels * np.exp(moves.cumsum(axis=0)) * ticks) / ticks
    X[:, 7] = X[:, 6]
    plan = Rolling.by_rows(400, window)
    options: dict[str, Any] = {"statistic": "correlation", "min_periods": window}
    found = tiles(tiled_engine, X, plan, **options, dtype=FLOAT32)
    right = written(HostRolling(X, plan, Wanted(**options)))
    assert np.array_equal(np.isnan(found), np.isnan(right))
    assert np.nanmax(np.abs(found - right)) < 1e-6
    assert (found[window:, 6, 7] == 1).all()
    assert not (np.abs(found) > 1).any()


@pytest.mark.parametrize("dtype", [np.dtype(np.float64), FLOAT32], ids=str)
def test_a_spike_an_infinity_and_a_hole_leave_no_trace(
    tiled_engine: OpenCLEngine, dtype: np.dtype[Any]
) -> None:
    window = 40
    X, plan = walk(150, 6), Rolling.by_rows(150, window)
    clean = tiles(tiled_engine, X, plan, statistic="correlation", dtype=dtype)
    X[50, 0], X[50, 1], X[51, 2] = 1e12, np.inf, np.nan
    found = tiles(tiled_engine, X, plan, statistic="correlation", dtype=dtype)
    bound = 1e-6 if dtype == FLOAT32 else LOST * window
    before, after = slice(0, 50), slice(51 + window, None)
    for part in (before, after):
        np.testing.assert_allclose(found[part], clean[part], rtol=0, atol=bound)
    np.testing.assert_array_equal(found[:, 3:, 3:], clean[:, 3:, 3:])
    assert np.isnan(found[50 : 50 + window, 1]).all()
    for k in range(50, 50 + window, 9):
        part = X[k - window + 1 : k + 1].T.tolist()
        for i, j in ((0, 3), (3, 0), (2, 4), (0, 2)):
            assert found[k, i, j] == pytest.approx(exact.correlation(part[i], part[j]), rel=0, abs=bound)


def test_constants_are_undefined_or_exactly_zero(tiled_engine: OpenCLEngine) -> None:
    X, plan = walk(100, 5), Rolling.by_rows(100, 20)
    X[30:80, 1] = 0.1
    still = slice(49, 80)
    assert np.isnan(tiles(tiled_engine, X, plan, statistic="correlation")[still, 1]).all()
    assert (tiles(tiled_engine, X, plan)[still, 1] == 0).all()
    beta = tiles(tiled_engine, X, plan, statistic="beta")[still]
    assert np.isnan(beta[:, 1]).all()
    assert (np.delete(beta[:, :, 1], 1, axis=1) == 0).all()


@pytest.mark.parametrize("pieces", [(1, 1, 1), (5, 20), (33,)])
def test_the_bits_depend_neither_on_pieces_nor_on_the_largest_buffer(
    tiled_engine: OpenCLEngine, pieces: tuple[int, ...]
) -> None:
    X, plan = walk(100, 5), Rolling.by_rows(100, 20)
    X[70, 3] = np.nan
    whole = tiles(tiled_engine, X, plan)
    parts = tiles(tiled_engine, X, plan, *pieces, limit=20_000)
    assert np.array_equal(whole.view(np.int64), parts.view(np.int64))


def test_two_sequences_take_turns_on_a_device(tiled_engine: OpenCLEngine) -> None:
    X, plan = walk(100, 5), Rolling.by_rows(100, 20)
    Y = X[::-1].copy()
    Y[::7, 2] = np.nan
    whole = [tiles(tiled_engine, data, plan) for data in (X, Y)]
    found = [np.empty_like(each) for each in whole]
    device = tiled_engine.kernels_device
    both = [OpenCLRolling(device, data, plan, Wanted(), limit=1 << 28, gpu=True) for data in (X, Y)]
    for at in range(0, 100, 10):
        for sequence, out in zip(both, found, strict=True):
            sequence.write(out[at : at + 10])
    for right, out in zip(whole, found, strict=True):
        assert np.array_equal(right, out, equal_nan=True)


def test_chunks_hold_every_window_once_and_few_rows_outside_their_core() -> None:
    random = np.random.default_rng(4)
    times = np.cumsum(random.integers(1, 30, 300))
    for plan in (Rolling.by_rows(300, 60), Rolling.by_rows(300, 3), Rolling.by_time(times, 700, step=2)):
        chunks, regular = chunk_tables(plan, 1)
        begin, count, first, last, heads, tails = chunks.T[:6]
        assert begin[0] == 0
        assert (begin[:-1] + count[:-1] == begin[1:]).all()
        assert begin[-1] + count[-1] == len(plan)
        assert (heads + tails <= opencl_rolling_gpu.SLOTS).all()
        assert (first + heads <= last + 1).all()
        firsts, lasts = chunks[:, 6:22], chunks[:, 22:]
        for c in range(len(chunks)):
            there = slice(begin[c], begin[c] + count[c])
            assert np.array_equal(first[c] + firsts[c, : count[c]], plan.first[there])
            assert np.array_equal(last[c] + lasts[c, : count[c]], plan.last[there])
    assert regular.dtype == bool
    # from the first full window on all are regular, the short one at the end too
    assert chunk_tables(Rolling.by_rows(300, 60), 1)[1][5:].all()


def test_windows_too_short_to_be_defined_are_given_no_rows() -> None:
    chunks, regular = chunk_tables(Rolling.by_rows(100, 40), 40)
    assert (chunks[:2, 3] == -1).all()
    assert not chunks[:2, 4:].any()
    assert not regular[:2].any()
