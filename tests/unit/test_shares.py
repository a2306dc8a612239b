"""Blocks that are shared out among the compute units of a GPU: every one is done, and none for longer."""

from __future__ import annotations

import pytest

from mtbridge.compute import shares


@pytest.mark.parametrize("units", [1, 3, 5, 132])
@pytest.mark.parametrize("inner", [1, 127, 128, 1000, 100_003])
@pytest.mark.parametrize("blocks", [1, 2, 36, 132, 136, 2080, 4096])
def test_shares_do_every_block_once_and_never_take_longer(blocks: int, inner: int, units: int) -> None:
    whole, parts = shares.shares(blocks, inner, units=units, most=1 << 20)
    assert 0 <= whole <= blocks
    assert whole == blocks or whole % units == 0
    assert 1 <= parts <= max(1, inner // shares.THINNEST)
    assert (parts == 1) == (whole == blocks)
    rounds = -(-whole // units) * inner + -(-(blocks - whole) * parts // units) * inner / parts
    assert rounds <= -(-blocks // units) * inner


def test_shares_fill_the_units_that_a_plain_launch_leaves_idle() -> None:
    assert shares.shares(136, 2048, units=132, most=1 << 20) == (132, 16)
    assert shares.shares(3, 131_072, units=132, most=1 << 20) == (0, 44)
    assert shares.shares(132, 2048, units=132, most=1 << 20) == (132, 1)
    assert shares.shares(136, 2048, units=132, most=8)[1] <= 2
    assert shares.shares(136, 2048, units=132, most=0) == (136, 1)
