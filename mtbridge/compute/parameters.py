"""What may be tuned: the parameters of each form, their values, and the rules that they obey, as data.

A form is one way to compute products (forms.py). A candidate is one value for each of its parameters. A rule
is three words, such as ("MICRO_COLUMNS", "a multiple of", "WIDTH"): a parameter, or a number that `derive`
makes of the parameters and the device, a relation, and another of them. Rules by "kernel" are the #error
lines of the kernel files; those by "device" keep a candidate inside its registers, groups and local memory;
those by "host" are what the kernels' callers need, which no compiler can see.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from mtbridge.compute.forms import SQUARE, WIDE_SUM, WIDE_TILE

Settings = Mapping[str, int]

REGISTERS = {64: 32}
"""Vector registers by their bytes; 16 of any other width."""

NARROW_REGISTER = 16
"""Bytes of a vector register where the compiler does not say."""

TILE_ALIGNMENT = 64
"""Bytes: how the packed kernels align the sums that they store, so the most that a vector may have."""

ITEM_BYTES = 960
"""Bytes of registers of a GPU's work-item: 240 of the 255 of the largest."""

FLOAT_BYTES = 4

RUN = 32
"""Neighbouring items that the tiled kernels lay out together."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What a device allows.

    Attributes
    ----------
    vector_bytes : width of the vector registers that its compiler uses, 0 if unknown
    largest_group : work-items of a group
    local_bytes : local memory of a group
    """

    vector_bytes: int
    largest_group: int
    local_bytes: int


@dataclass(frozen=True, slots=True)
class Rule:
    """`left` is `relation` ("a multiple of" or "at most") `right`; `by` says whose rule it is."""

    left: str
    relation: str
    right: str
    by: str

    def holds(self, values: Settings) -> bool:
        left, right = values[self.left], values[self.right]
        if self.relation == "at most":
            return left <= right
        return right > 0 and left > 0 and left % right == 0

    def broken_by(self, values: Settings) -> str:
        """Return what is wrong, without an end mark."""
        return f"{self.left} {values[self.left]} is not {self.relation} {self.right} {values[self.right]}"


@dataclass(frozen=True, slots=True)
class Space:
    """The parameters of a form: the values of each, in order of size, and the rules between them."""

    choices: Mapping[str, tuple[int, ...]]
    rules: tuple[Rule, ...]
    derive: Callable[[Settings, int, Limits], dict[str, int]]

    def fault(self, settings: Settings, dtype: str, limits: Limits) -> str:
        """Return why `settings` is no candidate, without an end mark; nothing if it is one."""
        if set(settings) != set(self.choices):
            return f"it names {', '.join(sorted(settings)) or 'nothing'}, not {', '.join(self.choices)}"
        for name, value in settings.items():
            # True is 1 in Python, but no number in a kernel
            if type(value) is not int or value not in self.choices[name]:
                return f"{name} is {value!r}, none of {', '.join(map(str, self.choices[name]))}"
        return next((rule.broken_by(values) for rule, values in self.broken(settings, dtype, limits)), "")

    def broken(self, settings: Settings, dtype: str, limits: Limits) -> Iterator[tuple[Rule, Settings]]:
        """Yield each rule that `settings` breaks, with the numbers that it breaks it with."""
        values = {**settings, **self.derive(settings, np.dtype(dtype).itemsize, limits)}
        return ((rule, values) for rule in self.rules if not rule.holds(values))

    def outwards(self, start: Settings, dtype: str, limits: Limits) -> Iterator[dict[str, int]]:
        """Yield every candidate, those first that are fewest steps of one value away from `start`.

        The order is the same on every run. Steps lead through sets that break a rule, so none is cut off.
        """
        names = tuple(self.choices)
        first = tuple(self.choices[name].index(start[name]) for name in names)
        seen, ring = {first}, [first]
        while ring:
            following = []
            for place in ring:
                settings = {n: self.choices[n][at] for n, at in zip(names, place, strict=True)}
                if next(self.broken(settings, dtype, limits), None) is None:
                    yield settings
                for axis, name in enumerate(names):
                    for at in (place[axis] + 1, place[axis] - 1):
                        near = (*place[:axis], at, *place[axis + 1 :])
                        if 0 <= at < len(self.choices[name]) and near not in seen:
                            seen.add(near)
                            following.append(near)
            ring = following


