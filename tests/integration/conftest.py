"""What tests share: prices in the folder where `run` calls the command line, a worker and its client."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from command_line import Run

from mtbridge.client import Client
from mtbridge.server import WorkerProcess


@pytest.fixture
def prices(tmp_path: Path, run: Run) -> Path:
    assert run("sample", "--columns", "5", "--rows", "200", "-o", "prices.csv")[0] == 0
    return tmp_path / "prices.csv"


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerProcess]:
    """A worker process whose engine is numpy."""
    with WorkerProcess(engine_name="numpy") as worker:
        yield worker


@pytest.fixture
def client(worker: WorkerProcess) -> Iterator[Client]:
    with Client(worker.endpoint, timeout=20) as client:
        yield client
