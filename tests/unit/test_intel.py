"""Intel's runtime from PyPI: found by its wheel, offered beside all others, preferred; left out if broken.

A wheel's record in a folder of the test stands in for the real one, which need not be installed; what asks
for the runtime itself skips without it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from mtbridge.compute import devices, embedded, forms, runtimes
from mtbridge.compute.devices import Survey, Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.matrix import DTYPES
from mtbridge.sources import tuned

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="the wiring is for the wheel for Linux")
INSTALLED = pytest.mark.skipif(
    embedded.intel_library() is None, reason="the `intel` extra (intel-opencl-rt) is not installed"
)
ABORTS = """
extern void abort(void);
__attribute__((constructor)) static void loaded(void) { abort(); }
"""
Wheel = Callable[[Path | str], Path]


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own, and a loader whose places nobody has set."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    # set first, so that what `prepare` may put there is taken away after the test
    monkeypatch.setenv("OCL_ICD_VENDORS", "x")
    monkeypatch.delenv("OCL_ICD_VENDORS")
    return tmp_path / "cache" / "mtbridge"


@pytest.fixture
def wheel(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Wheel:
    """Install the record of a wheel whose library holds a text, or is another file under its name."""

    def installed(content: Path | str) -> Path:
        site = tmp_path / "lib" / "site-packages"
        info = site / "intel_opencl_rt-1.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: intel-opencl-rt\nVersion: 1\n")
        (info / "RECORD").write_text("../cl.cfg,,\n../libintelocl.so,,\n")
        library = tmp_path / "lib" / "libintelocl.so"
        if isinstance(content, Path):
            shutil.copy(content, library)
        else:
            library.write_text(content)
        monkeypatch.syspath_prepend(site)
        return library.resolve()

    return installed


@LINUX
def test_the_library_is_found_where_the_wheels_record_says(wheel: Wheel) -> None:
    library = wheel("text")
    assert embedded.intel_library() == library
    library.unlink()
    assert embedded.intel_library() is None


def test_without_the_wheel_there_is_no_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert embedded.intel_library() is None
    assert embedded.intel_libraries_version() == ""


@LINUX
def test_the_library_is_offered_unless_the_user_says_what_the_loader_reads(
    wheel: Wheel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = wheel("text")
    assert runtimes.vendor_files()[-1] == library
    own = tmp_path / "of the user"
    own.mkdir()
    (own / "a.icd").write_text("liba.so\n")
    monkeypatch.setenv("OCL_ICD_VENDORS", str(own))
    assert runtimes.vendor_files() == [own / "a.icd"]
    # the folder that we name ourselves is no wish of the user
    monkeypatch.setenv("OCL_ICD_VENDORS", str(runtimes.own_vendors()))
    assert runtimes.vendor_files()[-1] == library


@LINUX
def test_another_runtime_is_another_fingerprint(wheel: Wheel, monkeypatch: pytest.MonkeyPatch) -> None:
    library = wheel("text")
    first = runtimes.fingerprint()
    os.utime(library, ns=(1, 1))
    second = runtimes.fingerprint()
    monkeypatch.setattr(runtimes, "intel_libraries_version", lambda: "of another day")
    third = runtimes.fingerprint()
    library.unlink()
    assert len({first, second, third, runtimes.fingerprint()}) == 4


@LINUX
def test_what_we_name_to_the_loader_does_not_make_the_survey_stale(wheel: Wheel) -> None:
    wheel("text")
    before = runtimes.fingerprint()
    embedded.prepare("system", str(runtimes.own_vendors()))
    assert os.environ["OCL_ICD_VENDORS"]
    assert runtimes.fingerprint() == before


def needs_another(verdict: Verdict) -> None:
    """Skip where Intel's device, which the test takes away, is the one that tests compute on."""
    if "Intel" in verdict.platform:
        pytest.skip("there is no other device than Intel's")