def _packed(settings: Settings, size: int, limits: Limits) -> dict[str, int]:
    register = limits.vector_bytes or NARROW_REGISTER
    vector = settings["WIDTH"] * size
    vectors = settings["MICRO_COLUMNS"] // settings["WIDTH"]
    return {
        "BLOCK_ROWS * MICRO_ROWS": settings["BLOCK_ROWS"] * settings["MICRO_ROWS"],
        "vector bytes": vector,
        "aligned bytes": TILE_ALIGNMENT,
        # the sums, and one row of loads
        "registers": (settings["MICRO_ROWS"] + 1) * vectors * -(-vector // register),
        "registers of the device": REGISTERS.get(register, 16),
    }


def _register_tiled(settings: Settings, size: int, limits: Limits) -> dict[str, int]:
    spread = settings["TILE"] // settings["MICRO"]
    items = spread * spread
    step_vectors = settings["STEP"] * (settings["TILE"] // settings["WIDTH"])
    moved = 2 * (step_vectors // max(items, 1)) * settings["WIDTH"]
    sums = settings["MICRO"] * (settings["MICRO"] + 2)
    kept = size == FLOAT_BYTES and settings["TILE"] <= WIDE_TILE
    totals = size * settings["TILE"] ** 2 if kept else 0
    return {
        "SPREAD": spread,
        "STEP_VECTORS": step_vectors,
        "ITEMS": items,
        "a run": RUN,
        "rows of a run": RUN // settings["ACROSS"],
        "a square": SQUARE,
        "WIDE_SUM": WIDE_SUM,
        "largest group": limits.largest_group,
        # two operands, two buffers each; and the sums of parts, where they are kept there
        "local bytes": 4 * settings["STEP"] * settings["TILE"] * size + totals,
        "local bytes of the device": limits.local_bytes,
        "bytes of an item": (sums + moved) * size,
        "bytes of registers": ITEM_BYTES,
    }


SPACES = {
    "packed": Space(
        choices={
            "WIDTH": (2, 4, 8, 16),
            "MICRO_ROWS": (2, 3, 4, 6, 8, 12),
            "MICRO_COLUMNS": (4, 8, 12, 16, 24, 32, 48, 64),
            "UNROLL": (1, 2, 4),
            "BLOCK_INNER": (128, 192, 256, 384, 512, 768, 1024),
            "BLOCK_ROWS": (2, 3, 4, 6, 8, 9, 12, 16, 18, 24),
            "BLOCK_COLUMNS": (1, 2, 3, 4, 5, 6, 8, 12, 16),
            "STRIP_INNER": (256, 512, 768, 1024, 2048),
        },
        rules=(
            Rule("MICRO_COLUMNS", "a multiple of", "WIDTH", "kernel"),
            Rule("MICRO_COLUMNS", "a multiple of", "MICRO_ROWS", "kernel"),
            Rule("BLOCK_ROWS * MICRO_ROWS", "a multiple of", "MICRO_COLUMNS", "kernel"),
            Rule("registers", "at most", "registers of the device", "device"),
            Rule("vector bytes", "at most", "aligned bytes", "host"),
        ),
        derive=_packed,
    ),
    "register_tiled": Space(
        choices={
            "WIDTH": (2, 4),
            "TILE": (32, 64, 96, 128),
            "MICRO": (2, 4, 8),
            "STEP": (4, 8, 16, 32),
            "ACROSS": (2, 4, 8, 16, 32),
        },
        rules=(
            Rule("TILE", "a multiple of", "MICRO", "kernel"),
            Rule("MICRO", "a multiple of", "WIDTH", "kernel"),
            Rule("SPREAD", "a multiple of", "ACROSS", "kernel"),
            Rule("STEP_VECTORS", "a multiple of", "ITEMS", "kernel"),
            Rule("ITEMS", "a multiple of", "a run", "kernel"),
            Rule("a run", "a multiple of", "ACROSS", "kernel"),
            Rule("SPREAD", "a multiple of", "rows of a run", "kernel"),
            Rule("WIDE_SUM", "a multiple of", "STEP", "kernel"),
            Rule("ITEMS", "at most", "largest group", "device"),
            Rule("local bytes", "at most", "local bytes of the device", "device"),
            Rule("bytes of an item", "at most", "bytes of registers", "device"),
            Rule("TILE", "a multiple of", "a square", "host"),
        ),
        derive=_register_tiled,
    ),
}
"""By the name of the kernel files."""
