"""Pairwise moments on a device: what is computed there, when the host takes over, and the kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_kernels import launched
from given_matrices import lying

from mtbridge.compute import masked, opencl_careful, opencl_pairs, slices
from mtbridge.compute.careful import careful_pairs
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.pair_moments import PairMoments
from mtbridge.compute.row_lists import Lists
from mtbridge.matrix import DTYPES, Matrix

SHAPES = [(1, 1), (2, 5), (31, 23), (33, 25), (127, 64), (300, 97), (700, 3)]


@pytest.fixture
def no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fail where the products with masks are asked for."""
    monkeypatch.setattr(masked, "masked_moments", None)


def with_gaps(rows: int, columns: int, dtype: str, share: float = 0.1) -> Matrix:
    """Prices of which a share is missing; every third column is complete, some have little at their end."""
    random = np.random.default_rng(rows + columns)
    X = 2000 + random.standard_normal((rows, columns)).cumsum(axis=0)
    gaps = random.random(X.shape) < share
    gaps[: rows * 3 // 4, 1::6] = True
    gaps[:, 2::3] = False
    X[gaps] = np.nan
    return X.astype(dtype)


def check(found: PairMoments, X: Matrix, tolerance: float) -> None:
    """Compare with the careful routine: relative to the two deviations, and what is NaN alike."""
    every = np.indices((X.shape[1],) * 2).reshape(2, -1)
    right = careful_pairs(X, X, (every[0], every[1]))
    assert np.array_equal(found.n.ravel(), right.n)
    expected, covariance = (
        matrix.reshape(found.shape) for matrix in (right.correlation(), right.covariance(0))
    )
    assert np.array_equal(np.isnan(found.correlation()), np.isnan(expected))
    assert np.nanmax(np.abs(found.correlation() - expected), initial=0) <= tolerance
    assert np.array_equal(np.isnan(found.covariance(0)), np.isnan(covariance))
    with np.errstate(divide="ignore", invalid="ignore"):
        deviation = np.sqrt(right.left.squares / right.n) * 2.0**right.left.exponent
    deviation = deviation.reshape(found.shape)
    error = np.abs(found.covariance(0) - covariance)
    assert (error <= tolerance * deviation * deviation.T)[~np.isnan(covariance)].all()


@pytest.mark.usefixtures("no_host")
@pytest.mark.parametrize("order", ["C", "F", "strided"])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("source", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), SHAPES)
def test_pairs_are_right_whatever_the_shape_type_and_order(
    device_engine: OpenCLEngine, rows: int, columns: int, source: str, dtype: str, order: str
) -> None:
    X = with_gaps(rows, columns, source)
    if not np.isnan(X).any():
        X[0, 0] = np.nan
    found = device_engine.pair_moments(lying(X, order), dtype=np.dtype(dtype))
    check(found, X, 1e-6 if dtype == "float32" else 1e-12)
    assert np.array_equal(found.comoment, found.comoment.T)


@pytest.mark.usefixtures("no_host")
@pytest.mark.parametrize("share", [0.001, 0.3, 0.5, 0.9, 0.999])
def test_any_share_of_missing_values_is_right(device_engine: OpenCLEngine, share: float) -> None:
    X = with_gaps(400, 30, "float64", share)
    X[3, 7] = np.nan
    check(device_engine.pair_moments(X), X, 1e-12)


@pytest.mark.usefixtures("no_host")
@pytest.mark.parametrize("dtype", DTYPES)
def test_tall_data_are_packed_and_summed_in_slabs(
    device_engine: OpenCLEngine, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "UNIT_BYTES", 1)
    X = with_gaps(5000, 4, dtype)
    form = device_engine.form_in_use(dtype)
    assert slices.slab_depth(form, (4, 5000, 4), size=X.itemsize, units=device_engine._device.units) < 1000
    check(device_engine.pair_moments(X), X, 1e-6 if dtype == "float32" else 1e-12)


@pytest.mark.usefixtures("no_host")
def test_a_column_without_values_and_constants_are_ordinary(device_engine: OpenCLEngine) -> None:
    X = with_gaps(200, 9, "float64")
    X[:, 0] = np.nan
    X[:, 3], X[:, 5] = 1.81, 0.0
    X[20:, 5] = X[:10, 3] = np.nan
    X[:199, 8] = np.nan
    found = device_engine.pair_moments(X)
    check(found, X, 1e-12)
    assert (found.covariance()[3, 1:3] == 0).all()
    assert np.isnan(found.correlation()[3]).all()


