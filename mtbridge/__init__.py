"""Big covariance, correlation and matrix products for MetaTrader 5 users.

    import mtbridge
    mtbridge.correlation(returns)            # array or DataFrame, rows are bars
    mtbridge.rolling(returns, 60).correlation(last=True)
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
    from mtbridge.frame import (
        bars_per_year,
        correlation,
        covariance,
        empty_pinned,
        ewm,
        expanding,
        lagged_correlation,
        lagged_covariance,
        multiply,
        rolling,
    )
    from mtbridge.matrix import Result

__version__ = "0.1.0"

_HOME = {
    "Client": "mtbridge.client",
    "Engine": "mtbridge.compute",
    "Moments": "mtbridge.compute",
    "MtbridgeError": "mtbridge.errors",
    "Result": "mtbridge.matrix",
    "bars_per_year": "mtbridge.frame",
    "correlation": "mtbridge.frame",
    "covariance": "mtbridge.frame",
    "empty_pinned": "mtbridge.frame",
    "ewm": "mtbridge.frame",
    "expanding": "mtbridge.frame",
    "lagged_correlation": "mtbridge.frame",
    "lagged_covariance": "mtbridge.frame",
    "multiply": "mtbridge.frame",
    "open_engine": "mtbridge.compute",
    "rolling": "mtbridge.frame",
}

__all__ = [
    "Client",
    "Engine",
    "Moments",
    "MtbridgeError",
    "Result",
    "bars_per_year",
    "correlation",
    "covariance",
    "empty_pinned",
    "ewm",
    "expanding",
    "lagged_correlation",
    "lagged_covariance",
    "multiply",
    "open_engine",
    "rolling",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'mtbridge' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
