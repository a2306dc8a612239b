"""The compiled programs, their surroundings, and the real worker.

Compiling happens once, before the first test of this folder, outside the time limit of any test.
"""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from harness import build
from harness.programs import Run, Runner, Served, environment
from harness.translator import TranslationError

HERE = Path(__file__).parent
PROGRAMS = (
    "Covariance",
    "RollingCorrelation",
    "Multiply",
    "Ladder",
    "CodecProbe",
    "ClientProbe",
    "TableProbe",
    "LadderProbe",
)
_BUILT = pytest.StashKey[dict[str, Path | Exception]]()


def pytest_collection_finish(session: pytest.Session) -> None:
    """Compile what the selected tests of this folder run."""
    ours = [item for item in session.items if HERE in item.path.parents]
    if not ours or session.config.option.collectonly:
        return
    built: dict[str, Path | Exception] = {}
    # of two processes that test side by side, each begins with another half and finds that of the other
    first = len(PROGRAMS) // 2 * (os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0")
    for name in (*PROGRAMS[first:], *PROGRAMS[:first]):
        try:
            built[name] = build.build(build.program(name))
        except (build.BuildError, TranslationError) as failure:
            built[name] = failure
    session.config.stash[_BUILT] = built


@pytest.fixture
def binary(request: pytest.FixtureRequest) -> Callable[[str], Path]:
    """Path of a compiled program; its compiler's words where there is none."""

    def find(name: str) -> Path:
        built = request.config.stash[_BUILT][name]
        if isinstance(built, Exception):
            pytest.fail(f"{name}.mq5 does not compile:\n{built}", pytrace=False)
        return built

    return find


@pytest.fixture
def start(binary: Callable[[str], Path], tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a program and go on; it is ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(name: str, **settings: object) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [binary(name)],
            env=environment(tmp_path, settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def run(binary: Callable[[str], Path], tmp_path: Path) -> Runner:
    """Run a program to its end. It must end well: a critical error of the terminal fails the test."""

    def execute(name: str | Path, **settings: object) -> Run:
        path = name if isinstance(name, Path) else binary(name)
        done = subprocess.run(
            [path],
            env=environment(tmp_path, settings),
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == 0, (
            f"{path.name} ended with {done.returncode}: {done.stdout[-500:]} {done.stderr}"
        )
        return Run(done.stdout.splitlines(), done.stderr, done.returncode)

    return execute


@pytest.fixture(scope="session")
def worker_port() -> Iterator[int]:
    """Port of a real worker that lives as long as the session."""
    worker = Served()
    yield worker.port
    worker.stop()


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """Start a real worker that the test may stop or kill."""
    started: list[Served] = []

    def begin(**options: Any) -> Served:
        started.append(Served(**options))
        return started[-1]

    yield begin
    for worker in started:
        worker.stop()


@pytest.fixture
def h1_folder(shared: Path) -> Path:
    """Ten symbols of H1 bars, as the terminal exports them."""
    return shared / "data" / "mt5_bars_h1_set_a"


@pytest.fixture
def unused_port() -> Iterator[int]:
    """A port that refuses: bound and not listening, so that nobody else takes it meanwhile."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
