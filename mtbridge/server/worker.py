"""The worker as a whole: its sockets, its thread, and how it stops."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

import zmq

from mtbridge.compute import Engine, open_engine
from mtbridge.server.compute_thread import ComputeThread
from mtbridge.server.endpoint import bind_failure, check_bind, is_ipv6
from mtbridge.server.loop import LONGEST_POLL_MS, Counters, Loop, Queue
from mtbridge.server.wakeup import Wakeup
from mtbridge.wire import DEFAULT_ENDPOINT, Limits

log = logging.getLogger(__name__)

# A frame of libzmq's queue may be as large as `frame_bytes`, so few are let in ahead of our own queue.
RECEIVE_MESSAGES = 16
# A client that asks and does not read loses replies past these.
SEND_MESSAGES = 1024
LINGER_MS = 1000


class Server:
    """A worker that answers requests at one endpoint, with one engine.

    `run` serves in the calling thread until `stop`. As a context manager it serves in a thread of its own.

    Parameters
    ----------
    bind : "tcp://HOST:PORT"; port 0 or * takes a free one, and `endpoint` tells which
    engine_name, device, precision : as for `open_engine`
    limits : what a message may hold
    insecure : allow an address that other machines can reach; nothing asks them for a password
    queue : what may be held before clients are told `busy`
    stop_seconds : how long a stop waits for the job that is being computed

    Raises
    ------
    EndpointError
        If `bind` is no address, or not on the loopback interface without `insecure`.

    Notes
    -----
    Limits are per frame in ZeroMQ: a message of very many frames is held whole before it is refused.
    """

    def __init__(
        self,
        bind: str = DEFAULT_ENDPOINT,
        *,
        engine_name: str = "auto",
        device: str | None = None,
        precision: str = "full",
        limits: Limits | None = None,
        insecure: bool = False,
        queue: Queue | None = None,
        stop_seconds: float = 5.0,
    ) -> None:
        self._bind = check_bind(bind, insecure=insecure)
        self._engine_name = engine_name
        self._device = device
        self._precision = precision
        self._limits = limits or Limits()
        self._queue = queue or Queue()
        self._stop_seconds = stop_seconds
        # a plain attribute, since an Event's lock may be held by the very thread that a signal interrupts
        self._stop_asked = False
        self._wakeup: Wakeup | None = None
        self._thread: threading.Thread | None = None
        self._compute: ComputeThread | None = None
        self._failures: list[BaseException] = []
        self.endpoint = self._bind
        self.description = ""
        self.counters = Counters()

    def run(self, *, ready: Callable[[str], None] | None = None) -> None:
        """Serve until `stop` is called.

        Parameters
        ----------
        ready : called once with the endpoint when requests are answered

        Raises
        ------
        EndpointError
            If the address cannot be bound, for example because the port is in use.
        DeviceError, OptionError
            If the engine cannot be opened.
        """
        with (
            Wakeup() as wakeup,
            zmq.Context() as context,
            context.socket(zmq.ROUTER) as router,
        ):
            self._wakeup = wakeup
            self._listen(router)
            with ComputeThread(
                self._open_engine, self._limits, wakeup.wake, join_seconds=self._stop_seconds
            ) as compute:
                self._compute = compute
                self._serve(router, wakeup, compute, ready)
        log.info("stopped: %s", self.counters)

    def stop(self) -> None:
        """Ask `run` to end, and return at once; any thread, a signal handler too, and twice if you like.

        Then, in this order:

        1. requests that wait are answered with status `stopping`, and so are those that still come;
        2. the request that is being computed is waited for, at most `stop_seconds`, and answered with its
           result; past that it is answered with status `stopping`;
        3. the compute thread closes the engine, which is waited for, at most `stop_seconds` again;
        4. the socket is closed; replies that are on their way get one second more;
        5. `run` returns. `abandoned` is true where the engine was still computing.
        """
        self._stop_asked = True
        if self._wakeup is not None:
            self._wakeup.wake()

    @property
    def abandoned(self) -> bool:
        """Whether `run` has returned although the engine was still computing; its thread cannot be ended."""
        return self._compute is not None and self._compute.alive

    def _listen(self, router: zmq.Socket[bytes]) -> None:
        # all of these hold only for connections made after them, so they stand before the bind
        router.setsockopt(zmq.MAXMSGSIZE, self._limits.frame_bytes)
        router.setsockopt(zmq.RCVHWM, RECEIVE_MESSAGES)
        router.setsockopt(zmq.SNDHWM, SEND_MESSAGES)
        router.setsockopt(zmq.LINGER, LINGER_MS)
        router.setsockopt(zmq.ROUTER_MANDATORY, 1)
        # no ZMTP heartbeat: an idle MQL5 client has no thread to answer one, and would be cut off
        router.setsockopt(zmq.TCP_KEEPALIVE, 1)
        router.setsockopt(zmq.TCP_KEEPALIVE_IDLE, 60)
        router.setsockopt(zmq.TCP_KEEPALIVE_INTVL, 10)
        router.setsockopt(zmq.IPV6, int(is_ipv6(self._bind)))
        try:
            router.bind(self._bind)
        except zmq.ZMQError as failure:
            raise bind_failure(self._bind, failure) from failure
        self.endpoint = router.getsockopt_string(zmq.LAST_ENDPOINT)

    def _open_engine(self) -> Engine:
        return open_engine(self._engine_name, device=self._device, precision=self._precision)

    def _serve(
        self,
        router: zmq.Socket[bytes],
        wakeup: Wakeup,
        compute: ComputeThread,
        ready: Callable[[str], None] | None,
    ) -> None:
        opening = zmq.Poller()
        opening.register(wakeup.reader, zmq.POLLIN)
        while compute.service is None and not self._stop_asked:
            if compute.failure is not None:
                raise compute.failure
            opening.poll(LONGEST_POLL_MS)
            wakeup.clear()
        if compute.service is None:
            return
        loop = Loop(
            router,
            wakeup,
            compute,
            compute.service,
            limits=self._limits,
            queue=self._queue,
            counters=self.counters,
        )
        self.description = compute.service.description
        log.info("%s listens at %s", self.description, self.endpoint)
        if ready is not None:
            ready(self.endpoint)
        loop.serve(lambda: self._stop_asked)
        loop.drain(self._stop_seconds)

    def __enter__(self) -> Self:
        """Serve in a thread of its own; return when requests are answered."""
        opened = threading.Event()
        failures = self._failures = []

        def serve() -> None:
            try:
                self.run(ready=lambda _: opened.set())
            except BaseException as failure:
                failures.append(failure)
            finally:
                opened.set()

        self._thread = threading.Thread(target=serve, name="mtbridge-server")
        self._thread.start()
        try:
            opened.wait()
        except BaseException:
            # Ctrl-C while the engine opens
            self.stop()
            raise
        if failures:
            self._thread.join()
            raise failures[0]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        if self._thread is not None:
            self._thread.join()
        if self._failures and error is None:
            raise self._failures[0]
