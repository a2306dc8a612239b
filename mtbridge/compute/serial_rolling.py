"""Rolling matrices in plain loops, pair by pair and window by window: the reference of the faster ways."""

from __future__ import annotations

from mtbridge.compute.host_rolling import WindowByWindow
from mtbridge.compute.pair_moments import PairMoments
from mtbridge.compute.serial_pairs import serial_pair_moments


class SerialRolling(WindowByWindow):
    """Two passes over the rows of each pair in each window; compiled where numba is installed."""

    def _moments(self, begin: int, end: int) -> PairMoments:
        window = self._values[begin:end]
        return serial_pair_moments(window if self._left is None else window[:, self._left], window)
