"""The kernel ladder: its data, the serial orders, the benchmark's rows, table and picture, the commands."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from mtbridge.bench.ladder import measure_ladder, wrong
from mtbridge.bench.ladder_case import Case
from mtbridge.bench.ladder_docs import article_figures, with_tables
from mtbridge.bench.ladder_report import markdown_tables, text_table
from mtbridge.bench.plot import check_plot, page, plot
from mtbridge.bench.serial_orders import ORDERS, compiled_order
from mtbridge.compute.devices import Verdict
from mtbridge.compute.ladder import LADDER, VARIANTS, Abilities, hindrance, rung
from mtbridge.errors import DeviceError, OptionError
from mtbridge.matrix import DTYPES
from mtbridge.sources import data_folder, kernel_text

KERNELS = [
    "naive", "coalesced", "private_sum", "row_per_item", "private_row", "local_column", "dot4_cast", "dot4",
    "dot8", "tiled", "tiled_padded", "macro_tile", "texture", "register_tiled", "packed",
]  # fmt: skip
MEASURED = (*LADDER, *VARIANTS)
FLOAT, DOUBLE = np.dtype(np.float32), np.dtype(np.float64)
ABLE = Abilities(kind="gpu", fp64=True, largest_group=1024, local_bytes=49152, largest_image=(16384, 16384))

Run = Callable[..., tuple[int, str, str]]


def test_the_ladder_has_every_rung_of_the_articles_in_their_order() -> None:
    assert [found.name for found in LADDER if found.runner != "host"] == KERNELS
    assert len({found.name for found in LADDER}) == len(LADDER)


def test_the_serial_rungs_are_all_six_orders_with_the_reference_last() -> None:
    orders = [
        found.order for found in LADDER if found.name.startswith("serial") and "vector" not in found.name
    ]
    assert sorted(orders) == sorted("-".join(order) for order in permutations(("r", "c", "cr")))
    assert rung("serial").order == orders[-1] == "r-cr-c"


@pytest.mark.parametrize("name", KERNELS)
def test_a_rung_of_the_device_has_a_small_file_whose_head_names_its_step(name: str) -> None:
    found = rung(name)
    text = kernel_text(found.file)
    assert 15 <= len(text.splitlines()) <= 120
    assert "C[r * " in text.split("*/", 1)[0], "the head gives the index formula"
    if found.runner == "kernel":
        head = text.split("*/", 1)[0]
        assert f"The {found.article} article's" in head
        assert "2^31" in head, "the head says what must hold of the sizes"
        assert "win" in head or found.name in ("dot4", "dot8", "row_per_item")


def test_every_kernel_that_multiplies_is_on_the_ladder() -> None:
    folder = data_folder("kernels") / "multiply"
    multiply = {
        f"multiply/{path.name}" for path in folder.glob("*.cl") if "void multiply(" in path.read_text()
    }
    # in the instructions of one maker's devices: no step of the articles
    tensor_cores = {f"multiply/{name}.cl" for name in ("dmma", "int8_mma", "split_mma", "split_wgmma")}
    assert tensor_cores < multiply
    assert multiply - tensor_cores == {found.file for found in LADDER if found.file}


def test_a_name_that_is_no_rung_is_refused_with_those_that_are() -> None:
    with pytest.raises(OptionError, match=r"no rung 'fast'; there are serial_r_c_cr, .* packed"):
        rung("fast")


def test_a_local_size_is_halved_until_the_device_allows_it() -> None:
    assert rung("naive").local_size(1024) == (16, 16)
    assert rung("naive").local_size(64) == (8, 8)
    assert rung("texture").local_size(1) == (1, 1)
    assert rung("tiled").local_size(64) == (16, 16), "its kernel requires this one"


def test_groups_cover_the_result_and_no_group_is_idle() -> None:
    for found in LADDER:
        if found.runner != "kernel":
            continue
        for dtype in (FLOAT, DOUBLE):
            groups = found.groups(33, 70, dtype.itemsize, found.local)
            for count, side, walk in zip(groups, found.local, found.walks, strict=True):
                size = 33 if walk.along == "rows" else 70
                step = walk.step or 16 // dtype.itemsize
                assert (count - 1) * side * step < size <= count * side * step


@pytest.mark.parametrize(
    ("name", "able", "dtype", "words"),
    [
        ("naive", Abilities("gpu", False, 64, 1), DOUBLE, "no fp64"),
        ("texture", Abilities("gpu", True, 256, 49152), FLOAT, "no images"),
        ("texture", Abilities("gpu", True, 256, 49152, (100, 100)), FLOAT, "250 x 1000 texels .* 100 x 100"),
        ("texture", Abilities("gpu", True, 256, 49152, (400, 1000)), DOUBLE, "500 x 1000 texels"),
        ("tiled", Abilities("gpu", True, 64, 49152), FLOAT, "groups of 256 items .* 64"),
        ("local_column", Abilities("gpu", True, 256, 4096), DOUBLE, "8192 bytes of local memory .* 4096"),
        ("packed", ABLE, FLOAT, "a form for processors"),
    ],
)
def test_a_device_that_cannot_run_a_rung_is_told_why(
    name: str, able: Abilities, dtype: np.dtype[np.floating], words: str
) -> None:
    import re

    assert re.search(words, hindrance(rung(name), able, 1000, 1000, dtype))


def test_a_device_that_has_everything_runs_every_kernel_but_the_processors() -> None:
    for found in LADDER:
        assert bool(hindrance(found, ABLE, 1000, 1000, DOUBLE)) == (found.name == "packed")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ORDERS)
def test_every_serial_order_gives_the_product(order: str, dtype: str) -> None:
    random = np.random.default_rng(4)
    for rows, inner, columns in [(1, 1, 1), (2, 3, 1), (37, 11, 5), (7, 100, 31)]:
        A = random.standard_normal((rows, inner)).astype(dtype)
        B = random.standard_normal((inner, columns)).astype(dtype)
        bound = inner * np.finfo(dtype).eps * (np.abs(A).astype(float) @ np.abs(B).astype(float))
        for loop in (ORDERS[order], compiled_order(order, dtype)):
            C = np.zeros((rows, columns), dtype)
            loop(A, B, C)
            assert (np.abs(C - A.astype(np.longdouble) @ B.astype(np.longdouble)) <= bound).all()


def test_compiling_a_loop_leaves_the_settings_of_numba_as_they_were() -> None:
    config = pytest.importorskip("numba.core.config")
    before = config.LOOP_VECTORIZE, config.SLP_VECTORIZE
    compiled_order.cache_clear()
    compiled_order("r-cr-c", "float32")
    after = config.LOOP_VECTORIZE, config.SLP_VECTORIZE
    assert after == before


def test_a_wrong_answer_is_not_timed_and_is_told() -> None:
    case = Case(9, "float32")
    right = case.exact.astype(np.float32)
    assert case.judged(right, lambda: (1.0, 0.5))["device_s"] == 0.5
    for spoiled in (np.where(np.eye(9) > 0, np.float32(np.nan), right), right + np.float32(1e-3)):
        calls: list[int] = []
        found = case.row("naive") | case.judged(spoiled, lambda calls=calls: calls.append(1) or (1.0, None))  # type: ignore[misc]
        assert not calls
        assert found["median_s"] is None
        assert next(wrong([found])).startswith("naive in float32 at 9x9x9 is wrong: the error ")
        assert "wrong" in text_table([found])


@pytest.fixture(scope="module")
def rows(verdict: Verdict) -> list[dict[str, object]]:
    said: list[str] = []
    found = measure_ladder([33], device="cpu", say=said.append)
    assert f"float64, N = 33: packed ({len(LADDER)} of {len(MEASURED)})" in said
    return found


def test_every_rung_is_measured_in_both_types_and_right(rows: list[dict[str, object]]) -> None:
    for dtype in DTYPES:
        found = {row["contender"]: row for row in rows if row["dtype"] == dtype}
        assert list(found) == ["peak", *(step.name for step in MEASURED), "openblas"]
        bound = 33 * np.finfo(dtype).eps
        for step in MEASURED:
            row = found[step.name]
            assert row["median_s"], row["note"]
            assert 0 <= row["error"] <= bound  # type: ignore[operator]
            assert (row["device_s"] is None) == (step.runner == "host")
            if step.runner != "host":
                assert 0 < row["device_s"] <= row["median_s"]  # type: ignore[operator]
                assert 0 < row["peak_share"] < 1  # type: ignore[operator]
                assert set(row["device_versus"]) == {"serial", "openblas"}  # type: ignore[call-overload]
            assert ("local_mem_type" in row) == (bool(step.local_elements) or step.name == "register_tiled")
            assert ("preferred_vector_width" in row) == step.name.startswith("dot")


def test_one_launch_shows_its_four_moments_in_order(rows: list[dict[str, object]]) -> None:
    moments = next(row["moments"] for row in rows if row["contender"] == "naive")
    assert list(moments) == ["queued", "submit", "start", "end"]  # type: ignore[call-overload]
    times = list(moments.values())  # type: ignore[attr-defined]
    assert times == sorted(times)


def test_the_tables_have_a_line_for_each_rung(rows: list[dict[str, object]]) -> None:
    text = text_table(rows)
    result = {"rows": rows, "machine": {"processor": "P", "cores": 2, "time": "2026-11-29T00:00:00+00:00"}}
    markdown = markdown_tables(result)
    for step in MEASURED:
        assert text.count(f"\n{step.name:18}") == 2
        assert markdown.count(f"\n| {step.name} |") == 2
    assert "QUEUED 0.000, SUBMIT" in text
    assert "QUEUED 0.000, SUBMIT" in markdown
    assert "the device's peak" in text
    assert len({line.count("|") for line in markdown.splitlines() if line.startswith("|")}) == 1


def test_a_page_gets_its_tables_between_its_marks_and_keeps_the_rest(
    rows: list[dict[str, object]], tmp_path: Path
) -> None:
    machine = {"processor": "P", "cores": 2, "time": "2026-11-29T00:00:00+00:00"}
    (tmp_path / "here.json").write_text(json.dumps({"rows": rows, "machine": machine}), encoding="utf-8")
    marks = ("ladder: here", "ladder: absent", "figures: absent, here")
    page = "before\n" + "".join(f"<!-- {mark} -->\nold\n<!-- end -->\nbetween\n" for mark in marks)
    made = with_tables(page, tmp_path)
    assert with_tables(made, tmp_path) == made, "a second time changes nothing"
    assert "old" not in made
    assert made.startswith("before\n")
    assert made.count("between\n") == made.count("<!-- end -->") == 3
    assert made.count("\n| packed |") == 2
    assert "Not measured yet: there is no benchmarks/results/absent.json." in made
    assert "| the articles | here, float32, N = 1000 | here |" in made


def test_the_articles_figures_are_ratios_of_the_rows() -> None:
    times = {"serial": 4.0, "serial_r_c_cr": 6.0, "serial_c_cr_r": 12.0, "naive": 8.0, "coalesced": 4.0}
    times |= {"private_sum": 3.0, "local_column": 2.0, "dot8": 0.5, "tiled": 0.25}
    found = []
    for name, seconds in times.items():
        row = Case(3, "float32").row(name) | {
            "case": "ladder 1000x1000x1000",
            "median_s": seconds,
            "gflops": 2 / seconds,
        }
        if not name.startswith("serial"):
            row |= {
                "device_s": seconds,
                "median_s": 2 * seconds,
                "device_versus": {"serial": 4 / seconds},
                "versus": {"serial": 2 / seconds},
            }
        found.append(row)
    text = article_figures({"made": {"rows": found}})
    for cell in (
        "1.50x; the slowest order 3.00x",
        "8000.0 to 500.00 ms (dot8)",
        "25 % less time",
        "8.00x, with copies 4.00x (dot8)",
        "4.0 GFLOP/s",
        "4.00x",
        "not run",
        "32x",
        "16x, with copies 8.00x (tiled)",
    ):
        assert f"| {cell} |" in text


def test_a_picture_is_drawn_as_a_page_and_as_an_image(rows: list[dict[str, object]], tmp_path: Path) -> None:
    text = page(rows)
    assert text.count("<rect ") == 2 * (len(MEASURED) + 1)
    assert "http" not in text, "the page asks for no other file"
    plot(rows, tmp_path / "ladder", kind=".html")
    assert (tmp_path / "ladder").read_text(encoding="utf-8") == text
    pytest.importorskip("matplotlib")
    plot(rows, tmp_path / "ladder.png", kind=".png")
    assert (tmp_path / "ladder.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_of_another_kind_is_refused() -> None:
    with pytest.raises(OptionError, match=r"'ladder.gif'; give a name that ends in \.png or \.html"):
        check_plot(Path("ladder.gif"))


def test_without_a_device_the_host_is_measured_and_the_others_say_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def none_there(wanted: str | None = None) -> Verdict:
        raise DeviceError("no OpenCL device was found.")

    monkeypatch.setattr("mtbridge.compute.devices.choose", none_there)
    found = {row["contender"]: row for row in measure_ladder([5], ["float32"])}
    assert found["naive"]["note"] == "not run: no OpenCL device was found."
    assert found["naive"]["median_s"] is None
    assert found["serial"]["median_s"] > 0
    assert "peak" not in found
    with pytest.raises(DeviceError, match="was found"):
        measure_ladder([5], ["float32"], "gpu")


def test_bench_ladder_prints_the_table_and_writes_rows_and_picture(verdict: Verdict, run: Run) -> None:
    arguments = (
        "--sizes",
        "17",
        "--dtype",
        "float32",
        "--device",
        "cpu",
        "--json",
        "l.json",
        "--plot",
        "l.html",
    )
    code, out, err = run("bench", "ladder", *arguments)
    assert code == 0, err
    assert out.startswith("float32, N = 17, the device's peak ")
    assert f"float32, N = 17: naive (8 of {len(MEASURED)})" in err
    rows = json.loads(Path("l.json").read_text(encoding="utf-8"))["rows"]
    assert [row["contender"] for row in rows] == ["peak", *(found.name for found in MEASURED), "openblas"]
    assert "<svg" in Path("l.html").read_text(encoding="utf-8")


def test_bench_ladder_refuses_a_picture_that_it_cannot_draw_before_the_work(run: Run) -> None:
    code, out, err = run("bench", "ladder", "--plot", "l.gif")
    assert (code, out) == (1, "")
    assert err == "mtbridge: --plot is 'l.gif'; give a name that ends in .png or .html.\n"


def test_kernels_list_prints_the_ladder_in_order(run: Run) -> None:
    code, out, _ = run("kernels", "list")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()] == [found.name for found in LADDER]
    assert "kernels/multiply/naive.cl" in out


@pytest.mark.parametrize("name", [found.name for found in LADDER])
def test_kernels_show_prints_the_source_with_its_head(run: Run, name: str) -> None:
    code, out, _ = run("kernels", "show", name)
    assert code == 0
    found = rung(name)
    assert out.startswith("/* " if found.file else "def ")
    if found.file:
        assert kernel_text(found.file).strip() in out


def test_kernels_show_prints_a_whole_program(run: Run) -> None:
    code, out, _ = run("kernels", "show", "dot8", "--program")
    assert code == 0
    assert "#define REAL float" in out
    assert "__kernel void multiply(" in out


def test_kernels_show_refuses_a_name_that_is_no_rung(run: Run) -> None:
    code, out, err = run("kernels", "show", "fast")
    assert (code, out) == (1, "")
    assert err.startswith("mtbridge: there is no rung 'fast'; there are ")
    assert err.count("\n") == 1
