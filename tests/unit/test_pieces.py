"""Pieces of blocks: every step of every block is in one, units end together, and parts fit."""

from __future__ import annotations

import heapq

import numpy as np
import pytest

from mtbridge.compute.pieces import (
    ADDING,
    BASE,
    BLOCK,
    COUNT,
    END,
    FIRST,
    INDEX,
    LEFT,
    MOST_PARTS,
    NEAR_EDGE,
    THINNEST,
    WRITING,
    pieces_of,
)
from mtbridge.compute.quarters import gram_quarters

UNITS = [1, 3, 5, 132]
STEPS = [1, 2, 8, 63, 128, 6251]
BLOCKS = [1, 2, 36, 132, 136, 528, 2080]


def blocks_of(count: int) -> np.ndarray[tuple[int, int], np.dtype[np.int32]]:
    """So many blocks with other numbers each."""
    return np.arange(3 * count, dtype=np.int32).reshape(3, count).T.copy()


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("blocks", BLOCKS)
def test_every_step_of_every_block_is_in_one_piece(blocks: int, steps: int, units: int) -> None:
    found, parts = pieces_of(blocks_of(blocks), steps, units=units, most=1 << 20)
    assert found.dtype == np.int32
    assert found.flags.c_contiguous
    assert parts < MOST_PARTS * units or not parts
    used = set()
    for block in range(blocks):
        mine = found[found[:, LEFT] == block]
        mine = mine[np.argsort(mine[:, FIRST])]
        assert mine[0, FIRST] == 0
        assert mine[-1, END] == steps
        assert (mine[1:, FIRST] == mine[:-1, END]).all()
        assert (mine[:, END] > mine[:, FIRST]).all()
        assert (mine[:, COUNT] == len(mine)).all()
        assert (mine[:, INDEX] == np.arange(len(mine))).all()
        if len(mine) > 1:
            assert (mine[:, BASE] == mine[0, BASE]).all()
            used |= set(range(mine[0, BASE], mine[0, BASE] + len(mine)))
            assert len(mine) <= parts
    assert not used or max(used) < parts, "no two pieces have the same part, and none has another"
    assert len(used) == (found[:, COUNT] > 1).sum()


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("steps", STEPS)
@pytest.mark.parametrize("blocks", BLOCKS)
def test_units_end_together_and_never_later_than_with_whole_blocks(
    blocks: int, steps: int, units: int
) -> None:
    found, _ = pieces_of(blocks_of(blocks), steps, units=units, most=1 << 20)
    ends = [0.0] * units
    for piece in found:
        levels = (int(piece[COUNT]) - 1).bit_length()
        work = piece[END] - piece[FIRST] + WRITING + ADDING * levels
        heapq.heappush(ends, heapq.heappop(ends) + work)
    rounds = -(-blocks // units)
    assert max(ends) <= rounds * (steps + WRITING) + 2 * NEAR_EDGE
    if found[:, COUNT].max() > 1:
        # no more than what is done twice, and the coarse steps of edges, above an even share
        even = blocks / units * (steps + WRITING)
        assert max(ends) <= even + 2 * (WRITING + 8 * ADDING) + 2 * NEAR_EDGE + THINNEST


def test_what_a_plain_launch_leaves_idle_is_filled() -> None:
    for columns, inner, gain in ((2176, 2048, 1.7), (1024, 1024, 2.2), (256, 100_000, 30)):
        blocks = gram_quarters(columns)
        found, _ = pieces_of(blocks, inner // 16, units=132, most=1 << 20)
        share = np.zeros(132)
        for length in sorted(found[:, END] - found[:, FIRST], reverse=True):
            share[np.argmin(share)] += length
        assert gain * share.max() <= -(-len(blocks) // 132) * (inner // 16)


@pytest.mark.parametrize("most", [0, 1, 5, 50, 300])
@pytest.mark.parametrize("blocks", BLOCKS)
def test_parts_fit_the_memory_there_is(blocks: int, most: int) -> None:
    found, parts = pieces_of(blocks_of(blocks), 500, units=132, most=most)
    assert parts <= most
    assert (found[:, END] - found[:, FIRST]).sum() == blocks * 500


def test_blocks_keep_their_numbers_and_their_order_where_they_are_whole() -> None:
    blocks = blocks_of(12)
    found, parts = pieces_of(blocks, 10, units=12, most=1 << 20)
    assert parts == 0
    assert np.array_equal(found[:, BLOCK], blocks)
