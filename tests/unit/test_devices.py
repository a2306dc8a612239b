"""Broken runtimes that stay in a child process, verdicts that are kept, and which device is meant."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from mtbridge.compute import devices, embedded, open_engine, runtimes
from mtbridge.compute.devices import Survey, Verdict
from mtbridge.errors import DeviceError

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="vendor files of this kind are Linux's")

ABORTS = """
extern void abort(void);
__attribute__((constructor)) static void loaded(void) { abort(); }
"""
EXITS = """
extern void exit(int);
__attribute__((constructor)) static void loaded(void) { exit(7); }
"""


def verdict_of(name: str, *, kind: str = "cpu", ok: bool = True, platform: str = "PoCL") -> Verdict:
    return Verdict(key=name, platform=platform, name=name, kind=kind, ok=ok, reason="" if ok else "it aborts")


@pytest.fixture(scope="session")
def vendors(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Vendor files: of a library that aborts, of one that ends the process, of text, of nothing; and none."""
    root = tmp_path_factory.mktemp("vendors")
    compiler = ["g++", "-x", "c"] if shutil.which("g++") else [sys.executable, "-m", "ziglang", "cc"]
    named = {"text": root / "libtext.so", "gone": root / "libgone.so"}
    named["text"].write_text("this is no library\n")
    for name, source in (("aborts", ABORTS), ("exits", EXITS)):
        (root / f"{name}.c").write_text(source)
        named[name] = root / f"lib{name}.so"
        subprocess.run(
            [*compiler, "-shared", "-fPIC", "-o", named[name], root / f"{name}.c"], check=True, timeout=110
        )
    found = {"none": root / "none.icd"}
    for name, library in named.items():
        (root / name).mkdir()
        found[name] = root / name / f"{name}.icd"
        found[name].write_text(f"{library}\n")
    return found


