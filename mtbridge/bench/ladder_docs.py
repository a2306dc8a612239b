"""The measured parts of docs/kernels.md: the ladder's tables, the articles' figures, and what families do."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from mtbridge.bench.gpu_report import families_table
from mtbridge.bench.ladder_report import markdown_tables
from mtbridge.compute.ladder import LADDER, MQL5

Row = dict[str, Any]
Result = dict[str, Any]
Rows = Mapping[str, Row]

MARK = re.compile(r"<!-- (ladder|figures|families): ([\w-]+(?:, [\w-]+)*) -->\n.*?<!-- end -->", re.DOTALL)
DTYPE, CASE = "float32", "ladder 1000x1000x1000"
STEPS = [rung.name for rung in LADDER if rung.article == MQL5 and rung.runner == "kernel"]


def with_tables(text: str, results: Path) -> str:
    """Return a page with the tables between its marks made anew from the files of benchmarks/results.

    Parameters
    ----------
    text : the page; ``<!-- ladder: NAME -->`` to ``<!-- end -->`` becomes the tables of NAME.json, and
        ``<!-- figures: NAME, NAME -->`` to ``<!-- end -->`` the articles' figures beside those of the files,
        and ``<!-- families: NAME -->`` those of the kernels of `mtbridge bench gpu`
    results : the folder of the files; of one that is not there the page says so
    """

    def filled(mark: re.Match[str]) -> str:
        kind, names = mark[1], mark[2].split(", ")
        there = {name: _read(results / f"{name}.json") for name in names}
        found = {name: result for name, result in there.items() if result is not None}
        if not found:
            body = f"Not measured yet: there is no benchmarks/results/{names[0]}.json.\n"
        elif kind == "ladder":
            body = "\n".join(markdown_tables(result) for result in found.values())
        elif kind == "families":
            body = "\n".join(families_table(result["rows"]) for result in found.values())
        else:
            body = article_figures(found)
        return f"<!-- {kind}: {mark[2]} -->\n\n{body}\n<!-- end -->"

    return MARK.sub(filled, text)


def _read(path: Path) -> Result | None:
    if not path.exists():
        return None
    result: Result = json.loads(path.read_text(encoding="utf-8"))
    return result


def article_figures(results: Mapping[str, Result]) -> str:
    """Return a table of the articles' figures and, in a column a file, of what comes nearest there."""
    lines = [
        f"| the articles | here, {DTYPE}, N = 1000 | {' | '.join(results)} |",
        "|" + "---|" * (len(results) + 2),
    ]
    for figure, ours, measure in FIGURES:
        cells = []
        for result in results.values():
            rows = {
                row["contender"]: row
                for row in result["rows"]
                if row["dtype"] == DTYPE and row["case"] == CASE and row["median_s"] is not None
            }
            try:
                cells.append(measure(rows))
            except (KeyError, ValueError):
                cells.append("not run")
        lines.append(f"| {figure} | {ours} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _seconds(row: Row) -> float:
    return float(row["device_s"] or row["median_s"])


def _times(slow: str, fast: str) -> Callable[[Rows], str]:
    return lambda rows: _factor(_seconds(rows[slow]) / _seconds(rows[fast]))


def _factor(ratio: float) -> str:
    return f"{ratio:,.2f}x" if ratio < 10 else f"{ratio:,.0f}x"


def _best(rows: Rows, names: list[str]) -> Row:
    return min((rows[name] for name in names if name in rows), key=_seconds)


def _orders(rows: Rows) -> str:
    slowest = max(_seconds(row) for name, row in rows.items() if name.startswith("serial"))
    textbook = _times("serial_r_c_cr", "serial")(rows)
    return f"{textbook}; the slowest order {_factor(slowest / _seconds(rows['serial']))}"


def _climb(rows: Rows) -> str:
    best = _best(rows, STEPS)
    first = _seconds(rows["naive"])
    return f"{1e3 * first:.1f} to {1e3 * _seconds(best):.2f} ms ({best['contender']})"


def _saved(slow: str, fast: str) -> Callable[[Rows], str]:
    def measure(rows: Rows) -> str:
        share = 100 * (1 - _seconds(rows[fast]) / _seconds(rows[slow]))
        return f"{share:.0f} % less time" if share >= 0 else f"{-share:.0f} % more time"

    return measure


def _against_host(names: list[str] | None) -> Callable[[Rows], str]:
    def measure(rows: Rows) -> str:
        every = [name for name, row in rows.items() if row["device_s"]]
        best = _best(rows, names or every)
        device, wall = best["device_versus"]["serial"], best["versus"]["serial"]
        return f"{_factor(device)}, with copies {_factor(wall)} ({best['contender']})"

    return measure


def _speed(name: str) -> Callable[[Rows], str]:
    return lambda rows: f"{rows[name]['gflops']:,.1f} GFLOP/s"


FIGURES: tuple[tuple[str, str, Callable[[Rows], str]], ...] = (
    ("1.73x between loop orders", "r-c-cr against r-cr-c on the host", _orders),
    ("12.7 s to 1.3 s", "naive to the best rung of the MQL5 article, device time", _climb),
    ("10 % of a step", "private_sum against coalesced", _saved("coalesced", "private_sum")),
    ("8.3x and 15x", "the best rung of the MQL5 article against `serial`", _against_host(STEPS)),
    ("32 GFlops", "dot8", _speed("dot8")),
    ("the jump to them", "dot8 against local_column", _times("local_column", "dot8")),
    ("90 % by coalescing", "naive_side_by_side against naive", _saved("naive", "naive_side_by_side")),
    ("40 % by the bank offset", "tiled_padded against tiled", _saved("tiled", "tiled_padded")),
    ("5-8x by tiles", "tiled against naive", _times("naive", "tiled")),
    ("200x in all", "the best rung of all against `serial`", _against_host(None)),
)
