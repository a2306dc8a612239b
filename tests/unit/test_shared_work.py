"""Parts of the host's work that threads take in turn."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from mtbridge import shared_work
from mtbridge.compute.moments import Moments, without_residue
from mtbridge.matrix import holds_inf
from mtbridge.shared_work import Parts, by_rows, share


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """All arrays are taken for large ones, of blocks of a few rows, on a machine of eight processors."""
    monkeypatch.setattr(shared_work, "SHARED_BYTES", 1)
    monkeypatch.setattr(shared_work, "BLOCK_BYTES", 100)
    monkeypatch.setattr(shared_work.os, "cpu_count", lambda: 8)


@pytest.mark.parametrize("parts", [0, 1, 2, 3, 50])
@pytest.mark.parametrize("threads", [1, 2, 5])
def test_each_part_is_taken_once(parts: int, threads: int) -> None:
    taken: list[int] = []
    with ThreadPoolExecutor(4) as pool:
        share(lambda mine, _: taken.extend(mine), parts, threads=threads, pool=pool)
    assert sorted(taken) == list(range(parts))


@pytest.mark.parametrize("rows", [0, 1, 2, 17])
@pytest.mark.parametrize("row_bytes", [0, 8, 99, 100, 101, 1000])
def test_blocks_of_rows_are_every_row_once(many: None, rows: int, row_bytes: int) -> None:
    seen = np.zeros(rows, int)

    def count(some: slice) -> None:
        assert some.start < some.stop
        seen[some] += 1

    by_rows(count, rows, row_bytes)
    assert (seen == 1).all()


def test_small_work_is_done_by_the_caller_alone() -> None:
    threads = set()
    by_rows(lambda _: threads.add(threading.current_thread()), 100, 8)
    assert threads == {threading.current_thread()}


def test_what_a_thread_raises_ends_the_work_and_is_raised_here() -> None:
    begun = threading.Event()

    def job(parts: Parts, number: int) -> None:
        for _ in parts:
            if number == 1:
                begun.set()
                raise ValueError("part")
            begun.wait(10)

    with ThreadPoolExecutor(1) as pool, pytest.raises(ValueError, match="part"):
        share(job, 10**6, threads=2, pool=pool)


class Interrupting:
    """`wait` for threads, interrupted the first times that it is called."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
        self._left = times
        self._wait = shared_work.wait
        monkeypatch.setattr(shared_work, "wait", self)

    def __call__(self, *arguments: Any) -> Any:
        if self._left:
            self._left -= 1
            raise KeyboardInterrupt
        return self._wait(*arguments)


def test_an_interrupt_while_others_are_waited_for_is_raised_after_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended, begun = threading.Event(), threading.Event()

    def job(parts: Parts, number: int) -> None:
        for _ in parts:
            if number == 0:
                begun.wait(10)
                return
            begun.set()
            time.sleep(0.2)
            ended.set()

    Interrupting(monkeypatch, 1)
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        share(job, 2, threads=2, pool=pool)
    assert ended.is_set()


