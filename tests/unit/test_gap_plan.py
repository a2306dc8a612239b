"""`GapPlan`: which columns are done by runs, which by lists, and where those lie."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from mtbridge.compute.gap_plan import SHORTEST, GapPlan


def plan_of(there: NDArray[np.bool_], tiles: int = 1, block: int = 1) -> GapPlan:
    counts = there.sum(axis=0)
    leads = np.where(counts > 0, there.argmax(axis=0), len(there))
    return GapPlan.of(counts, leads, len(there), tiles=tiles, block=block)


def named_rows(plan: GapPlan, number: int, there: NDArray[np.bool_]) -> list[int]:
    """The rows that a list is to name."""
    column, have, lead, _ = plan.lists[number]
    return [row for row in range(lead, len(there)) if there[row, column] == have]


def test_a_complete_matrix_needs_nothing() -> None:
    plan = plan_of(np.ones((40, 3), bool))
    assert len(plan.lists) == len(plan.edges) == plan.longest == plan.downs == 0
    assert plan.places.tolist() == [[-1, -1, 0, 40]] * 3


def test_columns_that_begin_together_share_a_run() -> None:
    there = np.ones((100, 6), bool)
    for column, begin in enumerate((20, 30, 20, 60, 60, SHORTEST - 1)):
        there[:begin, column] = False
    there[50, 5] = False
    plan = plan_of(there)
    assert plan.edges.tolist() == [20, 30, 60]
    assert plan.downs == 2
    assert plan.places[:5].tolist() == [
        [0, -1, 0, 80],
        [1, -1, 0, 70],
        [0, -1, 0, 80],
        [2, -1, 1, 40],
        [2, -1, 1, 40],
    ]
    # too few rows for a run beside a list, enough for one alone
    assert plan.places[5].tolist() == [-1, 0, 0, 84]
    assert plan.lists.tolist() == [[5, 0, 0, 0]]
    there[50, 5] = True
    plan = plan_of(there)
    assert plan.edges.tolist() == [SHORTEST - 1, 20, 30, 60]
    assert plan.places[5].tolist() == [0, -1, 0, 85]
    assert len(plan.lists) == 0


def test_a_column_without_values_has_no_list_and_no_run() -> None:
    there = np.ones((50, 2), bool)
    there[:, 1] = False
    plan = plan_of(there)
    assert plan.places.tolist() == [[-1, -1, 0, 50], [-1, -1, 2, 0]]
    assert len(plan.lists) == len(plan.edges) == 0


@pytest.mark.parametrize("share", [0.02, 0.4, 0.6, 0.97])
@pytest.mark.parametrize(("tiles", "block"), [(1, 1), (7, 4), (7, 64)])
def test_lists_are_the_shortest_that_tell_all_and_have_room(share: float, tiles: int, block: int) -> None:
    random = np.random.default_rng(int(share * 100))
    there = random.random((200, 40)) >= share
    for column in range(0, 40, 4):
        there[: random.integers(0, 200), column] = False
    plan = plan_of(there, tiles, block)
    lengths = [len(named_rows(plan, number, there)) for number in range(len(plan.lists))]
    assert lengths == sorted(lengths, reverse=True)
    assert plan.longest == max(lengths)
    assert 2 * plan.longest <= 200
    begins = plan.lists[::block, 3].tolist()
    assert np.array_equal(plan.lists[:, 3], np.repeat(begins, block)[: len(lengths)])
    for number, (begin, end) in enumerate(pairwise([*begins, plan.quads])):
        # a quad of each tile may be filled up
        named = lengths[number * block : (number + 1) * block]
        assert 4 * (end - begin) >= sum(named) + 3 * tiles * len(named)
    for column, (run, number, kind, count) in enumerate(plan.places):
        named = set() if number < 0 else set(named_rows(plan, number, there))
        assert number < 0 or plan.lists[number, 0] == column
        upper = set(range(plan.edges[run])) if run >= 0 else set()
        lower = set(range(200)) - upper
        assert (run >= plan.downs) == (kind == 1)
        rows = {0: set(range(200)) - upper - named, 1: lower - named, 2: named}[kind]
        assert rows == set(np.flatnonzero(there[:, column]))
        assert count == len(rows)
