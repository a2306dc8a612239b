"""The C++ compiler of this machine, for tests that compile."""

from __future__ import annotations

import importlib.util
import shutil
import sys


def compiler() -> tuple[str, ...] | None:
    """Return the command of g++ where there is one, else of ziglang's clang; None without either.

    The first C++ program that a machine compiles with ziglang takes a minute more, for its standard library.
    """
    if found := shutil.which("g++"):
        return (found,)
    if importlib.util.find_spec("ziglang") is None:
        return None
    return (sys.executable, "-m", "ziglang", "c++")
