"""How a test calls the command line, and what a refusal looks like."""

from __future__ import annotations

from collections.abc import Callable

Run = Callable[..., tuple[int, str, str]]


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
