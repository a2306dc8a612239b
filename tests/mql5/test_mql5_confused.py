"""What the client does with replies that were not asked for, are late, or are no replies."""

from __future__ import annotations

import time

import numpy as np
import pytest
from harness import peers
from harness.failures import ANSWER, NOT_WORKER, NUMBERS, TIMEOUT, TOO_LARGE, covariance, failure
from harness.peers import RESULT, Conversation, Peer, talker
from harness.programs import Runner


def test_late_replies_and_progress_are_passed_over(run: Runner) -> None:
    def frames(number: int) -> bytes:
        wrong = peers.message(b"", peers.head(4, number - 1, RESULT), b"late", bytes(72))
        early = peers.message(b"", peers.head(4, number + 7, RESULT), b"never asked", bytes(72))
        progress = peers.message(b"", peers.head(4, number, kind=4), b"half way")
        right = peers.message(b"", peers.head(4, number, RESULT), b"", ANSWER)
        return wrong + progress + early + right

    with Peer(talker(frames)) as peer:
        assert np.array_equal(covariance(run, peer.port).numbers("covariance"), NUMBERS)


def test_a_late_reply_never_becomes_the_answer_of_a_later_call(run: Runner) -> None:
    def talk(conversation: Conversation) -> None:
        conversation.shake_hands()
        number = conversation.next_request()
        time.sleep(0.6)
        conversation.send(peers.message(b"", peers.head(4, number, RESULT), b"too late", ANSWER))
        conversation.wait_for_end()

    with Peer(talk) as peer:
        done = run(
            "ClientProbe", InpPort=peer.port, InpActions="connect,covariance,correlation", InpTimeout=400
        )
    assert failure(done)[0] == TIMEOUT
    assert failure(done, "correlation")[0] == TIMEOUT


CONFUSED = {
    "an announcement of a gigabyte": (
        lambda n: peers.message(b"", peers.head(4, n, ((8, 2, (1 << 13, 1 << 13), 8 << 26),))) + b"\x01\x00",
        "announces 536870912 bytes where 144 are the most",
    ),
    "a head of a gigabyte": (
        lambda n: b"\x01\x00" + b"\x03" + (1 << 30).to_bytes(8, "big"),
        "sent a frame of 1073741824 bytes where 832 are the most",
    ),
    "a frame of more bytes than 64 bits can count": (
        lambda n: b"\x01\x00" + b"\x03" + b"\xff" * 8,
        "sent a frame of 18446744073709551615 bytes",
    ),
    "a command of a megabyte": (
        lambda n: b"\x06" + (1 << 20).to_bytes(8, "big"),
        "sent a command of 1048576 bytes",
    ),
    "flags that ZMTP lacks": (lambda n: b"\xf8\x00", "unknown flags 248"),
    "a delimiter that is not empty": (
        lambda n: peers.message(b"x", peers.head(4, n), b""),
        "frame of 1 bytes where 0",
    ),
    "nothing but a delimiter": (lambda n: peers.message(b""), "an empty message"),
    "a head and no more": (lambda n: peers.message(b"", peers.head(4, n, RESULT)), "ends after its head"),
    "an array too few": (
        lambda n: peers.message(b"", peers.head(4, n, RESULT), b""),
        "ends after 0 of 1 arrays",
    ),
    "an array too many": (
        lambda n: peers.message(b"", peers.head(4, n, RESULT), b"", ANSWER, b""),
        "more frames than its head says",
    ),
    "a short array": (
        lambda n: peers.message(b"", peers.head(4, n, RESULT), b"", ANSWER[:71]),
        "has 71 bytes and not 72",
    ),
    "a result of another shape": (
        lambda n: peers.message(b"", peers.head(4, n, ((8, 2, (9, 1), 72),)), b"", ANSWER),
        "no 3 x 3 matrix of doubles",
    ),
    "a result of floats": (
        lambda n: peers.message(b"", peers.head(4, n, ((8, 1, (3, 3), 36),)), b"", bytes(36)),
        "no 3 x 3 matrix of doubles",
    ),
    "another version": (lambda n: peers.message(b"", peers.head(4, n, version=2), b""), "speaks version 2"),
}


@pytest.mark.parametrize("what", CONFUSED)
def test_a_reply_that_is_none_ends_the_call_with_its_reason(run: Runner, what: str) -> None:
    frames, reason = CONFUSED[what]
    with Peer(talker(frames)) as peer:
        kind, sentence = failure(covariance(run, peer.port))
    assert kind == NOT_WORKER
    assert reason in sentence


CONFUSED_WINDOWS = {
    "a window too few": ((39,), 2, 312),
    "windows in another order of sizes": ((4, 10), 2, 320),
    "windows of floats": ((40,), 1, 160),
    "windows of whole numbers": ((40,), 3, 320),
}


@pytest.mark.parametrize("what", CONFUSED_WINDOWS)
def test_windows_that_were_not_asked_for_end_the_call_with_a_reason(run: Runner, what: str) -> None:
    shape, dtype, size = CONFUSED_WINDOWS[what]

    def frames(number: int) -> bytes:
        return peers.message(b"", peers.head(6, number, ((8, dtype, shape, size),)), b"", bytes(size))

    with Peer(talker(frames)) as peer:
        done = run("ClientProbe", InpPort=peer.port, InpActions="connect,rolling_mean")
    kind, sentence = failure(done, "rolling_mean")
    assert kind == NOT_WORKER
    assert "it holds no 40 times 1 x 1 doubles" in sentence


def test_more_windows_than_were_asked_for_are_not_received(run: Runner) -> None:
    def frames(number: int) -> bytes:
        return peers.message(b"", peers.head(6, number, ((8, 2, (41,), 328),)), b"", bytes(328))

    with Peer(talker(frames)) as peer:
        done = run("ClientProbe", InpPort=peer.port, InpActions="connect,rolling_mean")
    assert "announces 328 bytes where 320 are the most" in failure(done, "rolling_mean")[1]


def test_an_error_reply_without_words_gets_ours(run: Runner) -> None:
    with Peer(talker(lambda n: peers.message(b"", peers.head(4, n, kind=3, status=8), b""))) as peer:
        line = covariance(run, peer.port).line("covariance:")
    assert (
        line == "error 10 status 8: The worker refused (status 8): "
        "the worker has too many requests waiting: try again later"
    )


def test_an_error_without_a_number_is_taken_as_ours(run: Runner) -> None:
    """The worker could not read the head of the request, so it cannot know its number."""
    with Peer(
        talker(lambda n: peers.message(b"", peers.head(0, 0, kind=3, status=1), b"not a head"))
    ) as peer:
        assert (
            covariance(run, peer.port)
            .line("covariance:")
            .endswith("The worker refused (status 1): not a head")
        )


def test_a_terminal_short_of_memory_says_so(run: Runner, worker_port: int) -> None:
    kind, sentence = failure(covariance(run, worker_port, InpRows=12000, InpCols=1, LARGEST_ARRAY=70000))
    assert kind == TOO_LARGE
    assert "does not fit" in sentence
