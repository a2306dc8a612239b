"""Blocks of a product: as large as a buffer allows, and never more."""

from __future__ import annotations

import pytest

from mtbridge.compute.blocks import block_sizes, padded
from mtbridge.compute.forms import packed_form, tiled_form

SHAPES = [(1, 1, 1), (300_000, 10, 10), (10, 10, 300_000), (10, 1_000_000, 10), (4000, 4000, 4000), (7, 9, 5)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("limit", [1 << 12, 1 << 16, 1 << 20, 1 << 26])
@pytest.mark.parametrize("tiled", [False, True])
def test_a_block_fits_the_largest_buffer(shape: tuple[int, int, int], limit: int, tiled: bool) -> None:
    form = tiled_form("float64", 64) if tiled else packed_form("float64", 64)
    found = block_sizes(form, shape, size=8, total=8, limit=limit)
    assert found is not None
    rows, inner, columns = found
    depth = padded(inner, form.inner)
    assert (
        max(padded(rows, form.left) * depth, padded(columns, form.right) * depth, rows * columns) * 8 <= limit
    )
    assert all(1 <= part <= whole for part, whole in zip(found, shape, strict=True))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_product_that_fits_is_not_cut(shape: tuple[int, int, int]) -> None:
    assert block_sizes(packed_form("float32", 64), shape, size=4, total=4, limit=1 << 40) == shape


def test_only_the_long_side_is_cut() -> None:
    """300,000 x 10 times 10 x 10 needs a few blocks of rows, and whole columns."""
    form = packed_form("float64", 64)
    found = block_sizes(form, (300_000, 10, 10), size=8, total=8, limit=8 << 20)
    assert found is not None
    assert found[1:] == (10, 10)
    assert found[0] >= 50_000


def test_a_square_is_cut_alike_on_both_sides() -> None:
    found = block_sizes(
        packed_form("float64", 64), (3000, 100, 3000), size=8, total=8, limit=1 << 20, square=True
    )
    assert found is not None
    assert found[0] == found[2] < 3000


def test_a_buffer_too_small_for_one_element_is_said() -> None:
    assert block_sizes(packed_form("float64", 64), (5, 5, 5), size=8, total=8, limit=4) is None
