"""Workers that are late, absent, killed or something else: a clear error, and never another call's matrix."""

from __future__ import annotations

import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
import zmq
from wire_peers import long_job

from mtbridge.client import Client
from mtbridge.errors import InputError, NoReplyError, ProtocolError
from mtbridge.server import Server, WorkerProcess
from mtbridge.wire import Array, Kind, Limits, Message, Operation, Role, decode, encode, error, result

Reply = Callable[[zmq.Socket[bytes], list[bytes], Message], None]


@contextmanager
def false_worker(answer: Reply) -> Iterator[str]:
    """A ROUTER whose every answer the test decides; it ends with its `with` statement."""
    ended = threading.Event()
    failures: list[BaseException] = []
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.setsockopt(zmq.LINGER, 0)
        port = router.bind_to_random_port("tcp://127.0.0.1")

        def serve() -> None:
            try:
                while not ended.is_set():
                    if router.poll(20):
                        identity, delimiter, *frames = router.recv_multipart()
                        answer(router, [identity, delimiter], decode(frames, Limits()))
            except BaseException as failure:
                failures.append(failure)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"tcp://127.0.0.1:{port}"
        finally:
            ended.set()
            thread.join(10)
            assert not thread.is_alive()
    assert not failures


def squares(message: Message) -> list[bytes]:
    """The right answer to a gram."""
    data = message.find(Role.DATA)
    assert data is not None
    return encode(result(message.head, [Array(Role.RESULT, data.T @ data)]))  # type: ignore[return-value]


def test_a_late_reply_is_dropped_and_the_next_call_gets_its_own_matrix() -> None:
    kept: list[list[bytes]] = []

    def late(router: zmq.Socket[bytes], envelope: list[bytes], message: Message) -> None:
        if message.head.kind is Kind.CANCEL:
            return
        kept.append([*envelope, *squares(message)])
        # the first reply goes out together with the second, and before it
        if len(kept) == 2:
            for frames in kept:
                router.send_multipart(frames)
        elif len(kept) > 2:
            router.send_multipart(kept[-1])

    with false_worker(late) as endpoint, Client(endpoint, timeout=0.3) as client:
        with pytest.raises(
            NoReplyError, match=r"did not answer within 0\.3 s: is `mtbridge serve` running there"
        ):
            client.gram([[1.0], [1.0]])
        assert client.gram([[3.0], [4.0]]).tolist() == [[25.0]]
        assert client.late_replies == 1
        assert client.gram([[5.0], [12.0]]).tolist() == [[169.0]]
        assert client.late_replies == 1


def test_many_late_replies_in_a_row_never_reach_a_later_call() -> None:
    waiting: list[list[bytes]] = []

    def every_third_is_late(router: zmq.Socket[bytes], envelope: list[bytes], message: Message) -> None:
        if message.head.kind is Kind.CANCEL:
            return
        frames = [*envelope, *squares(message)]
        data = message.find(Role.DATA)
        assert data is not None
        if int(data[0, 0]) % 3 == 0:
            waiting.append(frames)
            return
        for old in waiting:
            router.send_multipart(old)
        waiting.clear()
        router.send_multipart(frames)

    with false_worker(every_third_is_late) as endpoint, Client(endpoint, timeout=0.15) as client:
        for number in range(1, 16):
            if number % 3 == 0:
                with pytest.raises(NoReplyError):
                    client.gram([[float(number)]])
            else:
                assert client.gram([[float(number)]]).tolist() == [[float(number * number)]]
        assert client.late_replies == 4


def test_a_reply_sent_twice_is_taken_once() -> None:
    def twice(router: zmq.Socket[bytes], envelope: list[bytes], message: Message) -> None:
        for _ in range(2):
            router.send_multipart([*envelope, *squares(message)])

    with false_worker(twice) as endpoint, Client(endpoint, timeout=5) as client:
        for number in range(1, 6):
            assert client.gram([[float(number)]]).tolist() == [[float(number * number)]]
        assert client.late_replies == 4


def test_a_call_that_gave_up_tells_the_worker() -> None:
    seen: list[tuple[Kind, int]] = []

    def silent(router: zmq.Socket[bytes], envelope: list[bytes], message: Message) -> None:
        seen.append((message.head.kind, message.head.request))

    with false_worker(silent) as endpoint, Client(endpoint, timeout=0.2) as client:
        with pytest.raises(NoReplyError):
            client.ping()
        time.sleep(0.2)
    (first, number), (second, cancelled) = seen
    assert (first, second) == (Kind.REQUEST, Kind.CANCEL)
    assert number == cancelled


def test_a_worker_that_does_not_read_its_head_is_believed() -> None:
    def confused(router: zmq.Socket[bytes], envelope: list[bytes], message: Message) -> None:
        router.send_multipart([*envelope, *encode(error(0, 0, 1, "What was that?"))])

    with false_worker(confused) as endpoint, Client(endpoint, timeout=5) as client:
        with pytest.raises(Exception, match="What was that") as caught:
            client.ping()
        assert getattr(caught.value, "status", None) == 1


def test_an_answer_that_is_damaged_is_an_error_and_no_matrix() -> None:
    def damaged(router: zmq.Socket[bytes], envelope: list[bytes], message: Message) -> None:
        head, text, matrix = squares(message)
        router.send_multipart([*envelope, head, text, bytes(matrix)[:-1]])

    with (
        false_worker(damaged) as endpoint,
        Client(endpoint, timeout=5) as client,
        pytest.raises(ProtocolError, match="its frame has 7"),
    ):
        client.gram([[2.0]])


