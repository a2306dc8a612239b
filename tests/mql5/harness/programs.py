"""A program in its surroundings, and the real worker beside it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from harness import build


@dataclass(frozen=True)
class Run:
    """What a program printed, and how it ended."""

    lines: list[str]
    errors: str
    code: int

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def line(self, start: str) -> str:
        """The rest of the one line that begins so."""
        (found,) = [line[len(start) :] for line in self.lines if line.startswith(start)]
        return found.strip()

    def numbers(self, action: str, *, how: str = "ok") -> np.ndarray:
        """The numbers that ClientProbe printed for an action."""
        return np.array([float(word) for word in self.line(f"{action}: {how}").split()])

    def ended_after_stop(self) -> float:
        """Seconds between IsStopped() turning true and the end of the program."""
        return int(self.errors.split("ended_ms_after_stop=")[1].split()[0]) / 1000


Runner = Callable[..., Run]


def environment(folder: Path, settings: dict[str, object]) -> dict[str, str]:
    """The shim's settings: UPPER names are MQL_..., others are inputs."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MQL_")}
    ours = {"MQL_ALLOW": "127.0.0.1", "MQL_OUT": str(folder), "MQL_DATA": str(folder)}
    for name, value in settings.items():
        text = str(value).lower() if isinstance(value, bool) else str(value)
        ours["MQL_" + name if name.isupper() else "MQL_INPUT_" + name] = text
    return inherited | ours


class Served:
    """A worker started by the command that the MQL5 messages name: ``mtbridge serve``."""

    def __init__(self, *, port: int = 0, options: tuple[str, ...] = ("--engine", "numpy")) -> None:
        command = [sys.executable, "-m", "mtbridge", "serve"]
        self._process = subprocess.Popen(
            [*command, "--bind", f"tcp://127.0.0.1:{port}", *options],
            stderr=subprocess.PIPE,
            text=True,
            cwd=build.ROOT,
        )
        assert self._process.stderr is not None
        self.said = self._process.stderr.readline().strip()
        listening = re.search(r"listening on tcp://127\.0\.0\.1:(\d+): (.*)", self.said)
        if listening is None:
            self.kill()
            pytest.fail(f"mtbridge serve did not start: {self.said}")
        self.port = int(listening.group(1))
        self.description = listening.group(2)

    def kill(self) -> None:
        """End it as the system ends a process that it has no memory for."""
        self._process.kill()
        self._process.communicate()

    def stop(self) -> None:
        """End it as Ctrl-C does."""
        if self._process.poll() is None:
            self._process.terminate()
            self._process.communicate(timeout=20)
