"""Words for people, on stderr."""

from __future__ import annotations

import sys


def note(text: str, *, quiet: bool = False) -> None:
    """Print a line about what was decided, unless `quiet`."""
    if not quiet:
        print(text, file=sys.stderr, flush=True)


def complain(text: str) -> None:
    """Print what went wrong."""
    print(f"mtbridge: {text}", file=sys.stderr, flush=True)
