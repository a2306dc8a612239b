"""Sums over the rows of pairs by products with masks: their kernels, and covariances by them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from given_kernels import launched
from numpy.typing import NDArray
from test_opencl_gaps import check, prices

from mtbridge.compute import opencl_gap_pairs, opencl_masks, slices
from mtbridge.compute.opencl_careful import CarefulDevice
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.opencl_masks import MaskSums, fault_of, worthwhile
from mtbridge.compute.tensor_cores import form_of
from mtbridge.errors import DeviceError
from mtbridge.matrix import DTYPES, Matrix

pytestmark = pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")

FAMILIES = ["split_mma", "split_wgmma"]
LEVELS = 6


@pytest.fixture(params=FAMILIES)
def engine(
    request: pytest.FixtureRequest, open_tiled: Callable[[], OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> Iterator[OpenCLEngine]:
    """An engine that takes sums over the rows of pairs from masks, however few values are missing."""
    monkeypatch.setattr(opencl_gap_pairs, "worthwhile", lambda *_: True)
    with open_tiled() as engine:
        engine.centred_from = 0
        engine.use_halves(0, request.param)
        yield engine


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """By which sums answers were made, one after the other."""
    made: list[str] = []
    for kind in (MaskSums, opencl_gap_pairs.GapSums):
        plain: Any = kind.queue_answers

        def watched(self: Any, *given: Any, plain: Any = plain) -> None:
            made.append(type(self).__name__)
            plain(self, *given)

        monkeypatch.setattr(kind, "queue_answers", watched)
    return made


def scattered(rows: int, columns: int, share: float, seed: int = 0) -> Matrix:
    """Normal numbers of which a share is missing; one column never changes, another one is complete."""
    random = np.random.default_rng(rows + columns + seed)
    X = 50 + random.standard_normal((rows, columns)) * np.exp(3 * random.standard_normal(columns))
    X[:, 0] = 1.81
    X[random.random(X.shape) < share] = np.nan
    X[:, columns // 2] = np.arange(rows) % 7
    return X.astype(np.float32)


@pytest.mark.parametrize(
    ("rows", "columns", "share", "order"),
    [
        (1, 1, 0.0, "C"),
        (2, 5, 0.4, "F"),
        (63, 33, 0.05, "C"),
        (129, 65, 0.2, "F"),
        (1025, 40, 0.45, "C"),
        (200, 131, 0.1, "F"),
    ],
)
def test_covariances_are_of_the_rows_that_both_have(
    engine: OpenCLEngine, answered: list[str], rows: int, columns: int, share: float, order: str
) -> None:
    X = scattered(rows, columns, share)
    one = check(engine, X, order)
    assert answered[0] == "MaskSums"
    assert check(engine, X, order).tobytes() == one.tobytes()


@pytest.mark.parametrize("options", [{"ddof": 0}, {"ddof": 3}, {"min_periods": 25}])
def test_options_are_those_of_moments(engine: OpenCLEngine, options: dict[str, int]) -> None:
    check(engine, scattered(40, 30, 0.3), **options)


def test_tall_data_are_summed_up_slab_by_slab(
    engine: OpenCLEngine, answered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "UNIT_BYTES", 1)
    check(engine, scattered(2500, 4, 0.3))
    assert answered == ["MaskSums"]


def test_gaps_at_the_beginning_and_the_end_are_gaps_like_others(
    engine: OpenCLEngine, answered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl_gap_pairs, "MOST_DOUBTFUL", 1)
    check(engine, prices(300, 40, "float32"))
    assert answered == ["MaskSums"]


def test_pairs_that_may_have_lost_digits_are_put_right(
    engine: OpenCLEngine, answered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl_gap_pairs, "MOST_DOUBTFUL", 1)
    X = scattered(400, 13, 0.1)
    # spikes that some partners do not see, and a level that others see alone
    X[100, 2], X[100, [0, 6, 9]] = 1e7, np.nan
    X[350:, 7] += 1e6
    X[350:, 1] = np.nan
    X[:350, 3] = np.nan
    check(engine, X)
    assert answered == ["MaskSums"]


def test_lists_are_taken_after_all_where_many_pairs_are_doubtful(
    engine: OpenCLEngine, answered: list[str]
) -> None:
    X = scattered(300, 20, 0.1)
    X[290:] += 1e6
    X[290:, 1::2] = np.nan
    check(engine, X)
    assert answered == ["MaskSums", "GapSums"]


def test_heavy_tails_leave_few_pairs_doubtful(engine: OpenCLEngine, answered: list[str]) -> None:
    X = np.random.default_rng(5).standard_t(2, (2000, 30))
    X[np.random.default_rng(6).random(X.shape) < 0.3] = np.nan
    check(engine, X.astype(np.float32))
    assert answered == ["MaskSums"]


def test_a_few_columns_with_little_or_nothing_leave_the_others_as_they_are(
    engine: OpenCLEngine, answered: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    X = scattered(2000, 45, 0.1)
    X[:, 5] = np.nan
    X[:1900, 7] = np.nan
    again: list[int] = []
    plain = CarefulDevice.pairs

    def counted(self: CarefulDevice, lefts: Any, rights: Any, n: Any) -> Any:
        again.append(len(lefts))
        assert ((lefts == 7) | (rights == 7)).all()
        return plain(self, lefts, rights, n)

    monkeypatch.setattr(CarefulDevice, "pairs", counted)
    monkeypatch.setattr(opencl_gap_pairs, "MOST_DOUBTFUL", 1)
    check(engine, X)
    assert answered == ["MaskSums"]
    assert len(again) == 1
    assert 0 < again[0] < 45


@pytest.mark.parametrize("error", [DeviceError("it cannot be built"), MemoryError("no room")])
def test_lists_are_taken_where_masks_cannot_be(
    engine: OpenCLEngine, answered: list[str], monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def refused(*given: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(MaskSums, "_queue_floors", refused)
    check(engine, scattered(60, 20, 0.2))
    assert answered == ["GapSums"]


def test_moments_are_never_made_of_masks(engine: OpenCLEngine, answered: list[str]) -> None:
    found = engine.pair_moments(scattered(100, 20, 0.2))
    assert found.n[1, 1] < 100
    assert answered == ["GapSums"]


@pytest.mark.parametrize("family", FAMILIES)
def test_masks_are_worth_it_where_many_values_are_missing_but_not_most(family: str) -> None:
    form, rows = form_of(family, 0), 1000
    none = np.zeros(10, np.int64)

    def chosen(counts: int, leads: int = 0, columns: int = 10) -> bool:
        some = np.where(np.arange(10) < columns, counts, rows)
        return worthwhile(form, some, none + leads, rows)

    assert [chosen(counts) for counts in (1000, 900, 600, 400)] == [False, True, True, False]
    # a few columns with gaps are a few lists
    assert not chosen(900, columns=1)
    # what is missing at the beginning alone costs lists nothing
    assert not chosen(900, leads=100)
    assert not worthwhile(form_of(family, 0, 1), none + 900, none, rows)
    tall = opencl_masks.MOST_ROWS + 1
    assert not worthwhile(form, none + tall * 9 // 10, none, tall)


@pytest.mark.parametrize("family", FAMILIES)
def test_kernels_are_found_right_and_wrong_ones_are_found_out(
    opencl_engine: OpenCLEngine, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl_masks, "SHAPES", ((37, 130), (200, 33)))
    device, form = opencl_engine.kernels_device, form_of(family, 0)
    assert fault_of(device, form) == ""
    plain = MaskSums.sum_up

    def late(self: MaskSums, panels: Any, depth: int, slab: slice) -> None:
        """One row too few."""
        plain(self, panels, depth, slice(slab.start, slab.stop - 1))

    monkeypatch.setattr(MaskSums, "sum_up", late)
    assert "of 37 x 130 are wrong" in fault_of(device, form)


def bits_of(there: NDArray[np.bool_]) -> NDArray[np.uint32]:
    rows, columns = there.shape
    bits = np.zeros((-(-rows // 32), columns), np.uint32)
    for row, column in zip(*np.nonzero(there), strict=True):
        bits[row // 32, column] |= np.uint32(1 << row % 32)
    return bits


@pytest.mark.parametrize("chunk", [32, 96])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (31, 33), (64, 32), (131, 70)])
def test_columns_are_measured_chunk_by_chunk_while_gaps_are_found(
    opencl_engine: OpenCLEngine, rows: int, columns: int, dtype: str, chunk: int
) -> None:
    random = np.random.default_rng(rows)
    X = random.standard_normal((rows, columns)).astype(dtype)
    X[random.random(X.shape) < 0.3] = np.nan
    X[rows // 2, columns // 2], X[:, 0] = np.inf, np.nan
    there, chunks = ~np.isnan(X), -(-rows // chunk)
    for row_stride, column_stride, data in ((columns, 1, X), (1, rows, X.T)):
        bits, parts = launched(
            opencl_engine,
            ("pairwise/gap_columns.cl",),
            {"SOURCE_BITS": 8 * X.itemsize, "SUM_BITS": 64, "DOWN": 2},
            (-(-columns // 32), chunks),
            (32, 2),
            [
                data,
                np.zeros((-(-rows // 32), columns), np.uint32),
                np.zeros((5 * chunks, columns)),
                *map(np.int32, (columns, rows, chunk)),
                *map(np.int64, (row_stride, column_stride)),
            ],
            (1, 2),
        )
        assert np.array_equal(bits, bits_of(there))
        for number, part in enumerate(parts.reshape(chunks, 5, columns)):
            some = slice(number * chunk, (number + 1) * chunk)
            values, have = X[some].astype(float), there[some]
            total = np.where(have, values, 0).sum(axis=0)
            assert np.allclose(part[0], total, rtol=1e-14, atol=1e-13)
            assert np.array_equal(part[1], np.where(have, values, np.inf).min(axis=0))
            assert np.array_equal(part[2], np.where(have, values, -np.inf).max(axis=0))
            assert np.array_equal(part[3], have.sum(axis=0))
            first = number * chunk + have.argmax(axis=0)
            assert np.array_equal(part[4], np.where(have.any(axis=0), first, rows))


@pytest.mark.parametrize(("rows", "columns", "gaps"), [(1, 1, 0), (200, 33, 60), (131, 70, 13), (64, 3, 40)])
def test_no_rows_take_more_from_squares_than_floors_say(
    opencl_engine: OpenCLEngine, rows: int, columns: int, gaps: int
) -> None:
    random = np.random.default_rng(rows)
    z = np.tanh(random.standard_t(2, (rows, columns)) / 50).astype(np.float32)
    z[random.random(z.shape) < 0.1] = np.nan
    table = np.repeat([[0.0], [1.0]], columns, axis=1)
    chunk, width = 96, columns
    chunks = -(-rows // chunk)
    (sums,) = launched(
        opencl_engine,
        ("pairwise/capped_squares.cl",),
        {"SUM_BITS": 64, "DOWN": 4, "LEVELS": LEVELS},
        (-(-columns // 32), chunks),
        (32, 4),
        [
            z,
            table,
            np.zeros((chunks * LEVELS, columns), np.float32),
            *map(np.int32, (columns, width, rows, chunk)),
            *map(np.int64, (columns, 1)),
        ],
        (2,),
    )
    squares = np.nan_to_num(z.astype(float)) ** 2
    caps = 16.0 ** -np.arange(1, LEVELS + 1)
    capped = np.minimum(squares, caps[:, np.newaxis, np.newaxis]).sum(axis=1)
    found = sums.reshape(chunks, LEVELS, columns).sum(axis=0)
    assert (np.abs(found - capped) <= rows * 2.0**-24 * capped).all()
    (floors,) = launched(
        opencl_engine,
        ("pairwise/floors.cl",),
        {"SUM_BITS": 64, "LEVELS": LEVELS},
        (-(-columns // 32), 1),
        (32, LEVELS),
        [sums, np.zeros((2, columns), np.float32), *map(np.int32, (columns, chunks, gaps))],
        (1,),
    )
    # the rows of the largest squares are the worst to miss
    worst = np.sort(squares, axis=0)[: rows - gaps].sum(axis=0)
    floors = floors.astype(float)
    assert (floors[0] - gaps * floors[1] <= worst).all()
    # and no cap tells more
    told = capped * (1 - 2.0**-10) - gaps * caps[:, np.newaxis]
    assert np.allclose(floors[0] - gaps * floors[1], told.max(axis=0), rtol=1e-5, atol=1e-7)
    assert set(floors[1]) <= set(caps)
