"""The one thread that computes: it opens the engine, answers jobs in their order, and closes the engine.

The I/O loop and this thread share `waiting`, a dictionary of the jobs that nobody has taken. Whoever
pops a job from it owns it: this thread to compute it, the loop to cancel, expire or refuse it. A pop is
atomic, so a job is answered exactly once without a lock.

The loop is also the only one that submits. So while it holds no job this thread idles, and the loop may
call `compute` itself for work that is over sooner than a thread wakes up.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Self

from mtbridge.compute import Engine
from mtbridge.service import Service, refuse
from mtbridge.wire import Buffer, Limits, Message, Status, encode, error

log = logging.getLogger(__name__)

DEADLINE_TEXT = "The deadline of this request passed before it was computed; allow more time or send less."


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A request that waits for the engine.

    Attributes
    ----------
    number : counts the jobs of this worker
    envelope : the frames before the head, to be sent back as they came; the client's identity first
    message : the request; its arrays look at the frames that were received
    form : what decides how long the request takes
    bytes : what the request takes in memory
    deadline : a moment of `time.monotonic`, or infinity
    """

    number: int
    envelope: tuple[bytes, ...]
    message: Message
    form: Hashable
    bytes: int
    deadline: float


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """A job with the frames of its reply, ready to be sent."""

    job: Job
    reply: Message
    frames: list[Buffer]
    seconds: float


class ComputeThread:
    """Runs the service in a thread of its own, between `with` and its end.

    Parameters
    ----------
    open_engine : called in the thread, which closes what it returns
    limits : for the service
    wake : called from the thread after each change that the loop should look at
    join_seconds : how long the end of `with` waits for the job that is being computed
    """

    def __init__(
        self,
        open_engine: Callable[[], Engine],
        limits: Limits,
        wake: Callable[[], None],
        *,
        join_seconds: float = 5.0,
    ) -> None:
        self.waiting: dict[int, Job] = {}
        self.finished: deque[Finished] = deque()
        self.current: Job | None = None
        self.service: Service | None = None
        self.failure: BaseException | None = None
        self._open_engine = open_engine
        self._limits = limits
        self._wake = wake
        self._join_seconds = join_seconds
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="mtbridge-compute")

    def submit(self, job: Job) -> None:
        """Put `job` at the end of the queue."""
        self.waiting[job.number] = job
        self._jobs.put(job)

    def take_back(self, number: int) -> Job | None:
        """Return a job that still waits, and will now not be computed, or None where it is too late."""
        return self.waiting.pop(number, None)

    @property
    def busy(self) -> bool:
        """Whether a job is being computed or its reply has not been fetched."""
        return self.current is not None or bool(self.finished)

    def close(self) -> None:
        """Let the thread end after the job that it computes; may be called twice."""
        self._jobs.put(None)

    @property
    def alive(self) -> bool:
        """Whether the thread still runs."""
        return self._thread.is_alive()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._thread.join(self._join_seconds)

    def _run(self) -> None:
        try:
            with self._open_engine() as engine:
                # no request's time is spent on a measurement
                engine.prepare()
                self.service = Service(engine, self._limits)
                self._wake()
                self._compute(self.service)
        except BaseException as failure:
            # no device, for example: the loop raises it where the caller of `run` sees it
            self.failure = failure
        finally:
            self._wake()

    def _compute(self, service: Service) -> None:
        while (job := self._jobs.get()) is not None:
            # `current` is set before the pop and cleared after the append, so that `busy` has no gap
            self.current = job
            mine = self.waiting.pop(job.number, None) is not None
            if mine:
                self.finished.append(compute(service, job))
            self.current = None
            # an idle thread must not keep the frames of its last job alive
            del job
            if mine:
                self._wake()


def compute(service: Service, job: Job) -> Finished:
    """Return `job` with its reply, whatever happens meanwhile."""
    head = job.message.head
    start = time.monotonic()
    try:
        if start > job.deadline:
            reply = error(head.request, head.operation, Status.DEADLINE, DEADLINE_TEXT)
        else:
            reply = service.answer(job.message)
        frames = encode(reply)
    except Exception as failure:
        reply = refuse(head.request, head.operation, failure)
        frames = encode(reply)
    return Finished(job, reply, frames, time.monotonic() - start)
