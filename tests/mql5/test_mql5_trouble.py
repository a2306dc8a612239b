"""What the client does when the other side is absent, dies, is somebody else, or says nothing.

Every program must come to an end with one sentence: `run` fails on a crash, on a hang, and on an open socket.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import zmq
from harness import peers
from harness.failures import (
    ANSWER,
    ARGUMENT,
    LOST,
    NO_WORKER,
    NOT_ALLOWED,
    NOT_WORKER,
    NUMBERS,
    STOPPED,
    TIMEOUT,
    covariance,
    failure,
)
from harness.peers import RESULT, Conversation, Peer, cutting_proxy
from harness.programs import Runner, Served

# ---------------------------------------------------------------- nobody there


def test_an_absent_worker_is_named_with_the_command_that_starts_it(run: Runner, unused_port: int) -> None:
    kind, sentence = failure(covariance(run, unused_port))
    assert kind == NO_WORKER
    assert f"'mtbridge serve --bind tcp://127.0.0.1:{unused_port}'" in sentence
    assert "(error 5272)" in sentence


def test_the_second_call_without_a_worker_does_not_wait_again(run: Runner) -> None:
    with Peer(lambda conversation: time.sleep(1.0)) as silent:
        started = time.monotonic()
        done = run(
            "ClientProbe",
            InpPort=silent.port,
            InpActions="connect,covariance,gram,correlation",
            InpTimeout=400,
        )
        assert time.monotonic() - started < 1.2
    assert failure(done, "correlation") == failure(done, "connect")


@pytest.mark.parametrize("code", [4014, 5272])
def test_an_address_outside_the_allowed_list_is_told_where_to_add_it(
    run: Runner, worker_port: int, code: int
) -> None:
    kind, sentence = failure(covariance(run, worker_port, ALLOW="10.0.0.1", FORBIDDEN_CODE=code))
    assert kind == (NOT_ALLOWED if code == 4014 else NO_WORKER)
    assert f"(error {code})" in sentence
    assert "Tools > Options > Expert Advisors > Allow WebRequest for listed URL" in sentence


@pytest.mark.parametrize("wrong", [{"InpHost": ""}, {"InpPort": 0}, {"InpPort": 65536}, {"InpTimeout": 0}])
def test_an_address_that_is_none_is_refused(run: Runner, wrong: dict[str, object]) -> None:
    kind, sentence = failure(run("ClientProbe", InpActions="connect", **wrong), "connect")
    assert kind == ARGUMENT
    assert "is no address" in sentence


# ---------------------------------------------------------------- somebody else


def test_a_web_server_is_recognized_by_its_first_bytes(run: Runner) -> None:
    def talk(conversation: Conversation) -> None:
        conversation.read(11)
        conversation.send(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    with Peer(talk) as web:
        kind, sentence = failure(covariance(run, web.port))
    assert kind == NOT_WORKER
    assert "some other program, not ZeroMQ" in sentence


@pytest.mark.parametrize(
    "garbage",
    [bytes(64), b"\xff" * 64, b"SSH-2.0-OpenSSH_9.2", b"\xff" + bytes(63)],
    ids=["zeros", "ones", "SSH", "half a signature"],
)
def test_garbage_instead_of_a_greeting_is_refused(run: Runner, garbage: bytes) -> None:
    def talk(conversation: Conversation) -> None:
        conversation.send(garbage)
        conversation.wait_for_end()

    with Peer(talk) as other:
        kind, sentence = failure(covariance(run, other.port))
    assert kind == NOT_WORKER
    assert sentence.endswith("give the port of an mtbridge worker.")


@contextlib.contextmanager
def bound(kind: int, **options: object) -> Iterator[tuple[zmq.Socket[bytes], int]]:
    """A real ZeroMQ socket of another program."""
    with zmq.Context() as context, context.socket(kind) as bound_socket:
        bound_socket.linger = 0
        for name, value in options.items():
            setattr(bound_socket, name, value)
        yield bound_socket, bound_socket.bind_to_random_port("tcp://127.0.0.1")


@pytest.mark.parametrize("name", ["PUB", "PULL", "PUSH", "DEALER"])
def test_a_zeromq_socket_of_another_type_is_named(run: Runner, name: str) -> None:
    with bound(getattr(zmq, name)) as (_, port):
        kind, sentence = failure(covariance(run, port))
    # libzmq may drop a partner that it cannot talk to before its own READY has gone out
    assert kind in (NOT_WORKER, LOST)
    if kind == NOT_WORKER:
        assert f"of type '{name}', not an mtbridge worker" in sentence


def test_a_worker_behind_curve_is_told_apart(run: Runner) -> None:
    secret = zmq.curve_keypair()[1]
    with bound(zmq.ROUTER, curve_server=1, curve_secretkey=secret) as (_, port):
        kind, sentence = failure(covariance(run, port))
    assert kind == NOT_WORKER
    assert "security mechanism CURVE" in sentence


def test_a_router_of_another_program_is_refused_by_its_answer(run: Runner) -> None:
    with bound(zmq.ROUTER) as (router, port):

        def answer() -> None:
            identity, _ = router.recv_multipart()[:2]
            router.send_multipart([identity, b"", b'{"error": "what?"}'])

        thread = threading.Thread(target=answer)
        thread.start()
        kind, sentence = failure(covariance(run, port))
        thread.join(5)
    assert kind == NOT_WORKER
    assert "cannot be read: its head has 18 bytes" in sentence


# ---------------------------------------------------------------- somebody who dies


@pytest.mark.parametrize("after", [10, 64, 92, 400, 465, 1000, 4000])
def test_a_worker_killed_in_mid_reply_ends_the_call_with_a_sentence(
    run: Runner, serve: Callable[..., Served], after: int
) -> None:
    worker = serve()
    # handshake 92 bytes, pong about 320, then a matrix of 30 x 30
    with cutting_proxy(worker.port, after_bytes=after, at_cut=worker.kill) as port:
        started = time.monotonic()
        kind, sentence = failure(covariance(run, port, InpCols=30, InpRows=60, InpTimeout=20000))
    assert kind == LOST
    assert "broke" in sentence
    assert "start it again" in sentence
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("greeted", [0, 1, 11, 63, 64, 66, 90])
def test_a_peer_that_closes_during_the_handshake_is_noticed_at_once(run: Runner, greeted: int) -> None:
    words = (peers.GREETING + peers.ready())[:greeted]

    def talk(conversation: Conversation) -> None:
        conversation.read(11)
        conversation.send(words)

    with Peer(talk) as peer:
        kind, _ = failure(covariance(run, peer.port))
    assert kind == LOST


def test_a_request_that_broke_a_new_connection_is_not_sent_again(run: Runner) -> None:
    def talk(conversation: Conversation) -> None:
        conversation.shake_hands()
        conversation.next_request()

    with Peer(talk) as peer:
        done = run("ClientProbe", InpPort=peer.port, InpActions="connect,close,covariance")
        # one for connect; covariance: a new connection, broken, and no third
        assert peer.conversations == 2
    assert failure(done)[0] == LOST


def test_a_request_that_broke_an_old_connection_is_sent_once_more(run: Runner) -> None:
    def talk(conversation: Conversation) -> None:
        conversation.shake_hands()
        number = conversation.next_request()
        if peer.conversations == 2:
            conversation.send(peers.message(b"", peers.head(4, number, RESULT), b"", ANSWER))
            conversation.wait_for_end()

    with Peer(talk) as peer:
        done = covariance(run, peer.port)
        assert peer.conversations == 2
    assert np.array_equal(done.numbers("covariance"), NUMBERS)


# ---------------------------------------------------------------- somebody slow


@pytest.mark.parametrize("stage", ["greeting", "answer"])
def test_silence_ends_at_the_timeout(run: Runner, stage: str) -> None:
    def talk(conversation: Conversation) -> None:
        if stage == "answer":
            conversation.shake_hands()
            conversation.next_request()
        conversation.wait_for_end()

    with Peer(talk) as peer:
        started = time.monotonic()
        done = covariance(run, peer.port, InpTimeout=500)
        assert time.monotonic() - started < 1.5
    kind, sentence = failure(done)
    assert kind == TIMEOUT
    assert "no answer within 500 ms" in sentence


def test_a_connection_that_is_never_accepted_ends_at_the_timeout(run: Runner) -> None:
    """The system drops what would be one more in a full queue, as a firewall does."""
    with contextlib.ExitStack() as queue:
        listener = queue.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(3):
            waiting = queue.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        started = time.monotonic()
        kind, sentence = failure(covariance(run, listener.getsockname()[1], InpTimeout=500))
        assert time.monotonic() - started < 1.5
    assert kind == NO_WORKER
    assert "(error 5272)" in sentence


def test_one_byte_at_a_time_does_not_prolong_the_timeout(run: Runner) -> None:
    def talk(conversation: Conversation) -> None:
        conversation.read(11)
        for byte in peers.GREETING:
            conversation.send(bytes([byte]))
            time.sleep(0.05)

    with Peer(talk) as peer:
        started = time.monotonic()
        assert failure(covariance(run, peer.port, InpTimeout=600))[0] == TIMEOUT
        assert time.monotonic() - started < 1.6


def test_a_reply_that_trickles_in_is_put_together(run: Runner) -> None:
    def talk(conversation: Conversation) -> None:
        conversation.shake_hands()
        number = conversation.next_request()
        for byte in peers.message(b"", peers.head(4, number, RESULT), b"one by one", ANSWER):
            conversation.send(bytes([byte]))
            time.sleep(0.001)
        conversation.wait_for_end()

    with Peer(talk) as peer:
        assert np.array_equal(covariance(run, peer.port).numbers("covariance"), NUMBERS)


def test_the_worker_is_told_how_long_the_client_waits(run: Runner) -> None:
    told: list[int] = []

    def talk(conversation: Conversation) -> None:
        conversation.shake_hands()
        told.append(struct.unpack_from("<I", conversation.answer_ping(), 40)[0])
        conversation.wait_for_end()

    with Peer(talk) as peer:
        run("ClientProbe", InpPort=peer.port, InpActions="connect", InpTimeout=4000)
    assert 2000 < told[0] <= 4000


def test_request_numbers_begin_anew_in_every_program_and_count_on(run: Runner) -> None:
    runs: list[list[int]] = []

    def talk(conversation: Conversation) -> None:
        conversation.shake_hands()
        runs.append([])
        while True:
            runs[-1].append(struct.unpack_from("<Q", conversation.answer_ping(), 16)[0])

    with Peer(talk) as peer:
        for _ in range(4):
            run("ClientProbe", InpPort=peer.port, InpActions="connect,ping,ping")
    assert [[number - numbers[0] for number in numbers] for numbers in runs] == [[0, 1, 2]] * 4
    firsts = sorted(numbers[0] for numbers in runs)
    # four of 2**62 values: nearer than 2**32 to each other or to 1 once in a hundred million times
    assert min(np.diff([0, *firsts])) > 1 << 32
    assert firsts[-1] <= 1 << 62


def test_heartbeats_are_answered_while_the_client_waits(run: Runner) -> None:
    """libzmq itself pings, and would cut the connection after 300 ms without a PONG."""
    with bound(zmq.ROUTER, heartbeat_ivl=50, heartbeat_timeout=300) as (router, port):

        def answer() -> None:
            identity, _, head, _ = router.recv_multipart()
            names = b"mtbridge 0\nx\ny"
            arrays = ((8, 3, (6,), 48), (9, 3, (1,), 8), (11, 4, (len(names),), len(names)))
            request = struct.unpack_from("<Q", head, 16)[0]
            limits = struct.pack("<6q", 1, 1, 1 << 30, 8, 1 << 20, 1 << 20)
            router.send_multipart(
                [identity, b"", peers.head(1, request, arrays), b"", limits, bytes(8), names]
            )
            identity, _, head, *_ = router.recv_multipart()
            time.sleep(1.5)
            request = struct.unpack_from("<Q", head, 16)[0]
            router.send_multipart([identity, b"", peers.head(4, request, RESULT), b"", ANSWER])

        thread = threading.Thread(target=answer)
        thread.start()
        done = covariance(run, port)
        thread.join(5)
    assert np.array_equal(done.numbers("covariance"), NUMBERS)


# ---------------------------------------------------------------- the user stops the program


def deaf(conversation: Conversation) -> None:
    """Shake hands, answer the ping, then read nothing at all."""
    conversation.shake_hands()
    conversation.answer_ping()
    time.sleep(4)


def listening(conversation: Conversation) -> None:
    conversation.shake_hands()
    conversation.next_request()
    conversation.wait_for_end()


STAGES = {
    "the handshake": (lambda conversation: conversation.wait_for_end(), {}),
    "the answer": (listening, {}),
    "a send that nobody reads": (deaf, {"InpRows": 300000, "InpCols": 20, "InpActions": "connect,gram"}),
}


@pytest.mark.parametrize("model", ["whole", "first"])
@pytest.mark.parametrize("stage", STAGES)
def test_a_stopped_program_ends_within_a_fifth_of_a_second(run: Runner, stage: str, model: str) -> None:
    talk, settings = STAGES[stage]
    with Peer(talk) as peer:
        done = run(
            "ClientProbe",
            **{
                "InpPort": peer.port,
                "InpTimeout": 30000,
                "InpActions": "connect,gram",
                "READ": model,
                **settings,
            },
            STOP_AFTER_MS=1500,
        )
    assert "was stopped while it waited" in done.lines[-1]
    assert done.ended_after_stop() < 0.2


def test_a_stop_is_not_answered_by_the_terminal_itself(run: Runner) -> None:
    with Peer(listening) as peer:
        done = covariance(run, peer.port, InpFallback=True, InpTimeout=30000, STOP_AFTER_MS=300)
    assert failure(done)[0] == STOPPED
