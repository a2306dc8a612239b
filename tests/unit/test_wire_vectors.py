"""The golden vectors, both ways: these bytes are this message, and this message is these bytes."""

from __future__ import annotations

from typing import Any

import pytest
from wire_vectors import frames_of, load, meaning_of, message_of

from mtbridge.errors import ProtocolError
from mtbridge.wire import Kind, Limits, Operation, Status, decode, encode, peek

GOOD = load("requests") + load("replies")
REFUSED = load("refused")


def title(vector: dict[str, Any]) -> str:
    return str(vector["name"]).replace(" ", "-")


@pytest.mark.parametrize("vector", GOOD, ids=title)
def test_these_bytes_are_this_message(vector: dict[str, Any]) -> None:
    assert meaning_of(decode(frames_of(vector), Limits())) == vector["message"]


@pytest.mark.parametrize("vector", GOOD, ids=title)
def test_this_message_is_these_bytes(vector: dict[str, Any]) -> None:
    assert [bytes(frame) for frame in encode(message_of(vector["message"]))] == frames_of(vector)


@pytest.mark.parametrize("vector", REFUSED, ids=title)
def test_these_bytes_are_refused_with_this_status_and_id(vector: dict[str, Any]) -> None:
    frames = frames_of(vector)
    with pytest.raises(ProtocolError) as caught:
        decode(frames, Limits())
    assert caught.value.status == vector["status"]
    assert (peek(memoryview(frames[0]))[0] if frames else 0) == vector["request"]


def test_every_operation_and_kind_of_a_request_and_a_reply_has_a_vector() -> None:
    messages = [vector["message"] for vector in GOOD]
    assert {message["operation"] for message in messages} >= {each.name.lower() for each in Operation}
    kinds = {message["kind"] for message in messages}
    assert kinds == {kind.name.lower() for kind in Kind if kind is not Kind.PROGRESS}
    assert {vector["status"] for vector in REFUSED} == {
        Status.MALFORMED,
        Status.UNSUPPORTED,
        Status.TOO_LARGE,
        Status.BAD_SHAPE,
    }
