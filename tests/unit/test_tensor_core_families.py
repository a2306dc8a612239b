"""compute/tensor_cores.py: the fastest family that is right, and the next one where it is not."""

from __future__ import annotations

from typing import Any

import pytest

from mtbridge.compute import tensor_cores
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.errors import DeviceError


class FakeDevice:
    """A device of some capability that builds all kernels but those of `unbuilt` files."""

    def __init__(self, capability: int, *unbuilt: str) -> None:
        self.capability, self.unbuilt = capability, unbuilt
        self.built: list[str] = []

    def kernel(self, name: str, files: tuple[str, ...], defines: dict[str, int]) -> None:
        if any(part in files[-1] for part in self.unbuilt):
            raise DeviceError(f"building {files[-1]} failed")
        self.built.append(files[-1])


@pytest.fixture
def verdicts(monkeypatch: pytest.MonkeyPatch) -> dict[str, tuple[bool, str]]:
    """The verdicts on the families, all good at first."""
    names = [family.name for family in tensor_cores.FAMILIES]
    found = {name: (True, "") for one in names for name in (one, f"{one} masks")}
    monkeypatch.setattr(tensor_cores, "trusted", lambda key, capability, *, family: found[family])
    return found


@pytest.mark.parametrize(
    ("capability", "expected"),
    [(90, "split_wgmma"), (80, "split_mma"), (100, "split_mma"), (89, None), (0, None)],
)
def test_the_fastest_family_of_a_device_is_taken(
    verdicts: dict[str, tuple[bool, str]], capability: int, expected: str | None
) -> None:
    device: Any = FakeDevice(capability)
    form, faults = tensor_cores.centred_form(device, "key")
    assert (form.file if form else None) == expected
    assert not faults
    assert set(device.built) == ({f"gram/{expected}.cl"} if expected else set())


def test_the_next_family_is_taken_where_one_is_wrong(verdicts: dict[str, tuple[bool, str]]) -> None:
    device: Any = FakeDevice(90)
    verdicts["split_wgmma"] = (False, "X'X is wrong")
    form, faults = tensor_cores.centred_form(device, "key")
    assert form is not None
    assert form.file == "split_mma"
    assert faults == {"split_wgmma": "X'X is wrong"}
    # a verdict that was known before is not told again
    verdicts["split_wgmma"] = (False, "")
    assert tensor_cores.centred_form(device, "key")[1] == {}


def test_products_with_masks_are_tried_apart(verdicts: dict[str, tuple[bool, str]]) -> None:
    device: Any = FakeDevice(90)
    form, faults = tensor_cores.centred_form(device, "key")
    assert form is not None
    assert form.masks
    assert not faults
    verdicts["split_wgmma masks"] = (False, "rows of pairs are wrong")
    form, faults = tensor_cores.centred_form(device, "key")
    assert form is not None
    assert form.file == "split_wgmma"
    assert not form.masks
    assert faults == {"split_wgmma masks": "rows of pairs are wrong"}


def test_the_portable_kernels_are_left_where_no_family_can_be_built(
    verdicts: dict[str, tuple[bool, str]],
) -> None:
    device: Any = FakeDevice(90, "split_")
    form, faults = tensor_cores.centred_form(device, "key")
    assert form is None
    assert list(faults) == ["split_wgmma", "split_mma"]
    assert all("failed" in fault for fault in faults.values())


def test_an_engine_says_once_what_is_left_out_and_what_is_taken_instead(
    verdicts: dict[str, tuple[bool, str]], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        engine = open_opencl("cpu")
    except DeviceError as error:
        pytest.skip(f"no OpenCL device on a processor: {error}")
    with engine:
        verdicts["split_wgmma"] = (False, "X'X is wrong")
        taken = tensor_cores.form_of("split_mma", 0)
        monkeypatch.setattr(engine.kernels_device, "capability", 90)
        monkeypatch.setattr(tensor_cores, "build", lambda device, form, total: None)
        monkeypatch.setattr(OpenCLEngine, "form_in_use", lambda self, dtype: taken)
        engine._split_untried = True
        for _ in range(2):
            assert engine._form_of_centred("float32").file == "split_mma"
    said = capsys.readouterr().err
    assert said.count("mtbridge: ") == 1
    assert "the split_wgmma kernels of" in said
    assert "X'X is wrong; the split_mma kernels are used" in said


def test_forms_are_those_of_their_family() -> None:
    for family in tensor_cores.FAMILIES:
        for products in (1, 3):
            form = tensor_cores.form_of(family.name, family.capabilities[0], products)
            assert form.file == family.name
            assert form.defines["PRODUCTS"] == products
