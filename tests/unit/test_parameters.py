"""What may be tuned: the rules are those of the kernels, and the shipped settings obey them."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from mtbridge.compute.devices import Verdict
from mtbridge.compute.forms import WIDE_SUM
from mtbridge.compute.parameters import SPACES, Limits, Rule, Space
from mtbridge.matrix import DTYPES
from mtbridge.sources import program_text, tuned

ROOMY = Limits(vector_bytes=64, largest_group=1 << 20, local_bytes=1 << 30)
"""A device on which no rule of a device is in the way, but for the registers."""

STRANGE = {"ACROSS": (3, 6, 64), "STEP": (3, 12, 24), "BLOCK_ROWS": (1, 5, 7)}
"""Values that are not declared, since they hardly ever fit: the compiler must still agree on them."""

KERNEL_RULES = [(name, rule) for name, space in SPACES.items() for rule in space.rules if rule.by == "kernel"]
NEVER_ALONE = {
    # whoever breaks one of these breaks another too
    ("TILE", "MICRO"),
    ("ITEMS", "a run"),
    ("a run", "ACROSS"),
}


def steps(space: Space, one: dict[str, int], other: dict[str, int]) -> int:
    return sum(abs(c.index(one[name]) - c.index(other[name])) for name, c in space.choices.items())


def anything(space: Space, random: np.random.Generator) -> dict[str, int]:
    """A value for each parameter, whether or not they fit together."""
    values = {name: (*choices, *STRANGE.get(name, ())) for name, choices in space.choices.items()}
    return {name: int(random.choice(several)) for name, several in values.items()}


def broken(space: Space, settings: dict[str, int]) -> list[Rule]:
    """The rules of the kernels that `settings` breaks; WIDE_SUM of the host is theirs too, as BLOCK_INNER."""
    return [rule for rule, _ in space.broken(settings, "float32", ROOMY) if rule.by == "kernel"]


@pytest.fixture(scope="module")
def device(verdict: Verdict) -> Iterator[Any]:
    import pyopencl as cl

    from mtbridge.compute.opencl import Device, enumerate_devices

    found = next(found for found in enumerate_devices() if found.key == verdict.key)
    # Device writes a processor's name into PoCL's record, without which its compiler refuses
    held = Device(found)
    yield cl.Context([found.handle])
    held.close()


def compiles(context: Any, name: str, settings: dict[str, int]) -> bool:
    """Whether the compiler takes X'X of float32 with `settings`, summed in float64: every rule is at work."""
    import pyopencl as cl

    defines = {**settings, "REAL_BITS": 32, "SUM_BITS": 64, "BLOCK_INNER": WIDE_SUM}
    try:
        # built once and never again, so of no use to anybody's cache
        cl.Program(context, program_text((f"{name}.clh", f"gram/{name}.cl"), defines)).build(cache_dir=False)
    except cl.RuntimeError:
        return False
    return True


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize("name", SPACES)
def test_the_compiler_takes_what_the_rules_allow_and_nothing_else(device: Any, name: str) -> None:
    space, random = SPACES[name], np.random.default_rng(7)
    allowed, refused = 0, 0
    while allowed < 8 or refused < 8:
        settings = anything(space, random)
        faults = broken(space, settings)
        # random sets are mostly forbidden ones
        if (allowed >= 8 and not faults) or (refused >= 8 and faults):
            continue
        assert compiles(device, name, settings) == (not faults), (settings, faults)
        allowed += not faults
        refused += bool(faults)


