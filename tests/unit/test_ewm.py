"""Expanding and exponentially weighted matrices: every way of computing them, every shape of the answer."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mtbridge.compute import Engine
from mtbridge.compute.decay import Decay
from mtbridge.compute.host_decay import HostDecay
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.sequence import MatrixSequence, Statistic, Wanted
from mtbridge.compute.serial_decay import SerialDecay
from mtbridge.errors import OptionError, ShapeError

ROWS = 40
LIMIT = 1 << 24
WAYS = ("host", "serial", "opencl", "opencl gpu")
STATISTICS: tuple[Statistic, ...] = ("covariance", "correlation", "beta")

Open = Callable[[NDArray[Any], Decay, Wanted], MatrixSequence]


@pytest.fixture(params=WAYS)
def opened(request: pytest.FixtureRequest) -> Open:
    """Open a sequence in each of the ways; the kernels of a GPU run on the CPU device."""
    if request.param == "host":
        return HostDecay
    if request.param == "serial":
        return SerialDecay
    engine: OpenCLEngine = request.getfixturevalue("opencl_engine")
    from mtbridge.compute.opencl_decay import OpenCLDecay

    def on_device(X: NDArray[Any], plan: Decay, wanted: Wanted) -> MatrixSequence:
        gpu = request.param == "opencl gpu"
        return OpenCLDecay(engine.kernels_device, X, plan, wanted, limit=LIMIT, gpu=gpu)

    return on_device


def written(sequence: MatrixSequence, block: int = ROWS) -> NDArray[Any]:
    """All matrices, a block at a time."""
    out = np.empty((sequence.count, *sequence.shape), sequence.wanted.dtype)
    for start in range(0, len(out), block):
        sequence.write(out[start : start + block])
    return out


def history(columns: int, missing: float = 0.0, seed: int = 0) -> NDArray[np.float64]:
    random = np.random.default_rng(seed)
    X = random.standard_normal((ROWS, columns)).cumsum(axis=0) + 100
    X[random.random(X.shape) < missing] = np.nan
    return X


def plans(rows: int = ROWS) -> dict[str, Decay]:
    times = np.cumsum(np.random.default_rng(1).integers(1, 9, rows))
    return {
        "expanding": Decay.expanding(rows),
        "adjusted": Decay.exponential(rows, 0.25),
        "recursive": Decay.exponential(rows, 0.25, adjust=False),
        "ignoring": Decay.exponential(rows, 0.25, ignore_na=True),
        "recursive ignoring": Decay.exponential(rows, 0.25, adjust=False, ignore_na=True),
        "timed": Decay.by_time(times, 9.0),
        "timed ignoring": Decay.by_time(times, 9.0, ignore_na=True),
    }


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("name", plans())
def test_every_way_gives_the_same(opened: Open, name: str, missing: float) -> None:
    for columns in (1, 7, 8, 19):
        X, plan = history(columns, missing), plans()[name]
        for statistic in STATISTICS:
            wanted = Wanted(statistic, min_periods=3)
            found, expected = written(opened(X, plan, wanted)), written(HostDecay(X, plan, wanted))
            # some roundings a row, of numbers of about 1; deviations in common may cancel in a covariance
            np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("block", [1, 7, 39])
def test_blocks_of_any_size_give_the_same_bits(opened: Open, block: int, missing: float) -> None:
    X = history(11, missing)
    for name in ("expanding", "adjusted", "recursive ignoring"):
        plan, wanted = plans()[name], Wanted("covariance")
        whole = written(opened(X, plan, wanted))
        assert np.array_equal(written(opened(X, plan, wanted), block), whole, equal_nan=True)


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("statistic", STATISTICS)
def test_every_shape_of_the_answer_holds_the_same_bits(
    opened: Open, statistic: Statistic, missing: float
) -> None:
    for columns in (2, 9, 17):
        X, plan = history(columns, missing), plans()["adjusted"]
        whole = written(opened(X, plan, Wanted(statistic)))
        left = (columns - 1, 0)
        rows = written(opened(X, plan, Wanted(statistic, left=left)))
        assert np.array_equal(rows, whole[:, left, :], equal_nan=True)
        short = written(opened(X, plan, Wanted(statistic, dtype=np.dtype(np.float32))))
        assert np.array_equal(short, whole.astype(np.float32), equal_nan=True)
        if statistic == "beta":
            continue
        assert np.array_equal(whole, whole.swapaxes(1, 2), equal_nan=True)
        packed = written(opened(X, plan, Wanted(statistic, packed=True)))
        upper = np.triu_indices(columns)
        assert np.array_equal(packed, whole[:, upper[0], upper[1]], equal_nan=True)


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_a_diagonal_is_one_and_nothing_lies_beyond_it(opened: Open, missing: float) -> None:
    X = history(5, missing)
    X[:, 1] = X[:, 0] * 3
    X[:, 2] = -X[:, 0]
    for plan in plans().values():
        own = written(opened(X, plan, Wanted("correlation", min_periods=2)))
        diagonal = np.diagonal(own, axis1=1, axis2=2)
        assert ((diagonal == 1) | np.isnan(diagonal)).all()
        assert (diagonal[10:] == 1).all()
        assert not (np.abs(own) > 1).any()
        assert own[-1, 0, 1] == pytest.approx(1, abs=1e-14)
        assert own[-1, 0, 2] == pytest.approx(-1, abs=1e-14)
        beta = written(opened(X, plan, Wanted("beta", min_periods=2)))
        assert (np.diagonal(beta, axis1=1, axis2=2)[10:] == 1).all()
        assert beta[-1, 0, 1] == pytest.approx(3, rel=1e-13)


def test_numbers_of_any_layout_and_type_are_taken(opened: Open) -> None:
    X = history(6).astype(np.float32)
    plan, wanted = plans()["adjusted"], Wanted()
    expected = written(HostDecay(X.astype(np.float64), plan, wanted))
    for given in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        np.testing.assert_allclose(written(opened(given, plan, wanted)), expected, rtol=1e-12, atol=1e-13)


def test_a_pair_with_few_rows_is_nan(opened: Open) -> None:
    X = history(3)
    X[:20, 1] = np.nan
    whole = written(opened(X, plans()["expanding"], Wanted("correlation", min_periods=5)))
    assert np.isnan(whole[:4, 0, 2]).all()
    assert not np.isnan(whole[4:, 0, 2]).any()
    assert np.isnan(whole[:24, 0, 1]).all()
    assert not np.isnan(whole[24:, 0, 1]).any()
    biased = written(opened(X, plans()["adjusted"], Wanted(ddof=0)))
    assert biased[0, 0, 2] == 0
    assert np.isnan(written(opened(X, plans()["adjusted"], Wanted()))[0, 0, 2])
    assert np.isnan(written(opened(X, plans()["expanding"], Wanted(ddof=2)))[1, 0, 2])


@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_an_infinity_spoils_its_pairs_from_its_row_on_and_no_other(opened: Open, missing: float) -> None:
    X = history(4, missing)
    X[15], X[25] = 1.0, 2.0
    clean = X.copy()
    X[15, 1], X[25, 3] = np.inf, -np.inf
    for statistic in STATISTICS:
        wanted = Wanted(statistic)
        found = written(opened(X, plans()["adjusted"], wanted))
        expected = written(opened(clean, plans()["adjusted"], wanted))
        expected[15:, 1], expected[15:, :, 1] = np.nan, np.nan
        expected[25:, 3], expected[25:, :, 3] = np.nan, np.nan
        assert np.array_equal(found, expected, equal_nan=True)


def test_an_infinity_beside_a_missing_value_is_not_seen_by_the_pair(opened: Open) -> None:
    X = history(3)
    X[10, 0], X[10, 1] = np.inf, np.nan
    found = written(opened(X, plans()["adjusted"], Wanted()))
    assert np.isfinite(found[20:, 0, 1]).all()
    assert np.isfinite(found[20:, 1, 1]).all()
    assert np.isnan(found[10:, 0, 0]).all()
    assert np.isnan(found[10:, 0, 2]).all()


@pytest.mark.parametrize("missing", [False, True])
def test_a_column_that_rests_for_ever_keeps_its_correlation(opened: Open, missing: bool) -> None:
    """Its variance fades below every number of float64, but it did change once."""
    rows = 600
    X = np.ones((rows, 3))
    X[0, :2] = 0.0
    X[:, 2] = 0.1
    if missing:
        X[5] = np.nan
    found = written(opened(X, Decay.exponential(rows, 1 - 2.0**-8), Wanted("correlation")), 100)
    # within one rounding a row of the first few, after which nothing moves
    np.testing.assert_allclose(found[1:, 0, 1], 1, rtol=0, atol=1e-15)
    assert np.isnan(found[:, 2]).all()


@pytest.mark.parametrize("missing", [False, True])
def test_magnitudes_of_all_sizes_meet(opened: Open, missing: bool) -> None:
    random = np.random.default_rng(3)
    X = random.standard_normal((ROWS, 3)) * np.array([1e-170, 1e200, 1.0])
    ordinary = X / np.array([1e-170, 1e200, 1.0])
    if missing:
        X[7, 0] = ordinary[7, 0] = np.nan
    expected = written(HostDecay(ordinary, plans()["adjusted"], Wanted("correlation")))
    found = written(opened(X, plans()["adjusted"], Wanted("correlation")), 9)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13)
    covariance = written(opened(X, plans()["adjusted"], Wanted()), 9)
    expected = written(HostDecay(ordinary, plans()["adjusted"], Wanted()))
    np.testing.assert_allclose(covariance[:, 0, 1] / 1e30, expected[:, 0, 1], rtol=1e-11, atol=1e-13)
    assert (covariance[1:, 0, 0] == 0).all(), "1e-340 is below every float64"
    assert np.isinf(covariance[1:, 1, 1]).all(), "1e400 is above every float64"


@pytest.mark.parametrize("missing", [False, True])
def test_a_night_of_many_half_lives_is_no_trouble(opened: Open, missing: bool) -> None:
    X = history(3)
    X[20] = X[19] + [1.0, 2.0, -4.0]
    if missing:
        X[3, 0] = np.nan
    times = np.arange(ROWS) + np.where(np.arange(ROWS) < 20, 0, 10**6)
    plan = Decay.by_time(times, 3.0)
    own = written(opened(X, plan, Wanted("correlation")))
    assert np.isfinite(own[20]).all()
    morning = written(opened(X[20:], Decay.by_time(times[20:], 3.0), Wanted("correlation")))
    np.testing.assert_allclose(own[22:], morning[2:], rtol=0, atol=1e-12)
    covariance = written(opened(X, plan, Wanted()))
    assert np.isfinite(covariance[20]).all()
    morning = written(opened(X[20:], Decay.by_time(times[20:], 3.0), Wanted()))
    np.testing.assert_allclose(covariance[21:], morning[1:], rtol=1e-11, atol=1e-12)


def test_no_rows_and_no_columns_are_no_trouble() -> None:
    for way in (HostDecay, SerialDecay):
        assert written(way(np.empty((0, 3)), Decay.expanding(0), Wanted())).shape == (0, 3, 3)
        assert written(way(np.empty((3, 0)), Decay.expanding(3), Wanted())).shape == (3, 0, 0)


def test_a_plan_of_another_length_is_refused(opened: Open) -> None:
    with pytest.raises(ShapeError, match="the plan has 7 rows but X has 40; they must be equal"):
        opened(history(2), Decay.expanding(7), Wanted())


def test_a_ddof_without_a_meaning_is_refused(opened: Open) -> None:
    with pytest.raises(OptionError, match="ddof is 2; it must be 0 for the biased covariance or 1"):
        opened(history(2), Decay.exponential(ROWS, 0.5), Wanted(ddof=2))
    with pytest.raises(OptionError, match="ddof is -1; it must be 0 or more"):
        opened(history(2), Decay.expanding(ROWS), Wanted(ddof=-1))


def test_a_column_that_is_not_there_is_refused(opened: Open) -> None:
    for column in (2, -1):
        with pytest.raises(OptionError, match=rf"no column {column}; there are 2, counted from 0\."):
            opened(history(2), Decay.expanding(ROWS), Wanted(left=(0, column)))


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_a_history_is_sent_in_pieces(
    opencl_engine: OpenCLEngine, monkeypatch: pytest.MonkeyPatch, missing: float
) -> None:
    from mtbridge.compute import opencl_decay

    X, plan = history(5, missing), plans()["adjusted"]

    def found() -> NDArray[Any]:
        device = opencl_engine.kernels_device
        return written(opencl_decay.OpenCLDecay(device, X, plan, Wanted(), limit=LIMIT))

    whole = found()
    monkeypatch.setattr(opencl_decay, "SLAB_BYTES", 1)
    assert np.array_equal(found(), whole, equal_nan=True)
    monkeypatch.setattr(opencl_decay, "SENT_BYTES", 9 * 8 * 16)
    assert np.array_equal(found(), whole, equal_nan=True)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_small_buffers_take_blocks_or_the_host(opencl_engine: OpenCLEngine, missing: float) -> None:
    from mtbridge.compute.opencl_decay import OpenCLDecay

    X, plan = history(5, missing), plans()["adjusted"]
    expected = written(HostDecay(X, plan, Wanted()))
    for limit in (1 << 13, 1 << 8):
        found = written(OpenCLDecay(opencl_engine.kernels_device, X, plan, Wanted(), limit=limit))
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13)


def test_engines_open_the_sequence(engine: Engine) -> None:
    X, plan, wanted = history(4), plans()["adjusted"], Wanted("correlation")
    expected = written(HostDecay(X, plan, wanted))
    np.testing.assert_allclose(written(engine.sequence(X, plan, wanted)), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("missing", [0.0, 0.1])
def test_matrices_stay_on_the_device_for_whoever_takes_them(
    opencl_engine: OpenCLEngine, missing: float
) -> None:
    """Two sequences at a time, so that neither may keep its state where the other finds it."""
    from mtbridge.compute.opencl_decay import OpenCLDecay

    device, plan, wanted = opencl_engine.kernels_device, plans()["adjusted"], Wanted()
    histories = [history(6, missing, seed) for seed in (1, 2)]
    sequences = [OpenCLDecay(device, X, plan, wanted, limit=LIMIT) for X in histories]
    found = [np.empty((ROWS, 6, 6)) for _ in histories]
    for start in range(0, ROWS, 8):
        for sequence, out in zip(sequences, found, strict=True):
            target = device.allocate(8 * sequence.matrix_bytes)
            sequence.take(target, 8)
            device.downloaded(target, out[start : start + 8])
    for X, out in zip(histories, found, strict=True):
        whole = written(OpenCLDecay(device, X, plan, wanted, limit=LIMIT))
        assert np.array_equal(out, whole, equal_nan=True)


@pytest.mark.parametrize("gpu", [False, True])
@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("columns", [1, 3, 8, 9, 15, 16, 17])
def test_the_kernels_write_nothing_behind_their_matrices(
    opencl_engine: OpenCLEngine, columns: int, missing: float, gpu: bool
) -> None:
    from mtbridge.compute.opencl_decay import OpenCLDecay

    device, X = opencl_engine.kernels_device, history(columns, missing)
    for wanted in (
        Wanted(packed=True),
        Wanted(left=(columns - 1,)),
        Wanted("beta"),
        Wanted(dtype=np.dtype(np.float32)),
        Wanted("correlation", packed=True, dtype=np.dtype(np.float32)),
    ):
        sequence = OpenCLDecay(device, X, plans()["adjusted"], wanted, limit=LIMIT, gpu=gpu)
        size = 5 * int(np.prod(sequence.shape))
        whole = np.full(size + 64, -777, wanted.dtype)
        target = device.uploaded(whole)
        sequence.take(target, 5)
        device.downloaded(target, whole)
        assert (whole[size:] == -777).all()
        assert not (whole[:size] == -777).any()


def test_python_holds_little_beside_the_answer(opencl_engine: OpenCLEngine) -> None:
    from mtbridge.compute.opencl_decay import OpenCLDecay

    random = np.random.default_rng(0)
    X = random.standard_normal((400, 50))
    out = np.empty((400, 50, 50))
    tracemalloc.start()
    OpenCLDecay(opencl_engine.kernels_device, X, Decay.expanding(400), Wanted(), limit=LIMIT).write(out)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.2 * out.nbytes


@pytest.mark.parametrize("statistic", STATISTICS)
def test_the_plain_loop_is_the_compiled_one(monkeypatch: pytest.MonkeyPatch, statistic: Statistic) -> None:
    from mtbridge.compute import serial_decay

    X = history(3, 0.2)
    X[30, 1] = np.inf
    for name in ("expanding", "recursive"):
        wanted = Wanted(statistic, ddof=1)
        compiled = written(SerialDecay(X, plans()[name], wanted))
        with monkeypatch.context() as patch:
            patch.setattr(serial_decay, "loop_of", lambda loop, _: loop)
            plain = written(SerialDecay(X, plans()[name], wanted), 13)
        # the compiler may fuse a product and a sum
        np.testing.assert_allclose(plain, compiled, rtol=1e-12, atol=1e-13)
