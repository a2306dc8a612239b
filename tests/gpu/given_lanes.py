"""Kernels with their instructions as C++ programs, work-items being fibers (fibers.hpp)."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from pathlib import Path

import cplusplus
import pytest

HERE = Path(__file__).parent


def compiled(folder: Path, parts: Iterable[str]) -> Path:
    """Compile the parts of a source, one after the other, and return the program, which lies in `folder`.

    The test is skipped where there is no compiler.
    """
    source, program = folder / "lanes_of_kernel.cpp", folder / "lanes"
    source.write_text("\n".join(parts))
    if (compiler := cplusplus.compiler()) is None:
        pytest.skip("there is no C++ compiler: neither g++ nor ziglang")
    command = [*compiler, "-std=c++20", "-O2", "-w", "-I", str(HERE), str(source), "-o", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return program
