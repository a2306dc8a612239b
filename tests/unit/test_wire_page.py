"""docs/protocol.md says what the code does: its tables, its limits and its examples."""

from __future__ import annotations

import re
import struct
from enum import IntEnum
from pathlib import Path

import pytest
from wire_vectors import load

from mtbridge.server.envelope import MAX_ROUTING_BYTES, MAX_ROUTING_FRAMES
from mtbridge.server.worker import SEND_MESSAGES
from mtbridge.service.arrays import ROLES
from mtbridge.wire import DEFAULT_ENDPOINT, MAGIC, VERSION, DType, Kind, Limits, Operation, Role, Status
from mtbridge.wire.codes import ARRAY_LAYOUT, HEAD_LAYOUT
from mtbridge.wire.descriptor import ITEM_BYTES
from mtbridge.wire.options import MOST_LAGS, MOST_PAIRS, OPTIONS

PAGE = (Path(__file__).parents[2] / "docs" / "protocol.md").read_text("utf-8")
TYPES = {"I": "u32", "H": "u16", "Q": "u64", "B": "u8", "12s": "bytes", "2s": "bytes", "4Q": "4 × u64"}


def table(heading: str) -> list[dict[str, str]]:
    """Return the rows of the first table under a heading."""
    _, _, rest = PAGE.partition(f"\n{heading}\n")
    assert rest, heading
    lines = [line for line in rest.partition("\n#")[0].split("\n") if line.startswith("|")]
    names, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(names, row, strict=True)) for row in rows]


@pytest.mark.parametrize(
    ("heading", "codes"),
    [
        ("### Kinds", Kind),
        ("### Roles", Role),
        ("### Statuses", Status),
        ("### Element types", DType),
        ("## Operations", Operation),
    ],
)
def test_a_table_of_codes_is_that_of_the_code(heading: str, codes: type[IntEnum]) -> None:
    found = [(int(row["code"]), row["name"]) for row in table(heading)]
    assert found == [(int(code), code.name.lower()) for code in codes]


@pytest.mark.parametrize(
    ("heading", "layout"), [("### Head", HEAD_LAYOUT), ("### Array descriptor", ARRAY_LAYOUT)]
)
def test_a_table_of_fields_is_that_of_the_code(heading: str, layout: tuple[tuple[str, str], ...]) -> None:
    expected = []
    offset = 0
    for name, code in layout:
        size = struct.calcsize("<" + code)
        expected.append((offset, size, TYPES[code], name))
        offset += size
    found = [(int(row["offset"]), int(row["size"]), row["type"], row["field"]) for row in table(heading)]
    assert found == expected


def test_magic_version_and_endpoint_are_those_of_the_code() -> None:
    values = {row["field"]: row["value"] for row in table("### Head")}
    assert values["magic"].startswith(f"0x{MAGIC:08X}")
    assert MAGIC.to_bytes(4, "little") == b"MTB1"
    assert values["version"] == str(VERSION)
    assert f"`{DEFAULT_ENDPOINT}`" in PAGE


def test_the_limits_are_the_defaults() -> None:
    limits = Limits()
    found = {row["limit"]: int(row["default"]) for row in table("## Limits")}
    assert found == {name: getattr(limits, name) for name in Limits.__slots__}
    assert f"replies past {SEND_MESSAGES} unread ones" in PAGE
    assert f"at most {MAX_ROUTING_FRAMES}, of at most {MAX_ROUTING_BYTES} bytes" in PAGE


def test_the_sizes_of_the_elements_are_right() -> None:
    assert [int(row["bytes"]) for row in table("### Element types")] == [ITEM_BYTES[dtype] for dtype in DType]


def test_the_arrays_of_each_operation_are_those_that_the_service_takes() -> None:
    for row in table("## Operations"):
        required, optional = ROLES[int(row["code"])]
        words = re.findall(r"[a-z]+", re.sub(r"\(.*?\)", "", row["arrays of the request"]))
        named = {word for word in words if word.upper() in Role.__members__}
        assert named == {role.name.lower() for role in (*required, *optional)}


@pytest.mark.parametrize(
    ("heading", "operations"),
    [
        ("### Covariance and correlation", ("covariance", "correlation")),
        ("### Windows", ("rolling", "expanding", "ewm")),
        ("### Lags", ("lagged",)),
    ],
)
def test_the_options_of_an_operation_are_those_that_are_decoded(
    heading: str, operations: tuple[str, ...]
) -> None:
    rows = table(heading)
    whose = {"both": operations, "all": operations, None: operations}
    for name in operations:
        options = OPTIONS[Operation[name.upper()]]
        of_this = [row for row in rows if name in whose.get(row.get("of"), row.get("of", "").split(", "))]
        assert sorted(row["option"] for row in of_this) == sorted(options.__struct_fields__)


def test_the_bounds_of_lists_are_those_of_the_code() -> None:
    assert f"1 to {MOST_PAIRS} pairs" in PAGE
    assert f"whole number from 0 to {MOST_LAGS}" in PAGE


def test_the_examples_are_golden_vectors() -> None:
    examples = re.findall(r"```hex (\w+)/([\w ]+)\n(.*?)\n```", PAGE, re.DOTALL)
    assert len(examples) == 5
    for file, name, digits in examples:
        (vector,) = [vector for vector in load(file) if vector["name"] == name]
        frames = ["".join(frame.split()) for frame in re.split(r"^-$", digits, flags=re.MULTILINE)]
        assert frames == vector["frames"], name
