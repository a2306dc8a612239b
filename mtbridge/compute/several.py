"""The `opencl` engine on several devices of one kind: big matrices are shared, all else is done by the first.

Covariance, correlation, X'X and products are cut into blocks (several_blocks.py), of which each device takes
one as it gets free (several_devices.py). What a block holds depends on the matrix alone, so an answer has the
same bits whoever computed which block, on two devices as on eight.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute import devices
from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.blocks import spans
from mtbridge.compute.centre import centre
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.engine import Engine
from mtbridge.compute.launches import Operand, contiguous
from mtbridge.compute.masked import holds_missing
from mtbridge.compute.moments import Moments, without_residue
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.opencl_moments import SUM
from mtbridge.compute.pair_moments import PairMoments
from mtbridge.compute.several_blocks import (
    Pair,
    block_width,
    divided_seconds,
    pairs_of_product,
    pairs_of_triangle,
    pays,
)
from mtbridge.compute.several_devices import Factor, SharedProduct, host_threads
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.decay import Decay
    from mtbridge.compute.sequence import MatrixSequence, Wanted
    from mtbridge.compute.windows import Rolling


def open_devices(wanted: str | None = None) -> Engine:
    """Open the engine on the device that is meant, or the one on all that are (see `devices.choose_all`).

    Raises
    ------
    DeviceError
        If there is no such device, one does not work, or they are not of one kind.
    """
    indices = tuple(devices.choose_all(wanted))
    if len(indices) == 1:
        return open_opencl(wanted)
    with ExitStack() as opened:
        engines = {index: opened.enter_context(open_opencl(str(index))) for index in indices}
        shared = SeveralEngine(engines)
        opened.pop_all()
    return shared


class SeveralEngine(Engine):
    """Engines on devices of one name and driver, which share the products of big matrices.

    Each engine is driven by one thread at a time: its own while a product is shared, else the caller's. Small
    matrices, those that miss values or lie on a device, windows and ranks are left to the first engine.

    Parameters
    ----------
    engines : by the numbers of their devices in `mtbridge devices`; they are closed with this one
    block : share whatever has more than so many columns, in blocks of so many; by default the shape decides

    Attributes
    ----------
    first : the engine that does alone what is not shared
    """

    name = "opencl"

    def __init__(self, engines: dict[int, OpenCLEngine], *, block: int | None = None) -> None:
        self._engines = engines
        self.first = next(iter(engines.values()))
        self._block = block
        numbers = ", ".join(map(str, engines))
        self.device = f"{len(engines)} x {self.first.device} (devices {numbers})"
        self._used: Engine = self
        self._why = ""

    @property
    def used(self) -> Engine:
        """This engine where the last call was shared, else the first device's."""
        return self._used

    @property
    def why(self) -> str:
        """A sentence about who did the last call, empty before the first."""
        return self._why

    @property
    def dtypes(self) -> tuple[str, ...]:
        return self.first.dtypes

    def moments(self, X: Operand, *, dtype: np.dtype[Any] | None = None) -> Moments:
        """Return the `Moments` of the rows of `X`; each block of columns is centred once, by the host."""
        kind = np.dtype(dtype or X.dtype)
        if isinstance(X, DeviceMatrix) or not self._shares_moments(X.shape, kind):
            return self._alone("the moments").moments(X, dtype=dtype)
        rows, columns = X.shape
        parts = self._parts(columns)
        with self._host() as host:
            centred = [host.submit(centre, X[:, part], kind) for part in parts]
            comoment = self._triangle(parts, lambda number: centred[number].result().values, SUM, host)
        found = [part.result() for part in centred]
        mean = np.concatenate([part.mean for part in found])
        return Moments(
            n=rows,
            origin=np.concatenate([part.origin for part in found]),
            exponent=np.concatenate([part.exponent for part in found]),
            mean=mean,
            comoment=without_residue(comoment.astype(SUM, copy=False), mean, rows),
        )

    def pair_moments(self, X: Operand, *, dtype: np.dtype[Any] | None = None) -> PairMoments:
        """Return the `PairMoments` of `X`; shared where nothing is missing."""
        kind = np.dtype(dtype or X.dtype)
        if not isinstance(X, DeviceMatrix) and self._shares_moments(X.shape, kind) and not holds_missing(X):
            return PairMoments.of(self.moments(X, dtype=dtype))
        return self._alone("the moments of pairs").pair_moments(X, dtype=dtype)

    def lagged_moments(
        self, X: Matrix, lags: Sequence[int], *, dtype: np.dtype[Any] | None = None
    ) -> list[PairMoments]:
        return self._alone("lagged moments").lagged_moments(X, lags, dtype=dtype)

    def sequence(self, X: Matrix, plan: Rolling | Decay, wanted: Wanted) -> MatrixSequence:
        return self._alone("windows").sequence(X, plan, wanted)

    def spearman(self, X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return self._alone("ranks").spearman(X)

    def kendall(self, X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return self._alone("ranks").kendall(X)

    def upload(self, X: Matrix) -> DeviceMatrix:
        """Return a copy of `X` on the first device, which then computes with it alone."""
        return self.first.upload(X)

    def download(self, X: Operand, out: Matrix | None = None) -> Matrix:
        return self.first.download(X, out)  # type: ignore[arg-type]

    def prepare(self) -> None:
        self.first.prepare()

    def close(self) -> None:
        with ExitStack() as closing:
            for engine in self._engines.values():
                closing.callback(engine.close)

    def _pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        return self.first._pinned(shape, dtype)

    def _product(self, A: Operand, B: Operand) -> Any:
        shape = (*A.shape, B.shape[1])
        if (
            isinstance(A, DeviceMatrix)
            or isinstance(B, DeviceMatrix)
            or not self._shares(shape, A.dtype, A.dtype, triangle=False)
        ):
            return self._alone("the product")._product(A, B)
        downs, acrosses = self._parts(shape[0]), self._parts(shape[2])
        with self._host() as host:
            lefts = _copied(host, A.T, downs)
            rights = _copied(host, B, acrosses)
            out = aligned_empty((shape[0], shape[2]), A.dtype)
            return self._share(pairs_of_product(downs, acrosses), lefts, rights, out, host)

    def _gram(self, X: Operand, *, wide: bool) -> Any:
        rows, columns = X.shape
        total = SUM if wide else X.dtype
        if isinstance(X, DeviceMatrix) or not self._shares(
            (columns, rows, columns), X.dtype, total, triangle=True
        ):
            return self._alone("X'X")._gram(X, wide=wide)
        parts = self._parts(columns)
        with self._host() as host:
            return self._triangle(parts, _copied(host, X, parts), total, host)

    def _triangle(
        self, parts: list[slice], factor: Factor, total: np.dtype[Any], host: ThreadPoolExecutor
    ) -> Matrix:
        out = aligned_empty((parts[-1].stop, parts[-1].stop), total)
        return self._share(pairs_of_triangle(parts), factor, factor, out, host)

    def _share(
        self, pairs: list[Pair], left: Factor, right: Factor, out: Matrix, host: ThreadPoolExecutor
    ) -> Matrix:
        done = SharedProduct(pairs, left, right, out, host).computed_by(self._engines)
        self._used = self
        shares = ", ".join(f"device {number} did {count}" for number, count in done.items())
        self._why = f"opencl shared {len(pairs)} blocks among {len(done)} devices: {shares}"
        return out

    def _alone(self, what: str) -> OpenCLEngine:
        self._used = self.first
        self._why = f"opencl did {what} on one device: it is too small, or of a kind that is not shared"
        return self.first

    def _parts(self, columns: int) -> list[slice]:
        return list(spans(columns, self._block or block_width(columns)))

    def _host(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(host_threads(len(self._engines)), thread_name_prefix="mtbridge-host")

    def _shares(
        self, shape: tuple[int, int, int], dtype: np.dtype[Any], total: np.dtype[Any], *, triangle: bool
    ) -> bool:
        """Whether a product of (rows, inner, columns) is shared."""
        rows, inner, columns = shape
        # a device without float64 adds up whole matrices only in pairs of floats, and refuses others itself
        if not inner or not {dtype.name, total.name} <= set(self.dtypes):
            return False
        if self._block is not None:
            chosen = rows * columns > 0 and max(rows, columns) > self._block
        else:
            blocks = len(self._parts(rows)) * len(self._parts(columns))
            chosen = blocks > 1 and pays(shape, size=dtype.itemsize, total=total.itemsize, half=triangle)
        if chosen:
            # tensor cores are tried once, here, and the other threads find the verdict
            self.first.form_in_use(dtype.name)
        return chosen

    def _shares_moments(self, shape: tuple[int, int], dtype: np.dtype[Any]) -> bool:
        rows, columns = shape
        whole = (columns, rows, columns)
        if not self._shares(whole, dtype, SUM, triangle=True):
            return False
        # in halves (split_mma.py) one device takes float32 four times as fast as blocks off the diagonal are
        # taken: then two are done sooner only where the answer takes longer than the products
        halves = self._block is None and self.first._form_of_centred(dtype.name).halves
        products, answer = divided_seconds(whole, total=SUM.itemsize, half=True)
        return not halves or products < answer


def _copied(host: ThreadPoolExecutor, X: Matrix, parts: list[slice]) -> Factor:
    """Return the blocks of columns of `X`, each contiguous and copied at most once for all devices."""
    blocks = [host.submit(contiguous, X[:, part]) for part in parts]
    return lambda number: blocks[number].result()
