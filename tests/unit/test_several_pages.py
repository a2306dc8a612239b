"""The memory of an answer is made before anything is written there."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from given_several import LEAST, normal

from mtbridge.compute import several_pages
from mtbridge.compute.opencl_engine import open_opencl
from mtbridge.compute.several import SeveralEngine
from mtbridge.compute.several_pages import PAGE_BYTES, Pages, parts


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (64, 64), (101, 97)])
@pytest.mark.parametrize("size", [4096, 10_000])
def test_parts_are_of_whole_pages_of_memory_and_cover_an_array_once(
    monkeypatch: pytest.MonkeyPatch, shape: tuple[int, int], size: int
) -> None:
    monkeypatch.setattr(several_pages, "PART_BYTES", size)
    array = np.zeros(shape)
    found = list(parts(array))
    for part in found:
        part += 1
    assert (array.view(np.uint8) == 1).all()
    assert all(part.ctypes.data % size == 0 for part in found[1:])
    assert all(len(part) <= size for part in found)


def test_each_page_is_written_to_and_threads_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(several_pages, "PART_BYTES", 4 * PAGE_BYTES)
    array = np.full((300, 1000), np.nan)
    before = threading.active_count()
    pages = Pages(array, 3)
    pages.begin()
    deadline = time.monotonic() + 20
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.001)
    pages.end()
    pages.end()
    assert threading.active_count() == before
    untouched = np.full(array.nbytes, False)
    untouched[...] = array.view(np.uint8).reshape(-1) != 0
    # no stretch of two pages is as it was
    zeros = np.flatnonzero(~untouched)
    assert np.diff(np.concatenate(([0], zeros, [array.nbytes]))).max() <= PAGE_BYTES + 8


def test_there_may_be_nothing_to_do() -> None:
    pages = Pages(None, 4)
    pages.begin()
    pages.end()
    Pages(np.zeros((2, 2)), 2).end()


def test_nothing_is_written_to_a_page_once_an_answer_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages that are made again and again until `end`: whatever came earlier would be lost."""
    made = threading.Event()

    def make(pages: Pages) -> None:
        array = arrays[-1]
        while not pages._ended:
            array.fill(np.nan)
            made.set()

    arrays = []
    begin = Pages.__init__

    def kept(pages: Pages, array: np.ndarray, threads: int) -> None:
        arrays.append(array)
        begin(pages, array, threads)

    monkeypatch.setattr(Pages, "__init__", kept)
    monkeypatch.setattr(Pages, "_make", make)
    X = normal(40, 400)
    with SeveralEngine({number: open_opencl("cpu") for number in range(2)}, least=LEAST) as shared:
        found = shared.gram(X)
        assert shared.used is shared
        assert made.is_set()
        assert np.abs(found - X.T @ X).max() <= 1e-12 * len(X) * 20