@pytest.mark.parametrize("times", [1, 2])
def test_a_second_interrupt_does_not_wait_for_a_thread_that_is_stuck(
    monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Both while others are waited for, or the first in the caller's part."""
    ended, begun, free = threading.Event(), threading.Event(), threading.Event()

    def job(parts: Parts, number: int) -> None:
        for _ in parts:
            if number == 0:
                begun.wait(60)
                if times == 1:
                    raise KeyboardInterrupt
                return
            begun.set()
            free.wait(60)
            ended.set()

    Interrupting(monkeypatch, times)
    with ThreadPoolExecutor(1) as pool:
        with pytest.raises(KeyboardInterrupt):
            share(job, 2, threads=2, pool=pool)
        assert not ended.is_set()
        free.set()


def test_an_interrupt_after_a_failure_still_waits_for_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    ended, begun = threading.Event(), threading.Event()

    def job(parts: Parts, number: int) -> None:
        for _ in parts:
            if number == 0:
                begun.wait(60)
                raise ValueError("part")
            begun.set()
            time.sleep(0.2)
            ended.set()

    Interrupting(monkeypatch, 1)
    with ThreadPoolExecutor(1) as pool, pytest.raises(KeyboardInterrupt):
        share(job, 9, threads=2, pool=pool)
    assert ended.is_set()


def test_where_no_thread_can_be_had_the_caller_does_all() -> None:
    pool = ThreadPoolExecutor(1)
    pool.shutdown()
    taken: list[int] = []
    share(lambda mine, _: taken.extend(mine), 5, threads=3, pool=pool)
    assert taken == [0, 1, 2, 3, 4]


# matrices in blocks of rows


def moments(columns: int, exponents: bool) -> Moments:
    random = np.random.default_rng(columns)
    Z = random.standard_normal((columns + 9, columns))
    Z[:, ::5] = 0
    comoment = Z.T @ Z
    comoment[1:2, :] = comoment[:, 1:2] = np.nan
    exponent = random.integers(-300, 300, columns) if exponents else np.zeros(columns, np.int64)
    return Moments(len(Z), np.zeros(columns), exponent, np.zeros(columns), comoment)


@pytest.mark.parametrize("exponents", [False, True])
@pytest.mark.parametrize("columns", [1, 2, 37])
def test_covariances_in_blocks_are_those_of_the_whole(
    columns: int, exponents: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = moments(columns, exponents)
    covariance, correlation = made.covariance(2), made.correlation()
    shift = made.exponent.astype(np.int32)
    exact = np.ldexp(made.comoment.astype(np.longdouble) / (made.n - 2), shift[:, np.newaxis] + shift)
    assert np.array_equal(covariance, exact.astype(float), equal_nan=True)
    monkeypatch.setattr(shared_work, "SHARED_BYTES", 1)
    monkeypatch.setattr(shared_work, "BLOCK_BYTES", 100)
    monkeypatch.setattr(shared_work.os, "cpu_count", lambda: 8)
    assert np.array_equal(made.covariance(2), covariance, equal_nan=True)
    assert np.array_equal(made.correlation(), correlation, equal_nan=True)
    narrow = np.empty((columns, columns), np.float32)
    with np.errstate(over="ignore"):
        assert made.covariance(2, out=narrow) is narrow
        assert np.array_equal(narrow, covariance.astype(np.float32), equal_nan=True)
    assert made.correlation(out=narrow) is narrow
    assert np.array_equal(narrow, correlation.astype(np.float32), equal_nan=True)
    for method, expected in (
        (made.correlation, correlation),
        (lambda out: made.covariance(2, out=out), covariance),
    ):
        kept = made.comoment.copy()
        assert method(out=made.comoment) is made.comoment
        assert np.array_equal(made.comoment, expected, equal_nan=True)
        made.comoment[...] = kept
    assert np.isnan(made.covariance(made.n, out=narrow)).all()


def test_a_residue_is_taken_out_in_blocks_as_of_the_whole(many: None) -> None:
    random = np.random.default_rng(8)
    Z = 3 + random.standard_normal((200, 23))
    found = without_residue(Z.T @ Z, Z.mean(axis=0), len(Z))
    D = Z.astype(np.longdouble) - Z.astype(np.longdouble).mean(axis=0)
    assert np.abs(found - D.T @ D).max() <= len(Z) * np.finfo(float).eps * np.abs(Z.T @ Z).max()


@pytest.mark.parametrize("shape", [(0, 3), (1,), (40, 7)])
def test_an_inf_is_found_wherever_it_is(many: None, shape: tuple[int, ...]) -> None:
    array = np.full(shape, np.nan)
    assert not holds_inf(array)
    for place in ((0,) * len(shape), (-1,) * len(shape)):
        if array.size:
            array[place] = -np.inf
            assert holds_inf(array)
            array[place] = 0
