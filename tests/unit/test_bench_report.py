"""What bench/report.py says of the checkout that was measured."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mtbridge.bench import report

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="git is a script of sh here")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like a checkout, where alone programs are found; git is to be put there."""
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(report, "PACKAGE", tmp_path / "mtbridge")
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def put_git(folder: Path, line: str) -> None:
    program = folder / "git"
    program.write_text(f"#!/bin/sh\n{line}\n")
    program.chmod(0o755)


def test_the_commit_is_what_git_says(checkout: Path) -> None:
    put_git(checkout, 'echo "$2 0123456789ab-dirty"')
    assert report.commit() == f"{checkout} 0123456789ab-dirty"


def test_without_git_or_a_checkout_there_is_no_commit(checkout: Path) -> None:
    assert report.commit() == ""
    put_git(checkout, "echo 0123456789ab")
    (checkout / ".git").rmdir()
    assert report.commit() == ""


def test_a_git_that_cannot_run_or_does_not_end_is_not_waited_for(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report, "GIT_SECONDS", 0.2)
    put_git(checkout, "exec /bin/sleep 60")
    assert report.commit() == ""
    (checkout / "git").write_text("no program at all\n")
    assert report.commit() == ""
