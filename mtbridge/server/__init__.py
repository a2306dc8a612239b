"""The worker: a ROUTER socket in front of the service. Only this package and `client` know ZeroMQ.

`endpoint` says where it may listen, `compute_thread` owns the engine, `loop` moves messages, `worker`
puts them together and stops them, `signals` ends it on SIGTERM and SIGINT, `process` runs it in a child.
"""

from __future__ import annotations

from mtbridge.server.process import WorkerProcess
from mtbridge.server.signals import serve_until_signalled
from mtbridge.server.worker import Server
from mtbridge.wire import DEFAULT_ENDPOINT

__all__ = ["DEFAULT_ENDPOINT", "Server", "WorkerProcess", "serve_until_signalled"]
