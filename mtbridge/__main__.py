"""`python -m mtbridge`."""

from __future__ import annotations

from mtbridge.cli import main

if __name__ == "__main__":
    main()
