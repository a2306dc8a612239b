"""The table of docs/kernels.md that says what families of kernels do on a graphics card."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mtbridge.bench.gpu_ceilings import blank_row
from mtbridge.bench.gpu_report import families_table
from mtbridge.bench.ladder_docs import with_tables


def row(case: str, name: str, seconds: float | None, **versus: float) -> dict[str, Any]:
    figures = {"median_s": seconds, "gflops": 1.25e3, "error": 2e-7, "bias": -1e-7, "same_bits": True}
    return blank_row(case, "float32", name, "card", "") | figures | {"versus": versus}


ROWS = [
    row("gram 512x512", "dmma", 1e-3, cublas=1.5),
    row("gram 2048x2048", "dmma", 3e-3, cublas=1.25),
    row("gram 2048x2048", "cublas", 4e-3),
    row("gram 9000x20", "dmma", 3e-3, cublas=7),
    row("multiply 2048x2048x2048", "split", 5e-3, cublas=2.5),
    row("covariance 2048x2048", "broken", None) | {"gflops": None},
    row("covariance 2048x2048", "split_mma", 6e-3, torch=3),
    row("covariance host 4096x4096", "opencl", 6e-3, torch=3),
    row("pairwise cov 4096x4096 leading", "opencl", 6e-3, dense=0.5),
    row("batch 10x60x50", "opencl", 6e-3, torch=3),
]


def test_the_largest_squares_that_have_a_peer_are_in_the_table() -> None:
    lines = families_table(ROWS).splitlines()[2:]
    assert lines == [
        "| gram 2048x2048 | float32 | dmma | 3.000 | 1250.0 | cublas 1.25 | 2e-07 | -1e-07 |",
        "| multiply 2048x2048x2048 | float32 | split | 5.000 | 1250.0 | cublas 2.50 | 2e-07 | -1e-07 |",
        "| covariance 2048x2048 | float32 | split_mma | 6.000 | 1250.0 | torch 3.00 | 2e-07 | -1e-07 |",
    ]


def test_a_file_without_squares_makes_an_empty_table() -> None:
    assert families_table([row("gram 9000x20", "dmma", 3e-3, cublas=7)]).count("\n") == 2


def test_the_page_gets_the_table_between_its_marks(tmp_path: Path) -> None:
    (tmp_path / "card.json").write_text(json.dumps({"rows": ROWS}), encoding="utf-8")
    made = with_tables("before\n<!-- families: card -->\nold\n<!-- end -->\nafter\n", tmp_path)
    assert made == f"before\n<!-- families: card -->\n\n{families_table(ROWS)}\n<!-- end -->\nafter\n"
