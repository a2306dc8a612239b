"""The golden vectors: frames in hex and what they mean, and how a meaning in JSON becomes a message.

Other clients can be tested with the same files: see docs/protocol.md. `write_wire_vectors.py` made them once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from mtbridge.wire import Array, Head, Kind, Message, Operation, Role

FOLDER = Path(__file__).parents[1] / "vectors"
TEXT_ROLES = (Role.SYMBOLS, Role.NAMES)


def load(name: str) -> list[dict[str, Any]]:
    """Return the vectors of one file: "requests", "replies" or "refused"."""
    vectors: list[dict[str, Any]] = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))["vectors"]
    return vectors


def frames_of(vector: dict[str, Any]) -> list[bytes]:
    return [bytes.fromhex(frame) for frame in vector["frames"]]


def message_of(meaning: dict[str, Any]) -> Message:
    """Return the message that a vector means; its values run along the rows, and null is NaN."""
    head = Head(
        Kind[meaning["kind"].upper()],
        operation=Operation[meaning["operation"].upper()] if meaning["operation"] else 0,
        status=meaning["status"],
        request=meaning["request"],
        deadline_ms=meaning["deadline_ms"],
    )
    return Message(head, meaning["options"].encode(), tuple(map(array_of, meaning["arrays"])))


def array_of(meaning: dict[str, Any]) -> Array:
    role = Role[meaning["role"].upper()]
    if role in TEXT_ROLES:
        return Array(role, np.frombuffer(meaning["text"].encode(), np.uint8))
    data = np.array(meaning["values"], dtype=meaning["dtype"]).reshape(meaning["shape"])
    return Array(role, np.asarray(data, order=meaning["order"]))


def meaning_of(message: Message) -> dict[str, Any]:
    """Return what a message means, as the JSON files write it."""
    head = message.head
    return {
        "kind": head.kind.name.lower(),
        "operation": head.operation.name.lower() if isinstance(head.operation, Operation) else None,
        "status": int(head.status),
        "request": head.request,
        "deadline_ms": head.deadline_ms,
        "options": message.options.decode(),
        "arrays": [
            {
                "role": array.role.name.lower(),
                "dtype": str(array.data.dtype),
                "order": "C" if array.data.flags.c_contiguous else "F",
                "shape": list(array.data.shape),
            }
            | (
                {"text": array.data.tobytes().decode()}
                if array.role in TEXT_ROLES
                else {
                    "values": [
                        None if value != value else value for value in array.data.ravel(order="C").tolist()
                    ]
                }
            )
            for array in message.arrays
        ],
    }


def plain(data: Any) -> list[Any]:
    """Return values along the rows, as JSON can hold them: None for NaN."""
    return [None if value != value else value for value in data.ravel(order="C").tolist()]
