"""The memory of a new array is made before anything is written there."""

from __future__ import annotations

import threading
from itertools import pairwise

import numpy as np
import pytest

from mtbridge.compute import pages
from mtbridge.compute.pages import PAGE_BYTES, Pages, cut


@pytest.mark.parametrize("size", [1, 7, 4095, 4096, 4097, 100_000])
@pytest.mark.parametrize("address", [0, 16, 4095, 4096, 8191])
@pytest.mark.parametrize("part", [4096, 16_384])
def test_an_array_is_cut_where_memory_is_and_each_byte_is_in_one_part(
    size: int, address: int, part: int
) -> None:
    raw = np.zeros(size + address + 16_384, np.uint8)
    start = -raw.ctypes.data % 16_384 + address
    array = raw[start : start + size]
    parts = list(cut(array, part))
    for found in parts:
        assert 0 < len(found) <= part
        found += 1
    assert (array == 1).all()
    assert raw.sum() == size
    assert all(found.ctypes.data % part == 0 for found in parts[1:])
    assert all(one.ctypes.data + len(one) == other.ctypes.data for one, other in pairwise(parts))


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays are large from a few pages on."""
    monkeypatch.setattr(pages, "PAGED_BYTES", 10 * PAGE_BYTES)
    monkeypatch.setattr(pages, "PART_BYTES", 4 * PAGE_BYTES)


@pytest.mark.parametrize("threads", [1, 3])
def test_each_page_is_written_to(small: None, threads: int) -> None:
    array = np.full((300, 1000), np.nan)
    made = Pages(array)
    makers = [threading.Thread(target=made.make) for _ in range(threads)]
    for maker in makers:
        maker.start()
    for maker in makers:
        maker.join(60)
    zeros = np.flatnonzero(array.view(np.uint8).reshape(-1) == 0)
    # no stretch of two pages is as it was
    assert np.diff(np.concatenate(([0], zeros, [array.nbytes]))).max() <= PAGE_BYTES + 8


def test_there_may_be_nothing_to_do(small: None) -> None:
    array = np.full(9 * PAGE_BYTES, 7, np.uint8)
    for made in (Pages(), Pages(array)):
        made.make()
        made.end()
        made.end()
        assert not made.wanted
    assert (array == 7).all(), "it is too small"


def test_nobody_begins_a_part_after_the_end(small: None) -> None:
    array = np.full(20 * PAGE_BYTES, 7, np.uint8)
    made = Pages(array)
    made.end()
    made.make()
    assert (array == 7).all()


def test_the_end_waits_for_whoever_is_at_a_part() -> None:
    begun, free = threading.Event(), threading.Event()
    written: list[bool] = []

    class Part:
        def __setitem__(self, key: slice, value: int) -> None:
            begun.set()
            free.wait(60)
            written.append(True)

    made = Pages()
    made._parts = iter([Part(), Part()])  # type: ignore[list-item]
    maker = threading.Thread(target=made.make)
    maker.start()
    begun.wait(60)
    enders = [threading.Thread(target=made.end) for _ in range(2)]
    for ender in enders:
        ender.start()
    assert all(ender.is_alive() for ender in enders)
    free.set()
    for thread in (*enders, maker):
        thread.join(60)
    assert written == [True], "the second part is left alone"
