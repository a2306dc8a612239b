"""A picture of the kernel ladder: a bar a rung, GFLOP/s on a logarithmic scale, as PNG or as a page."""

from __future__ import annotations

import html
import math
from pathlib import Path
from typing import Any

from mtbridge.bench.ladder_report import blocks
from mtbridge.errors import OptionError

Row = dict[str, Any]
SUFFIXES = (".png", ".html")
BAR, GAP, LEFT, WIDTH = 18, 5, 150, 640
COLOURS = {"MQL5": "#4477aa", "memory": "#228833", "Adreno": "#ccbb44", "beyond": "#ee6677", "": "#888888"}


def check_plot(path: Path) -> None:
    """Refuse a name that no picture can be written to, before the work.

    Raises
    ------
    OptionError
        If it ends neither in .png nor in .html, or matplotlib is needed and missing.
    """
    if path.suffix not in SUFFIXES:
        raise OptionError(f"--plot is {str(path)!r}; give a name that ends in .png or .html.")
    if path.suffix == ".png":
        try:
            import matplotlib  # noqa: F401
        except ImportError:
            raise OptionError(
                "a .png needs matplotlib; `pip install matplotlib`, or give a name that ends in .html."
            ) from None


def plot(rows: list[Row], path: Path, *, kind: str) -> None:
    """Write a picture of the rows to `path`: ".png" by matplotlib, or an ".html" that needs nothing else."""
    if kind == ".png":
        _write_png(rows, path)
    else:
        path.write_text(page(rows), encoding="utf-8")


def _bars(group: list[Row]) -> list[tuple[str, float, str]]:
    return [(row["contender"], row["gflops"], row["article"]) for row in group if row["gflops"]]


def _write_png(rows: list[Row], path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    parts = [(title, _bars(group)) for title, group in blocks(rows)]
    high = sum(len(bars) for _, bars in parts) * 0.24 + 1.0 * len(parts)
    figure = Figure(figsize=(9, high), layout="constrained")
    FigureCanvasAgg(figure)
    panes = figure.subplots(len(parts), 1, squeeze=False)[:, 0]
    for pane, (title, bars) in zip(panes, parts, strict=True):
        names = [name for name, _, _ in bars]
        pane.barh(names, [speed for _, speed, _ in bars], color=[COLOURS[article] for _, _, article in bars])
        pane.set_xscale("log")
        pane.invert_yaxis()
        pane.set_title(title, loc="left", fontsize=10)
        pane.set_xlabel("GFLOP/s")
        for index, (_, speed, _) in enumerate(bars):
            pane.annotate(f" {speed:,.1f}", (speed, index), va="center", fontsize=8)
        pane.margins(x=0.12)
    figure.savefig(path, dpi=120, format="png")


def page(rows: list[Row]) -> str:
    """Return the picture as a page with SVG in it, which asks for no other file."""
    body = []
    for title, group in blocks(rows):
        body += [f"<h2>{html.escape(title)}</h2>", _svg(_bars(group))]
    legend = " ".join(
        f'<span style="color:{colour}">&#9632; {name}</span>' for name, colour in COLOURS.items() if name
    )
    return (
        '<!doctype html>\n<html lang="en"><meta charset="utf-8"><title>The kernel ladder</title>\n'
        "<style>body{font:14px sans-serif;margin:2em}h2{font-size:16px}text{font:12px sans-serif}</style>\n"
        f"<h1>The kernel ladder</h1>\n<p>GFLOP/s, logarithmic. {legend}</p>\n"
        + "\n".join(body)
        + "\n</html>\n"
    )


def _svg(bars: list[tuple[str, float, str]]) -> str:
    if not bars:
        return "<p>Nothing ran.</p>"
    low = math.log10(min(speed for _, speed, _ in bars)) - 0.1
    high = max(math.log10(max(speed for _, speed, _ in bars)), low + 0.2)
    lines = []
    for index, (name, speed, article) in enumerate(bars):
        top = index * (BAR + GAP)
        long = max((math.log10(speed) - low) / (high - low) * WIDTH, 1)
        lines += [
            f'<text x="{LEFT - 6}" y="{top + 13}" text-anchor="end">{html.escape(name)}</text>',
            f'<rect x="{LEFT}" y="{top}" width="{long:.1f}" height="{BAR}" fill="{COLOURS[article]}"/>',
            f'<text x="{LEFT + long + 6:.1f}" y="{top + 13}">{speed:,.1f}</text>',
        ]
    tall = len(bars) * (BAR + GAP)
    return f'<svg width="{LEFT + WIDTH + 90}" height="{tall}" role="img">\n' + "\n".join(lines) + "\n</svg>"
