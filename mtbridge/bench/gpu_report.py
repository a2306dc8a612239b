"""Rows of `mtbridge bench gpu` as lines of text, and as Markdown for docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

Row = dict[str, Any]

TITLES = (
    "contender",
    "median ms",
    "from, to",
    "GFLOP/s",
    "GB/s",
    "of ceiling",
    "error",
    "diagonal",
    "same bits",
    "ratio to",
)
WIDTHS = (20, 10, 19, 9, 8, 15, 8, 9, 9, 0)


def is_of_gpu(rows: list[Row]) -> bool:
    """Whether rows are those of `mtbridge bench gpu`."""
    return bool(rows) and all("same_bits" in row for row in rows)


def text_table(rows: list[Row]) -> str:
    """Return a heading a case and a line a contender; a peer's ratio above 1 means that we are faster."""
    lines = []
    for title, group in blocks(rows):
        lines += ["", title, "  " + _line(TITLES)]
        for row in group:
            if ran(row):
                beside = f"  ({row['note']})" if row["note"] else ""
                lines.append("  " + _line(cells(row)) + beside)
            else:
                lines.append(f"  {row['contender']:{WIDTHS[0]}} not run: {row['note']}")
    return "\n".join(lines[1:])


def markdown_tables(result: dict[str, Any]) -> list[str]:
    """Return the lines of the tables of one result file."""
    lines = []
    for card in result["machine"].get("cards", ()):
        clocks = f"{card['clocks.sm']} of {card['clocks.max.sm']}"
        limit, driver = card["power.limit"], card["driver_version"]
        lines += [f"{card['name']}, driver {driver}, power limit {limit}, clock at the end {clocks}.", ""]
    for title, group in blocks(result["rows"]):
        lines += [f"**{title}**", ""]
        lines += ["| " + " | ".join((*TITLES, "beside")) + " |", "|" + "---|" * (len(TITLES) + 1)]
        for row in group:
            found = cells(row) if ran(row) else (row["contender"], "not run", *[""] * (len(TITLES) - 2))
            lines.append("| " + " | ".join((*found, row["note"])) + " |")
        lines.append("")
    return lines


def families_table(rows: list[Row]) -> str:
    """Return a table of what families of kernels do of products and covariances of the largest squares."""
    lines = [
        "| case | dtype | kernels | median ms | GFLOP/s | ratio to | error | diagonal |",
        "|" + "---|" * 8,
    ]
    for row in rows:
        operation, shape = row["case"].rsplit(" ", 1)
        if operation in ("gram", "multiply", "covariance") and ran(row) and row["versus"]:
            name, median, _, speed, *_, error, diagonal, _, ratio = cells(row)
            if shape == largest(rows, operation):
                found = (row["case"], row["dtype"], name, median, speed, ratio, error, diagonal)
                lines.append("| " + " | ".join(found) + " |")
    return "\n".join(lines) + "\n"


def largest(rows: list[Row], operation: str) -> str:
    """Return the shape of the largest square of an operation."""
    shapes = {row["case"].rsplit(" ", 1)[1] for row in rows if row["case"].rsplit(" ", 1)[0] == operation}
    squares = [shape for shape in shapes if len(set(shape.split("x"))) == 1]
    return max(squares, key=lambda shape: int(shape.split("x")[0]), default="")


def blocks(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield a title and the rows of each case and type, in their order."""
    for (case, dtype), group in groupby(rows, key=lambda row: (row["case"], row["dtype"])):
        yield f"{case}, {dtype}", list(group)


def ran(row: Row) -> bool:
    """Whether a row has a figure; that of a ceiling is a rate alone."""
    return row["median_s"] is not None or row["gflops"] is not None


def cells(row: Row) -> tuple[str, ...]:
    """Return what stands in each column of a row that ran."""
    bits = {None: "", True: "yes", False: "no"}[row["same_bits"]]
    return (
        row["contender"],
        _shown(row["median_s"], "{:.3f}", 1e3),
        ", ".join(
            _shown(row[key], "{:.3f}", 1e3) for key in ("fastest_s", "slowest_s") if row[key] is not None
        ),
        _shown(row["gflops"], "{:.1f}"),
        _shown(row["gb_per_s"], "{:.1f}"),
        ", ".join(f"{share:.2f} of {name}" for name, share in row["shares"].items()),
        _shown(row["error"], "{:.0e}"),
        _shown(row["bias"], "{:+.0e}"),
        bits,
        ", ".join(f"{peer} {ratio:.2f}" for peer, ratio in row["versus"].items()),
    )


def _shown(value: float | None, form: str, unit: float = 1.0) -> str:
    return "" if value is None else form.format(unit * value)


def _line(values: tuple[str, ...]) -> str:
    aligned = (f"{value:>{width}}" for value, width in zip(values[1:], WIDTHS[1:], strict=True))
    return f"{values[0]:{WIDTHS[0]}} {' '.join(aligned)}".rstrip()
