"""One line on stderr about what was decided for the caller."""

from __future__ import annotations

import sys


def say(*sentences: str) -> None:
    for sentence in sentences:
        print(f"mtbridge: {sentence}", file=sys.stderr)
