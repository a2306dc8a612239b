"""The Python client of a worker. Only this package and `server` know ZeroMQ.

    with Client() as client:
        matrix = client.correlation(closes)

`client` has the calls of one matrix, `windows` those of many, `calls` what all of them do, `connection` the
socket under them.
"""

from __future__ import annotations

from mtbridge.client.calls import Ping
from mtbridge.client.client import Client

__all__ = ["Client", "Ping"]
