"""Big covariance, correlation and matrix products for MetaTrader 5 users.

    import mtbridge
    mtbridge.correlation(returns)            # array or DataFrame, rows are bars
    mtbridge.Client().covariance(returns)    # the same by a worker, over ZeroMQ

Importing this loads neither pandas nor pyopencl; names are fetched when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mtbridge.client import Client
    from mtbridge.compute import Engine, Moments, open_engine
    from mtbridge.errors import MtbridgeError
    from mtbridge.frame import correlation, covariance, empty_pinned, multiply
    from mtbridge.matrix import Result

__version__ = "0.1.0"

_HOME = {
    "Client": "mtbridge.client",
    "Engine": "mtbridge.compute",
    "Moments": "mtbridge.compute",
    "MtbridgeError": "mtbridge.errors",
    "Result": "mtbridge.matrix",
    "correlation": "mtbridge.frame",
    "covariance": "mtbridge.frame",
    "empty_pinned": "mtbridge.frame",
    "multiply": "mtbridge.frame",
    "open_engine": "mtbridge.compute",
}

__all__ = [
    "Client",
    "Engine",
    "Moments",
    "MtbridgeError",
    "Result",
    "correlation",
    "covariance",
    "empty_pinned",
    "multiply",
    "open_engine",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mtbridge' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
