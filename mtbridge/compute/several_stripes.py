"""How a product is cut for several devices, into stripes of its rows, and when that is worth it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from mtbridge.compute.blocks import padded, spans
from mtbridge.compute.forms import upper_triangle

# The stripes of a matrix depend on its shape alone. If they went by the number of devices, two of them would
# cut a product into other launches than three, and round otherwise: equal bits need equal stripes.
STRIPES = 16
"""Enough that several devices end together, each of them enough work for a card."""

BUS = 4.7e10
"""Bytes a second between a card and page-locked memory; each card has a bus of its own. All of this was
measured on a host of two H200s, whose memory they share."""

COPIED = 5.5e10
"""Bytes a second that the host copies to page-locked memory, for all cards together."""

PAGED = 5e10
"""Bytes a second of new memory that the host makes while it waits for a kernel."""

NEW, NEW_TO_SEVERAL = 3.3e10, 2.7e10
"""Bytes a second that come to new memory: from one card in one piece, and from several in rectangles."""

MULTIPLIED, MULTIPLIED_IN_HALVES = 2e11, 9e11
"""Multiplications a second of a compute unit, measured on an H200: in float64 on tensor cores, or about as
many in float32 without; and in halves. A slower unit shares later than it could."""

SURE = 0.75
"""Of the time of one device that two may take by this reckoning: memory of some hosts was so much slower that
two, reckoned to take 0.84 of it, took 1.2 of it."""

STARTED = 0.005
"""Seconds allowed for threads, and for the first stripe and the last, while only one of them has work."""

STARTED_THERE = 0.0003
"""Seconds allowed for launches on one more device, where all lies on the devices and stays there."""


def stripes_of_triangle(columns: int, unit: int, count: int = STRIPES) -> list[slice]:
    """Cut the rows of X'X into stripes of whole `unit`s with about as many elements right of the diagonal."""
    shares = (1 - math.sqrt(1 - part / count) for part in range(1, count))
    edges = sorted({min(round(share * columns / unit) * unit, columns) for share in shares} | {0, columns})
    return [slice(*pair) for pair in pairwise(edges)]


@lru_cache(maxsize=16)
def equal_stripes(columns: int, unit: int, block: tuple[int, int], count: int, units: int) -> list[slice]:
    """Cut the rows of X'X into `count` stripes, or fewer, each done in as many rounds as far as rows let it.

    The one with the most blocks comes first: it is to be started first.

    Parameters
    ----------
    unit : rows of which a stripe is made, a multiple of those of a block
    block : rows and columns of a block
    units : compute units of each device, which do a block each in a round
    """
    places = upper_triangle(columns, block)[:, 0] * block[0] // unit
    before = np.concatenate(([0], np.bincount(places).cumsum()))
    each = before[-1] / count
    if each > units:
        each = math.ceil(each / units) * units
        ends = [before.searchsorted(each * part, "right") - 1 for part in range(1, count)]
    else:
        ends = [np.abs(before - each * part).argmin() for part in range(1, count)]
    edges = sorted({0, *map(int, ends), len(before) - 1})
    most = sorted(pairwise(edges), key=lambda pair: before[pair[0]] - before[pair[1]])
    return [slice(first * unit, min(last * unit, columns)) for first, last in most]


def stripes_of_product(rows: int, unit: int, count: int = STRIPES) -> list[slice]:
    """Cut the rows of a product into stripes of whole `unit`s, of one height but for the last."""
    return list(spans(rows, padded(-(-rows // count), unit)))


@dataclass(frozen=True, slots=True)
class Seconds:
    """What a product takes.

    Attributes
    ----------
    whole, divided : bytes of the factors that each of several devices needs, or a part of
    answer : bytes
    multiply : seconds of the products, if one device does all of them
    """

    whole: int
    divided: int
    answer: int
    multiply: float

    @property
    def one(self) -> float:
        """What one device takes; pages of the answer are made while it multiplies."""
        made = min(self.multiply * PAGED, self.answer)
        bring = made / BUS + (self.answer - made) / NEW
        return (self.whole + self.divided) / BUS + self.multiply + bring

    @property
    def two(self) -> float:
        """What two devices take, of which each brings a stripe while it computes the next one."""
        send = (2 * self.whole + self.divided) / COPIED
        return send + max(self.multiply / 2, self.answer / NEW_TO_SEVERAL) + STARTED

    @property
    def shared(self) -> bool:
        """Whether two devices are done sooner; of more it is never asked, so that bits are the same."""
        return self.two < SURE * self.one

    @property
    def shared_there(self) -> bool:
        """The same where nothing is sent or brought."""
        return self.multiply / 2 + STARTED_THERE < self.multiply


def seconds(
    shape: tuple[int, int, int],
    *,
    size: int,
    total: int,
    units: int,
    triangle: bool,
    halves: bool = False,
) -> Seconds:
    """Return what a product of (rows, inner, columns) takes, from arrays of the host to one.

    Parameters
    ----------
    size, total : bytes of an element of the factors, and of the answer
    units : compute units of a device
    triangle : whether it is X'X, of which half of the products are enough
    halves : whether products are taken in halves on tensor cores
    """
    rows, inner, columns = shape
    rate = units * (MULTIPLIED_IN_HALVES if halves else MULTIPLIED)
    return Seconds(
        whole=inner * columns * size,
        divided=0 if triangle else rows * inner * size,
        answer=rows * columns * total,
        multiply=rows * inner * columns / (2 if triangle else 1) / rate,
    )
