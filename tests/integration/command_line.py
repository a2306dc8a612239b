"""How a test calls the command line, its examples, and what a refusal looks like."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from typer.testing import CliRunner

from mtbridge.cli import app

Run = Callable[..., tuple[int, str, str]]
ROW_KEYS = {
    "case", "dtype", "contender", "device", "threads",
    "median_s", "spread_s", "gflops", "error", "note", "versus",
}  # fmt: skip
"""Keys of a row that a benchmark writes."""


def refused(outcome: tuple[int, str, str], *words: str) -> None:
    """One sentence on stderr that has `words`, nothing on stdout, exit code 1."""
    code, out, err = outcome
    assert "Traceback" not in err
    assert code == 1, (out, err)
    assert out == ""
    lines = [line for line in err.splitlines() if line.startswith("mtbridge: ")]
    assert len(lines) == 1, err
    assert err.splitlines()[-1] == lines[0], "the sentence is the last thing said, on one line"
    for word in words:
        assert word in lines[0], lines[0]


def example(command: str) -> list[str]:
    """The arguments of the example in the help of a command."""
    done = CliRunner().invoke(app, [*command.split(), "--help"])
    text = re.search(r"Example: mtbridge (.*?)\n\s*\n", done.output, re.DOTALL)
    assert text
    return shlex.split(text[1])