def command(*arguments: str, vendors: Path | str, cache: Path) -> subprocess.CompletedProcess[str]:
    """Run mtbridge where the loader knows one vendor file only, or those in a folder besides its own."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "OCL_ICD_VENDORS": str(vendors)}
    environment.pop("MTBRIDGE_DEVICE", None)
    return subprocess.run(
        [sys.executable, "-m", "mtbridge", *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=environment,
    )


@LINUX
@pytest.mark.parametrize("broken", ["aborts", "exits", "text", "gone", "none"])
def test_a_broken_runtime_takes_nobody_down(vendors: dict[str, Path], tmp_path: Path, broken: str) -> None:
    done = command("devices", vendors=vendors[broken], cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert done.stdout + done.stderr, "says what was found"


@LINUX
@pytest.mark.parametrize("broken", ["aborts", "exits", "text", "gone"])
def test_devices_names_a_broken_runtime(vendors: dict[str, Path], tmp_path: Path, broken: str) -> None:
    done = command("devices", vendors=vendors[broken], cache=tmp_path)
    assert f"{broken}.icd" in done.stdout + done.stderr or f"lib{broken}.so" in done.stdout + done.stderr


@LINUX
def test_what_devices_says_does_not_send_to_devices(vendors: dict[str, Path], tmp_path: Path) -> None:
    done = command("devices", vendors=vendors["aborts"], cache=tmp_path)
    assert "signal 6" in done.stdout + done.stderr
    assert "tells more" not in done.stdout + done.stderr


@LINUX
@pytest.mark.parametrize("broken", ["aborts", "none"])
def test_auto_falls_back_to_numpy_with_a_line(vendors: dict[str, Path], tmp_path: Path, broken: str) -> None:
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    path = str(tmp_path / "a.csv")
    done = command("multiply", path, path, vendors=vendors[broken], cache=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "mtbridge: numpy is used" in done.stderr
    assert "22" in done.stdout or "2.2" in done.stdout


@LINUX
@pytest.mark.parametrize("broken", ["aborts", "none"])
def test_opencl_without_a_device_is_one_sentence(
    vendors: dict[str, Path], tmp_path: Path, broken: str
) -> None:
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    path = str(tmp_path / "a.csv")
    done = command("multiply", path, path, "--engine", "opencl", vendors=vendors[broken], cache=tmp_path)
    assert done.returncode == 1
    assert done.stdout == ""
    lines = done.stderr.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("mtbridge: ")


@LINUX
def test_one_broken_runtime_does_not_hide_a_good_one(
    vendors: dict[str, Path], tmp_path: Path, verdict: Verdict
) -> None:
    """The loader loads every runtime; one that aborts must cost that one only."""
    done = command("devices", vendors=f"{vendors['aborts'].parent}/", cache=tmp_path)
    assert done.returncode == 0
    assert "works" in done.stdout, done.stdout + done.stderr


@LINUX
def test_a_cache_folder_that_cannot_be_written_takes_nobody_down(
    vendors: dict[str, Path], tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    done = command("devices", vendors=vendors["none"], cache=blocked / "below")
    assert "Traceback" not in done.stderr, done.stderr[-400:]
    assert done.returncode == 0


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    looks: list[int] = []

    def examine() -> Survey:
        looks.append(1)
        return Survey((verdict_of("Radeon", kind="gpu"),))

    monkeypatch.setattr(devices, "examine", examine)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return looks


def test_a_verdict_is_kept_until_a_runtime_changes(
    counted: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    first = devices.survey()
    assert devices.survey() == first
    assert len(counted) == 1
    devices.survey(fresh=True)
    assert len(counted) == 2
    folder = tmp_path / "vendors"
    folder.mkdir()
    monkeypatch.setenv("OCL_ICD_VENDORS", str(folder))
    devices.survey()
    assert len(counted) == 3
    (folder / "new.icd").write_text("libnew.so\n")
    devices.survey()
    assert len(counted) == 4


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"a": 1}', b"\xff\x00", b'{"k": {"verdicts": [1]}}'])
def test_a_damaged_cache_is_made_again(counted: list[int], tmp_path: Path, content: bytes) -> None:
    devices.survey()
    (tmp_path / "mtbridge" / "devices.json").write_bytes(content)
    assert devices.survey().verdicts[0].name == "Radeon"
    assert len(counted) == 2
    assert [path.name for path in (tmp_path / "mtbridge").iterdir()] == ["devices.json"]


@pytest.fixture
def four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MTBRIDGE_DEVICE", raising=False)
    seen = Survey(
        (
            verdict_of("pthread-EPYC"),
            verdict_of("Broken RTX", kind="gpu", ok=False, platform="NVIDIA CUDA"),
            verdict_of("RTX 4090", kind="gpu", platform="NVIDIA CUDA"),
            verdict_of("Arc A770", kind="gpu", platform="Intel Graphics"),
        )
    )
    monkeypatch.setattr(devices, "survey", lambda **_: seen)


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        (None, "RTX 4090"),
        ("0", "pthread-EPYC"),
        ("3", "Arc A770"),
        ("gpu", "RTX 4090"),
        ("CPU", "pthread-EPYC"),
        ("rtx", "RTX 4090"),
        ("intel", "Arc A770"),
        ("epyc", "pthread-EPYC"),
    ],
)
def test_a_device_is_meant_by_index_name_part_or_kind(wanted: str | None, name: str) -> None:
    assert devices.choose(wanted).name == name


@pytest.mark.usefixtures("four")
def test_the_environment_chooses_and_an_argument_overrules_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTBRIDGE_DEVICE", "arc")
    assert devices.choose().name == "Arc A770"
    assert devices.choose("cpu").name == "pthread-EPYC"
    monkeypatch.setenv("MTBRIDGE_DEVICE", "")
    assert devices.choose().name == "RTX 4090"


@pytest.mark.usefixtures("four")
@pytest.mark.parametrize("wanted", ["9", "Voodoo", "-1", "²"])
def test_a_device_that_is_not_there_is_refused_with_those_that_are(wanted: str) -> None:
    with pytest.raises(DeviceError, match=r"no OpenCL device.*there are 0: pthread-EPYC, 1: Broken RTX"):
        devices.choose(wanted)


@pytest.mark.usefixtures("four")
def test_a_broken_device_that_is_meant_is_refused_with_its_reason() -> None:
    with pytest.raises(DeviceError, match="Broken RTX does not work: it aborts"):
        devices.choose("1")


def test_no_device_at_all_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "survey", lambda **_: Survey(()))
    monkeypatch.delenv("MTBRIDGE_DEVICE", raising=False)
    with pytest.raises(DeviceError, match=r"mtbridge\[cpu\]"):
        devices.choose()


def test_auto_without_a_device_is_numpy_with_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(devices, "survey", lambda **_: Survey(()))
    monkeypatch.delenv("MTBRIDGE_DEVICE", raising=False)
    with open_engine() as engine:
        assert engine.name == "numpy"
    assert capsys.readouterr().err.startswith("mtbridge: numpy is used, since no OpenCL device was found")


def test_a_hanging_runtime_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtimes, "PROBE_SECONDS", 0.01)
    assert runtimes.child("system") == ("", "no answer within 0.01 s")


def test_a_device_is_probed_in_a_child(verdict: Verdict) -> None:
    output, fault = runtimes.child(verdict.linker, "0")
    assert not fault
    assert '"ok":true' in output
    output, fault = runtimes.child(verdict.linker, "99")
    assert not output
    assert "ended with code 1" in fault


@pytest.mark.skipif(os.name != "posix", reason="symbolic links need rights on Windows")
def test_a_link_that_outlived_its_driver_is_no_vendor_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "gone.icd").symlink_to(tmp_path / "nowhere")
    (tmp_path / "there.icd").write_text("libthere.so\n")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    assert runtimes.vendor_files() == [tmp_path / "there.icd"]
    assert runtimes.fingerprint()


@pytest.mark.skipif(sys.platform != "linux", reason="only PoCL on Linux links")
def test_what_we_prepare_for_a_device_does_not_make_its_verdict_stale(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("OCL_ICD_VENDORS", "POCL_CACHE_DIR"):
        monkeypatch.setenv(name, "x")
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    before = runtimes.fingerprint()
    embedded.prepare("ziglang", str(tmp_path / "mtbridge" / "vendors"))
    assert os.environ["OCL_ICD_VENDORS"]
    assert runtimes.fingerprint() == before


def test_an_index_may_be_a_number(verdict: Verdict) -> None:
    index: Any = devices.survey().verdicts.index(verdict)
    with open_engine("opencl", device=index) as engine:
        assert engine.device == verdict.name
    wrong: Any = 99
    with pytest.raises(DeviceError, match="no OpenCL device '99'"):
        open_engine("opencl", device=wrong)
