"""Write the pages of docs/ that are made from the code and from benchmarks/results.

python docs/generate.py            write them
python docs/generate.py --check    exit with 1 where one of them is out of date
"""

from __future__ import annotations

import inspect
import json
import os
import re
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

# the width at which help is laid out must not depend on who runs this
os.environ.update(COLUMNS="100", TERMINAL_WIDTH="100", NO_COLOR="1")
os.environ.pop("FORCE_COLOR", None)

import click
import typer

from mtbridge import errors
from mtbridge.bench.gpu_report import is_of_gpu, markdown_tables
from mtbridge.bench.ladder_docs import with_tables
from mtbridge.cli import app

DOCS = Path(__file__).resolve().parent
RESULTS = DOCS.parent / "benchmarks" / "results"
# results whose tables stand on the pages about the ladder and about memory
ELSEWHERE = ("-ladder", "-memory")


PERFORMANCE = """\
# Performance

Made by docs/generate.py from benchmarks/results. A ratio is the peer's time divided by ours in the
same run, so above 1 is faster. Times are medians, with copies and packing counted; GFLOP/s of X'X and of a
covariance count one triangle. The error is the largest of the checked elements, as a share of the product of
absolute values, or for a covariance of the two standard deviations.

Rows of one thread come from a process of their own that has one core; their ratios are among themselves.
A product is named rows x inner x columns. `openblas` is the BLAS that numpy brings, called by numpy; `numpy`
is our engine on it, whose X'X is symmetric bit for bit. `clblast` is CLBlast with the parameters it comes
with, on the same device and queue, from array to array as ours, but it leaves X'X as one triangle.

Of the statistics (`mtbridge bench stats`) `opencl`, `numpy` and `serial` go from array to array, and
`opencl frame` from DataFrame to DataFrame, as pandas does. `numpy masked`, `numpy products` and
`numpy updates` are what is written by hand in numpy where no function does it. The error is the largest
distance from sums in long double in the checked rows or windows; that of a covariance is a share of the two
standard deviations.

`h200-gram` and `h200-multiply` are of the portable kernels; those for tensor cores came later.

`mtbridge bench gpu` measures what lies on a graphics card already and stays there. Times are by the clock of
the device: ours from the START of the first kernel to the END of the last, those of cuBLAS, torch and cupy
between CUDA events. `opencl` is what the engine chooses; `register_tiled` (in its shipped settings), `dmma`,
`int8_mma`, `split_mma` and `split_wgmma` are families of kernels, `split` and `single` what `--precision`
asks for. A covariance is the whole matrix in the type of the data, or the sums of products where its row says
so. Of pairwise ones the kernels alone count, and `dense` is the same of data in which nothing is missing.
`floor` is a kernel that only writes as many bytes: a ratio to it of 1 would be an answer for the price of its
bytes. Ceilings are of the same run; that of multiply-adds (`fma`) is of the ordinary cores, and tensor cores
may pass it. "Diagonal" is the mean relative error of the variances: sums that are cut off are all too small.
"Same bits" says whether a second run, on another copy of the input, gave the same answer. `covariance host`
goes from array to array by the host's clock; `batch` is many small matrices in one launch. `several` is the
covariance of `one` card and of `all` of its kind that share it, by the host's clock, from the call until the
last card is done; "wrong" there means also that bits differ from those of one card. In `h200-gpu` the
contenders took turns, and rows of the very same kernels (`opencl` and `dmma`) differ. Why was not measured;
the power limit of the card may hold its clock down after cuBLAS, whose turn is before that of `opencl`.

To measure a machine, with nothing else at work on it:

```sh
sudo apt-get install libclblast1    # the peer clblast, on Debian and Ubuntu; without it its rows say so
mtbridge bench gram --peers numpy,openblas,clblast --json gram.json
mtbridge bench multiply --peers numpy,openblas,clblast --json multiply.json
mtbridge bench covariance --json covariance.json
mtbridge bench stats --json stats.json
mtbridge bench gpu --json gpu.json  # where there is a graphics card; torch and cupy are peers if installed
```

`--sizes 256,512,1000` measures squares and `--shapes 100000x50,60x5000` any others; without them it is
N = 1000 and a tall, a wide, a single-row and an odd case. BLAS threads spin for 0.1 s after a call, so a
window begins when no thread of the process works any more.
"""


def cli_page() -> str:
    """The help of every command."""
    lines = ["# Commands", "", "Made by docs/generate.py from the commands themselves.", ""]
    root = typer.main.get_command(app)

    def add(command: Any, path: str, parent: click.Context | None) -> None:
        context = command.make_context(path, [], parent=parent, resilient_parsing=True)
        context.info_name = path if parent is None else path.rsplit(" ", 1)[1]
        context.terminal_width = context.max_content_width = 100
        lines.extend([f"## {path}", "", "```text", command.get_help(context).rstrip(), "```", ""])
        for name in getattr(command, "commands", {}):
            add(command.commands[name], f"{path} {name}", context)

    add(root, "mtbridge", None)
    return "\n".join(lines)


