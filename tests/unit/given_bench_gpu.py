"""`mtbridge bench gpu`, run in this process, and the rows that it writes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from mtbridge.cli import main

Row = dict[str, Any]
Run = Callable[..., tuple[int, str, str]]


@contextmanager
def bench_gpu(folder: Path) -> Iterator[Run]:
    """Give a function that runs the command in `folder` and returns exit code, stdout and stderr."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("MTBRIDGE_DEVICE", raising=False)

        def called(*arguments: str) -> tuple[int, str, str]:
            patch.setattr(sys, "argv", ["mtbridge", "bench", "gpu", *arguments])
            code, out, err = 0, StringIO(), StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                try:
                    main()
                except SystemExit as end:
                    code = int(end.code or 0)
            return code, out.getvalue(), err.getvalue()

        yield called


def of(rows: list[Row], title: str, dtype: str) -> dict[str, Row]:
    return {row["contender"]: row for row in rows if (row["case"], row["dtype"]) == (title, dtype)}
