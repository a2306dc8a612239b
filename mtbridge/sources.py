"""Where the kernels and the MQL5 files lie, and how a program for a device is put together.

In a checkout they are at the top level; an installed wheel carries them as mtbridge/_data/.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = Path(__file__).resolve().parent


def data_folder(name: str) -> Path:
    """Return the folder "kernels" or "mql5" of this installation."""
    installed = PACKAGE / "_data" / name
    return installed if installed.is_dir() else PACKAGE.parent / name


@cache
def kernel_text(name: str) -> str:
    """Return one file below kernels/, such as "multiply/packed.cl"."""
    return (data_folder("kernels") / name).read_text(encoding="utf-8")


@cache
def tuned(name: str) -> dict[str, Any]:
    """Return the settings of kernels/tuned/`name`.toml."""
    return tomllib.loads((data_folder("kernels") / "tuned" / f"{name}.toml").read_text(encoding="utf-8"))


@cache
def kernels_hash() -> str:
    """Return a hash of every kernel's text: what was measured or checked with other kernels says nothing."""
    folder = data_folder("kernels")
    texts = sorted(path for path in folder.rglob("*.cl*") if path.is_file())
    digest = hashlib.sha256()
    for path in texts:
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def program_text(files: tuple[str, ...], defines: Mapping[str, int]) -> str:
    """Return a whole program: #define lines, common.clh, then `files` in their order.

    It needs no include path, so MQL5's own OpenCL functions can build the very same text.
    """
    head = "".join(f"#define {name} {value}\n" for name, value in sorted(defines.items()))
    return head + "\n".join(kernel_text(name) for name in ("common.clh", *files))
