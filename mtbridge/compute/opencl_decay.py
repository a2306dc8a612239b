"""Expanding and exponentially weighted matrices on an OpenCL device.

A history without missing values takes two kernels: what a row does to each column (decay/columns.cl), then
the pairs, which need few products each (decay/shared.cl). With missing values each pair carries its own
weights, means and variances (decay/masked.cl). The recurrences are those of host_decay.py, and what they
carry stays on the device from block to block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.decay import Decay
from mtbridge.compute.host_decay import HostDecay, check_decay, surveyed, values_and_presence
from mtbridge.compute.opencl_sequence import OpenCLSequence
from mtbridge.compute.sequence import STATISTICS, Wanted
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

SENT_BYTES = 1 << 22
"""So much of a history is sent at a time, whatever its length."""

SLAB_BYTES = 1 << 18
"""A CPU makes so many coefficients before their matrices: they are read again from cache."""

VAST = 2.0**450
"""Beyond it, a product of two deviations may overflow though their covariance does not."""

GROUPS_A_UNIT = 4
COLUMN_STATES = 6
PAIR_STATES = 10
ITEMS = 64
"""Work-items of a group on a GPU."""


class OpenCLDecay(OpenCLSequence):
    """The matrices of `X`, float32 or float64 of shape (rows, columns), one for each row.

    NaN is missing, inf is data: it makes its pairs NaN from its row on. Where a pair's variances leave
    2**-500 .. 2**500 in a history with missing values, the host goes on with the sequence; it does all of it
    where what the pairs carry is larger than a buffer, or values are so small that deviations lose digits.

    Parameters
    ----------
    limit : bytes of the largest buffer
    gpu : take the kernels of a GPU, one work-item an element; by default on whatever is no CPU

    Raises
    ------
    ShapeError, OptionError
        As for `HostDecay`.
    """

    def __init__(
        self,
        device: Device,
        X: Matrix,
        plan: Decay,
        wanted: Wanted,
        *,
        limit: int,
        gpu: bool | None = None,
    ) -> None:
        check_decay(X, plan, wanted)
        super().__init__(device, wanted, X.shape[1], len(plan), limit=limit)
        self._X, self._plan = X, plan
        self._host: HostDecay | None = None
        self._items = device.kind != "cpu" if gpu is None else gpu
        lanes = 1 if self._items else 8
        # vectors may begin at any column and reach beyond the last
        self._stride = -(-self.columns // 8) * 8 + (0 if self._items else 8)
        self._dense, largest, tiny = surveyed(X)
        self._vast = largest > VAST
        left = range(self.columns) if wanted.left is None else wanted.left
        self._left = device.uploaded(np.array(left, np.int32))
        self._rows = len(left)
        widths = np.array([self.columns - i if wanted.packed else self.columns for i in left])
        bounds, self._groups = shares(widths, 1 if self._items else device.units * GROUPS_A_UNIT)
        self._bounds = device.uploaded(bounds)
        states = self._rows * self._stride * (1 if self._dense else PAIR_STATES)
        if tiny or 8 * states > limit:
            self._host = HostDecay(X, plan, wanted)
        else:
            # of this sequence alone, since several may be open at a time
            self._state = device.uploaded(np.zeros(states))
            self._columns_state = device.uploaded(np.zeros(COLUMN_STATES * self._stride))
            self._doubtful = device.uploaded(np.zeros(1, np.int32))
        self._defines = {
            "REAL_BITS": 64,
            "SUM_BITS": 64,
            "SOURCE_BITS": 8 * wanted.dtype.itemsize,
            "WIDTH": 8,
            "LANES": lanes,
            "GROUP": ITEMS if self._items else 1,
            "PACKED": int(wanted.packed),
        }

    def _queue(self, target: Any, start: int, count: int) -> None:
        if self._host is None:
            piece = max(1, SENT_BYTES // (8 * self._stride))
            for at in range(0, count, piece):
                rows = slice(start + at, start + min(at + piece, count))
                factor = self.device.uploaded(self._plan.factor[rows])
                self._pieces(target, self._sent(rows), factor, rows, at)
            if not self._dense and self.device.downloaded(self._doubtful, np.zeros(1, np.int32))[0]:
                self._host = HostDecay(self._X, self._plan, self.wanted)
                self._host.skip(start)
        if self._host is not None:
            block = np.empty((count, *self.shape), self.wanted.dtype)
            self._host.write(block)
            self.device.put(target, block)

    def _sent(self, rows: slice) -> Any:
        """A buffer with these rows, padded: NaN for what is infinite, infinity for what is missing."""
        values, present = values_and_presence(self._X[rows])
        padded = np.zeros((len(values), self._stride))
        padded[:, : self.columns] = values if self._dense else np.where(present, values, np.inf)
        return self.device.uploaded(padded)

    def _pieces(self, target: Any, source: Any, factor: Any, rows: slice, at: int) -> None:
        """Queue the matrices of the rows in `source`, which become those from `at` on of `target`."""
        count = rows.stop - rows.start
        if not self._dense:
            self._masked(target, source, factor, count, at)
            return
        slab = max(16, (SENT_BYTES if self._items else SLAB_BYTES) // (8 * self._stride))
        for first in range(0, count, slab):
            self._shared(
                target, source, factor, first, min(slab, count - first), rows.start + first, at + first
            )

    def _grid(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Groups of the kernels of pairs, and their items."""
        if self._items:
            return (-(-self.columns // ITEMS), self._rows), (ITEMS, 1)
        return (self._groups,), (1,)

    def _shared(
        self, target: Any, source: Any, factor: Any, first: int, count: int, before: int, at: int
    ) -> None:
        """Queue the matrices of rows `first` to ``first + count`` of a source without missing values."""
        device, plan, wanted = self.device, self._plan, self.wanted
        stride = self._stride
        lanes, group = (1, ITEMS) if self._items else (4, 1)
        a, b, p, q = (device.buffer(f"decay {name}", 8 * count * stride) for name in "abpq")
        statistic = STATISTICS.index(wanted.statistic)
        columns = device.kernel(
            "columns",
            ("decay/columns.cl",),
            {
                "REAL_BITS": 64,
                "SUM_BITS": 64,
                "LANES": lanes,
                "GROUP": group,
                "STATISTIC": statistic,
                "ADJUST": int(plan.adjust),
                "COUNTED": int(plan.counted),
            },
        )
        device.run(
            columns,
            (-(-stride // (lanes * group)),),
            (group,),
            *(source, factor, self._columns_state, a, b, p, q),
            *map(np.int32, (stride, first, count, before)),
            np.float64(plan.weight),
            *map(np.int32, (wanted.ddof, wanted.min_periods)),
        )
        pairs = device.kernel(
            "shared_rows",
            ("decay/shared.cl",),
            {
                **self._defines,
                "BETA": int(wanted.statistic == "beta"),
                "UNIT": int(statistic > 0),
                "VAST": int(self._vast and statistic == 0),
                **({"TILE": 1 << 30} if self._items else {}),
            },
        )
        cells = int(np.prod(self.shape))
        device.run(
            pairs,
            *self._grid(),
            *(a, b, p, q, self._state, target, self._left, self._bounds),
            *map(np.int32, (self.columns, stride, count)),
            *map(np.int64, (cells, at * cells)),
        )

    def _masked(self, target: Any, source: Any, factor: Any, count: int, at: int) -> None:
        """Queue the matrices of all rows of a source, each pair on its own rows."""
        plan, wanted = self._plan, self.wanted
        cells = int(np.prod(self.shape))
        kernel = self.device.kernel(
            "masked_rows",
            ("decay/masked.cl",),
            {
                **self._defines,
                "STATISTIC": STATISTICS.index(wanted.statistic),
                "ADJUST": int(plan.adjust),
                "IGNORE_MISSING": int(plan.ignore_na),
                "COUNTED": int(plan.counted),
                **({"TILE": 1 << 30} if self._items else {}),
            },
        )
        self.device.run(
            kernel,
            *self._grid(),
            *(source, factor, self._state, target, self._left, self._bounds, self._doubtful),
            *map(np.int32, (self.columns, self._rows, self._stride, count)),
            *map(np.int64, (cells, at * cells)),
            *map(np.float64, (plan.weight, wanted.ddof, max(wanted.min_periods, 1))),
        )


def shares(widths: NDArray[np.int64], groups: int) -> tuple[NDArray[np.int32], int]:
    """Return where each group's rows begin, and how many groups, for rows of `widths` elements."""
    ends = np.cumsum(widths)
    total = int(ends[-1]) if len(ends) else 0
    edges = np.searchsorted(ends, total * np.arange(1, groups) / groups) + 1
    bounds = np.unique(np.concatenate([[0], edges[edges < len(ends)], [len(ends)]])).astype(np.int32)
    return bounds, max(len(bounds) - 1, 1)