@pytest.mark.usefixtures("no_host")
def test_only_pairs_whose_sums_lost_digits_are_done_again(
    device_engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = with_gaps(400, 12, "float64", 0.05)
    X[:, 1::6] = np.nan_to_num(X[:, 1::6], nan=2000)
    asked: list[tuple[np.ndarray, np.ndarray]] = []

    def counted(*given: Any) -> PairMoments:
        asked.append(given[2])
        return careful_pairs(*given)

    monkeypatch.setattr(opencl_careful, "careful_pairs", counted)
    check(device_engine.pair_moments(X), X, 1e-12)
    assert not asked
    # a spike that the partners 0 and 6 do not see
    X[100, 4], X[100, [0, 6]] = 1e9, np.nan
    check(device_engine.pair_moments(X), X, 1e-12)
    ((lefts, rights),) = asked
    assert set(zip(lefts.tolist(), rights.tolist(), strict=True)) == {(0, 4), (4, 6)}


@pytest.fixture
def counted_host(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many pairs the host has done again, call by call; the device is given all of them."""
    asked: list[int] = []

    def counted(*given: Any) -> PairMoments:
        asked.append(len(given[2][0]))
        return careful_pairs(*given)

    monkeypatch.setattr(opencl_careful, "careful_pairs", counted)
    monkeypatch.setattr(opencl_careful, "FEWEST", 1)
    monkeypatch.setattr(opencl_careful, "TILES", 5)
    return asked


@pytest.mark.usefixtures("no_host")
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_many_pairs_are_done_again_on_the_device(
    device_engine: OpenCLEngine, dtype: str, order: str, counted_host: list[int]
) -> None:
    X = with_gaps(300, 45, dtype) + np.linspace(0, 1000, 300)[:, np.newaxis].astype(dtype)
    X[:290, ::2] = np.nan
    X[:, 4], X[::2, 7] = 1.81, 0.1
    X[2:, 10] = np.nan
    found = device_engine.pair_moments(lying(X, order))
    check(found, X, 1e-6 if dtype == "float32" else 1e-12)
    assert not counted_host
    assert np.array_equal(found.comoment, found.comoment.T)
    # what was done with care is exact in either type
    pair = careful_pairs(X, X, (np.array([0]), np.array([5])))
    assert abs(found.correlation()[0, 5] - pair.correlation()[0]) < 1e-14
    assert (found.covariance()[4, ~np.isnan(found.covariance()[4])] == 0).all()
    merged = device_engine.pair_moments(X[:150]).merge(device_engine.pair_moments(X[150:]))
    check(merged, X, 1e-6 if dtype == "float32" else 1e-12)


def test_ranges_beyond_the_device_are_left_to_the_host(
    device_engine: OpenCLEngine, counted_host: list[int]
) -> None:
    X = with_gaps(60, 6, "float64")
    X[:, 2] = np.arange(60) * 1e-200
    # 3 misses that row, and 1 is listed later
    X[30, 2], X[30, 3] = 1.0, np.nan
    check(device_engine.pair_moments(X), X, 1e-12)
    assert counted_host == [2]


@pytest.mark.parametrize("hostile", [np.inf, 1e100, 1e-200])
def test_what_is_not_ordinary_is_left_to_the_host(
    device_engine: OpenCLEngine, hostile: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = with_gaps(60, 7, "float64")
    X[:, 2] = 0 if hostile == 1e-200 else X[:, 2]
    X[30, 2] = hostile
    form = device_engine.form_in_use("float64")
    given = (device_engine._device, device_engine._launches, form)
    assert opencl_pairs.pair_moments(*given, X, np.dtype(float), limit=1 << 30) is None
    check(device_engine.pair_moments(X), X, 1e-12)


def test_small_buffers_are_respected(device_engine: OpenCLEngine) -> None:
    X = with_gaps(60, 7, "float64")
    form = device_engine.form_in_use("float64")
    given = (device_engine._device, device_engine._launches, form)
    assert opencl_pairs.pair_moments(*given, X, np.dtype(float), limit=1000) is None
    assert opencl_pairs.pair_moments(*given, X, np.dtype(float), limit=1 << 20) is not None


def test_a_device_without_float64_leaves_it_to_the_host(
    device_engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device_engine._device, "fp64", False)
    monkeypatch.setattr(opencl_pairs, "pair_moments", None)
    X = with_gaps(90, 5, "float32")
    check(device_engine.pair_moments(X), X, 1e-6)


@pytest.mark.parametrize("order", ["C", "F"])
def test_uploaded_data_do_not_come_back(
    device_engine: OpenCLEngine, order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    X = with_gaps(90, 5, "float64")
    complete = np.nan_to_num(X, nan=2000.0)
    held, whole = (device_engine.upload(lying(one, order)) for one in (X, complete))
    monkeypatch.setattr(device_engine, "download", None)
    check(device_engine.pair_moments(held), X, 1e-12)
    check(device_engine.pair_moments(whole), complete, 1e-12)


def test_repeated_calls_give_the_same_bits(device_engine: OpenCLEngine) -> None:
    X = with_gaps(300, 40, "float64")
    one = device_engine.pair_moments(X)
    device_engine.pair_moments(with_gaps(500, 70, "float64"))
    other = device_engine.pair_moments(X)
    assert np.array_equal(one.comoment, other.comoment)
    assert np.array_equal(one.left.squares, other.left.squares)


def test_lists_name_the_missing_rows_or_the_present_ones_whichever_are_fewer() -> None:
    there = np.ones((70, 4), bool)
    there[[0, 33, 69], 1] = False
    there[:, 3] = False
    there[[5, 64], 3] = True
    words = np.zeros((3, 4), np.uint32)
    for row, column in zip(*np.nonzero(there), strict=True):
        words[row // 32, column] |= np.uint32(1 << row % 32)
    lists = Lists.of(words, 70)
    assert lists.columns.tolist() == [1, 3]
    assert lists.missed.tolist() == [True, False]
    assert lists.rows.tolist() == [0, 33, 69, 5, 64]
    assert lists.counts.tolist() == [70, 67, 70, 2]
    assert lists.edges(slice(0, 70)).tolist() == [[0, 3], [3, 5]]
    assert lists.edges(slice(0, 33)).tolist() == [[0, 3], [1, 4]]
    assert lists.edges(slice(33, 64)).tolist() == [[1, 4], [2, 4]]


# The kernels


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (31, 15), (32, 16), (33, 17), (100, 40)])
def test_presence_and_common_rows_are_what_their_heads_say(
    opencl_engine: OpenCLEngine, rows: int, columns: int, turned: bool
) -> None:
    X = with_gaps(rows, columns, "float32", 0.4)
    steps = (np.int64(1), np.int64(rows)) if turned else (np.int64(columns), np.int64(1))
    words = -(-rows // 32)
    across = -(-columns // 16)
    (bits,) = launched(
        opencl_engine,
        ("pairwise/presence.cl",),
        {"COLUMNS": 16},
        (across, words),
        (1, 1),
        [
            np.ascontiguousarray(X.T if turned else X),
            np.zeros((words, columns), np.uint32),
            np.int32(columns),
            np.int32(rows),
            *steps,
        ],
        (1,),
    )
    there = ~np.isnan(X)
    for row in range(words * 32):
        expected = there[row] if row < rows else np.zeros(columns, bool)
        assert np.array_equal(bits[row // 32] >> np.uint32(row % 32) & 1, expected)
    (counts,) = launched(
        opencl_engine,
        ("pairwise/common_rows.cl",),
        {"COLUMNS": 16, "ROWS": 4},
        (across, -(-columns // 4)),
        (1, 1),
        [bits, np.zeros((columns, columns), np.int32), np.int32(columns), np.int32(words)],
        (1,),
    )
    assert np.array_equal(counts, there.T.astype(int) @ there.astype(int))


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("more", [0, 1])
@pytest.mark.parametrize("dtype", DTYPES)
def test_listed_sums_are_what_their_head_says(opencl_engine: OpenCLEngine, dtype: str, more: int) -> None:
    panel, panels, first, height = 24, 2, 100, 20
    random = np.random.default_rng(3)
    Z = random.standard_normal((panels, height, panel)).astype(dtype)
    lists = [[100, 103, 119], [], [118], list(range(100, 120)), [101, 102]]
    # before and behind its part, each list names rows of other slabs
    rows = np.array([row for one in lists for row in (7, *one, 555)], np.int32)
    lengths = np.array([len(one) for one in lists])
    begins = np.cumsum([0, *(lengths[:-1] + 2)]) + 1
    edges = np.array([begins, begins + lengths], np.int32)
    width = panels * panel
    (found,) = launched(
        opencl_engine,
        ("pairwise/listed_sums.cl",),
        {"REAL_BITS": 8 * Z.itemsize, "SUM_BITS": 64, "PANEL": panel, "LISTS": 2},
        (panels, 3),
        (1, 1),
        [Z, rows, edges, np.full((2, 5, width), 5.0), *map(np.int32, (5, height, first, more))],
        (3,),
    )
    wide = Z.transpose(1, 0, 2).reshape(height, width).astype(float)
    for number, one in enumerate(lists):
        part = wide[[row - first for row in one]]
        assert np.allclose(found[0, number], part.sum(axis=0) + 5 * more, rtol=1e-14, atol=1e-14)
        assert np.allclose(found[1, number], (part * part).sum(axis=0) + 5 * more, rtol=1e-14)
