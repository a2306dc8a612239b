"""Words for people, on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mtbridge.compute import Engine


def note(text: str, *, quiet: bool = False) -> None:
    """Print a line about what was decided, unless `quiet`."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def reason(engine: Engine) -> str:
    """Return why the last call was computed where it was."""
    return engine.why or f"{engine.used.name} computed, the only engine that was asked for or usable"


def complain(text: str) -> None:
    """Print what went wrong."""
    print(f"mtbridge: {text}", file=sys.stderr, flush=True)
