"""How a product is cut for several devices, and when that is worth it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from given_several import normal

from mtbridge.compute.blocks import spans
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.several import SeveralEngine
from mtbridge.compute.several_blocks import (
    NARROWEST,
    UNIT,
    WIDEST,
    Pair,
    block_width,
    divided_seconds,
    pairs_of_product,
    pairs_of_triangle,
    pays,
)
from mtbridge.compute.several_devices import place


@pytest.mark.parametrize("columns", [1, 511, 512, 513, 4095, 4096, 4097, 20_000, 32_768, 32_769, 100_003])
def test_a_block_is_of_whole_tiles_and_large_but_no_answer_is_vast(columns: int) -> None:
    width = block_width(columns)
    assert width % UNIT == 0
    assert NARROWEST <= width <= WIDEST
    assert columns <= 8 * width or width == WIDEST


@pytest.mark.parametrize(("columns", "width"), [(1, 4), (3, 4), (4, 4), (5, 4), (8, 4), (97, 10)])
def test_the_pairs_of_a_triangle_cover_a_matrix_once(columns: int, width: int) -> None:
    pairs = pairs_of_triangle(list(spans(columns, width)))
    covered = np.zeros((columns, columns), int)
    for pair in pairs:
        covered[pair.down, pair.across] += 1
        if pair.mirrored:
            covered[pair.across, pair.down] += 1
    assert (covered == 1).all()
    assert all(pair.half == (pair.left == pair.right) for pair in pairs)


@pytest.mark.parametrize(("rows", "columns"), [(1, 1), (1, 30), (30, 1), (23, 47)])
def test_the_pairs_of_a_product_cover_it_once(rows: int, columns: int) -> None:
    covered = np.zeros((rows, columns), int)
    for pair in pairs_of_product(list(spans(rows, 7)), list(spans(columns, 7))):
        covered[pair.down, pair.across] += 1
        assert not pair.half
        assert not pair.mirrored
    assert (covered == 1).all()


def test_the_largest_pairs_come_first_and_the_diagonal_last() -> None:
    pairs = pairs_of_triangle(list(spans(50, 10)))
    work = [pair.work for pair in pairs]
    assert work == sorted(work, reverse=True)
    assert [pair.half for pair in pairs] == 10 * [False] + 5 * [True]


def test_a_block_off_the_diagonal_is_mirrored_bit_for_bit() -> None:
    out, block = np.zeros((600, 600)), normal(131, 257)
    place(out, block, Pair(0, 1, slice(5, 136), slice(200, 457), mirrored=True))
    assert np.array_equal(out[5:136, 200:457], block)
    assert np.array_equal(out[200:457, 5:136], block.T)
    assert np.count_nonzero(out) == 2 * np.count_nonzero(block)


@pytest.mark.parametrize("size", [4, 8])
def test_many_symbols_are_shared(size: int) -> None:
    """2,500 rows of 20,000 symbols: the answer alone takes longer than what each device needs."""
    assert pays((20_000, 2_500, 20_000), size=size, total=8, half=True)


@pytest.mark.parametrize(
    "shape", [(50, 60, 50), (500, 2_000, 500), (200, 1_000_000, 200), (1_000, 1_000, 1_000)]
)
def test_what_is_small_or_tall_is_not(shape: tuple[int, int, int]) -> None:
    assert not pays(shape, size=8, total=8, half=True)
    assert not pays(shape, size=8, total=8, half=False)


def test_deep_columns_of_float32_in_halves_are_left_to_one_device(
    open_tiled: Callable[[], OpenCLEngine],
) -> None:
    """Its tensor cores are done with 100,000 rows before two devices by other kernels are, with 2,500 not."""
    with SeveralEngine({0: open_tiled(), 1: open_tiled()}) as shared:
        single, double = np.dtype(np.float32), np.dtype(np.float64)
        deep, shallow = (100_000, 20_000), (2_500, 20_000)
        assert shared._shares_moments(deep, single)
        shared.first.use_halves(0)
        assert not shared._shares_moments(deep, single)
        assert shared._shares_moments(shallow, single)
        assert shared._shares_moments(shallow, double)


def test_sharing_divides_the_products_and_the_answer() -> None:
    products, answer = divided_seconds((1_000, 100, 2_000), total=8, half=False)
    half, same = divided_seconds((1_000, 100, 2_000), total=8, half=True)
    assert half == products / 2
    assert same == answer
