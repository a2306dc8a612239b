"""Codec.mqh, the very file that goes into the terminal, byte for byte."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from harness import peers
from harness.programs import Runner

VECTORS = Path(__file__).parents[1] / "vectors"
ROLES = {"a": 1, "b": 2, "data": 3, "weights": 4, "symbols": 6}
NAMES = ("ping", "multiply", "gram", "covariance", "correlation", "rolling", "expanding", "ewm", "lagged")
OPERATIONS = {name: code for code, name in enumerate(NAMES, 1)}
KINDS = {"result": 2, "error": 3}
A = np.array([1.0, -2.5, 3.25, 4.0, 5.0, 6.0])
SYMBOLS = b"EURUSD\nGBPUSD"


def vectors(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((VECTORS / f"{name}.json").read_text())["vectors"]
    return found


def names(case: dict[str, Any]) -> str:
    return str(case["name"])


def encoded(
    run: Runner, operation: int, request: int, deadline_ms: int, options: str, arrays: str
) -> list[bytes]:
    """The frames that the codec makes; `arrays` as CodecProbe wants them."""
    done = run(
        "CodecProbe",
        InpMode="request",
        InpOperation=operation,
        InpRequest=request,
        InpDeadline=deadline_ms,
        InpOptions=options,
        InpHex=arrays,
    )
    return [bytes.fromhex(line.partition(" ")[2]) for line in done.lines]


def made_by_mql5(case: dict[str, Any]) -> bool:
    """Requests of doubles in rows, and text: what an MQL5 program has."""
    message = case["message"]
    kinds = {(array["dtype"], array["order"]) for array in message["arrays"]}
    return message["kind"] == "request" and kinds <= {("float64", "C"), ("uint8", "C")}


@pytest.mark.parametrize("case", [case for case in vectors("requests") if made_by_mql5(case)], ids=names)
def test_a_request_has_exactly_the_bytes_of_the_golden_vector(run: Runner, case: dict[str, Any]) -> None:
    message = case["message"]
    arrays = []
    for array, data in zip(message["arrays"], case["frames"][2:], strict=True):
        rows, cols = (*array["shape"], 0)[:2]
        arrays.append(f"{ROLES[array['role']]}:{rows}:{cols}:{data}")
    frames = encoded(
        run,
        OPERATIONS[message["operation"]],
        message["request"],
        message["deadline_ms"],
        message["options"],
        ",".join(arrays),
    )
    assert [frame.hex() for frame in frames] == case["frames"]


def test_a_request_has_exactly_the_bytes_that_struct_makes(run: Runner) -> None:
    head = b"MTB1" + struct.pack("<HHHHI", 1, 64 + 2 * 48, 1, 4, 0)
    head += struct.pack("<QQQIHHHH", 0x0102030405060708, 0, 0, 250, 0, 1, 2, 0) + bytes(12)
    head += struct.pack("<HHBBH4QQ", 3, 2, 2, 0, 0, 3, 2, 0, 0, 48)
    head += struct.pack("<HHBBH4QQ", 6, 4, 1, 0, 0, 13, 0, 0, 0, 13)
    data = A.astype("<f8").tobytes()
    arrays = f"3:3:2:{data.hex()},6:13:0:{SYMBOLS.hex()}"
    assert encoded(run, 4, 0x0102030405060708, 250, '{"ddof": 0}', arrays) == [
        head,
        b'{"ddof": 0}',
        data,
        SYMBOLS,
    ]


@pytest.mark.parametrize("sizes", ["3:3", "0:6", "6:0", "-2:-3", "2147483647:2"])
def test_a_matrix_whose_sizes_disagree_is_not_encoded(run: Runner, sizes: str) -> None:
    assert run("CodecProbe", InpMode="request", InpHex=f"3:{sizes}:{'00' * 48}").text in ("refused", "")


@pytest.mark.parametrize("case", vectors("replies"), ids=names)
def test_a_golden_reply_is_understood(run: Runner, case: dict[str, Any]) -> None:
    message = case["message"]
    shape = next((array["shape"] for array in message["arrays"] if array["role"] == "result"), [0, 0])
    sizes = {"InpRows": shape[0], "InpCols": shape[1]} if len(shape) == 2 else {}
    if len(shape) != 2:
        sizes = dict(zip(("InpCount", "InpRows", "InpCols"), (*shape, 1, 1), strict=False))
    frames = [case["frames"][0], *case["frames"][2:]]
    lines = run("CodecProbe", InpMode="reply", InpHex=",".join(frames), **sizes).lines
    operation = OPERATIONS.get(message["operation"], 0)
    kind, status, request = KINDS[message["kind"]], message["status"], message["request"]
    assert lines[0].startswith(f"kind {kind} operation {operation} status {status} request {request} ")
    for array in message["arrays"]:
        if array["dtype"] == "float64" and array["role"] == "result":
            values = [float(line.split()[1]) for line in lines if line.startswith("value")]
            golden = [np.nan if value is None else value for value in array["values"]]
            np.testing.assert_array_equal(values, golden)
        if array["role"] == "counts":
            counts = [int(line.split()[1]) for line in lines if line.startswith("count")]
            assert counts == np.ravel(array["values"]).tolist()
        if array["role"] in ("names", "symbols"):
            assert f"{array['role']} {array['text']}" in "\n".join(lines)


def test_numbers_survive_the_way_through_blocks_of_bytes(run: Runner) -> None:
    assert run("CodecProbe", InpMode="numbers").lines == [
        f"{size} same" for size in (0, 1, 511, 512, 513, 1300)
    ]


def reply(run: Runner, *frames: bytes) -> list[str]:
    return run("CodecProbe", InpMode="reply", InpHex=",".join(data.hex() for data in frames)).lines


def test_a_result_is_read_number_by_number(run: Runner) -> None:
    counts = np.array([7, -1, 1 << 40], "<i8")
    arrays = ((8, 2, (2, 3), 48), (9, 3, (3,), 24), (11, 4, (5,), 5))
    lines = reply(run, peers.head(4, 99, arrays), A.astype("<f8").tobytes(), counts.tobytes(), b"a\nb\nc")
    assert lines[0] == "kind 2 operation 4 status 0 request 99 arrays 3 bytes 77"
    assert [float(line.split()[1]) for line in lines if line.startswith("value")] == A.tolist()
    assert [int(line.split()[1]) for line in lines if line.startswith("count")] == counts.tolist()
    assert "names a" in lines


def test_a_result_in_columns_is_turned_into_rows(run: Runner) -> None:
    head = bytearray(peers.head(4, 99, ((8, 2, (2, 3), 48),)))
    head[64 + 5] = 1
    lines = reply(run, bytes(head), np.asfortranarray(A.reshape(2, 3)).astype("<f8").tobytes(order="F"))
    assert [float(line.split()[1]) for line in lines if line.startswith("value")] == A.tolist()


RESULT = ((8, 2, (2, 3), 48),)
BAD_HEADS = {
    "too short": (peers.head(4, 1)[:63], "63 bytes"),
    "another magic": (peers.head(4, 1, magic=0x3242544D), "MTB1"),
    "another version": (peers.head(4, 1, version=2), "version 2"),
    "longer than it says": (peers.head(4, 1, RESULT) + bytes(48), "says 112"),
    "an array that is not described": (peers.head(4, 1, head_bytes=112), "says 112"),
    "17 arrays": (peers.head(4, 1, RESULT * 17), "17 arrays"),
    "a request": (peers.head(4, 1, kind=1), "kind 1"),
    "an error without a status": (peers.head(4, 1, kind=3), "status 0"),
    "a result with a status": (peers.head(4, 1, status=5), "status 5"),
    "a flag": (peers.head(4, 1, flags=1), "flags 1"),
    "a byte that must be zero": (peers.head(4, 1)[:63] + b"\x01", "must be zero"),
    "a session": (peers.head(4, 1)[:24] + struct.pack("<Q", 9) + peers.head(4, 1)[32:], "a session"),
    "a part of two": (
        peers.head(4, 1)[:46] + struct.pack("<H", 2) + peers.head(4, 1)[48:],
        "a part of a message",
    ),
    "an unknown dtype": (peers.head(4, 1, ((8, 9, (2, 3), 48),)), "dtype 9"),
    "no dimension": (peers.head(4, 1, ((8, 2, (), 8),)), "0 dimensions"),
    "bytes that do not fit the shape": (
        peers.head(4, 1, ((8, 2, (2, 3), 40),)),
        "40 bytes and its shape makes 48",
    ),
    "a product that overflows 64 bits": (
        peers.head(4, 1, ((8, 2, (1 << 31, 1 << 31, 1 << 31), 0),)),
        "larger than",
    ),
    "more than an MQL5 array can hold": (peers.head(4, 1, ((8, 2, (1 << 28, 1), 1 << 31),)), "larger than"),
    "a length in an unused dimension": (
        peers.head(4, 1, ((8, 2, (2, 3), 48),))[:88] + struct.pack("<QQQ", 5, 0, 48),
        "does not use",
    ),
}


@pytest.mark.parametrize("what", BAD_HEADS)
def test_a_bad_head_is_refused_with_its_reason(run: Runner, what: str) -> None:
    head, reason = BAD_HEADS[what]
    (line,) = reply(run, head)
    assert line.startswith("fault ")
    assert reason in line


@pytest.mark.parametrize("seed", range(4))
def test_no_random_head_ends_the_program(run: Runner, seed: int) -> None:
    head = peers.head(4, 99, ((8, 2, (2, 3), 48), (9, 3, (3,), 24), (11, 4, (5,), 5)))
    lines = run("CodecProbe", InpMode="fuzz", InpHex=head.hex(), InpRounds=20000, InpSeed=seed).lines
    assert len(lines) == 1
    taken = int(lines[0].split()[1])
    assert 0 < taken < 20000
