"""Which devices are meant to share a matrix: what may be typed, and what is refused with a sentence."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mtbridge.compute import devices, open_engine
from mtbridge.compute.devices import Survey, Verdict
from mtbridge.errors import DeviceError

SEVERAL_DEVICES = pytest.mark.skipif(
    sys.platform != "linux", reason="PoCL, which can be two devices, is Linux's"
)


def card(name: str, *, ok: bool = True, driver: str = "550") -> Verdict:
    key = f"NVIDIA CUDA | OpenCL 3.0 | {name} | {driver}"
    reason = "" if ok else "it hangs"
    return Verdict(key=key, platform="NVIDIA CUDA", name=name, kind="gpu", ok=ok, reason=reason)


EPYC = Verdict(key="EPYC", platform="PoCL", name="EPYC", kind="cpu", ok=True)
H200, BROKEN, OTHER = card("H200"), card("H200", ok=False), card("RTX 4090")
NEWER = card("H200", driver="580")


@pytest.fixture
def there(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The devices of the test's parameter and no others."""
    monkeypatch.delenv("MTBRIDGE_DEVICE", raising=False)
    seen = devices.numbered(Survey(request.param))
    monkeypatch.setattr(devices, "survey", lambda **_: seen)


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize(
    ("there", "wanted", "indices"),
    [
        ((EPYC, H200, H200, H200), "all", [1, 2, 3]),
        ((EPYC, H200, H200, H200), "ALL", [1, 2, 3]),
        ((EPYC, H200, H200, H200), "1+3", [1, 3]),
        ((EPYC, H200, H200, H200), "3+1", [3, 1]),
        ((EPYC, H200, H200, H200), "gpu", [1]),
        ((EPYC, H200, H200, H200), "2", [2]),
        ((EPYC, H200, H200, H200), None, [1]),
        ((H200, BROKEN, H200), "all", [0, 2]),
        ((H200, OTHER, H200), "0+2", [0, 2]),
        ((H200,), "all", [0]),
        ((EPYC, EPYC), "0+1", [0, 1]),
    ],
    indirect=["there"],
)
def test_devices_are_meant_by_all_or_by_their_indices(wanted: str | None, indices: list[int]) -> None:
    found = devices.choose_all(wanted)
    assert list(found) == indices
    assert devices.choose(wanted) == found[indices[0]]


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("there", [(EPYC, H200, H200)], indirect=True)
def test_the_environment_may_name_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MTBRIDGE_DEVICE", "all")
    assert list(devices.choose_all()) == [1, 2]
    assert list(devices.choose_all("2")) == [2]


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize("there", [(EPYC, H200, OTHER, H200)], indirect=True)
def test_cards_of_one_kind_are_told_from_each_other_by_their_order() -> None:
    assert [verdict.twin for verdict in devices.survey().verdicts] == [0, 0, 0, 1]


@pytest.mark.usefixtures("there")
@pytest.mark.parametrize(
    ("there", "wanted", "sentence"),
    [
        ((EPYC,), "all", r"no GPU among the OpenCL devices; there are 0: EPYC; type an index, several"),
        ((), "0+1", r"no OpenCL device '0'; there are none at all; type"),
        (
            (EPYC, H200),
            "1+2",
            r"no OpenCL device '2'; there are 0: EPYC, 1: H200; type an index, several",
        ),
        (
            (EPYC, H200),
            "1+",
            r"no OpenCL device '1\+'; .* as 0\+1, all for every GPU, gpu, cpu or a part of",
        ),
        ((EPYC, H200), "1+gpu", r"no OpenCL device '1\+gpu'"),
        ((H200, H200), "1+1", r"'1\+1' names the OpenCL device 1 twice; name each once"),
        ((H200, H200), "1+01", r"'1\+01' names the OpenCL device 01 twice"),
        ((H200, BROKEN), "0+1", r"H200 does not work: it hangs; `mtbridge devices --fresh`"),
        ((BROKEN, BROKEN), "all", r"H200 does not work: it hangs"),
        ((EPYC, H200), "0+1", r"'0\+1' differ \(0: EPYC, 1: NVIDIA CUDA .*H200.*\); .*: type --device 0\.$"),
        (
            (OTHER, H200, H200),
            "all",
            r"'all' differ \(0: .*4090.*, 1\+2: .*H200.*\); .* type --device 1\+2\.$",
        ),
        ((H200, NEWER), "all", r"0: .*H200 \| 550, 1: .*H200 \| 580\); only those of one name and driver"),
    ],
    indirect=["there"],
)
def test_what_cannot_share_is_refused_with_what_to_type(wanted: str, sentence: str) -> None:
    with pytest.raises(DeviceError, match=sentence) as raised:
        devices.choose_all(wanted)
    assert "\n" not in str(raised.value)


