"""The I/O loop: messages off the socket, to the compute thread, and replies back.

It never waits for a client, and computes only what is over sooner than another thread wakes up.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

import zmq

from mtbridge.errors import ProtocolError
from mtbridge.server.compute_thread import DEADLINE_TEXT, ComputeThread, Finished, Job, compute
from mtbridge.server.envelope import find_body
from mtbridge.server.wakeup import Wakeup
from mtbridge.service import Service
from mtbridge.wire import (
    Buffer,
    Kind,
    Limits,
    Message,
    Operation,
    Status,
    decode,
    encode,
    error,
    peek,
)

log = logging.getLogger(__name__)

# So that replies and a stop are looked at while requests pour in.
REQUESTS_A_TURN = 64
# A request is computed in the loop where one of the very same form took no longer than this: its kernels are
# built, and a ping that comes meanwhile does not notice.
QUICK_SECONDS = 0.001
QUICK_FORMS = 4096
# Plain numbers: `send_multipart` combines two enumerations for each frame, which costs more than sending it.
_LAST = int(zmq.DONTWAIT)
_MORE = int(zmq.DONTWAIT | zmq.SNDMORE)
# No turn is longer, since on Windows a signal does not end a poll.
LONGEST_POLL_MS = 1000


@dataclass(slots=True)
class Counters:
    """What the loop has done since its start.

    Attributes
    ----------
    results : replies with a result
    errors : replies with an error
    dropped : messages without a delimiter, which cannot be answered
    undelivered : replies whose client had gone or did not read
    """

    results: int = 0
    errors: int = 0
    dropped: int = 0
    undelivered: int = 0


@dataclass(frozen=True, slots=True)
class Queue:
    """How many requests, and of how many bytes in all, may be held before clients are told `busy`."""

    requests: int = 1024
    bytes: int = 2 << 30


class Loop:
    """Moves messages between a bound ROUTER socket and the compute thread.

    Parameters
    ----------
    router : has ROUTER_MANDATORY set, so that a reply to nobody is noticed
    wakeup : ends a poll when a reply is ready or a stop is asked for
    compute : has opened its engine
    service : that of `compute`; answers pings here, while a job is computed there
    """

    def __init__(
        self,
        router: zmq.Socket[bytes],
        wakeup: Wakeup,
        compute: ComputeThread,
        service: Service,
        *,
        limits: Limits,
        queue: Queue,
        counters: Counters,
    ) -> None:
        self._router = router
        self._wakeup = wakeup
        self._compute = compute
        self._service = service
        self._limits = limits
        self._queue = queue
        self._counters = counters
        self._poller = zmq.Poller()
        self._poller.register(router, zmq.POLLIN)
        self._poller.register(wakeup.reader, zmq.POLLIN)
        self._jobs = 0
        self._held = 0
        self._held_bytes = 0
        self._next_deadline = math.inf
        self._stopping = False
        self._quick: set[Hashable] = set()

    def serve(self, stop_asked: Callable[[], bool]) -> None:
        """Answer requests until `stop_asked` is true; wake the poll after making it so."""
        while not stop_asked():
            self._turn(LONGEST_POLL_MS)
            if self._compute.failure is not None:
                raise self._compute.failure

    def drain(self, seconds: float) -> None:
        """Answer all that is held, waiting at most `seconds` for the job that is being computed."""
        end = time.monotonic() + seconds
        self._stopping = True
        for job in list(self._compute.waiting.values()):
            self._refuse_waiting(
                job, Status.STOPPING, "The worker is stopping; this request was not computed."
            )
        self._compute.close()
        while self._compute.busy and (left := end - time.monotonic()) > 0:
            self._turn(left * 1000)
        current = self._compute.current
        self._take_requests()
        if self._compute.finished:
            self._send_finished()
        elif current is not None:
            self._refuse(
                current.envelope,
                current.message.head.request,
                current.message.head.operation,
                Status.STOPPING,
                f"The worker is stopping and did not wait more than {seconds:g} s for this request.",
            )

    def _turn(self, milliseconds: float) -> None:
        left_ms = (self._next_deadline - time.monotonic()) * 1000
        ready = self._poller.poll(max(0, math.ceil(min(milliseconds, left_ms))))
        for who, _ in ready:
            if who is self._router:
                self._take_requests()
            else:
                self._wakeup.clear()
        self._send_finished()
        if self._next_deadline <= time.monotonic():
            self._expire()

    def _take_requests(self) -> None:
        for _ in range(REQUESTS_A_TURN):
            try:
                frame = self._router.recv(zmq.DONTWAIT, copy=False)
            except zmq.Again:
                return
            frames = [frame]
            while frame.more:
                frame = self._router.recv(copy=False)
                frames.append(frame)
            self._take(frames)

    def _take(self, frames: list[zmq.Frame]) -> None:
        start = find_body(frames)
        if start is None:
            self._counters.dropped += 1
            log.debug("dropped %d frames without an empty delimiter", len(frames))
            return
        envelope = tuple(frame.bytes for frame in frames[:start])
        body = [frame.buffer for frame in frames[start:]]
        try:
            message = decode(body, self._limits)
        except ProtocolError as failure:
            number, operation = peek(body[0]) if body else (0, 0)
            self._refuse(envelope, number, operation, failure.status, str(failure))
            return
        head = message.head
        if self._stopping:
            self._refuse(
                envelope,
                head.request,
                head.operation,
                Status.STOPPING,
                "The worker is stopping and takes no new request.",
            )
        elif head.kind is Kind.CANCEL:
            self._cancel(envelope[0], head.request)
        elif head.kind is not Kind.REQUEST or head.operation == Operation.PING:
            self._send(envelope, self._service.answer(message))
        else:
            self._enqueue(envelope, message, sum(map(len, body)))

    def _enqueue(self, envelope: tuple[bytes, ...], message: Message, size: int) -> None:
        head = message.head
        # One request is always taken, however large: else a small queue would refuse it for ever.
        if self._held and (self._held >= self._queue.requests or self._held_bytes + size > self._queue.bytes):
            self._refuse(
                envelope,
                head.request,
                head.operation,
                Status.BUSY,
                f"The worker already holds {self._held} requests; send this one again later.",
            )
            return
        deadline = time.monotonic() + head.deadline_ms / 1000 if head.deadline_ms else math.inf
        self._jobs += 1
        job = Job(self._jobs, envelope, message, _form(message), size, deadline)
        if not self._held and job.form in self._quick:
            # waking the other thread, and being woken by it, would take longer than this
            self._deliver(compute(self._service, job))
            return
        self._held += 1
        self._held_bytes += size
        self._next_deadline = min(self._next_deadline, deadline)
        self._compute.submit(job)

    def _cancel(self, identity: bytes, number: int) -> None:
        for job in list(self._compute.waiting.values()):
            if job.envelope[0] == identity and job.message.head.request == number:
                self._refuse_waiting(
                    job, Status.CANCELLED, "This request was cancelled before it was computed."
                )

    def _expire(self) -> None:
        now = time.monotonic()
        waiting = list(self._compute.waiting.values())
        for job in waiting:
            if job.deadline <= now:
                self._refuse_waiting(job, Status.DEADLINE, DEADLINE_TEXT)
        self._next_deadline = min((job.deadline for job in waiting if job.deadline > now), default=math.inf)

    def _refuse_waiting(self, job: Job, status: Status, text: str) -> None:
        """Answer a job with an error, unless the compute thread has taken it meanwhile."""
        if self._compute.take_back(job.number) is not None:
            self._release(job)
            head = job.message.head
            self._refuse(job.envelope, head.request, head.operation, status, text)

    def _send_finished(self) -> None:
        while self._compute.finished:
            finished = self._compute.finished.popleft()
            self._release(finished.job)
            self._deliver(finished)

    def _deliver(self, finished: Finished) -> None:
        """Send a reply, and remember whether requests of this form are over soon."""
        job = finished.job
        self._send(job.envelope, finished.reply, finished.frames)
        # a refusal is always over soon, and says nothing about the next request
        if finished.reply.head.kind is Kind.RESULT:
            if finished.seconds > QUICK_SECONDS:
                self._quick.discard(job.form)
            elif len(self._quick) < QUICK_FORMS:
                self._quick.add(job.form)
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%r: %r in %.6f s", job.message, finished.reply, finished.seconds)

    def _release(self, job: Job) -> None:
        self._held -= 1
        self._held_bytes -= job.bytes

    def _refuse(
        self, envelope: tuple[bytes, ...], number: int, operation: int, status: int, text: str
    ) -> None:
        reply = error(number, operation, status, text)
        log.debug("refused #%d with status %d: %s", number, status, reply.text)
        self._send(envelope, reply)

    def _send(
        self, envelope: tuple[bytes, ...], reply: Message, frames: Sequence[Buffer] | None = None
    ) -> None:
        """Send a reply, or count it where the client has gone or has left too many replies unread."""
        if reply.head.kind is Kind.RESULT:
            self._counters.results += 1
        else:
            self._counters.errors += 1
        parts: list[Buffer] = [*envelope, *(frames or encode(reply))]
        last = parts.pop()
        try:
            for part in parts:
                self._router.send(part, _MORE, copy=False)
            self._router.send(last, _LAST, copy=False)
        except zmq.ZMQError as failure:
            self._counters.undelivered += 1
            log.debug("%r could not be delivered: %s", reply, failure)


def _form(message: Message) -> Hashable:
    """Return what decides how long a request takes: operation, options, types, orders and shapes."""
    return (
        message.head.operation,
        # not the options themselves, which may be long, and are kept for as long as the worker runs
        hash(message.options),
        *((array.data.shape, array.data.dtype.char, array.data.strides) for array in message.arrays),
    )