def errors_page() -> str:
    """The tree of errors, and the statuses of the worker."""
    from mtbridge.wire import Status

    tree = inspect.getdoc(errors) or ""
    made = "Made by docs/generate.py from mtbridge/errors.py and the protocol's statuses."
    lines = ["# Errors", "", made, ""]
    lines += ["## In Python", "", "```text", tree.split("\n\n", 1)[1].split("\n\n")[0], "```", ""]
    lines += ["On the command line each is one sentence on stderr and exit code 1.", ""]
    lines += ["## Statuses of a worker's reply", "", "| status | name |", "|---|---|"]
    lines += [f"| {status.value} | {status.name.lower()} |" for status in Status]
    lines += ["", "What each means is said in [protocol.md](protocol.md).", ""]
    return "\n".join(lines)


def performance_page() -> str:
    """One table for each file in benchmarks/results."""
    lines = [PERFORMANCE]
    for path in sorted(RESULTS.glob("*.json")):
        if path.stem.endswith(ELSEWHERE):
            continue
        result = json.loads(path.read_text(encoding="utf-8"))
        machine = result["machine"]
        lines += [f"## {path.stem}", ""]
        versions = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
        where = f"{machine['processor']}, {machine['cores']} cores"
        lines += [f"{where}, {machine['time'][:10]}; {versions}.", ""]
        if is_of_gpu(result["rows"]):
            lines += markdown_tables(result)
            continue
        titles = (
            "case",
            "dtype",
            "contender",
            "device",
            "threads",
            "median ms",
            "GFLOP/s",
            "error",
            "ratio to",
        )
        lines += ["| " + " | ".join(titles) + " |", "|" + "---|" * len(titles)]
        for row in result["rows"]:
            lines.append(performance_row(row))
        lines.append("")
    return "\n".join(lines)


def performance_row(row: dict[str, Any]) -> str:
    if row["median_s"] is None:
        return f"| {row['case']} | {row['dtype']} | {row['contender']} | | | not run | | | {row['note']} |"
    speed = "" if row["gflops"] is None else f"{row['gflops']:.1f}"
    error = "" if row["error"] is None else f"{row['error']:.0e}"
    ratios = ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in row["versus"].items())
    note = f" ({row['note']})" if row["note"] else ""
    milliseconds = f"{1e3 * row['median_s']:.3f}"
    threads = "" if row["threads"] is None else str(row["threads"])
    cells = (row["case"], row["dtype"], row["contender"], row["device"], threads, milliseconds, speed, error)
    return "| " + " | ".join((*cells, f"{ratios}{note}")) + " |"


def kernels_page() -> str:
    """The page on the ladder, with the tables between its marks made anew."""
    return with_tables((DOCS / "kernels.md").read_text(encoding="utf-8"), RESULTS)


def memory_page() -> str:
    """The page on the memory experiments, with the tables between its marks made anew."""
    text = (DOCS / "memory.md").read_text(encoding="utf-8")

    def filled(mark: re.Match[str]) -> str:
        result = json.loads((RESULTS / mark[1]).read_text(encoding="utf-8"))
        return f"<!-- begin {mark[1]} -->\n\n{memory_tables(result)}\n<!-- end -->"

    return re.sub(r"<!-- begin ([\w-]+\.json) -->\n.*?<!-- end -->", filled, text, flags=re.DOTALL)


def memory_tables(result: dict[str, Any]) -> str:
    machine = result["machine"]
    lines = [f"{result['rows'][0]['device']}, on {machine['processor']}, {machine['time'][:10]}.", ""]
    for (case, dtype), group in groupby(result["rows"], key=lambda row: (row["case"], row["dtype"])):
        heads = "| form | device us | wall us | GB/s | ratio to |"
        lines += [f"**{case}, {dtype}**", "", heads, "|" + "---|" * 5]
        for row in group:
            lines.append("| " + " | ".join((row["contender"], *memory_cells(row))) + " |")
        lines.append("")
    return "\n".join(lines)


def memory_cells(row: dict[str, Any]) -> list[str]:
    note = f" ({row['note']})" if row["note"] else ""
    if row["median_s"] is None:
        return ["", "not run", "", note.strip()]
    device = "" if row["device_s"] is None else f"{1e6 * row['device_s']:.1f}"
    speed = "" if row["gb_per_s"] is None else f"{row['gb_per_s']:.1f}"
    ratios = ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in row["versus"].items())
    return [device, f"{1e6 * row['median_s']:.1f}", speed, f"{ratios}{note}"]


PAGES = {
    "cli.md": cli_page,
    "errors.md": errors_page,
    "kernels.md": kernels_page,
    "memory.md": memory_page,
    "performance.md": performance_page,
}


def main() -> int:
    stale = []
    for name, page in PAGES.items():
        path, text = DOCS / name, page().rstrip() + "\n"
        if "--check" in sys.argv[1:]:
            if not path.exists() or path.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            path.write_text(text, encoding="utf-8")
    if stale:
        print(f"out of date: {', '.join(stale)}; run python docs/generate.py", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
