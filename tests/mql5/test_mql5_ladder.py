"""Ladder.mq5: its launch table against ladder.py, and its run on the OpenCL device of this machine."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from harness import build, opencl
from harness.programs import Run, Runner

from mtbridge.compute.devices import Verdict
from mtbridge.compute.forms import SQUARE, Form, packed_form, tiled_form, whole_grid
from mtbridge.compute.ladder import LADDER, Abilities, Rung, hindrance
from mtbridge.compute.strips import chunk_rows, strip_macros
from mtbridge.sources import kernel_text

RUNNERS = ("host", "kernel", "engine")
LAYOUTS = ("rows", "columns", "image", "panels")
NO_IMAGES = "the terminal's OpenCL functions know buffers and no images"
# rows, inner, columns, bytes of an element, largest group
CASES = (
    (37, 45, 53, 4, 4096),
    (64, 8, 12, 8, 256),
    (1, 1, 1, 4, 64),
    (3000, 1001, 7, 8, 100),
    (5, 4, 3, 4, 33),
)
BY_DEVICE = [rung for rung in LADDER if rung.runner != "host"]
Settings = dict[str, object]


def probed(run: Runner, **settings: object) -> Run:
    return run("LadderProbe", InpCases=" ".join(",".join(map(str, case)) for case in CASES), **settings)


def entries(done: Run, kind: str) -> dict[tuple[str, str], str]:
    """Lines `kind|case|rung|rest` of LadderProbe."""
    found = {}
    for line in done.lines:
        if line.startswith(f"{kind}|"):
            _, case, rung, rest = line.split("|", 3)
            found[case, rung] = rest
    return found


def labelled(case: tuple[int, ...]) -> str:
    return ",".join(map(str, case))


def in_mql5(rung: Rung) -> str:
    """A row of the table as LadderProbe prints it."""
    walks = "".join(
        f" {walk.along}:{walk.step}:{side}" for walk, side in zip(rung.walks, rung.local, strict=True)
    )
    fixed, mapped = str(rung.fixed).lower(), str(rung.mapped).lower()
    fields = (
        rung.name,
        RUNNERS.index(rung.runner),
        rung.file,
        ",".join(rung.headers),
        rung.order,
        LAYOUTS.index(rung.second),
        walks,
        fixed,
        rung.local_elements,
        mapped,
    )
    return "|".join(map(str, ("rung", *fields)))


def test_the_launch_table_is_that_of_ladder_py_row_by_row(run: Runner) -> None:
    printed = [line for line in run("LadderProbe").lines if line.startswith("rung|")]
    assert printed == [in_mql5(rung) for rung in LADDER]
    # what the table in MQL5 has no column for
    assert not any(rung.defines for rung in LADDER)


def test_local_sizes_groups_and_macros_follow_the_rules_of_ladder_py(run: Runner) -> None:
    found = entries(probed(run), "launch")
    expected = {}
    for case in CASES:
        rows, inner, columns, itemsize, largest = case
        for rung in LADDER:
            if rung.runner != "kernel":
                continue
            local = rung.local_size(largest)
            groups = rung.groups(rows, columns, itemsize, local)
            macros = rung.macros(rows, inner, columns, np.dtype(f"f{itemsize}"))
            assert set(macros) <= {"REAL_BITS", "WHOLE_ROWS"}
            sides = [f"{a} {b}" for a, b in ((*local, 0, 0)[:2], (*groups, 0, 0)[:2])]
            values = f"{macros['REAL_BITS']} {macros.get('WHOLE_ROWS', 0)}"
            expected[labelled(case), rung.name] = "|".join((*sides, values))
    assert found == expected


@pytest.mark.parametrize(
    ("kind", "fp64", "local_bytes"), [("cpu", True, 32768), ("gpu", False, 32768), ("cpu", True, 3000)]
)
def test_what_keeps_a_rung_from_running_is_said_as_by_ladder_py(
    run: Runner, kind: str, fp64: bool, local_bytes: int
) -> None:
    found = entries(probed(run, InpCpu=kind == "cpu", InpDouble=fp64, InpLocalBytes=local_bytes), "hindrance")
    able = Abilities(kind, fp64, 1, local_bytes, (16384, 16384))
    for case in CASES:
        _, inner, columns, itemsize, largest = case
        for rung in BY_DEVICE:
            reason = hindrance(
                rung, replace(able, largest_group=largest), inner, columns, np.dtype(f"f{itemsize}")
            )
            if rung.second == "image" and not reason:
                reason = NO_IMAGES
            assert found[labelled(case), rung.name] == reason


def printed_form(form: Form, rows: int, columns: int, itemsize: int) -> str:
    packing = {"REAL_BITS": 8 * itemsize, "PANEL": form.right, "SQUARE": SQUARE, "DOWN": form.squares}
    macros = [f"{name} {value}," for name, value in (*form.defines.items(), *packing.items())]
    sizes = (form.left, form.right, form.rows, form.columns, form.inner, form.group, form.squares)
    grid = "".join(f" {number}" for number in whole_grid(rows, columns, (form.rows, form.columns)).ravel())
    # the last line end begins an empty part
    return f"{''.join(macros)},|{' '.join(map(str, sizes))}|{grid}"


def printed_strips(form: Form, rows: int, columns: int, itemsize: int, local_bytes: int, units: int) -> str:
    settings = strip_macros({**form.defines, "REAL_BITS": 8 * itemsize}, local_bytes)
    macros = "".join(f"{name} {value}," for name, value in settings.items())
    sizes = (form.left, form.right, form.rows, form.columns, form.squares)
    chunk = chunk_rows(rows, strips=-(-columns // form.right), micro=form.left, units=units)
    # the last line end begins an empty part
    return f"{macros},|{' '.join(map(str, sizes))}|{chunk}"


@pytest.mark.parametrize(("local_bytes", "units"), [(32768, 2), (1 << 20, 128), (100, 1)])
def test_the_engines_forms_are_those_of_forms_py(run: Runner, local_bytes: int, units: int) -> None:
    done = probed(run, InpLocalBytes=local_bytes, InpUnits=units)
    lines = [line for line in done.lines if line.startswith(("tiled|", "packed "))]
    expected = []
    for case in CASES:
        rows, _, columns, itemsize, largest = case
        dtype = {4: "float32", 8: "float64"}[itemsize]
        if largest >= 64:
            form = tiled_form(dtype, largest)
            expected.append(f"tiled|{labelled(case)}|{printed_form(form, rows, columns, itemsize)}")
        for width in (0, 16, 32, 64):
            form = packed_form(dtype, width)
            strips = printed_strips(form, rows, columns, itemsize, local_bytes, units)
            expected.append(f"packed {width}|{labelled(case)}|{strips}")
    assert lines == expected


def test_every_kernel_that_a_rung_needs_is_in_the_program(run: Runner) -> None:
    files = {"common.clh", "probe.cl", "multiply/pack_squares.cl"}
    for rung in BY_DEVICE:
        if rung.second != "image":
            files |= {rung.file, *rung.headers}
    done = run("LadderProbe", InpFiles=",".join(sorted(files)))
    lengths = dict(line.split("|")[1:] for line in done.lines if line.startswith("text|"))
    assert lengths == {name: str(len(kernel_text(name))) for name in files}


# ---------------------------------------------------------------- on the device


@pytest.fixture
def device(verdict: Verdict, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """Settings under which the shim finds the device; skips where there is none."""
    settings: Settings = {}
    for name, value in opencl.surroundings().items():
        if name.startswith("MQL_"):
            settings[name.removeprefix("MQL_")] = value
        else:
            monkeypatch.setenv(name, value)
    return settings


def ladder(
    run: Runner, device: Settings, sizes: tuple[int, int, int] = (37, 45, 53), **others: object
) -> Run:
    rows, inner, columns = sizes
    inputs = {"InpRows": rows, "InpInner": inner, "InpCols": columns, "InpRepeats": 2}
    return run("Ladder", **{**device, **inputs, **others})


def table(done: Run) -> dict[str, str]:
    """What stands behind the name of each rung, in order."""
    (head,) = [index for index, line in enumerate(done.lines) if line.startswith("rung ")]
    return {line.split()[0]: line[18:].strip() for line in done.lines[head + 1 :]}


def figures(row: str) -> list[float]:
    return [float(word) for word in row.split("  copied:")[0].split("  the small")[0].split()]


@pytest.mark.parametrize("kind", [0, 1], ids=["float", "double"])
@pytest.mark.parametrize("sizes", [(37, 45, 53), (16, 1032, 8)])
def test_every_rung_runs_and_agrees_with_the_serial_loop(
    run: Runner, device: Settings, sizes: tuple[int, int, int], kind: int
) -> None:
    done = ladder(run, device, sizes, InpType=kind)
    found = table(done)
    assert list(found) == [rung.name for rung in LADDER]
    assert found.pop("texture") == f"not run: {NO_IMAGES}"
    rows, inner, columns = sizes
    # elements are within one, and so |A| |B| within inner
    most = inner * inner * np.finfo((np.float32, np.float64)[kind]).eps
    bound = float(done.line(f"A {rows} x {inner} times B {inner} x {columns} in ").split()[-1])
    assert bound <= most
    serial = figures(found["serial"])[0]
    for rung in LADDER:
        if rung.name == "texture":
            continue
        milliseconds, *copies, speed, ratio, difference = figures(found[rung.name])
        assert difference <= bound, rung.name
        assert speed == pytest.approx(2e-6 * rows * inner * columns / milliseconds, rel=0.05, abs=0.006)
        assert ratio == pytest.approx(serial / milliseconds, rel=0.05, abs=0.02)
        assert len(copies) == (rung.runner != "host")
        assert all(with_copies >= milliseconds for with_copies in copies)
    assert "copied: the terminal cannot map" in found["macro_tile"]


def test_a_product_of_one_element_goes_through_every_rung(run: Runner, device: Settings) -> None:
    found = table(ladder(run, device, (1, 1, 1), InpRepeats=1))
    assert [name for name, row in found.items() if row.startswith(("not run", "wrong"))] == ["texture"]


def test_the_other_loop_orders_can_be_left_out(run: Runner, device: Settings) -> None:
    found = table(ladder(run, device, (3, 4, 5), InpRepeats=1, InpOrders=False))
    assert [name for name in found if name.startswith("serial")] == ["serial"]


def test_a_device_with_small_groups_no_double_and_no_processor_form_says_so_in_the_rows(
    run: Runner, device: Settings
) -> None:
    found = table(ladder(run, device, OPENCL_GROUP=64, OPENCL_WITHOUT="cpu", InpRepeats=1))
    groups = "groups of 256 items are more than the device's 64"
    reasons = {name: row for name, row in found.items() if row.startswith("not run: ")}
    assert reasons == {
        "tiled": f"not run: {groups}",
        "tiled_padded": f"not run: {groups}",
        "texture": f"not run: {NO_IMAGES}",
        "packed": "not run: one work-item a group: a form for processors",
    }
    assert "the small setting" not in found["register_tiled"]
    without = table(ladder(run, device, OPENCL_WITHOUT="fp64", InpType=1))
    assert {without[rung.name] for rung in BY_DEVICE} == {"not run: the device has no fp64"}
    assert figures(without["serial"])[-1] == 0


def test_a_rung_that_computes_wrongly_or_does_not_build_is_named_and_not_timed(
    run: Runner, device: Settings, tmp_path: Path
) -> None:
    kernels = tmp_path / "kernels"
    shutil.copytree(build.KERNELS, kernels)
    for name, right, wrong in (
        ("naive.cl", "C[r * columns + c] = (REAL)0;", "C[r * columns + c] = (REAL)1;"),
        ("coalesced.cl", "C[r * columns + c] +=", "unknown[r] +="),
        ("private_sum.cl", "r >= rows ||", "r >= rows - 1 ||"),
    ):
        text = (kernels / "multiply" / name).read_text(encoding="utf-8")
        assert right in text
        (kernels / "multiply" / name).write_text(text.replace(right, wrong), encoding="utf-8")
    spoilt = build.build(build.program("Ladder"), kernels=kernels)
    found = table(run(spoilt, **device, InpRows=20, InpInner=20, InpCols=20, InpRepeats=1))
    assert found["naive"].startswith("wrong: its difference 1.00e+00 is past the bound ")
    assert found["coalesced"].startswith("not run: Building multiply/coalesced.cl failed (error 5105: ")
    assert "unknown" in found["coalesced"]
    # elements that are never written show the poison
    assert found["private_sum"].startswith("wrong: its difference 1.00e+30 is past the bound ")
    assert len(figures(found["row_per_item"])) == 5


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("CLContextCreate", "Opening the OpenCL device failed (error 5103: OpenCL error -5)."),
        ("CLProgramCreate", "Building probe.cl failed (error 5105: "),
        ("CLKernelCreate", "Taking the kernel probe of probe.cl failed (error 5107: "),
        ("CLBufferCreate", "Making a buffer of 16 bytes failed (error 5112: "),
        ("CLBufferCreate:2", "Making a buffer of 16 bytes failed (error 5112: "),
        ("CLSetKernelArgMem:2", "Setting argument 1 of a kernel failed (error 5108: "),
        ("CLBufferWrite", "Writing four numbers to the OpenCL device failed (error 5110: "),
        ("CLExecute", "Starting a kernel failed (error 5109: "),
        ("CLBufferRead", "Adding 1, 2, 3 and 4 on the OpenCL device failed (error 5110: "),
    ],
)
def test_a_device_that_fails_its_first_use_gives_one_sentence_and_keeps_no_handle(
    run: Runner, device: Settings, function: str, sentence: str
) -> None:
    done = ladder(run, device, OPENCL_FAIL=function)
    assert len(done.lines) == 1
    assert done.text.startswith(sentence)


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("CLBufferCreate:4", "Making a buffer of 9540 bytes failed (error 5112: "),
        ("CLSetKernelArg", "Setting argument 3 of a kernel failed (error 5108: "),
        ("CLBufferWrite:2", "Writing to a buffer failed (error 5110: "),
        ("CLBufferWrite:3", "Writing to a buffer failed (error 5110: "),
        ("CLExecute:2", "Starting a kernel failed (error 5109: "),
        ("CLBufferRead:2", "Reading the product failed (error 5110: "),
    ],
)
def test_a_device_that_fails_later_names_the_call_in_the_row_and_keeps_no_handle(
    run: Runner, device: Settings, function: str, sentence: str
) -> None:
    found = table(ladder(run, device, OPENCL_FAIL=function, InpOrders=False))
    assert found["naive"].startswith(f"not run: {sentence}")
    assert list(found) == ["serial", *(rung.name for rung in BY_DEVICE)]


def test_the_ladder_ends_soon_after_it_is_stopped(run: Runner, device: Settings) -> None:
    done = ladder(run, device, (700, 700, 700), STOP_AFTER_MS=600)
    assert done.lines[-1] == "The ladder was stopped."
    assert done.ended_after_stop() < 1


@pytest.mark.timeout(300)
@pytest.mark.parametrize("kind", [0, 1], ids=["float", "double"])
def test_the_ladder_runs_clean_under_the_sanitizers(
    run: Runner, device: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: int
) -> None:
    if not build.sanitizers_work(tmp_path):
        pytest.skip(f"{build.compiler()} cannot link and run the sanitizers here")
    # the runtime's leaks are not ours; the handles that we leave open are looked for by the shim
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")
    program = build.build(build.program("Ladder"), sanitized=True)
    sizes = {"InpRows": 21, "InpInner": 35, "InpCols": 18}
    found = table(run(program, **device, **sizes, InpRepeats=1, InpType=kind))
    assert [name for name, row in found.items() if row.startswith(("not run", "wrong"))] == ["texture"]


# ---------------------------------------------------------------- no device, wrong inputs


def test_without_opencl_one_sentence_tells_what_to_install(run: Runner) -> None:
    done = run("Ladder")
    assert done.lines == [
        "This computer has no OpenCL (error 5100): install the driver of the graphics card, "
        "or a runtime for the processor, and start the terminal again."
    ]


def test_a_device_number_that_is_not_there_is_answered_with_how_many_are(
    run: Runner, device: Settings
) -> None:
    done = ladder(run, device, InpDevice=4, InpNumber=70)
    assert done.text.startswith("There is no OpenCL device 70: this computer has ")
    assert len(done.lines) == 1


def test_a_device_is_taken_by_its_number_and_by_its_kind(run: Runner, device: Settings) -> None:
    for choice in ({"InpDevice": 4, "InpNumber": 0}, {"InpDevice": 3}):
        done = ladder(run, device, (2, 2, 2), InpRepeats=1, OPENCL_FAIL="CLBufferCreate:3", **choice)
        assert ", OpenCL " in done.lines[0]


@pytest.mark.parametrize(
    "wrong", [{"InpRows": 0}, {"InpInner": -1}, {"InpRepeats": 0}, {"InpRows": 20000, "InpCols": 20000}]
)
def test_sizes_that_no_array_holds_are_refused(run: Runner, wrong: dict[str, int]) -> None:
    done = run("Ladder", **wrong)
    assert done.lines == ["Sizes and repeats must be 1 or more, and each matrix must fit in an MQL5 array."]


def test_a_terminal_short_of_memory_says_so(run: Runner, device: Settings) -> None:
    done = ladder(run, device, LARGEST_ARRAY=1000)
    assert done.lines[-1] == "There is no memory left for the matrices: choose smaller ones."


def test_a_handle_left_open_would_be_found(run: Runner, device: Settings, tmp_path: Path) -> None:
    source = tmp_path / "Forgotten.mq5"
    source.write_text(
        "void OnStart()\n  {\n   int handle=CLContextCreate(CL_USE_ANY);\n   Print(handle>=0);\n  }\n",
        encoding="ascii",
    )
    with pytest.raises(AssertionError, match="1 open OpenCL handles"):
        run(build.build(source), **device)
