"""The engines that the Python functions compute with: one of each name, for each thread."""

from __future__ import annotations

import os
import threading

from mtbridge.compute import open_engine
from mtbridge.compute.devices import VARIABLE
from mtbridge.compute.engine import Engine

_mine = threading.local()


def opened(engine: str | Engine, device: str | None, precision: str = "full") -> Engine:
    """Return `engine` itself, or the one of that name and precision that this thread keeps open."""
    if isinstance(engine, Engine):
        return engine
    kept: dict[tuple[str, str | None, str], Engine] = _mine.__dict__.setdefault("engines", {})
    # an index may come as a number, and 0 is one
    device = None if device is None else str(device)
    key = engine, device or os.environ.get(VARIABLE), precision
    # what is no text may not be a key; `open_engine` says so
    if not isinstance(engine, str) or key not in kept:
        kept[key] = open_engine(engine, device=device, precision=precision)
    return kept[key]
