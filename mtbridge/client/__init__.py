"""The Python client of a worker. Only this package and `server` know ZeroMQ.

    with Client() as client:
        matrix = client.correlation(closes)

`client` has the calls, `connection` the socket under them.
"""

from __future__ import annotations

from mtbridge.client.client import Client, Ping

__all__ = ["Client", "Ping"]
