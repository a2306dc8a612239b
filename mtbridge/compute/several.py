"""The `opencl` engine on several devices of one kind: big matrices are shared, all else is done by the first.

Covariance, correlation, X'X and products are cut into stripes of rows (several_stripes.py), of which each
device takes one as it gets free (several_devices.py). What a stripe holds depends on the matrix alone, so an
answer has the same bits whoever computed which stripe, on two devices as on eight; X'X and covariances have
those of one device alone (several_work.py). What is uploaded lies on every device, and X'X and covariances of
it stay there, a stripe on each (several_resident.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute import devices
from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.engine import Engine, check_out
from mtbridge.compute.launches import Operand, contiguous
from mtbridge.compute.masked import holds_missing
from mtbridge.compute.moments import CompleteCovariance, Moments, without_residue
from mtbridge.compute.opencl_engine import OpenCLEngine, open_opencl
from mtbridge.compute.opencl_moments import SUM
from mtbridge.compute.opencl_statistics import LARGEST_SCALE, SMALLEST_SCALE
from mtbridge.compute.pair_moments import PairMoments
from mtbridge.compute.several_choice import Choice
from mtbridge.compute.several_devices import Line, Member, computed
from mtbridge.compute.several_resident import downloaded, shared_answer, uploaded
from mtbridge.compute.several_stripes import stripes_of_product, stripes_of_triangle
from mtbridge.compute.several_work import Product, Triangle, triangle_unit
from mtbridge.compute.shared_matrix import SharedAnswer, SharedMatrix, alone
from mtbridge.errors import InputError
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.decay import Decay
    from mtbridge.compute.sequence import MatrixSequence, Wanted
    from mtbridge.compute.windows import Rolling


def open_devices(wanted: str | None = None, *, precision: str = "full") -> Engine:
    """Open the engine on the device that is meant, or the one on all that are (see `devices.choose_all`).

    Raises
    ------
    DeviceError
        If there is no such device, one does not work, or they are not of one kind.
    """
    indices = tuple(devices.choose_all(wanted))
    if len(indices) == 1:
        return open_opencl(wanted, precision=precision)
    with ExitStack() as opened:
        engines = {
            index: opened.enter_context(open_opencl(str(index), precision=precision)) for index in indices
        }
        shared = SeveralEngine(engines)
        opened.pop_all()
    return shared


class SeveralEngine(Choice):
    """Engines on devices of one name and driver, which share the products of big matrices.

    Each engine is driven by one thread at a time: its own while a product is shared, else the caller's. Small
    matrices, those that miss values, windows and ranks are left to the first engine.

    Parameters
    ----------
    engines : by the numbers of their devices in `mtbridge devices`; they are closed with this one
    least : share whatever has so many rows or columns in its answer; by default what is done sooner so

    Attributes
    ----------
    first : the engine that does alone what is not shared
    """

    name = "opencl"

    def __init__(self, engines: dict[int, OpenCLEngine], *, least: int | None = None) -> None:
        self._members = [Member(number, engine) for number, engine in engines.items()]
        self.first = self._members[0].engine
        self._least = least
        numbers = ", ".join(map(str, engines))
        self.device = f"{len(engines)} x {self.first.device} (devices {numbers})"
        self._used: Engine = self
        self._why = ""
        # whether something was missing in the last matrix of a complete covariance
        self._gaps = False

    def moments(self, X: Operand, *, dtype: np.dtype[Any] | None = None) -> Moments:
        """Return the `Moments` of the rows of `X`; every device centres all columns, as one alone does."""
        X, kind = self._placed(X), np.dtype(dtype or X.dtype)
        if X.ndim > 2:
            return self._batch_moments(X, kind)
        if isinstance(X, DeviceMatrix) or not self._shares_moments(X.shape, kind):
            return self._alone("the moments").moments(X, dtype=dtype)
        rows, columns = X.shape
        comoment = aligned_empty((columns, columns), SUM)
        found = self._triangle(contiguous(X), comoment, kind, centred=True, new=True)
        if found is None or found.centre is None:
            # the host centres columns that are not ordinary, once for all
            return super().moments(X, dtype=dtype)
        origin, exponent = found.centre
        mean = found.mean()
        return Moments(rows, origin, exponent, mean, without_residue(comoment, mean, rows))

    def complete_covariance(
        self, X: Matrix, *, dtype: np.dtype[Any], ddof: int, out: Matrix | None = None
    ) -> CompleteCovariance | None:
        """Return what `Engine.complete_covariance` does; looks for missing values as one device does."""
        columns = X.shape[1]
        if not self._shares_moments(X.shape, dtype, dtype):
            return self._alone("the covariance").complete_covariance(X, dtype=dtype, ddof=ddof, out=out)
        if self.first._packed or (self._gaps and holds_missing(X)):
            return None
        matrix = aligned_empty((columns, columns), dtype) if out is None else out
        found = self._triangle(contiguous(X), matrix, dtype, centred=True, ddof=ddof, new=out is None)
        self._gaps = bool(np.isnan(np.diagonal(matrix)).any())
        if found is None or found.centre is None or self._gaps:
            return None
        exponent = found.centre[1]
        scales = np.ldexp(1.0, -exponent.astype(np.int32))
        # a variance of a tiny column may not be a number of float32
        if not SMALLEST_SCALE[dtype] <= scales.min() <= scales.max() <= LARGEST_SCALE:
            return None
        return CompleteCovariance(matrix, exponent)

    def pair_moments(self, X: Operand, *, dtype: np.dtype[Any] | None = None) -> PairMoments:
        """Return the `PairMoments` of `X`; shared where nothing is missing."""
        X, kind = self._placed(X), np.dtype(dtype or X.dtype)
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
        """Return a `SharedMatrix`, a copy of `X` on every device; of a batch one on the first.

        `gram` and `covariance_on_device` share it; all else is done by the first device.
        """
        return self.first.upload(X) if X.ndim > 2 else uploaded(self._members, X)

    def download(self, X: Operand | SharedAnswer, out: Matrix | None = None) -> Matrix:
        """Return what lies on the devices as an array: a new one, or `out`."""
        if not isinstance(X, SharedAnswer):
            return self.first.download(X, out)  # type: ignore[arg-type]
        if out is not None:
            check_out(X.shape, X.dtype, out)
        return downloaded(self._members, X, out)

    def multiply(self, A: Any, B: Any, *, out: Matrix | None = None) -> Any:
        return super().multiply(self._placed(A), self._placed(B), out=out)

    def gram(self, X: Any, Y: Any = None, *, out: Any = None) -> Any:
        """Return what `Engine.gram` does, and of a `SharedMatrix` alone X'X as a `SharedAnswer`.

        `out` may be such an answer then, whose memory is used again where the devices share the work.
        """
        if Y is not None or not isinstance(X, SharedMatrix):
            return super().gram(self._placed(X), None if Y is None else self._placed(Y), out=out)
        self._check_copies(X)
        given = out if isinstance(out, SharedAnswer) else None
        answer = None
        if self._shares_gram(X.shape, X.dtype, X.dtype, there=True):
            answer = self._computed(X, given)
        if answer is None:
            # of what lies on a device the answer does, too
            whole: Any = self._alone("X'X")._gram(X, wide=False)
            answer = alone(whole)
        return answer if out is None or out is given else self.download(answer, out)

    def covariance_on_device(
        self, X: DeviceMatrix, *, ddof: int = 1, out: SharedAnswer | None = None
    ) -> SharedAnswer:
        """Return the covariance matrix of the columns of `X`, in its dtype; a stripe of it on each device.

        Its bits, and what is done of NaN, inf and extreme columns, are those of one device's
        (`OpenCLEngine.covariance_on_device`). Returns when the columns are centred, while products are taken.

        Parameters
        ----------
        X : of `upload`
        out : an answer whose memory is used again where the devices share the work

        Raises
        ------
        DeviceError
            If a device fails, or has too little memory.
        InputError
            As of one device.
        ShapeError
            If `out` is of another shape or dtype.
        """
        if isinstance(X, SharedMatrix):
            self._check_copies(X)
            if not self.first._packed and self._shares_gram(X.shape, X.dtype, SUM, there=True):
                answer = self._computed(X, out, ddof=ddof)
                if answer is not None:
                    return answer
        return alone(self._alone("the covariance").covariance_on_device(X, ddof=ddof))

    def _computed(
        self, X: SharedMatrix, out: SharedAnswer | None, *, ddof: int | None = None
    ) -> SharedAnswer | None:
        """Share X'X, or with `ddof` covariances; None where a column is not ordinary."""
        kind, centred = X.dtype, ddof is not None
        form = self.first.form_of_products(kind, SUM if centred else kind)
        works = [
            Triangle(one.engine, copy, kind, form, kind, centred=centred, ddof=ddof)
            for one, copy in zip(self._members, X.copies, strict=True)
        ]
        answer = shared_answer(self._members, works, out)
        if answer is None:
            return None
        with self._members[0].failures_named():
            if centred and not works[0].ordinary:
                return None
        self._used = self
        self._why = f"opencl shared a matrix that lies on {len(answer.parts)} devices"
        return answer

    def _placed(self, X: Any) -> Any:
        """`X` as the first device takes it: an answer that is shared is brought there."""
        return self.first.upload(self.download(X)) if isinstance(X, SharedAnswer) else X

    def _check_copies(self, X: SharedMatrix) -> None:
        if [copy.device for copy in X.copies] != [one.engine.kernels_device for one in self._members]:
            raise InputError(f"{X!r} was uploaded to another engine; upload it to this one.")

    def finish(self) -> None:
        """Wait until everything queued on the devices is done."""
        for member in self._members:
            with member.failures_named():
                member.engine.finish()

    def prepare(self) -> None:
        self.first.prepare()

    def close(self) -> None:
        with ExitStack() as closing:
            for member in self._members:
                member.pieces.release()
                closing.callback(member.engine.close)

    def _pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        return self.first._pinned(shape, dtype)

    def _product(self, A: Operand, B: Operand) -> Any:
        if isinstance(A, DeviceMatrix) or isinstance(B, DeviceMatrix) or not self._shares_product(A, B):
            return self._alone("the product")._product(A, B)
        return self._multiplied(A, B, aligned_empty((A.shape[0], B.shape[1]), A.dtype), new=True)

    def _product_into(self, A: Operand, B: Operand, out: Matrix) -> Matrix:
        if isinstance(A, DeviceMatrix) or isinstance(B, DeviceMatrix) or A.ndim > 2:
            return super()._product_into(A, B, out)  # type: ignore[arg-type]
        if not self._shares_product(A, B):
            return self._alone("the product")._product_into(A, B, out)
        return self._multiplied(A, B, out)

    def _multiplied(self, A: Matrix, B: Matrix, out: Matrix, *, new: bool = False) -> Matrix:
        form, right = self.first.form_of_products(A.dtype, A.dtype), contiguous(B)
        stripes = stripes_of_product(len(A), form.rows)
        works = {one.number: Product(one.engine, form, A, right, out) for one in self._members}
        self._share(stripes, works, out if new else None)
        return out

    def _products(self, A: Operand, B: Operand) -> Any:
        """The products of a batch: of large matrices each is shared, small ones go in one launch."""
        if isinstance(A, DeviceMatrix) or isinstance(B, DeviceMatrix) or not self._shares_product(A, B):
            return self._alone("the batch")._products(A, B)
        return super()._products(A, B)

    def _gram(self, X: Operand, *, wide: bool) -> Any:
        total = SUM if wide else X.dtype
        if isinstance(X, DeviceMatrix) or not self._shares_gram(X.shape, X.dtype, total):
            return self._alone("X'X")._gram(X, wide=wide)
        return self._shared_gram(X, aligned_empty((X.shape[1], X.shape[1]), total), new=True)

    def _gram_into(self, X: Operand, out: Matrix) -> Matrix:
        if isinstance(X, DeviceMatrix) or X.ndim > 2:
            return super()._gram_into(X, out)  # type: ignore[arg-type]
        if not self._shares_gram(X.shape, X.dtype, X.dtype):
            return self._alone("X'X")._gram_into(X, out)
        return self._shared_gram(X, out)

    def _gram_of_centred(self, Z: Matrix) -> Matrix:
        if not self._shares_gram(Z.shape, Z.dtype, SUM):
            return self._alone("the moments")._gram_of_centred(Z)
        return self._shared_gram(Z, aligned_empty((Z.shape[1], Z.shape[1]), SUM), new=True)

    def _shared_gram(self, X: Matrix, out: Matrix, *, new: bool = False) -> Matrix:
        self._triangle(contiguous(X), out, X.dtype, new=new)
        return out

    def _grams(self, X: Operand) -> Any:
        if isinstance(X, DeviceMatrix) or not self._shares_gram(X.shape[-2:], X.dtype, X.dtype):
            return self._alone("the batch")._grams(X)
        return super()._grams(X)

    def batch_covariance(self, X: Matrix, ddof: int) -> tuple[Matrix, NDArray[np.bool_]] | None:
        if self._shares_moments(X.shape[-2:], X.dtype):
            return None
        return self._alone("the batch").batch_covariance(X, ddof)

    def _batch_moments(self, X: Operand, dtype: np.dtype[Any]) -> Moments:
        if isinstance(X, DeviceMatrix) or not self._shares_moments(X.shape[-2:], dtype):
            return self._alone("the batch")._batch_moments(X, dtype)
        return super()._batch_moments(X, dtype)

    def _triangle(
        self,
        X: Matrix,
        out: Matrix,
        kind: np.dtype[Any],
        *,
        centred: bool = False,
        ddof: int | None = None,
        new: bool = False,
    ) -> Triangle | None:
        """Share X'X, of products in `kind`; return what one device knows of it, None if it is not done."""
        form = self.first.form_of_products(kind, SUM if centred else out.dtype)
        works = {
            one.number: Triangle(one.engine, X, kind, form, out.dtype, out, centred=centred, ddof=ddof)
            for one in self._members
        }
        stripes = stripes_of_triangle(X.shape[1], triangle_unit(form))
        line = self._share(stripes, works, out if new else None)
        return works[self._members[0].number] if line.possible else None

    def _share(
        self, stripes: list[slice], works: dict[int, Triangle] | dict[int, Product], new: Matrix | None
    ) -> Line:
        line = computed(stripes, works, self._members, new)
        self._used = self
        shares = ", ".join(f"device {number} did {count}" for number, count in line.counts.items())
        self._why = f"opencl shared {len(stripes)} stripes among {len(line.counts)} devices: {shares}"
        return line
