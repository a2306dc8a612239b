"""A DataFrame that tests of moving windows share, and how answers are compared with those of pandas."""

from __future__ import annotations

import numpy as np
import pandas as pd


def hourly_moves() -> pd.DataFrame:
    """Return 40 hours of four symbols that share a factor."""
    random = np.random.default_rng(3)
    times = pd.date_range("2025-03-03", periods=40, freq="h", name="time")
    columns = pd.Index(["EURUSD", "GBPUSD", "XAUUSD", "US30"], name="symbol")
    values = random.standard_normal((40, 4)) + random.standard_normal((40, 1))
    return pd.DataFrame(values, times, columns)


def equal(found: pd.DataFrame, right: pd.DataFrame) -> None:
    pd.testing.assert_frame_equal(found, right, rtol=1e-11, atol=1e-13)
