"""The examples of docs/statistics.md run as they stand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).resolve().parents[2] / "docs" / "statistics.md"


def test_the_examples_run_in_their_order(capsys: pytest.CaptureFixture[str]) -> None:
    examples = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    assert len(examples) >= 9
    names: dict[str, Any] = {}
    for number, example in enumerate(examples):
        # the page is ours
        exec(compile(example, f"example {number} of {PAGE.name}", "exec"), names)  # noqa: S102
    assert "8,760 bars a year" in capsys.readouterr().err
