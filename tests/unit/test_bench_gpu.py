"""`mtbridge bench gpu` on a processor: every case and contender, what is refused, and faults are seen."""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mtbridge.bench import gpu_ceilings, gpu_trial
from mtbridge.bench.gpu import wrong
from mtbridge.bench.gpu_cases import FURTHER, OPERATIONS, SIZES, Named, chosen, listed
from mtbridge.bench.gpu_ceilings import cards
from mtbridge.bench.gpu_data import Case, Lines, PackedCorrelation, RollingCorrelation, case_of, spread_over
from mtbridge.bench.gpu_peers import TORCH, TorchTrial
from mtbridge.bench.gpu_report import is_of_gpu, markdown_tables, text_table
from mtbridge.bench.gpu_trial import Trial, checked, in_turn
from mtbridge.cli import main
from mtbridge.compute.devices import Verdict
from mtbridge.errors import DeviceError, OptionError
from mtbridge.matrix import DTYPES

Row = dict[str, Any]

SIDE = 37
"""Of the matrices: no tile divides it."""

ROLLED = "rolling corr 2x78x60"
TITLES = [
    f"gram {SIDE}x{SIDE}",
    f"multiply {SIDE}x{SIDE}x{SIDE}",
    f"covariance {SIDE}x{SIDE}",
    ROLLED,
    f"pairwise cov {SIDE}x{SIDE} scattered",
    f"pairwise cov {SIDE}x{SIDE} leading",
]
REDUCED = ["opencl mean", "opencl pairs", "opencl variance", "opencl top pairs", "opencl eigenvalue"]
KEYS = {
    *("case", "dtype", "contender", "device", "threads", "median_s", "spread_s", "gflops", "error", "note"),
    *("versus", "fastest_s", "slowest_s", "wall_s", "gb_per_s", "shares", "bias", "same_bits"),
}

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run `mtbridge bench gpu` in this process, in an empty folder; return exit code, stdout and stderr."""
    from contextlib import redirect_stderr, redirect_stdout
    from io import StringIO

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("gpu"))
        patch.delenv("MTBRIDGE_DEVICE", raising=False)

        def called(*arguments: str) -> tuple[int, str, str]:
            patch.setattr(sys, "argv", ["mtbridge", "bench", "gpu", *arguments])
            code, out, err = 0, StringIO(), StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                try:
                    main()
                except SystemExit as end:
                    code = int(end.code or 0)
            return code, out.getvalue(), err.getvalue()

        yield called


@pytest.fixture(scope="module")
def outcome(run: Run, verdict: Verdict) -> tuple[str, str, dict[str, Any]]:
    """What one run of every case says, and the file that it writes."""
    code, out, err = run("--device", "cpu", "--sizes", str(SIDE), "--rounds", "2", "--json", "gpu.json")
    assert code == 0, err
    return out, err, json.loads(Path("gpu.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def rows(outcome: tuple[str, str, dict[str, Any]]) -> list[Row]:
    found: list[Row] = outcome[2]["rows"]
    return found


def of(rows: list[Row], title: str, dtype: str) -> dict[str, Row]:
    return {row["contender"]: row for row in rows if (row["case"], row["dtype"]) == (title, dtype)}


# the command


def test_every_case_has_the_chosen_kernels_each_family_and_each_peer(rows: list[Row]) -> None:
    assert list(dict.fromkeys(row["case"] for row in rows)) == ["ceiling fma", "ceiling copy", *TITLES]
    for dtype in DTYPES:
        families = ["opencl", "register_tiled"]
        tensor = ["dmma"] if dtype == "float64" else []
        split = ["split_mma"] if dtype == "float32" else []
        matrices = ["opencl", "opencl packed", "floor", "floor packed"]
        expected = {
            TITLES[0]: [*families, *tensor, "cublas", "cublas syrk"],
            TITLES[1]: [*families, *tensor, "cublas"],
            TITLES[2]: [*families, *tensor, *split, "torch"],
            ROLLED: [*matrices, *(REDUCED if dtype == "float64" else []), "torch"],
            TITLES[4]: [*families, *tensor, "dense", "torch"],
            TITLES[5]: [*families, *tensor, "dense", "torch"],
        }
        for title, names in expected.items():
            assert list(of(rows, title, dtype)) == names


def test_what_ran_is_right_and_the_same_each_time(rows: list[Row]) -> None:
    ran = [row for row in rows if row["median_s"] is not None and row["same_bits"] is not None]
    assert {row["contender"] for row in ran} >= {
        "opencl",
        "register_tiled",
        "opencl packed",
        "dense",
        *REDUCED,
    }
    for row in ran:
        terms = 60 if row["case"] == ROLLED else SIDE
        allowed = 1e-8 if row["contender"] == "opencl eigenvalue" else terms * np.finfo(row["dtype"]).eps
        assert row["error"] <= allowed, row
        assert row["same_bits"], row
        assert (row["bias"] is not None) == (" cov" in row["case"] or row["case"].startswith("cov")), row
        # variances that are all too small would pass the error's bound
        assert row["bias"] is None or abs(row["bias"]) <= np.finfo(row["dtype"]).eps, row


def test_rows_have_the_keys_of_all_benchmarks_and_their_own(rows: list[Row]) -> None:
    assert is_of_gpu(rows)
    for row in rows:
        assert set(row) == KEYS
        if row["same_bits"] is not None:
            assert 0 < row["fastest_s"] <= row["median_s"] <= row["slowest_s"]
            assert row["wall_s"] > 0


def test_a_family_that_the_device_lacks_says_what_it_needs(rows: list[Row]) -> None:
    lacking = [row for row in rows if row["contender"] in ("dmma", "split_mma")]
    assert len(lacking) == 4 + 2
    for row in lacking:
        assert row["median_s"] is None
        assert row["versus"] == row["shares"] == {}
        assert "compute capability 8.0" in row["note"]


def test_a_peer_without_a_card_or_a_package_says_so(rows: list[Row]) -> None:
    peers = [row for row in rows if row["contender"] in ("cublas", "cublas syrk", "torch")]
    assert peers
    for row in peers:
        package = "cupy" if row["contender"] == "cublas syrk" else "torch"
        absent = row["note"].startswith((f"{package} cannot be imported", f"{package} finds no CUDA device"))
        assert absent == (row["median_s"] is None), row


def test_shares_and_ratios_are_those_of_the_same_run(rows: list[Row]) -> None:
    ceilings = {(row["case"], row["dtype"]): row for row in rows if row["case"].startswith("ceiling")}
    assert set(ceilings) == {("ceiling fma", dtype) for dtype in DTYPES} | {("ceiling copy", "float32")}
    for dtype in DTYPES:
        peak = ceilings["ceiling fma", dtype]["gflops"]
        for title, flops in ((TITLES[0], SIDE**3), (TITLES[1], 2 * SIDE**3), (TITLES[2], SIDE**3)):
            row = of(rows, title, dtype)["opencl"]
            assert row["gflops"] == pytest.approx(1e-9 * flops / row["median_s"])
            assert row["shares"] == {"fma": pytest.approx(row["gflops"] / peak)}
        rolled = of(rows, ROLLED, dtype)
        moved = 19 * 2 * 2 * np.dtype(dtype).itemsize
        assert rolled["opencl"]["gb_per_s"] == pytest.approx(1e-9 * moved / rolled["opencl"]["median_s"])
        copied = ceilings["ceiling copy", "float32"]["gb_per_s"]
        assert rolled["opencl"]["shares"]["copy"] == pytest.approx(rolled["opencl"]["gb_per_s"] / copied)
        for name, floor in (("opencl", "floor"), ("opencl packed", "floor packed")):
            ratio = rolled[floor]["median_s"] / rolled[name]["median_s"]
            assert rolled[name]["versus"][floor] == pytest.approx(ratio)
        for title in TITLES[4:]:
            found = of(rows, title, dtype)
            ratio = found["dense"]["median_s"] / found["register_tiled"]["median_s"]
            assert found["register_tiled"]["versus"]["dense"] == pytest.approx(ratio)


def test_the_file_has_the_machine_and_the_words_go_to_stderr(
    outcome: tuple[str, str, dict[str, Any]],
) -> None:
    out, err, result = outcome
    assert {"drivers", "commit", "cards", "processor", "time"} <= set(result["machine"])
    assert "is a processor" in err
    assert "--rounds 2 is a glance" in err
    for title in TITLES:
        assert f"{title}, float64\n" in out
        assert f"{title}, float64\n" in err
    assert "opencl packed is checked\n" in err
    assert "is checked" not in out


def test_the_chosen_kernels_are_named(rows: list[Row]) -> None:
    assert of(rows, TITLES[0], "float64")["opencl"]["note"].endswith("packed chosen")


def test_the_tables_name_every_contender_and_its_reason(outcome: tuple[str, str, dict[str, Any]]) -> None:
    result = outcome[2]
    given = {"name": "Card", "power.limit": "700 W", "clocks.sm": "1.9 GHz", "clocks.max.sm": "2 GHz"}
    machine = {**result["machine"], "cards": [{**given, "driver_version": "1.2"}]}
    text = "\n".join(markdown_tables({**result, "machine": machine}))
    assert "Card, driver 1.2, power limit 700 W, clock at the end 1.9 GHz of 2 GHz." in text
    for row in result["rows"]:
        assert f"**{row['case']}, {row['dtype']}**" in text
        assert f"| {row['contender']} |" in text
        assert row["note"] in text
    widths = {line.count("|") for line in text.splitlines() if line.startswith("|")}
    assert len(widths) == 1, "every line of a table has as many columns"
    assert text_table(result["rows"]) == outcome[0].rstrip("\n")


def test_the_page_on_performance_has_the_tables_of_such_a_file(
    outcome: tuple[str, str, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # which sets how wide help is laid out
    for name in ("COLUMNS", "TERMINAL_WIDTH", "NO_COLOR"):
        monkeypatch.setenv(name, "100")
    path = Path(__file__).resolve().parents[2] / "docs" / "generate.py"
    spec = importlib.util.spec_from_file_location("generate", path)
    assert spec is not None
    assert spec.loader is not None
    generate = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(generate)
    (tmp_path / "card-gpu.json").write_text(json.dumps(outcome[2]), encoding="utf-8")
    monkeypatch.setattr(generate, "RESULTS", tmp_path)
    page = generate.performance_page()
    assert "## card-gpu" in page
    assert "\n".join(markdown_tables(outcome[2])) in page


def test_numbers_that_a_kernel_leaves_out_are_found_and_end_in_one_sentence(
    run: Run, device: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mtbridge.bench.gpu_device import ResidentDevice

    class NoMirror(ResidentDevice):
        def run(self, kernel: Any, *arguments: Any, **options: Any) -> Any:
            # which writes the lower triangle of the portable kernels
            if kernel.name != "mirror":
                super().run(kernel, *arguments, **options)

    monkeypatch.setattr("mtbridge.bench.gpu_device.ResidentDevice", NoMirror)
    arguments = ("--device", "cpu", "--sizes", "40", "--rounds", "1", "--peers", "", "--cases", "gram")
    code, out, err = run(*arguments, "--json", "wrong.json")
    assert code == 1
    (line,) = (line for line in err.splitlines() if line.startswith("mtbridge: "))
    assert line.startswith(
        "mtbridge: 2 answers are wrong: register_tiled of gram 40x40 in float32 is wrong: "
    )
    assert "numbers of the answer are not finite" in line
    rows = json.loads(Path("wrong.json").read_text(encoding="utf-8"))["rows"]
    for dtype in DTYPES:
        found = of(rows, "gram 40x40", dtype)
        assert found["register_tiled"]["median_s"] is None
        assert found["opencl"]["median_s"] is not None
    assert out.count("not run: wrong: ") == 2


def test_peers_and_cases_are_those_that_are_named(run: Run, verdict: Verdict) -> None:
    code, out, err = run(
        *("--device", "cpu", "--sizes", "9", "--rounds", "1", "--peers", ""),
        *("--cases", "gram,pairwise cov 9x9 leading"),
    )
    assert code == 0, err
    titles = [line.split(", ")[0] for line in out.splitlines() if line and not line.startswith(" ")]
    assert titles[3:] == ["gram 9x9"] * 2 + ["pairwise cov 9x9 leading"] * 2
    assert "torch" not in out
    assert "cublas" not in out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--cases", "grams"), ("'grams'", "gram, multiply")),
        (("--cases", ""), ("''",)),
        (("--cases", "gram,,multiply"), ("''",)),
        (("--cases", "gram 9x9", "--sizes", "16"), ("'gram 9x9'", "'gram 16x16'")),
        (("--peers", "torch,jax"), ("'jax'", "torch, cupy")),
        (("--sizes", "0"), ("'0'",)),
        (("--sizes", "64,7"), ("has 7", "8 rows")),
        (("--sizes", "8x8"), ("'8x8'",)),
        (("--sizes", "8", "--quick"), ("--quick",)),
        (("--device", "no such device"), ("no such device",)),
        (("--json", "nowhere/gpu.json"), ("nowhere",)),
    ],
)
def test_what_makes_no_sense_is_refused_in_one_sentence(
    run: Run, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (1, "")
    (line,) = err.splitlines()
    assert line.startswith("mtbridge: ")
    assert line.endswith(".")
    for word in words:
        assert word in line


# which cases there are


def test_the_usual_cases_have_the_names_that_results_are_kept_under() -> None:
    titles = [case.title for case in listed()]
    assert titles[:2] == ["gram 8192x8192", "gram 4096x4096"]
    for size in SIZES:
        for name in (f"gram {size}x{size}", f"multiply {size}x{size}x{size}", f"covariance {size}x{size}"):
            assert name in titles
        assert {f"pairwise cov {size}x{size} {gaps}" for gaps in ("scattered", "leading")} <= set(titles)
    for rows, columns in FURTHER:
        assert {f"gram {rows}x{columns}", f"covariance {rows}x{columns}"} <= set(titles)
    assert "rolling corr 500x5000x60" in titles
    assert {case.operation for case in listed()} == set(OPERATIONS)


def test_cases_are_chosen_by_whole_words_in_their_own_order() -> None:
    every = listed([8, 64])
    titles = [case.title for case in chosen(every, ["rolling", "gram 64x64"])]
    assert titles == ["gram 64x64", "rolling corr 2x64x60", "rolling corr 4x92x60"]
    assert chosen(every, ["gram", "gram 8x8"]) == tuple(case for case in every if case.operation == "gram")
    for name in ("gra", "gram 6", "corr", ""):
        with pytest.raises(OptionError, match="--cases"):
            chosen(every, [name])


# faults are seen


class Given(Trial):
    """Answers that lie ready, one after the other."""

    def __init__(self, *answers: Any) -> None:
        self.answers = answers
        self.turns: list[int] = []
        self.answer = answers[0]

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        self.answer = self.answers[turn % len(self.answers)]
        self.turns.append(turn)
        return 1e-3 * (1 + turn % 2)

    def lines(self, some: Lines) -> Any:
        return self.answer[some]


def exact_of(case: Case) -> Any:
    """The answer of a case by numpy."""
    with np.errstate(invalid="ignore"):
        if case.named.operation == "multiply":
            return case.inputs[0] @ case.inputs[1]
        if case.named.operation == "gram":
            return case.inputs[0].T @ case.inputs[0]
        return np.cov(case.inputs[0], rowvar=False)


@pytest.mark.parametrize("operation", ["gram", "multiply", "covariance"])
def test_an_answer_that_is_not_written_or_wrong_is_not_timed(operation: str) -> None:
    case = case_of(Named(operation, (9, 9, 9) if operation == "multiply" else (9, 9)), "float64")
    right = exact_of(case)
    passed = checked(Given(right, right), case)
    assert passed.error < 1e-14
    assert passed.same_bits
    hole = right.copy()
    hole[8, 3] = np.nan
    with pytest.raises(ArithmeticError, match="1 of 81 numbers"):
        checked(Given(hole, right), case)
    off = right.copy()
    off[3, 5] += 1e-9
    with pytest.raises(ArithmeticError, match="the error is"):
        checked(Given(off, right), case)
    other = right.copy()
    other[0, 0] = np.nextafter(other[0, 0], 9)
    assert not checked(Given(right, other), case).same_bits


def test_sums_that_are_cut_off_show_in_the_bias_and_not_in_the_error() -> None:
    case = case_of(Named("covariance", (5000, 4)), "float32")
    right = np.cov(case.inputs[0].astype(np.float64), rowvar=False)
    assert abs(checked(Given(right, right), case).bias or 0) < 1e-12
    short = (right * (1 - 6e-5)).astype(np.float32)
    found = checked(Given(short, short), case)
    assert found.error < 1e-4
    assert found.bias == pytest.approx(-6e-5, rel=1e-2)


@pytest.mark.parametrize("gaps", ["scattered", "leading"])
def test_pairwise_cases_miss_about_a_twentieth_and_are_compared_pair_by_pair(gaps: str) -> None:
    import pandas as pd

    case = case_of(Named("pairwise cov", (400, 30), gaps), "float64")
    (X,) = case.inputs
    missing = np.isnan(X)
    assert 0.03 < missing.mean() < 0.07
    if gaps == "leading":
        assert (np.diff(missing.astype(int), axis=0) <= 0).all()
    right = pd.DataFrame(X).cov().to_numpy()
    assert checked(Given(right, right), case).error < 1e-13
    complete = X[~missing.any(axis=1)]
    dropped = np.cov(complete, rowvar=False) if len(complete) > 1 else np.zeros_like(right)
    with pytest.raises(ArithmeticError, match="the error is"):
        checked(Given(dropped, dropped), case)


def test_windows_are_compared_whole_and_packed() -> None:
    whole = RollingCorrelation(Named("rolling corr", (4, 90, 60)), "float64")
    right = np.array([np.corrcoef(whole.inputs[0][k : k + 60], rowvar=False) for k in range(31)])
    packed = PackedCorrelation(whole)
    assert checked(Given(right, right), whole).error < 1e-13
    triangles = right[:, *np.triu_indices(4)]
    assert checked(Given(triangles, triangles), packed).error < 1e-13
    shifted = np.roll(right, 1, axis=0)
    with pytest.raises(ArithmeticError, match="the error is"):
        checked(Given(shifted, shifted), whole)


def test_a_wrong_row_is_named_at_the_end() -> None:
    row = {"contender": "dmma", "case": "gram 8x8", "dtype": "float64"}
    rows = [{**row, "note": "resident"}, {**row, "note": "wrong: the error is 1.0e+00"}]
    assert list(wrong(rows)) == ["dmma of gram 8x8 in float64 is wrong: the error is 1.0e+00"]


def test_contenders_take_turns_on_changing_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_trial, "SHORTEST_WINDOW", 0.004)
    first, second = Given(0), Given(0)
    found = in_turn({"first": first, "second": second}, rounds=3)
    together = sorted(first.turns + second.turns)
    assert together == list(range(len(together))), "no turn is taken twice"
    assert {turn % 3 for turn in first.turns} == {0, 1, 2}
    for spent, walls in found.values():
        assert len(spent) == len(walls) == 3
        assert all(1e-3 <= seconds <= 2e-3 for seconds in spent)


def test_the_numbers_that_are_looked_at_reach_from_end_to_end() -> None:
    for count, most in ((1, 5), (5, 5), (7, 3), (1000, 24)):
        found = spread_over(count, most)
        assert len(found) == min(count, most)
        assert (np.diff(found) > 0).all()
        assert found[0] == 0
        assert most == 1 or found[-1] == count - 1


# the device


@pytest.fixture(scope="module")
def device(verdict: Verdict) -> Iterator[Any]:
    from mtbridge.bench.gpu_device import open_resident

    with open_resident(verdict) as opened:
        yield opened


@pytest.mark.parametrize("count", [1, 3, 4, 5, 257, 4099])
def test_a_number_is_written_everywhere_and_nowhere_else(device: Any, count: int) -> None:
    buffer = device.uploaded(np.zeros(count + 8, np.float32))
    device.write_all(buffer, 4 * count, np.float32(7))
    found = device.downloaded(buffer, np.empty(count + 8, np.float32))
    assert (found[:count] == 7).all()
    assert (found[count:] == 0).all()


def test_memory_for_answers_is_full_of_nan_while_a_device_poisons(device: Any) -> None:
    device.poisoning = True
    try:
        buffer = device.allocate(8 * 33)
        target, array = device.result("answer", (3, 11), np.dtype(np.float64))
    finally:
        device.poisoning = False
    assert np.isnan(device.downloaded(buffer, np.empty(33))).all()
    assert np.isnan(device.receive(target, array)).all()


def test_the_time_of_several_launches_is_that_from_the_first_to_the_last(device: Any) -> None:
    buffer = device.allocate(1 << 20)

    def work() -> None:
        device.write_all(buffer, 1 << 20)
        device.finish()
        time.sleep(0.02)
        device.write_all(buffer, 1 << 20)

    spent = device.spent(work)
    assert spent.whole >= 0.02
    assert 0 < spent.kernels < spent.whole
    assert device.spent(lambda: None).whole == 0


def test_lines_are_read_from_the_middle_of_an_answer(device: Any) -> None:
    array = np.arange(60.0).reshape(10, 6)
    buffer = device.uploaded(array)
    for some in ([0, 1, 2], [4], [2, 5, 9], list(range(10))):
        found = device.lines(buffer, np.array(some), (2, 3), array.dtype)
        np.testing.assert_array_equal(found, array[some].reshape(-1, 2, 3))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("family", ["opencl", "register_tiled", "split_mma"])
def test_a_covariance_queues_the_kernels_of_the_engine_and_gives_its_answer(
    device: Any, verdict: Verdict, family: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from mtbridge.bench.gpu_families import Families
    from mtbridge.bench.gpu_works import CovarianceTrial, copies_of

    families = Families(device, verdict.key)
    engine = families.engine("opencl" if family == "split_mma" else family, dtype)
    if family == "split_mma":
        # in plain OpenCL C, which is there for tests
        engine.use_halves(0)
    case = case_of(Named("covariance", (300, 70)), dtype)
    copies = copies_of(engine, case, 2)
    trial = CovarianceTrial(device, engine, case, copies)
    queued: list[str] = []
    run = device.run

    def noted(kernel: Any, *arguments: Any, **options: Any) -> Any:
        queued.append(kernel.name)
        return run(kernel, *arguments, **options)

    monkeypatch.setattr(device, "run", noted)
    trial.run(0)
    ours, queued[:] = list(queued), []
    expected = engine.moments(copies[0][0]).covariance()
    assert ours == queued
    assert "pack_centred" in ours
    found = trial.lines(np.arange(70))
    deviations = np.sqrt(np.diagonal(expected))
    bound = np.finfo(dtype).eps * np.outer(deviations, deviations)
    assert (np.abs(found - expected) <= bound).all()


# what is known of a card


@pytest.mark.skipif(sys.platform == "win32", reason="a script is no program there")
def test_cards_are_what_the_drivers_program_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=None)
    assert cards() == []
    program = tmp_path / "nvidia-smi"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = "--query-gpu={",".join(gpu_ceilings.ASKED)}" ] || exit 2\n'
        "echo 'NVIDIA X1, 700.00 W, 345 MHz, 1980 MHz, 580.1'\n"
    )
    program.chmod(0o755)
    assert cards() == [
        dict(zip(gpu_ceilings.ASKED, ("NVIDIA X1", "700.00 W", "345 MHz", "1980 MHz", "580.1"), strict=True))
    ]
    program.write_text("#!/bin/sh\nexit 9\n")
    assert cards() == []


# peers


class OnHost(TorchTrial):
    """Work of torch on a processor, where there are no CUDA events."""

    place = "cpu"

    def _seconds(self, work: Callable[[], Any]) -> float:
        start = time.perf_counter()
        self._answer = work()
        return time.perf_counter() - start


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "named",
    [
        Named("gram", (50, 7)),
        Named("multiply", (9, 50, 7)),
        Named("covariance", (50, 7)),
        Named("pairwise cov", (200, 7), "scattered"),
        Named("rolling corr", (5, 90, 60)),
    ],
    ids=lambda named: named.title,
)
def test_torch_computes_the_same_thing(named: Named, dtype: str) -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    case = case_of(named, dtype)
    trial = OnHost(torch, case, 2, TORCH[named.operation][1])
    assert checked(trial, case).error < case.terms * np.finfo(dtype).eps


def test_a_fault_of_torch_is_one_sentence() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    case = case_of(Named("gram", (5, 3)), "float64")

    def work(*_: Any) -> Any:
        raise RuntimeError("out of memory\nand much more")

    with pytest.raises(DeviceError, match=r"^out of memory$"):
        OnHost(torch, case, 1, work).run(0)