@pytest.mark.parametrize("numbers", [[1, 1, 0, 8, 9, 9], [1, 1, 5], [-1] * 6])
def test_a_pong_that_makes_no_sense_is_an_error(numbers: list[int]) -> None:
    def odd(router: zmq.Socket[bytes], envelope: list[bytes], message: Message) -> None:
        arrays = [
            Array(Role.RESULT, np.array(numbers, np.int64)),
            Array(Role.COUNTS, np.array([1], np.int64)),
            Array(Role.NAMES, np.array([65], np.uint8)),
        ]
        router.send_multipart([*envelope, *encode(result(message.head, arrays))])

    with (
        false_worker(odd) as endpoint,
        Client(endpoint, timeout=5) as client,
        pytest.raises(ProtocolError, match="ping is incomplete"),
    ):
        client.ping()


def test_answers_of_another_program_are_no_reply() -> None:
    def echo(router: zmq.Socket[bytes], envelope: list[bytes], message: Message) -> None:
        router.send_multipart([*envelope, *encode(message)])
        router.send_multipart([*envelope, b"hello"])
        router.send_multipart([envelope[0], b"hello"])
        router.send_multipart([envelope[0], b""])

    with (
        false_worker(echo) as endpoint,
        Client(endpoint, timeout=0.3) as client,
        pytest.raises(NoReplyError),
    ):
        client.ping()


def test_nobody_listening_is_told_with_the_mend_within_the_timeout() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    start = time.monotonic()
    words = f"tcp://127.0.0.1:{port} within 0.4 s: is `mtbridge serve` running"
    with (
        Client(f"tcp://127.0.0.1:{port}", timeout=0.4) as client,
        pytest.raises(NoReplyError, match=words),
    ):
        client.ping()
    assert time.monotonic() - start < 5


def test_a_program_that_accepts_and_says_nothing_is_no_worker() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        endpoint = f"tcp://127.0.0.1:{listener.getsockname()[1]}"
        with Client(endpoint, timeout=0.4) as client, pytest.raises(NoReplyError, match="mtbridge serve"):
            client.gram(np.ones((500, 100)))


def test_a_killed_worker_is_a_clear_error_and_the_next_call_after_its_restart_works() -> None:
    left, right = (array.data for array in long_job())
    with WorkerProcess(engine_name="serial") as first, Client(first.endpoint, timeout=1.0) as client:
        client.ping()
        killer = threading.Timer(0.25, first.process.kill)
        killer.start()
        with pytest.raises(NoReplyError, match="mtbridge serve"):
            client.multiply(left, right)
        killer.join()
        first.process.join(10)
        with pytest.raises(NoReplyError):
            client.gram([[1.0]])
        with WorkerProcess(first.endpoint, engine_name="numpy"):
            assert client.gram([[3.0], [4.0]]).tolist() == [[25.0]]
            assert client.late_replies == 0


def test_a_worker_restarted_between_calls_goes_unnoticed() -> None:
    with Server("tcp://127.0.0.1:0", engine_name="numpy") as server:
        client = Client(server.endpoint, timeout=10)
        first = client.gram([[3.0]])
    with client, Server(server.endpoint, engine_name="numpy"):
        assert first.tolist() == client.gram([[3.0]]).tolist() == [[9.0]]


def test_the_limits_of_a_new_worker_are_learned_after_the_old_one_was_lost() -> None:
    with (
        Server("tcp://127.0.0.1:0", engine_name="numpy") as server,
        Client(server.endpoint, timeout=0.5) as client,
    ):
        X = np.ones((200, 50))
        client.gram(X)
        endpoint = server.endpoint
        server.__exit__(None, None, None)
        with pytest.raises(NoReplyError):
            client.gram(X)
        again = Server(endpoint, engine_name="numpy", limits=Limits(rows=100))
        with again, pytest.raises(InputError, match="accepts 100 rows"):
            client.gram(X)


def test_a_message_that_broke_off_in_its_middle_does_not_spoil_the_next() -> None:
    with Server("tcp://127.0.0.1:0", engine_name="numpy") as server, Client(server.endpoint) as client:
        no_frame: bytes = 5  # type: ignore[assignment]
        with pytest.raises(TypeError):
            # delimiter and head are on their way when this frame turns out to be none
            client._connection.call(Operation.GRAM, [], no_frame)
        assert client.gram([[3.0]]).tolist() == [[9.0]]


@pytest.fixture
def handled_interrupts() -> Iterator[None]:
    """Python handles Ctrl+C, also where tests run in the background of a shell that ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot signal a thread")
def test_an_interrupted_call_leaves_a_client_that_works(handled_interrupts: None) -> None:
    def slow(router: zmq.Socket[bytes], envelope: list[bytes], message: Message) -> None:
        if message.head.operation == Operation.GRAM:
            router.send_multipart([*envelope, *squares(message)])

    with false_worker(slow) as endpoint, Client(endpoint, timeout=20) as client:
        main = threading.main_thread().ident
        assert main is not None
        timer = threading.Timer(0.3, signal.pthread_kill, (main, signal.SIGINT))
        timer.start()
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            client.ping()
        timer.join()
        assert time.monotonic() - start < 10
        assert client.gram([[3.0]]).tolist() == [[9.0]]
