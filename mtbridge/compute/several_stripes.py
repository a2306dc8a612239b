"""How a product is cut for several devices, into stripes of its rows, and when that is worth it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

from mtbridge.compute.blocks import padded, spans

# The stripes of a matrix depend on its shape alone. If they went by the number of devices, two of them would
# cut a product into other launches than three, and round otherwise: equal bits need equal stripes.
STRIPES = 16
"""Enough that several devices end together, each of them enough work for a card."""

BROUGHT = 1.4e10
"""Bytes a second that come from a card to new memory, measured on an H200 with 6 threads."""

SENT = 2.6e10
"""Bytes a second that go to a card from ordinary memory, measured likewise."""

MULTIPLIED, MULTIPLIED_IN_HALVES = 2.7e13, 1.2e14
"""Multiplications a second, measured on an H200 in float64 and in halves on tensor cores. A slower card has
more to share than this says: it shares later than it could, which costs little."""

STARTED = 0.005
"""Seconds allowed for threads, and for the first stripe and the last, while only one of them has work."""


def stripes_of_triangle(columns: int, unit: int, count: int = STRIPES) -> list[slice]:
    """Cut the rows of X'X into stripes of whole `unit`s with about as many elements right of the diagonal."""
    shares = (1 - math.sqrt(1 - part / count) for part in range(1, count))
    edges = sorted({min(round(share * columns / unit) * unit, columns) for share in shares} | {0, columns})
    return [slice(*pair) for pair in pairwise(edges)]


def stripes_of_product(rows: int, unit: int, count: int = STRIPES) -> list[slice]:
    """Cut the rows of a product into stripes of whole `unit`s, of one height but for the last."""
    return list(spans(rows, padded(-(-rows // count), unit)))


@dataclass(frozen=True, slots=True)
class Seconds:
    """What the parts of a product take one device.

    Attributes
    ----------
    send : until it has the factors, which each of several devices needs whole
    multiply, bring : what is divided: the products, and the way of the answer
    """

    send: float
    multiply: float
    bring: float

    @property
    def shared(self) -> bool:
        """Whether two devices are done sooner; of more it is never asked, so that bits are the same."""
        one = self.send + self.multiply + self.bring
        # to be on the safe side: as if one were sent all after the other, and none multiplied while it brings
        return 2 * self.send + (self.multiply + self.bring) / 2 + STARTED < one


def seconds(
    shape: tuple[int, int, int], *, size: int, total: int, triangle: bool, halves: bool = False
) -> Seconds:
    """Return what a product of (rows, inner, columns) takes.

    Parameters
    ----------
    size, total : bytes of an element of the factors, and of the answer
    triangle : whether it is X'X, of which half of the products are enough
    halves : whether products are taken in halves on tensor cores
    """
    rows, inner, columns = shape
    rate = MULTIPLIED_IN_HALVES if halves else MULTIPLIED
    return Seconds(
        send=inner * (columns if triangle else rows + columns) * size / SENT,
        multiply=rows * inner * columns / (2 if triangle else 1) / rate,
        bring=rows * columns * total / BROUGHT,
    )
