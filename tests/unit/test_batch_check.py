"""What the check of a device finds in batches on tensor cores, here in plain OpenCL C."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from mtbridge.compute import nvidia, opencl
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.sources import program_text
from tests.conftest import DEVICE

FAULTS = {
    "a column": ("right[4 * Q + COLUMN_AT(j)]", "right[4 * Q + j]"),
    "a place in a grid": ("warp % pairs * 32;", "warp % pairs * 16;"),
    "a place in a triangle": ("const int first = p + 2 * next;", "const int first = p + next;"),
}


def test_batches_that_are_right_have_no_fault(tiled_engine: OpenCLEngine) -> None:
    assert nvidia.fault_of_batches(tiled_engine.kernels_device, 0) == ""


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_kernel_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    right, wrong = FAULTS[fault]

    def spoilt(files: tuple[str, ...], defines: Mapping[str, int]) -> str:
        text = program_text(files, defines)
        assert right in text
        return text.replace(right, wrong)

    with open_opencl(DEVICE) as engine:
        monkeypatch.setattr(opencl, "program_text", spoilt)
        # items that write to the same place do so in any order: the bits may differ, or be equal and wrong
        assert nvidia.fault_of_batches(engine.kernels_device, 0).startswith("a batch of ")


def test_devices_without_a_use_for_them_are_not_asked(tiled_engine: OpenCLEngine) -> None:
    # their instructions could not be built here
    assert nvidia.fault_of_batches(tiled_engine.kernels_device, 89) == ""