@LINUX
def test_a_library_that_cannot_be_loaded_is_named_and_costs_nothing_else(
    wheel: Wheel, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs_another(verdict)
    library = wheel("this is no library")
    monkeypatch.setattr(runtimes, "intel_libraries_version", lambda: "")
    seen = devices.examine()
    assert any(each.ok for each in seen.verdicts)
    assert seen.vendors == ""
    (fault,) = [fault for fault in seen.faults if str(library) in fault]
    assert "is left out" in fault
    assert fault.endswith("`pip install intel-cmplr-lib-rt` brings what it needs")


@LINUX
def test_a_library_that_aborts_is_named_and_costs_nothing_else(
    wheel: Wheel, verdict: Verdict, tmp_path: Path
) -> None:
    needs_another(verdict)
    (tmp_path / "aborts.c").write_text(ABORTS)
    compiler = ["g++", "-x", "c"] if shutil.which("g++") else [sys.executable, "-m", "ziglang", "cc"]
    made = [*compiler, "-shared", "-fPIC", "-o", tmp_path / "aborts.so", tmp_path / "aborts.c"]
    subprocess.run(made, check=True, timeout=110)
    library = wheel(tmp_path / "aborts.so")
    seen = devices.examine()
    assert any(each.ok for each in seen.verdicts)
    assert seen.vendors == ""
    (fault,) = [fault for fault in seen.faults if str(library) in fault]
    assert "signal 6" in fault


@LINUX
def test_a_device_that_the_loader_would_lose_is_worth_more(wheel: Wheel, own_cache: Path) -> None:
    """A loader that looks elsewhere than in /etc/OpenCL/vendors finds less once it is told where to look."""
    wheel("text")
    listed = devices.msgspec.json.encode([devices.Listed("key", "Elsewhere", "Lost GPU", "gpu")]).decode()
    assert runtimes.beside_the_others("system", listed) == ("", "the loader would lose Lost GPU")


@LINUX
def test_a_cleared_folder_is_made_again(own_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []

    def examine() -> Survey:
        looks.append(str(runtimes.own_vendors()))
        return Survey((), vendors=looks[-1])

    monkeypatch.setattr(devices, "examine", examine)
    devices.survey()
    devices.survey()
    assert len(looks) == 1
    shutil.rmtree(own_cache / "vendors")
    assert Path(devices.survey().vendors).is_dir()
    assert len(looks) == 2


def verdict_of(name: str, platform: str, *, kind: str = "cpu", ok: bool = True) -> Verdict:
    return Verdict(key=platform, platform=platform, name=name, kind=kind, ok=ok)


@pytest.mark.parametrize(
    ("wanted", "ok", "gpu", "chosen"),
    [
        (None, True, False, "Intel(R) OpenCL"),
        ("cpu", True, True, "Intel(R) OpenCL"),
        ("EPYC", True, True, "Intel(R) OpenCL"),
        ("0", True, True, "Portable Computing Language"),
        ("portable", True, False, "Portable Computing Language"),
        (None, True, True, "Intel(R) OpenCL Graphics"),
        (None, False, False, "Portable Computing Language"),
        ("cpu", False, False, "Portable Computing Language"),
    ],
)
def test_intels_runtime_comes_first_among_processors_and_after_a_gpu(
    wanted: str | None, ok: bool, gpu: bool, chosen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = [
        verdict_of("pthread-AMD EPYC", "Portable Computing Language"),
        verdict_of("AMD EPYC", "Intel(R) OpenCL", ok=ok),
    ]
    if gpu:
        seen.append(verdict_of("Arc", "Intel(R) OpenCL Graphics", kind="gpu"))
    monkeypatch.delenv("MTBRIDGE_DEVICE", raising=False)
    monkeypatch.setattr(devices, "survey", lambda **_: Survey(tuple(seen)))
    assert devices.choose(wanted).platform == chosen


@pytest.mark.parametrize("dtype", DTYPES)
def test_its_settings_obey_the_kernels_rules_and_others_keep_theirs(dtype: str) -> None:
    form = forms.packed_form(dtype, 64, platform="Intel(R) OpenCL")
    assert form.defines == tuned("intel")["64"][dtype]
    assert form.rows % form.right == 0, "rows of a block must be whole panels"
    assert form.right % form.defines["WIDTH"] == 0
    assert form.right % form.left == 0, "gram reads both operands from the right panels"
    assert forms.packed_form(dtype, 64).defines == tuned("cpu")["64"][dtype]
    narrow = forms.packed_form(dtype, 32, platform="Intel(R) OpenCL")
    assert narrow.defines == tuned("cpu")["32"][dtype]


@pytest.fixture(scope="module")
def intel_engine(verdict: Verdict) -> Iterator[OpenCLEngine]:
    found = next((one for one in devices.survey().verdicts if devices.rank(one) == 1), None)
    if found is None:
        pytest.skip("the loader does not list Intel's runtime")
    assert found.ok, found.reason
    with open_opencl("Intel") as engine:
        yield engine


@INSTALLED
@pytest.mark.skipif(bool(runtimes.asked_vendors()), reason="OCL_ICD_VENDORS says what the loader reads")
def test_the_runtime_works_is_preferred_and_hides_no_other(intel_engine: OpenCLEngine) -> None:
    seen = devices.survey()
    assert not seen.faults
    assert devices.choose("cpu").platform == intel_engine._device.platform
    output, fault = runtimes.child("system", "list")
    assert not fault
    without = {one.key for one in devices.msgspec.json.decode(output, type=list[devices.Listed])}
    assert without <= {one.key for one in seen.verdicts}


@INSTALLED
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("rows", "inner", "columns"), [(1, 1, 1), (49, 600, 47), (97, 33, 145), (300, 7, 1)])
def test_its_products_are_within_their_bound(
    intel_engine: OpenCLEngine, rows: int, inner: int, columns: int, dtype: str
) -> None:
    random = np.random.default_rng(rows)
    A = random.standard_normal((rows, inner)).astype(dtype)
    B = random.standard_normal((inner, columns)).astype(dtype)
    wide = B.astype(np.longdouble)
    bound = inner * np.finfo(dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
    assert (np.abs(intel_engine.multiply(A, B) - A.astype(np.longdouble) @ wide) <= bound).all()
    G = intel_engine.gram(B)
    bound = inner * np.finfo(dtype).eps * (np.abs(B).astype(float).T @ np.abs(B).astype(float))
    assert (np.abs(G - wide.T @ wide) <= bound).all()
    assert np.array_equal(G, G.T)
