"""Quarters of blocks: all of a result is in one of them, and once, and no block has more than four panels."""

from __future__ import annotations

import numpy as np
import pytest

from mtbridge.compute.pieces import BLOCK, pieces_of
from mtbridge.compute.quarters import PANEL, WANTED, gram_quarters, panels_of, product_quarters, within

SIDES = [1, 64, 65, 128, 129, 192, 193, 300, 1000]


def places(blocks: np.ndarray[tuple[int, int], np.dtype[np.int32]]) -> list[tuple[int, int]]:
    """The (left panel, right panel) of all quarters that are wanted, as kernels/dmma.clh reads them."""
    found = []
    for left, right, quarters in blocks.tolist():
        panels = (left, left + (quarters >> 5 & 1), right, right + (quarters >> 13 & 1))
        for place in range(4):
            quarter = quarters >> 8 * place & 0xFF
            if quarter & WANTED:
                found.append((panels[quarter & 3], panels[quarter >> 2 & 3]))
    return found


@pytest.mark.parametrize("rows", SIDES)
@pytest.mark.parametrize("columns", SIDES)
def test_a_product_is_covered_once_and_reads_what_exists(rows: int, columns: int) -> None:
    blocks = product_quarters(rows, columns)
    down, across = -(-rows // PANEL), -(-columns // PANEL)
    assert sorted(places(blocks)) == [(left, right) for left in range(down) for right in range(across)]
    panels = panels_of(*blocks.T)
    assert panels[:2].max() < down
    assert panels[2:].max() < across
    slots = [quarters >> 8 * place & 15 for quarters in blocks[:, 2].tolist() for place in range(4)]
    assert set(slots) == {8, 9, 12, 13}, "a left panel is on the left, even of what is not wanted"


@pytest.mark.parametrize("columns", SIDES)
def test_an_upper_triangle_is_covered_once_and_reads_what_exists(columns: int) -> None:
    blocks = gram_quarters(columns)
    panels = -(-columns // PANEL)
    assert sorted(places(blocks)) == [
        (left, right) for left in range(panels) for right in range(left, panels)
    ]
    assert panels_of(*blocks.T).max() < panels


def test_a_triangle_of_2048_columns_has_a_block_for_each_unit_of_an_h200() -> None:
    assert len(gram_quarters(2048)) == 132
    assert gram_quarters(2048).dtype == np.int32


def test_a_product_may_have_any_number_of_rows() -> None:
    rows = 10_000_001
    blocks = product_quarters(rows, 1)
    assert panels_of(*blocks.T)[:2].max() == -(-rows // PANEL) - 1
    assert len(blocks) == -(-rows // 128)


def test_stripes_of_a_triangle_have_its_quarters_in_the_pieces_of_the_whole() -> None:
    columns = 1000
    pieces, _ = pieces_of(gram_quarters(columns), 200, units=7, most=100)
    found = []
    for start, stop in ((0, 128), (128, 640), (640, 1000)):
        mine = within(pieces, start, stop)
        held = places(mine[:, BLOCK])
        assert {start <= PANEL * left < stop for left, _ in held} == {True}
        whole = {tuple(row) for row in pieces[:, :7].tolist()}
        assert {tuple(row) for row in mine[:, :7].tolist()} <= whole, "so sums are added up alike"
        found += held
    assert sorted(found) == sorted(places(pieces[:, BLOCK]))
