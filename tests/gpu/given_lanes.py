"""Kernels with their instructions as C++ programs, which run a thread for each work-item."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path


def compiled(folder: Path, parts: Iterable[str]) -> Path:
    """Compile the parts of a source, one after the other, and return the program, which lies in `folder`."""
    source, program = folder / "lanes_of_kernel.cpp", folder / "lanes"
    source.write_text("\n".join(parts))
    options = ("-std=c++20", "-O2", "-w", "-pthread")
    command = [sys.executable, "-m", "ziglang", "c++", *options, str(source), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return program
