"""How fast float64 by 8-bit integers (kernels/int8.clh) would be on GeForce cards: an estimate.

The share of the instruction's rate that the kernel reaches is measured on a device that has the instruction,
and taken to be the same on a card whose rates NVIDIA publishes. There the instruction is slower beside local
memory and caches than on the H200 where the share was found, so it is rather too small than too large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from mtbridge.compute.int8_products import digits_of, gram_blocks
from mtbridge.compute.launches import Launches, macros
from mtbridge.compute.opencl_moments import SUM, Uncentred
from mtbridge.compute.shares import SharedSums

if TYPE_CHECKING:
    from mtbridge.bench.gpu_device import ResidentDevice
    from mtbridge.compute.forms import Form

CHAINS, GROUP, GROUPS_PER_UNIT, COUNT = 8, 256, 2, 1 << 14
"""Of kernels/peak_int8.cl, and how often each item goes round."""

OPERATIONS = 2 * 16 * 8 * 32
"""Of one instruction, which 32 items do together."""

PRODUCTS = 28
"""Products of digits in one product of numbers of 7 digits."""

FLOAT_PAIR = 12
"""Instructions of a multiply-add of pairs of floats, the other way without float64."""

MEASURED, PACKED, PUT = 3, 5, 4
"""Operations on doubles for an element that is measured, that is packed, and for a sum that becomes one."""


@dataclass(frozen=True, slots=True)
class Card:
    """A card as NVIDIA's data sheets have it.

    Attributes
    ----------
    capability : compute capability, 10 * major + minor
    int8 : operations a second of its tensor cores on dense 8-bit integers
    single, double : floating-point operations a second outside of them
    """

    name: str
    capability: int
    int8: float
    single: float
    double: float


CARDS = (
    Card("GeForce RTX 3090", 86, 284e12, 35.6e12, 0.556e12),
    Card("GeForce RTX 4090", 89, 660.6e12, 82.6e12, 1.29e12),
    Card("GeForce RTX 5090", 120, 838e12, 104.8e12, 1.64e12),
)


@dataclass(frozen=True, slots=True)
class Estimate:
    """Floating-point operations a second of a covariance, of which each multiply-add counts two: estimates.

    Attributes
    ----------
    digits : by 8-bit integers, with the operations on doubles around them
    doubles : by multiply-adds of doubles, at all of their rate
    pairs : by pairs of floats, at all of the rate of floats
    """

    card: Card
    digits: float
    doubles: float
    pairs: float

    def __str__(self) -> str:
        return (
            f"{self.card.name}: {self.digits / 1e12:.1f} TFLOP/s by 8-bit integers, "
            f"{self.digits / self.doubles:.1f} times float64, {self.digits / self.pairs:.1f} times pairs of "
            "floats (an estimate from data sheets)"
        )


def estimates(share: float, rows: int, columns: int) -> Iterator[Estimate]:
    """Yield what X'X of a centred (rows, columns) matrix would run at on each of CARDS.

    Parameters
    ----------
    share : of the instruction's rate that the kernel reaches, from `reached`
    """
    useful = columns * (columns + 1) * rows
    puts = columns * columns / 2 * -(-rows // 16384)
    doubles = (MEASURED + PACKED) * rows * columns + PUT * puts
    for card in CARDS:
        # a multiply-add of doubles counts two operations, and one of another kind takes its place
        seconds = useful * PRODUCTS / (card.int8 * share) + doubles / (card.double / 2)
        yield Estimate(card, useful / seconds, card.double, card.single / FLOAT_PAIR)


def instruction_rate(device: ResidentDevice, *, count: int = COUNT) -> float:
    """Return the operations a second of mma.sync on 8-bit integers, on a device that has it."""
    groups = GROUPS_PER_UNIT * device.units
    out = device.buffer("peak", groups * GROUP * 4)
    files = ("int8_ptx.clh", "peak_int8.cl")
    kernel = device.kernel("peak_int8", files, {"PTX": 1, "CHAINS": CHAINS, "GROUP": GROUP})

    def run() -> None:
        device.run(kernel, (groups,), (GROUP,), out, np.uint32(12345), np.int32(count))

    run()
    done = OPERATIONS * CHAINS * count * groups * GROUP / 32
    return float(done / min(device.spent(run).kernels for _ in range(3)))


def kernel_rate(device: ResidentDevice, form: Form, rows: int, columns: int) -> float:
    """Return the 8-bit operations a second of X'X by `form`, packed before, of normal random numbers."""
    X = np.random.default_rng(1).standard_normal((rows, columns))
    source, steps = Launches(device).source("right", X)
    raw = Uncentred(source, (rows, columns), steps, SUM, SUM, form)
    slab = slice(0, rows)
    digits = digits_of(device, raw, np.zeros(columns), np.full(columns, 3))
    panels, depth = digits.packed(device, slab)
    target = device.buffer("product", columns * columns * SUM.itemsize)
    files = (*form.headers, f"gram/{form.file}.cl")
    blocks, count = gram_blocks(device, form, columns)
    shape, limit = (columns, rows, columns), device.largest_buffer
    defines = macros(form, SUM, SUM)
    sums = SharedSums("gram", files, defines, form, shape, blocks, count, SUM, target, limit)
    sizes = (np.int32(columns), np.int32(depth), np.int32(columns))

    def run() -> None:
        sums.queue(device, (panels,), sizes, slab)

    run()
    slices = form.defines["SLICES"]
    done = count * form.rows * form.columns * depth * slices * (slices + 1)
    return float(done / np.median([device.spent(run).whole for _ in range(5)]))


def reached(device: ResidentDevice, form: Form, *, rows: int = 8192, columns: int = 8192) -> float:
    """Return the share of the instruction's rate that X'X by `form` reaches on a device that has it."""
    return kernel_rate(device, form, rows, columns) / instruction_rate(device)


def lines(device: ResidentDevice, form: Form, *, rows: int = 8192, columns: int = 8192) -> Iterator[str]:
    """Yield what was measured on `device`, and then what it lets one expect of each card, a sentence each."""
    share = reached(device, form, rows=rows, columns=columns)
    yield f"the kernel reaches {share:.2f} of the rate of mma.sync on 8-bit integers on {device.name}"
    yield from map(str, estimates(share, rows, columns))
