"""`mtbridge tune` as typed, with a store of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtbridge.cli import main
from mtbridge.compute import tuned
from mtbridge.compute.devices import Verdict


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tuned, "cache_folder", lambda: tmp_path)
    return tmp_path / "tuned.json"


def called(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["mtbridge", "tune", *arguments])
    try:
        main()
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def test_tune_says_what_it_found_keeps_it_and_shows_it(
    verdict: Verdict, kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert called(monkeypatch, "--device", "cpu", "--show") == 0
    shown = capsys.readouterr().out
    assert shown.count("(shipped)") == len(shown.splitlines()) - 1
    assert not kept.exists()
    assert called(monkeypatch, "--device", "cpu", "--dtype", "float32", "--seconds", "1") == 0
    printed = capsys.readouterr()
    (line,) = printed.out.splitlines()
    assert line.startswith("float32: ")
    assert "x the shipped settings: WIDTH" in line
    assert "float32: the shipped settings take" in printed.err
    assert f"kept in {kept}" in printed.err
    assert called(monkeypatch, "--device", "cpu", "--show") == 0
    shown = capsys.readouterr().out
    assert "float32 (tuned here" in shown
    assert line.split("settings: ")[1] in shown


@pytest.mark.parametrize("arguments", [("--device", "Voodoo 2"), ("--device", "Voodoo 2", "--show")])
def test_a_device_that_is_not_there_is_one_sentence(
    verdict: Verdict,
    kept: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
) -> None:
    assert called(monkeypatch, *arguments) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("mtbridge: there is no OpenCL device 'Voodoo 2'")


@pytest.mark.parametrize("seconds", ["0", "-1", "1e9", "soon"])
def test_seconds_that_are_none_are_refused(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], seconds: str
) -> None:
    assert called(monkeypatch, "--seconds", seconds) == 2
    assert "--seconds" in capsys.readouterr().err
