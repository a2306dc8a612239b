"""How a product is cut for several devices, and when that is worth it."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.several import SeveralEngine
from mtbridge.compute.several_stripes import (
    BUS,
    COPIED,
    NEW,
    STARTED,
    STRIPES,
    Seconds,
    seconds,
    stripes_of_product,
    stripes_of_triangle,
)

UNITS = 132
"""Of an H200."""

SIZES = [1, 31, 32, 33, 127, 500, 4_096, 20_000, 100_003]


def assert_cut(stripes: list[slice], length: int, unit: int) -> None:
    """One after the other, from 0 to `length`, at multiples of `unit`, none of them empty."""
    assert stripes[0].start == 0
    assert stripes[-1].stop == length
    assert all(one.stop == next_one.start for one, next_one in pairwise(stripes))
    assert all(stripe.start < stripe.stop and stripe.start % unit == 0 for stripe in stripes)
    assert len(stripes) <= STRIPES


@pytest.mark.parametrize("unit", [1, 32, 128])
@pytest.mark.parametrize("length", SIZES)
def test_stripes_cover_all_rows_once_in_whole_units(length: int, unit: int) -> None:
    assert_cut(stripes_of_triangle(length, unit), length, unit)
    assert_cut(stripes_of_product(length, unit), length, unit)


@pytest.mark.parametrize("columns", [4_096, 20_000, 100_003])
def test_stripes_of_a_triangle_have_about_as_many_elements_each(columns: int) -> None:
    stripes = stripes_of_triangle(columns, 1)
    assert len(stripes) == STRIPES
    part = columns**2 / 2 / STRIPES
    for stripe in stripes:
        height = stripe.stop - stripe.start
        elements = height * (columns - stripe.start) - height**2 / 2
        # an edge is off by half a row at most
        assert abs(elements - part) <= columns


def test_stripes_of_a_product_have_one_height_but_for_the_last() -> None:
    heights = {stripe.stop - stripe.start for stripe in stripes_of_product(20_000, 128)[:-1]}
    assert len(heights) == 1


@pytest.mark.parametrize("total", [4, 8])
@pytest.mark.parametrize("size", [4, 8])
def test_much_to_multiply_is_shared(size: int, total: int) -> None:
    """Square matrices of 20,000: the products take longer than sending one of their factors once more."""
    assert seconds((20_000, 20_000, 20_000), size=size, total=total, units=UNITS, triangle=False).shared


@pytest.mark.parametrize("total", [4, 8])
@pytest.mark.parametrize("halves", [False, True])
def test_a_large_answer_alone_is_no_reason_to_share(total: int, halves: bool) -> None:
    """Covariances of 20,000 symbols: two cards bring them no sooner, they share the memory of the host."""
    for rows in (2_500, 20_000):
        whole = (20_000, rows, 20_000)
        assert not seconds(whole, size=8, total=total, units=UNITS, triangle=True, halves=halves).shared


@pytest.mark.parametrize(
    "shape", [(50, 60, 50), (500, 2_000, 500), (200, 1_000_000, 200), (1_000, 1_000, 1_000)]
)
def test_what_is_small_or_tall_is_not(shape: tuple[int, int, int]) -> None:
    for triangle in (False, True):
        assert not seconds(shape, size=8, total=8, units=UNITS, triangle=triangle).shared


def test_two_devices_share_only_what_they_have_sooner() -> None:
    given = {"whole": 10**9, "divided": 10**9, "answer": 10**9}
    assert Seconds(**given, multiply=1).shared
    assert not Seconds(**given, multiply=0.01).shared
    # each needs the factors whole, through the same memory of the host
    assert not Seconds(**{**given, "whole": 10**11}, multiply=1).shared
    assert not Seconds(whole=0, divided=0, answer=0, multiply=STARTED).shared


def test_what_is_divided_is_sent_once() -> None:
    whole, divided = (
        Seconds(whole=whole, divided=10**9 - whole, answer=0, multiply=0) for whole in (10**9, 0)
    )
    assert whole.one == divided.one
    assert whole.two - divided.two == pytest.approx(10**9 / COPIED)


def test_an_answer_comes_sooner_where_its_pages_are_made_while_the_device_multiplies() -> None:
    times = [Seconds(whole=0, divided=0, answer=10**9, multiply=multiply).one for multiply in (0, 0.01, 9)]
    assert times == pytest.approx([10**9 / NEW, 0.01 + 5e8 / BUS + 5e8 / NEW, 9 + 10**9 / BUS])


def test_half_of_the_products_are_enough_for_a_triangle_and_halves_are_multiplied_sooner() -> None:
    whole = (1_000, 100, 1_000)
    square, triangle = (
        seconds(whole, size=8, total=8, units=UNITS, triangle=triangle) for triangle in (False, True)
    )
    assert triangle.multiply == square.multiply / 2
    assert (triangle.whole, triangle.divided) == (square.whole, 0)
    assert triangle.answer == square.answer
    assert (
        seconds(whole, size=8, total=8, units=UNITS, triangle=True, halves=True).multiply < triangle.multiply
    )


def test_a_smaller_device_has_more_to_share() -> None:
    whole = (5_000, 5_000, 5_000)
    shared = [seconds(whole, size=8, total=8, units=units, triangle=False).shared for units in (132, 20)]
    assert shared == [False, True]


def test_devices_with_different_kernels_do_not_share(
    open_tiled: Callable[[], OpenCLEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bits would depend on who did what."""
    monkeypatch.setattr(Seconds, "shared", property(lambda taken: taken.multiply > STARTED / 10))
    first, second = open_tiled(), open_tiled()
    kinds = np.dtype(np.float32), np.dtype(np.float64)
    with SeveralEngine({0: first, 1: second}) as shared:
        assert shared._shares_gram((2_500, 8_000), *kinds)
        first.use_halves(0)
        assert not shared._shares_gram((2_500, 8_000), *kinds)
        second.use_halves(0)
        assert shared._shares_gram((2_500, 8_000), *kinds)
        assert not shared._shares_gram((2_500, 80), *kinds)
