"""`mtbridge bench gpu` as one asks for it: cases and peers by name, refusals, and how it ends early."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from given_bench_gpu import Run, bench_gpu, of

from mtbridge.bench import gpu
from mtbridge.compute.devices import Verdict
from mtbridge.matrix import DTYPES


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Run `mtbridge bench gpu` with arguments, in an empty folder."""
    with bench_gpu(tmp_path_factory.mktemp("gpu")) as called:
        yield called


def test_an_interrupted_run_keeps_the_cases_that_were_done(
    run: Run, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = gpu.in_turn
    turns: list[int] = []

    def second_is_interrupted(*arguments: Any, **options: Any) -> Any:
        turns.append(1)
        if len(turns) == 2:
            raise KeyboardInterrupt
        return timed(*arguments, **options)

    monkeypatch.setattr(gpu, "in_turn", second_is_interrupted)
    arguments = (
        "--device",
        "cpu",
        "--sizes",
        "9",
        "--rounds",
        "1",
        "--peers",
        "",
        "--cases",
        "gram,multiply",
    )
    code, out, err = run(*arguments, "--json", "part.json")
    assert code != 0
    assert "the cases that were done are kept" in err
    kept = json.loads(Path("part.json").read_text(encoding="utf-8"))["rows"]
    assert list(dict.fromkeys((row["case"], row["dtype"]) for row in kept))[-1] == ("gram 9x9", "float32")
    assert all(f"{row['case']}, {row['dtype']}" in out for row in kept)


def test_numbers_that_a_kernel_leaves_out_are_found_and_end_in_one_sentence(
    run: Run, verdict: Verdict, monkeypatch: pytest.MonkeyPatch
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
