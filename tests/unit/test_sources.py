"""Where kernels lie, and how a program is put together."""

from __future__ import annotations

import pytest

from mtbridge.sources import data_folder, kernel_text, program_text, tuned


@pytest.mark.parametrize("name", ["kernels", "mql5"])
def test_the_data_folders_are_found(name: str) -> None:
    assert data_folder(name).is_dir()


def test_a_program_is_defines_then_common_then_files_in_order() -> None:
    text = program_text(("packed.clh", "gram/packed.cl"), {"WIDTH": 8, "REAL_BITS": 64})
    assert text.startswith("#define REAL_BITS 64\n#define WIDTH 8\n")
    places = [text.index(kernel_text(name)) for name in ("common.clh", "packed.clh", "gram/packed.cl")]
    assert places == sorted(places)


def test_a_program_needs_no_include_path() -> None:
    assert "#include" not in program_text(("packed.clh", "gram/packed.cl", "multiply/pack.cl"), {})


def test_the_same_settings_give_the_same_text_in_any_order() -> None:
    one = program_text(("probe.cl",), {"A": 1, "B": 2})
    assert one == program_text(("probe.cl",), {"B": 2, "A": 1})


@pytest.mark.parametrize("name", ["cpu", "gpu", "intel"])
def test_tuned_settings_name_both_element_types(name: str) -> None:
    for settings in tuned(name).values():
        assert set(settings) == {"float32", "float64"}
