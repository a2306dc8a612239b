"""Translate, compile and keep the MQL5 programs that the tests run.

The compiler is g++ where there is one, else the clang of ziglang from PyPI; `MTBRIDGE_MQL5_COMPILER`
(``g++``, ``zig`` or a path) says otherwise. Binaries are kept in the user's cache under a hash of all that
made them, so that only the first session after a change compiles: ziglang's first C++ build takes a minute.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import time
from functools import cache
from pathlib import Path

import cplusplus

from harness.translator import translate

HERE = Path(__file__).parents[1]
ROOT = HERE.parents[1]
SHIM = HERE / "shim"
INCLUDE = ROOT / "mql5" / "Include"
SCRIPTS = ROOT / "mql5" / "Scripts" / "MtBridge"
PROGRAMS = HERE / "programs"
KERNELS = ROOT / "kernels"

# Warnings of MetaEditor that have a counterpart: loss of data, signs, hidden and uninitialized names.
FLAGS = [
    *("-std=c++20", "-O1", "-pthread", "-Werror", "-Wall", "-Wextra", "-Wconversion", "-Wfloat-conversion"),
    *("-Wsign-compare", "-Wshadow", "-Wuninitialized", "-Wno-sign-conversion", "-Wno-parentheses"),
    *("-Wno-misleading-indentation", "-Wno-unused-parameter", "-Wno-unused-function"),
]
# Structures are packed, so their fields lie anywhere: no alignment check. Optimized they compile for longer.
SANITIZERS = [
    *("-O0", "-g1", "-fsanitize=address,undefined", "-fno-sanitize=alignment", "-fno-sanitize-recover=all"),
]
KEEP_DAYS = 30


class BuildError(Exception):
    """What translator or compiler said."""


@cache
def compiler() -> tuple[str, ...]:
    """Return the command that starts the C++ compiler.

    Raises
    ------
    BuildError
        If there is neither g++ nor ziglang.
    """
    wanted = os.environ.get("MTBRIDGE_MQL5_COMPILER", "")
    if wanted not in ("", "zig"):
        return (wanted,)
    if wanted == "zig":
        return (sys.executable, "-m", "ziglang", "c++")
    if (found := cplusplus.compiler()) is None:
        raise BuildError("No C++ compiler: install g++, or ziglang from PyPI.")
    return found


def program(name: str) -> Path:
    """Return the source of a script of ours or of a program of the tests."""
    return next(
        folder / f"{name}.mq5" for folder in (SCRIPTS, PROGRAMS) if (folder / f"{name}.mq5").is_file()
    )


def installed(kernels: Path = KERNELS) -> dict[str, Path]:
    """Return what installing copies below MQL5 beside the folder mql5 itself."""
    return {"Include/MtBridge/kernels": kernels}


def build(source: Path, *, sanitized: bool = False, kernels: Path = KERNELS) -> Path:
    """Return the binary of an MQL5 program, compiled now or kept from before.

    Parameters
    ----------
    sanitized : with the address and undefined-behaviour sanitizers
    kernels : the folder that was copied to MQL5/Include/MtBridge/kernels

    Raises
    ------
    TranslationError
        If the sources are not MQL5.
    BuildError
        If the compiler refuses them; warnings count.
    """
    text = translate(source, include=INCLUDE, installed=installed(kernels))
    flags = [*FLAGS, *(SANITIZERS if sanitized else ())]
    binary = _cache() / f"{source.stem}-{_fingerprint(text, flags)}"
    if binary.is_file():
        return binary
    with tempfile.TemporaryDirectory(dir=binary.parent) as folder:
        cpp = Path(folder) / f"{source.stem}.cpp"
        cpp.write_text(text, encoding="ascii")
        made = Path(folder) / source.stem
        _compile([*compiler(), *flags, "-isystem", str(SHIM), "-o", str(made), str(cpp), "-ldl"])
        made.replace(binary)
    return binary


def check(source: Path, folder: Path) -> None:
    """Translate and compile without making a binary; raises as `build` does."""
    cpp = folder / f"{source.stem}.cpp"
    cpp.write_text(translate(source, include=INCLUDE, installed=installed()), encoding="ascii")
    _compile([*compiler(), *FLAGS, "-c", "-isystem", str(SHIM), "-o", str(cpp.with_suffix(".o")), str(cpp)])


def sanitizers_work(folder: Path) -> bool:
    """Whether the compiler's address sanitizer finds a mistake here; some link it and find nothing."""
    source = folder / "past_the_end.cpp"
    source.write_text("int main(int n, char **) { int *a = new int[1]; return a[n]; }\n", encoding="ascii")
    command = [*compiler(), *SANITIZERS, "-o", str(folder / "past_the_end"), str(source)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        return False
    return (
        b"AddressSanitizer"
        in subprocess.run([folder / "past_the_end"], capture_output=True, check=False).stderr
    )


def _compile(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(done.stderr.strip())


def _fingerprint(text: str, flags: list[str]) -> str:
    made_of = hashlib.sha256(" ".join([*compiler(), _compiler_version(), *flags, text]).encode())
    for header in sorted(SHIM.glob("*.hpp")):
        made_of.update(header.read_bytes())
    return made_of.hexdigest()[:24]


@cache
def _compiler_version() -> str:
    return subprocess.run([*compiler(), "--version"], capture_output=True, text=True, check=False).stdout


@cache
def _cache() -> Path:
    """Return the folder of the binaries, less those that nobody has made anew for a month."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "mtbridge" / "mql5-tests"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        folder = Path(tempfile.mkdtemp(prefix="mtbridge-mql5-tests-"))
    oldest = time.time() - KEEP_DAYS * 86400
    for kept in folder.iterdir():
        if kept.is_file() and kept.stat().st_mtime < oldest:
            kept.unlink(missing_ok=True)
    return folder