@pytest.mark.filterwarnings("ignore::pyopencl.CompilerWarning")
@pytest.mark.parametrize(("name", "rule"), KERNEL_RULES, ids=str)
def test_each_rule_alone_is_an_error_of_the_kernel(device: Any, name: str, rule: Rule) -> None:
    space, random = SPACES[name], np.random.default_rng(1)
    tries = (anything(space, random) for _ in range(5_000))
    found = next((settings for settings in tries if broken(space, settings) == [rule]), None)
    assert (found is None) == ((rule.left, rule.right) in NEVER_ALONE)
    if found is not None:
        assert not compiles(device, name, found), found


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("table", "form"), [("cpu", "packed"), ("intel", "packed"), ("gpu", "register_tiled")]
)
def test_every_shipped_set_is_a_candidate(table: str, form: str, dtype: str) -> None:
    for key, settings in tuned(table).items():
        group = 64 if key == "small" else 256
        limits = Limits(int(key) if key.isdecimal() else 0, group, 32768)
        assert SPACES[form].fault(settings[dtype], dtype, limits) == ""


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("form", "table", "key"), [("packed", "cpu", "64"), ("register_tiled", "gpu", "small")]
)
def test_candidates_come_from_the_shipped_set_outwards(form: str, table: str, key: str, dtype: str) -> None:
    space, start = SPACES[form], tuned(table)[key][dtype]
    limits = Limits(64, 256, 32768)
    visited = list(itertools.islice(space.outwards(start, dtype, limits), 300))
    assert visited[0] == start
    assert len({tuple(settings.items()) for settings in visited}) == len(visited) > 20
    distances = [steps(space, start, settings) for settings in visited]
    assert distances == sorted(distances)
    assert all(space.fault(settings, dtype, limits) == "" for settings in visited)
    again = itertools.islice(space.outwards(start, dtype, limits), 300)
    assert list(again) == visited, "the same order on every run"


def test_a_small_space_is_visited_whole() -> None:
    space, limits = SPACES["register_tiled"], Limits(0, 1024, 49152)
    every = [
        dict(zip(space.choices, values, strict=True)) for values in itertools.product(*space.choices.values())
    ]
    allowed = [settings for settings in every if not space.fault(settings, "float32", limits)]
    start = tuned("gpu")["large"]["float32"]
    visited = list(space.outwards(start, "float32", limits))
    assert sorted(map(tuple, (s.items() for s in visited))) == sorted(
        map(tuple, (s.items() for s in allowed))
    )


@pytest.mark.parametrize(
    ("change", "limits", "words"),
    [
        ({"WIDTH": 5}, ROOMY, "WIDTH is 5, none of 2, 4, 8, 16"),
        ({"WIDTH": True}, ROOMY, "WIDTH is True"),
        ({"WIDTH": "16"}, ROOMY, "WIDTH is '16'"),
        ({"WIDTH": 16.0}, ROOMY, "WIDTH is 16.0"),
        ({"BLOCK_ROWS": 4}, ROOMY, "BLOCK_ROWS * MICRO_ROWS 32 is not a multiple of MICRO_COLUMNS 48"),
        ({"EXTRA": 1}, ROOMY, "it names BLOCK_COLUMNS"),
        ({}, Limits(32, 1, 0), "registers 54 is not at most registers of the device 16"),
    ],
)
def test_what_is_no_candidate_is_refused_with_its_reason(
    change: dict[str, int], limits: Limits, words: str
) -> None:
    settings = {**tuned("cpu")["64"]["float32"], **change}
    assert words in SPACES["packed"].fault(settings, "float32", limits)


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(0, 32, 32768), "ITEMS 64 is not at most largest group 32"),
        (Limits(0, 64, 2048), "local bytes 24576 is not at most local bytes of the device 2048"),
    ],
)
def test_a_group_stays_inside_what_the_device_allows(limits: Limits, words: str) -> None:
    settings = tuned("gpu")["large"]["float32"]
    assert words in SPACES["register_tiled"].fault(settings, "float32", limits)


def test_a_vector_wider_than_the_alignment_of_the_sums_is_no_candidate() -> None:
    settings = {
        **tuned("cpu")["64"]["float64"],
        "WIDTH": 16,
        "MICRO_COLUMNS": 16,
        "MICRO_ROWS": 4,
        "BLOCK_ROWS": 4,
    }
    assert "vector bytes 128" in SPACES["packed"].fault(settings, "float64", ROOMY)
