"""The help of every command, and that its example works as typed."""

from __future__ import annotations

import re
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from command_line import Run, example, refused
from typer.testing import CliRunner

from mtbridge.cli import app

COMMANDS = [
    "covariance", "correlation", "lagged", "rolling", "expanding", "ewm", "multiply", "sample", "download",
    "demo", "devices", "tune", "serve", "ping", "bench gram", "bench multiply", "bench covariance",
    "bench stats", "bench bridge", "bench gpu", "bench ladder", "bench memory",
    "kernels list", "kernels show",
]  # fmt: skip
# their examples measure for a minute; other tests run them with less
MEASURED = ["bench gram", "bench multiply", "bench covariance", "bench stats"]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_is_one_sentence_and_one_example(command: str) -> None:
    done = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    said = re.sub(r"\s+", " ", done.output)
    words = re.search(
        r"Usage: .*?(?:\[OPTIONS\]|\.\.\.) (?:[A-Z.{}\[\]]+ )*(.*?) "
        r"Example: (mtbridge .*?) (?:Arguments|Options)",
        said,
    )
    assert words, said
    assert words[1].strip().count(". ") == 0, "one sentence"
    assert words[1].strip().endswith(".")
    assert words[2].startswith(f"mtbridge {command}")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_example_is_one_line_of_a_terminal(command: str) -> None:
    """Broken over two lines it cannot be copied and does not work as typed."""
    done = CliRunner().invoke(app, [*command.split(), "--help"], env={"COLUMNS": "80"})
    (line,) = (line for line in done.output.splitlines() if line.strip().startswith("Example: "))
    assert shlex.split(line.split("Example: mtbridge ", 1)[1]) == example(command)


@pytest.fixture
def each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Benchmarks time everything once: what is looked at is whether they run to their end."""
    monkeypatch.setattr("mtbridge.bench.memory_kernels.ROUNDS", 1)
    monkeypatch.setattr("mtbridge.bench.ladder_case.MOST_ROUNDS", 1)
    monkeypatch.setattr("mtbridge.bench.gpu_trial.SHORTEST_WINDOW", 0.0)


@pytest.mark.timeout(300)
@pytest.mark.usefixtures("each_once")
@pytest.mark.parametrize(
    "command",
    # tune would leave settings in the cache of this machine; tests/integration/test_cli_tune.py runs it
    [name for name in COMMANDS if name not in ("serve", "ping", "download", "tune", *MEASURED)],
)
def test_the_example_works_as_typed(command: str, prices: Path, run: Run, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    np.save(tmp_path / "a.npy", random.standard_normal((4, 3)))
    np.save(tmp_path / "b.npy", random.standard_normal((3, 5)))
    code, out, err = run(*example(command))
    assert code == 0, err
    written = re.search(r"(?:-o|--json) (\S+)", shlex.join(example(command)))
    assert out or written
    if written:
        assert (tmp_path / written[1]).stat().st_size > 0


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[str]:
    """A worker on the port that the examples name, where that port is free; else on any."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", 5555))
            bind = "tcp://127.0.0.1:5555"
        except OSError:
            bind = "tcp://127.0.0.1:0"
    process = subprocess.Popen(
        [sys.executable, "-m", "mtbridge", "serve", "--bind", bind, "--engine", "numpy"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    try:
        said = process.stderr.readline()
        found = re.search(r"tcp://127\.0\.0\.1:\d+", said)
        assert found, said
        yield found[0]
    finally:
        process.terminate()
        process.wait(20)
        process.stderr.close()


def test_the_examples_of_serve_and_ping_work_as_typed_together(worker: str, run: Run) -> None:
    assert example("serve") == ["serve", "--bind", "tcp://127.0.0.1:5555"]
    arguments = [worker if part.startswith("tcp:") else part for part in example("ping")]
    code, out, err = run(*arguments)
    assert code == 0, err
    assert worker in out
    assert "mtbridge 0." in out
    assert "ms" in out


def test_a_bind_to_a_port_in_use_is_refused(worker: str, run: Run) -> None:
    refused(run("serve", "--bind", worker, "--engine", "numpy"), worker.rsplit(":", 1)[1])


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal may be there on Windows")
def test_download_elsewhere_than_windows_says_what_to_do(run: Run, tmp_path: Path) -> None:
    refused(run(*example("download")))
    assert list(tmp_path.iterdir()) == []
