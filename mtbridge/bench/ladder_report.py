"""The rows of the kernel ladder as a table for the terminal, and as tables for docs/kernels.md."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Row = dict[str, Any]


def blocks(rows: list[Row]) -> Iterator[tuple[str, list[Row]]]:
    """Yield a title and the rows of each type and size, in their order; the peak stands in the title."""
    peaks = {row["dtype"]: row["gflops"] for row in rows if row["contender"] == "peak"}
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row["contender"] != "peak":
            groups.setdefault((row["dtype"], row["case"]), []).append(row)
    for (dtype, case), group in groups.items():
        size = case.removeprefix("ladder ").split("x")[0]
        peak = peaks.get(dtype)
        ceiling = f", the device's peak {peak:,.0f} GFLOP/s" if peak else ""
        yield f"{dtype}, N = {size}{ceiling}", group


def cells(row: Row) -> list[str]:
    """Return the columns after the rung's name: device ms, wall ms, GFLOP/s, peak, ratios, error."""

    def ratio(peer: str, key: str) -> str:
        value = row[key].get(peer)
        return "" if value is None else f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"

    return [
        "" if row["device_s"] is None else f"{1e3 * row['device_s']:.3f}",
        f"{1e3 * row['median_s']:.3f}",
        f"{row['gflops']:.1f}",
        "" if row["peak_share"] is None else f"{100 * row['peak_share']:.1f}",
        ratio("serial", "device_versus"),
        ratio("serial", "versus"),
        ratio("openblas", "device_versus"),
        ratio("openblas", "versus"),
        f"{row['error']:.0e}",
    ]


def remarks(row: Row) -> str:
    """Return what stands beside a row: the kind of its local memory, the preferred width, its note."""
    found = []
    if "local_mem_type" in row:
        found.append(f"local memory: {row['local_mem_type']}")
    if "preferred_vector_width" in row:
        found.append(f"preferred width {row['preferred_vector_width']}")
    if row["note"]:
        found.append(row["note"])
    return "; ".join(found)


HEADS = (
    "device ms",
    "wall ms",
    "GFLOP/s",
    "% of peak",
    "x serial, device",
    "x serial, wall",
    "x OpenBLAS, device",
    "x OpenBLAS, wall",
    "error",
)
NARROW_HEADS = (
    "device ms",
    "wall ms",
    "GFLOP/s",
    "% peak",
    "x serial",
    "(wall)",
    "x BLAS",
    "(wall)",
    "error",
)


def text_table(rows: list[Row]) -> str:
    """Return the rows as lines of text; x means times as fast, by device and by wall time."""
    lines = []
    for title, group in blocks(rows):
        lines += [title, f"{'rung':18}" + "".join(f"{head:>10}" for head in NARROW_HEADS)]
        for row in group:
            if row["median_s"] is None:
                lines.append(f"{row['contender']:18}  {row['note']}")
            else:
                values = "".join(f"{cell:>10}" for cell in cells(row))
                beside = remarks(row)
                lines.append(f"{row['contender']:18}{values}" + (f"  ({beside})" if beside else ""))
        lines.append("")
    lines += launch_line(rows)
    return "\n".join(lines).rstrip()


def launch_line(rows: list[Row]) -> list[str]:
    """Return a sentence about when one launch was queued, submitted, started and ended."""
    for row in rows:
        if "moments" in row:
            times = ", ".join(f"{name.upper()} {1e3 * at:.3f}" for name, at in row["moments"].items())
            size = row["case"].removeprefix("ladder ").split("x")[0]
            return [f"One launch of {row['contender']} in {row['dtype']}, N = {size}, in ms: {times}."]
    return []


def markdown_tables(result: dict[str, Any]) -> str:
    """Return the tables of one file in benchmarks/results, as Markdown."""
    rows, machine = result["rows"], result["machine"]
    named = next((row["device"] for row in rows if row["device_s"] is not None), "no OpenCL device")
    lines = [f"{named}, on {machine['processor']}, {machine['cores']} cores, {machine['time'][:10]}.", ""]
    for title, group in blocks(rows):
        lines += [
            f"**{title}**",
            "",
            f"| rung | {' | '.join(HEADS)} | beside |",
            "|" + "---|" * (len(HEADS) + 2),
        ]
        for row in group:
            values = [""] * len(HEADS) if row["median_s"] is None else cells(row)
            lines.append(f"| {row['contender']} | {' | '.join(values)} | {remarks(row)} |")
        lines.append("")
    return "\n".join([*lines, *launch_line(rows)]).rstrip() + "\n"
