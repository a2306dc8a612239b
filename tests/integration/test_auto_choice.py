"""`auto` from the outside: what the command line says of its choice, the demo, and the worker's start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mtbridge.server.worker
from mtbridge.client import Client
from mtbridge.compute.devices import Verdict
from mtbridge.compute.host import NumpyEngine
from mtbridge.server import Server, WorkerProcess


def command(*arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run mtbridge in `folder`, where no device is named."""
    environment = {**os.environ, "PYTHONPATH": str(Path(mtbridge.__file__).parents[1])}
    environment.pop("MTBRIDGE_DEVICE", None)
    done = subprocess.run(
        [sys.executable, "-m", "mtbridge", *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=environment,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture
def square(tmp_path: Path) -> Path:
    """A folder with a matrix that is small and one that is not."""
    random = np.random.default_rng(3)
    np.save(tmp_path / "small.npy", random.standard_normal((5, 5)))
    np.save(tmp_path / "large.npy", random.standard_normal((170, 170)))
    return tmp_path


def test_verbose_says_which_engine_was_chosen_and_why(square: Path, verdict: Verdict) -> None:
    done = command("multiply", "small.npy", "small.npy", "-v", folder=square)
    assert "auto chose numpy for multiply of 5x5 by 5x5 float64: it is too small" in done.stderr
    assert "numpy on" in done.stderr.splitlines()[-1]


def test_the_measurement_of_the_first_large_call_is_announced_and_explained(
    square: Path, verdict: Verdict
) -> None:
    for _ in range(2):
        done = command("multiply", "large.npy", "large.npy", "-v", "-o", "product.npz", folder=square)
        assert "auto chose " in done.stderr
        assert " ms, " in done.stderr
    assert "are timed" not in done.stderr, "the second run reads what the first one has stored"
    left = np.load(square / "large.npy")
    assert np.allclose(np.load(square / "product.npz")["matrix"], left @ left)


def test_an_engine_that_is_named_is_taken(square: Path) -> None:
    done = command("multiply", "large.npy", "large.npy", "-v", "--engine", "numpy", folder=square)
    assert "numpy computed, the only engine" in done.stderr
    assert "auto" not in done.stderr


def test_quiet_says_nothing_of_the_choice(square: Path, verdict: Verdict) -> None:
    assert not command("multiply", "small.npy", "small.npy", "-q", folder=square).stderr


def test_the_demo_shows_the_device_that_is_there_though_its_matrices_are_small(
    tmp_path: Path, verdict: Verdict
) -> None:
    assert json.loads(command("demo", "--json", folder=tmp_path).stdout)["engine"] == "opencl"
    found = json.loads(command("demo", "--json", "--engine", "auto", folder=tmp_path).stdout)
    assert found["engine"] == "numpy"
    assert found["largest_difference"] < 1e-12


def test_a_worker_that_chooses_says_so_and_answers(verdict: Verdict) -> None:
    bars = np.random.default_rng(5).standard_normal((60, 50))
    with WorkerProcess(engine_name="auto") as worker, Client(worker.endpoint) as client:
        pong = client.ping()
        assert pong.engine == "auto"
        assert f"{verdict.name} (opencl)" in pong.device
        assert np.allclose(client.correlation(bars), np.corrcoef(bars, rowvar=False))


def test_a_worker_prepares_its_engine_before_it_takes_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    class Prepared(NumpyEngine):
        ready = False

        def prepare(self) -> None:
            self.ready = True

    engine = Prepared()
    monkeypatch.setattr(mtbridge.server.worker, "open_engine", lambda name, **options: engine)
    with Server("tcp://127.0.0.1:0"):
        assert engine.ready
