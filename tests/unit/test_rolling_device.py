"""Rolling matrices on a device: its edges, its buffers and batches, and what lies beside a column.

That each window is right is tested for every engine in test_rolling.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from given_rolling import ROWS, WINDOW, answers, history, on_device

from mtbridge.compute import Engine, opencl_rolling_cpu
from mtbridge.compute.host_rolling import HostRolling
from mtbridge.compute.sequence import MatrixSequence, Wanted
from mtbridge.compute.windows import Rolling


@pytest.mark.parametrize("columns", [1, 2, 3, 7, 8, 9, 66])
@pytest.mark.parametrize("gaps", [0.0, 0.03])
def test_every_number_of_columns_has_its_edges_right(
    opencl_engine: Engine, columns: int, gaps: float
) -> None:
    random = np.random.default_rng(columns)
    X = random.standard_normal((150, columns)).cumsum(axis=0)
    X[random.random(X.shape) < gaps] = np.nan
    plan = Rolling.by_rows(150, 20)
    left = (columns - 1, 0, columns // 2)
    for options in ({}, {"packed": True}, {"left": left}):
        found = answers(on_device(opencl_engine), X, plan, **options)
        right = answers(HostRolling, X, plan, **options)
        np.testing.assert_allclose(found, right, rtol=1e-10, atol=1e-11)


@pytest.mark.parametrize("window", [63, 64, 65, 255, 257, 700])
@pytest.mark.parametrize("gaps", [0.0, 0.01])
def test_long_windows_are_right(opencl_engine: Engine, window: int, gaps: float) -> None:
    random = np.random.default_rng(window)
    X = random.standard_normal((800, 3)).cumsum(axis=0) + 100
    X[random.random(X.shape) < gaps] = np.nan
    plan = Rolling.by_rows(800, window)
    found = answers(on_device(opencl_engine), X, plan, statistic="correlation")
    right = answers(HostRolling, X, plan, statistic="correlation")
    np.testing.assert_allclose(found, right, rtol=0, atol=1e-11)


def test_the_bits_do_not_depend_on_the_largest_buffer(opencl_engine: Engine) -> None:
    X, plan = history("spikes"), Rolling.by_rows(ROWS, WINDOW)
    device = on_device(opencl_engine)

    def tight(*arguments: Any) -> MatrixSequence:
        return device(*arguments, limit=1000)

    assert np.array_equal(answers(device, X, plan), answers(tight, X, plan), equal_nan=True)


@pytest.mark.parametrize("name", ["ordinary", "magnitudes", "infinite and missing"])
def test_the_bits_do_not_depend_on_the_batches(
    opencl_engine: Engine, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    X, plan = history(name), Rolling.by_rows(ROWS, WINDOW)
    device = on_device(opencl_engine)
    whole = answers(device, X, plan, statistic="correlation")
    monkeypatch.setattr(opencl_rolling_cpu, "TABLE_BYTES", 800)
    parts = answers(device, X, plan, 4, 9, statistic="correlation")
    assert np.array_equal(whole.view(np.int64), parts.view(np.int64))


@pytest.mark.parametrize("late", [0, 1, 30])
def test_a_late_listing_changes_no_other_pair(opencl_engine: Engine, late: int) -> None:
    X = np.random.default_rng(12).standard_normal((60, 20)).cumsum(axis=0)
    plan = Rolling.by_rows(60, 15)
    device = on_device(opencl_engine)
    whole = answers(device, X, plan, statistic="correlation")
    X[:late, 7] = np.nan
    found = answers(device, X, plan, statistic="correlation")
    others = np.delete(np.arange(20), 7)
    # beside it in a vector, the same sums are taken another way
    np.testing.assert_allclose(found[:, others][:, :, others], whole[:, others][:, :, others], atol=1e-12)
    assert np.isnan(found[: late + 1, 7]).all()
    assert not np.isnan(found[late + 1 :, 7]).any()


def test_two_sequences_on_one_device_do_not_disturb_each_other(opencl_engine: Engine) -> None:
    device, plan = on_device(opencl_engine), Rolling.by_rows(ROWS, WINDOW)
    histories = [history("ordinary"), history("missing")]
    sequences = [device(X, plan, Wanted()) for X in histories]
    found = [np.empty((ROWS, 5, 5)) for _ in sequences]
    for start in range(0, ROWS, 6):
        for sequence, out in zip(sequences, found, strict=True):
            sequence.write(out[start : start + 6])
    for X, out in zip(histories, found, strict=True):
        assert np.array_equal(out, answers(device, X, plan), equal_nan=True)