@pytest.fixture(scope="module")
def two_processors(verdict: Verdict, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which PoCL is two devices of one kind."""
    if "Portable" not in verdict.platform:
        pytest.skip(f"{verdict.platform} cannot be told to be two devices")
    # of one compute unit each, by the names of older and newer versions: so work for two is soon there
    units = {"POCL_MAX_PTHREAD_COUNT": "1", "POCL_CPU_MAX_CU_COUNT": "1"}
    environment = {**os.environ, **units, "POCL_DEVICES": "pthread pthread"}
    environment.pop("MTBRIDGE_DEVICE", None)
    # what is known of one device is kept for the tests that need one
    return environment | {"XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


def run(*arguments: str, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env=environment,
    )


@pytest.fixture(scope="module")
def factors(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Files of two matrices of small whole numbers, whose product is large enough to be shared, and exact."""
    folder = tmp_path_factory.mktemp("factors")
    numbers = np.random.default_rng(5).integers(-1, 2, (1_000, 6_000)).astype(np.float32)
    for name, factor in (("a", numbers), ("b", numbers[::-1].T)):
        np.save(folder / f"{name}.npy", factor)
    return [str(folder / "a.npy"), str(folder / "b.npy")]


@SEVERAL_DEVICES
def test_the_command_line_shares_a_product_and_says_so(
    two_processors: dict[str, str], factors: list[str], tmp_path: Path
) -> None:
    output = tmp_path / "product.npz"
    words = ["multiply", *factors, "--engine", "opencl", "--device", "0+1", "-v", "-o", str(output)]
    done = run("-m", "mtbridge", *words, environment=two_processors)
    assert done.returncode == 0, done.stderr
    assert re.search(r"opencl shared \d+ stripes among 2 devices: device 0 did \d", done.stderr), done.stderr
    assert "opencl on 2 x " in done.stderr
    a, b = (np.load(path) for path in factors)
    with np.load(output) as found:
        assert any(np.array_equal(found[name], a @ b) for name in found.files)


@SEVERAL_DEVICES
def test_small_work_is_done_by_the_first_of_them(two_processors: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("1,2\n3,4\n")
    path = str(tmp_path / "a.csv")
    environment = {**two_processors, "MTBRIDGE_DEVICE": "0+1"}
    done = run("-m", "mtbridge", "multiply", path, path, "-v", environment=environment)
    assert done.returncode == 0, done.stderr
    assert "opencl did the product on one device" in done.stderr
    assert "opencl on 2 x " not in done.stderr


@SEVERAL_DEVICES
@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        ("all", "there is no GPU among the OpenCL devices; there are 0: "),
        ("0+7", "there is no OpenCL device '7'; there are 0: "),
        ("0+0", "'0+0' names the OpenCL device 0 twice; name each once."),
        ("0 + 1", "there is no OpenCL device '0 + 1'; there are 0: "),
    ],
)
def test_a_wrong_selector_is_one_line_on_the_command_line(
    two_processors: dict[str, str], factors: list[str], wanted: str, sentence: str
) -> None:
    done = run("-m", "mtbridge", "multiply", *factors, "--device", wanted, environment=two_processors)
    assert done.returncode == 1
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith(f"mtbridge: {sentence}")


OPENED_BY_INDEX = """
from mtbridge.compute import open_engine
with open_engine("opencl", device=0) as one, open_engine("opencl", device="1") as other:
    handles = {engine.kernels_device.queue.device.int_ptr for engine in (one, other)}
with open_engine("opencl", device="1+0") as both:
    shared = [engine.kernels_device.queue.device.int_ptr for engine in (one.engine for one in both._members)]
    print(len(handles), len(set(shared)), set(shared) == handles, both.device)
"""


@SEVERAL_DEVICES
def test_the_second_of_two_alike_is_opened_by_its_index(two_processors: dict[str, str]) -> None:
    done = run("-c", OPENED_BY_INDEX, environment=two_processors)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2 2 True 2 x ")
    assert done.stdout.rstrip().endswith("(devices 1, 0)")


def test_one_device_alone_is_an_engine_of_its_own(verdict: Verdict) -> None:
    with open_engine("opencl", device="cpu") as engine:
        assert engine.device == verdict.name
