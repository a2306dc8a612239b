"""What makes the runtimes of PyPI work on a bare machine."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mtbridge.compute import embedded


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", os.environ["PATH"])
    return tmp_path / "cache"


@pytest.mark.skipif(sys.platform == "win32", reason="XDG_CACHE_HOME is not asked on Windows")
def test_the_cache_folder_is_where_the_system_says(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert embedded.cache_folder() == cache / "mtbridge"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert embedded.cache_folder() == Path.home() / ".cache" / "mtbridge"


@pytest.mark.skipif(sys.platform == "win32", reason="XDG_CACHE_HOME is not asked on Windows")
def test_where_no_cache_can_be_written_a_passing_one_serves_pyopencl_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    folder = embedded.writable_cache()
    assert folder.is_dir()
    assert os.environ["XDG_CACHE_HOME"] == str(folder.parent)
    assert embedded.cache_folder() == folder == embedded.writable_cache()


def test_the_wrapper_comes_first_on_path_once(cache: Path) -> None:
    embedded.wrap_linker()
    embedded.wrap_linker()
    folders = os.environ["PATH"].split(os.pathsep)
    assert folders[0] == str(cache / "mtbridge" / "linker")
    assert folders.count(folders[0]) == 1
    assert [path.name for path in (cache / "mtbridge" / "linker").iterdir()] == ["ld"]


@pytest.mark.skipif(not embedded.has_ziglang(), reason="ziglang is not installed")
def test_the_wrapper_is_a_linker_that_needs_no_library(cache: Path) -> None:
    embedded.wrap_linker()
    wrapper = cache / "mtbridge" / "linker" / "ld"
    done = subprocess.run(
        [wrapper, "--version", "-lc", "-lgcc", "-lm"], capture_output=True, text=True, timeout=100, check=True
    )
    assert "LLD" in done.stdout


def test_a_wrapper_of_another_python_is_replaced(cache: Path) -> None:
    folder = cache / "mtbridge" / "linker"
    folder.mkdir(parents=True)
    (folder / "ld").write_text("#!/bin/sh\nexec /gone/python -m ziglang ld.lld\n")
    embedded.wrap_linker()
    assert sys.executable in (folder / "ld").read_text()
    assert os.access(folder / "ld", os.X_OK)


def test_the_system_linker_leaves_path_alone(cache: Path) -> None:
    before = os.environ["PATH"]
    embedded.prepare("system")
    assert os.environ["PATH"] == before


@pytest.mark.skipif(sys.platform != "linux", reason="only PoCL on Linux links")
def test_the_system_linker_is_tried_first_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "ld").write_text("#!/bin/sh\n")
    (tmp_path / "ld").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert embedded.linkers()[0] == "system"
    (tmp_path / "ld").unlink()
    assert embedded.linkers() == (("ziglang",) if embedded.has_ziglang() else ())


@pytest.mark.skipif(not Path("/proc/cpuinfo").exists(), reason="there is no /proc/cpuinfo")
def test_the_processors_name_is_one_that_llvm_14_knows() -> None:
    assert embedded.processor_name() in [name for name, _ in embedded.PROCESSORS]


def test_no_record_is_touched_but_that_of_pocl_3() -> None:
    # an address that nothing may read: it would crash if it were looked at
    assert embedded.name_the_processor(8, "5.0") is None


@pytest.mark.skipif(sys.platform != "linux", reason="only PoCL on Linux links")
def test_our_own_wrapper_is_not_taken_for_the_systems_linker(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    before = embedded.linkers()
    embedded.wrap_linker()
    assert embedded.system_linker() is None
    assert embedded.linkers() == before
