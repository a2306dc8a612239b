"""What the tests of the command line share: it is called in this process, in an empty folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from command_line import Run

from mtbridge.cli import main


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command line in this process, in an empty folder; return exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("MTBRIDGE_DEVICE", raising=False)

    def called(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["mtbridge", *arguments])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return called


@pytest.fixture
def prices(tmp_path: Path, run: Run) -> Path:
    assert run("sample", "--columns", "5", "--rows", "200", "-o", "prices.csv")[0] == 0
    return tmp_path / "prices.csv"
