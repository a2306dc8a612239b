"""Big covariance, correlation and matrix products for MetaTrader 5 users."""

from __future__ import annotations

__version__ = "0.1.0"
