"""Moments, windows and ranks on one OpenCL device: each by its kernels where they can, else by the host."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import block_sizes, spans
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.finish import Finish
from mtbridge.compute.forms import Form
from mtbridge.compute.launches import Operand, contiguous
from mtbridge.compute.moments import CompleteCovariance, Moments, without_residue
from mtbridge.compute.opencl_blocks import BlockedProducts
from mtbridge.compute.opencl_moments import SUM, Centring, Uncentred
from mtbridge.compute.slices import slab_depth
from mtbridge.matrix import Matrix, narrowed

if TYPE_CHECKING:
    from mtbridge.compute.decay import Decay
    from mtbridge.compute.pair_moments import PairMoments
    from mtbridge.compute.sequence import MatrixSequence, Wanted
    from mtbridge.compute.windows import Rolling


SMALLEST_SCALE = {np.dtype(np.float32): 2.0**-63, SUM: 2.0**-120}
"""Of columns, by the type of a covariance, which is in its range then; a NaN is not even that."""

LARGEST_SCALE = 2.0**40


class OpenCLStatistics(BlockedProducts):
    """The statistics of an engine on a device.

    Attributes
    ----------
    centred_from : elements from which on a matrix is centred on the device
    _packed : whether the kernels are those of a processor
    """

    centred_from: int
    _packed: bool
    # whether something was missing in the last matrix of a complete covariance
    _gaps = False

    def moments(self, X: Operand, *, dtype: np.dtype[Any] | None = None) -> Moments:
        """Return the `Moments` of the rows of `X`; ordinary columns are centred where they lie."""
        found = None
        if self._device.fp64 and 0 not in X.shape and X.shape[0] * X.shape[1] >= self.centred_from:
            # where memory is short the host centres, and products are taken in blocks
            with suppress(MemoryError):
                found = self._moments_on_device(X, np.dtype(dtype or X.dtype))
        if found is not None:
            return found
        return super().moments(self.download(X) if isinstance(X, DeviceMatrix) else X, dtype=dtype)

    def pair_moments(self, X: Operand, *, dtype: np.dtype[Any] | None = None) -> PairMoments:
        """Return the `PairMoments` of `X`; on the device where it has float64 and the buffers suffice."""
        from mtbridge.compute.opencl_pairs import pair_moments
        from mtbridge.compute.pair_moments import PairMoments

        kind = np.dtype(dtype or X.dtype)
        if self._device.fp64 and X.shape[0] * X.shape[1] >= max(self.centred_from, 1):
            # where memory is short, products are taken in blocks
            with suppress(MemoryError), self._settled():
                complete = self._moments_on_device(X, kind, finite=True)
                if complete is not None:
                    return PairMoments.of(complete)
                form = self._form_of_centred(kind.name)
                found = pair_moments(self._device, self._launches, form, X, kind, limit=self._limit)
                if found is not None:
                    return found
        return super().pair_moments(self.download(X) if isinstance(X, DeviceMatrix) else X, dtype=dtype)

    def sequence(self, X: Matrix, plan: Rolling | Decay, wanted: Wanted) -> MatrixSequence:
        """Open the matrices of the windows of `X`; on the device where it has float64."""
        from mtbridge.compute.opencl_decay import OpenCLDecay
        from mtbridge.compute.opencl_rolling import OpenCLRolling
        from mtbridge.compute.windows import Rolling

        if isinstance(X, DeviceMatrix):
            X = self.download(X)
        if not self._device.fp64 or not X.size:
            return super().sequence(X, plan, wanted)
        if isinstance(plan, Rolling):
            return OpenCLRolling(self._device, X, plan, wanted, limit=self._limit, gpu=not self._packed)
        return OpenCLDecay(self._device, X, plan, wanted, limit=self._limit, gpu=not self._packed)

    def spearman(self, X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return Spearman's rank correlations and the counts, each pair ranked by a work-item of its own."""
        from mtbridge.compute.opencl_ranks import spearman

        if self._device.fp64 and X.size:
            with suppress(MemoryError), self._settled():
                return spearman(self._device, X, limit=self._limit, packed=self._packed, gram=self.gram)
        return super().spearman(X)

    def kendall(self, X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return Kendall's tau-b and the counts, each pair of columns by a work-item of its own."""
        from mtbridge.compute.opencl_kendall import kendall

        if self._device.fp64 and X.size:
            with suppress(MemoryError), self._settled():
                return kendall(self._device, X, limit=self._limit, packed=self._packed)
        return super().kendall(X)

    def covariance_on_device(self, X: DeviceMatrix, *, ddof: int = 1) -> DeviceMatrix:
        """Return the covariance matrix of the columns of `X`, in its dtype; it stays on the device.

        Its numbers are those of ``moments(X).covariance(ddof)``, rounded: NaN in the rows and columns of a
        column that holds NaN or inf, and everywhere if there are not more rows than `ddof`. What the device
        cannot do is done by the host and uploaded.

        Raises
        ------
        InputError
            If a covariance is past the range of float32 and that is the dtype, or `X` is of another engine.
        """
        self._check_owner(X)
        if self._device.fp64 and not self._packed and 0 not in X.shape:
            # where memory is short, products are taken in blocks
            with suppress(MemoryError):
                found = self._covariance_there(X, ddof)
                if found is not None:
                    return found
        matrix = narrowed(self.moments(X).covariance(ddof), X.dtype)
        # what an engine of a device uploads is a DeviceMatrix
        uploaded: Any = self.upload(matrix)
        return uploaded  # type: ignore[no-any-return]

    def pair_covariance_on_device(
        self, X: DeviceMatrix, *, ddof: int = 1, min_periods: int = 1
    ) -> DeviceMatrix:
        """Return the covariances of the columns of `X`, each on the rows that both have; on the device.

        NaN is missing. The numbers are those of ``pair_moments(X).covariance(ddof, min_periods)``, rounded to
        the dtype of `X`: NaN where a pair has fewer than `min_periods` rows or not more than `ddof`, or where
        its rows hold inf. Pairs whose sums lost digits are done again with care.

        Raises
        ------
        InputError
            As for `covariance_on_device`.
        """
        from mtbridge.compute.opencl_gap_pairs import ordinary_gaps

        self._check_owner(X)
        columns, kind = X.shape[1], X.dtype
        if self._device.fp64 and not self._packed and 0 not in X.shape:
            given = (self._device, self._launches, self._form_of_centred(kind.name), X, kind)
            # where memory is short, products are taken in blocks
            with suppress(MemoryError), self._settled():
                pairs = ordinary_gaps(*given, limit=self._limit, masks=True)
                if pairs is not None:
                    answer = self._device.allocate(columns * columns * kind.itemsize)
                    if pairs.covariance(answer, kind, ddof=ddof, min_periods=min_periods):
                        return DeviceMatrix(answer, (columns, columns), kind, (columns, 1), self._device)
        matrix = narrowed(self.pair_moments(X).covariance(ddof, min_periods), kind)
        # what an engine of a device uploads is a DeviceMatrix
        uploaded: Any = self.upload(matrix)
        return uploaded  # type: ignore[no-any-return]

    def _covariance_there(self, X: DeviceMatrix, ddof: int) -> DeviceMatrix | None:
        """The covariance matrix, or None where a column is not ordinary or a buffer would be too large."""
        columns, kind = X.shape[1], X.dtype
        with self._settled():
            centring = self._centring(X, kind)
            if centring is None:
                return None
            answer = self._device.allocate(columns * columns * kind.itemsize)
            self._queue_covariance(centring, answer, ddof)
            if not centring.scales(self._device).min() >= SMALLEST_SCALE[kind]:
                return None
        return DeviceMatrix(answer, (columns, columns), kind, (columns, 1), self._device)

    def _queue_covariance(self, centring: Centring, answer: Any, ddof: int) -> None:
        """Queue the covariance matrix of what is centred, in the type of its products, into `answer`."""
        columns, kind = centring.shape[1], centring.dtype
        wide = kind != SUM
        sums = self._device.buffer("sums", columns * columns * SUM.itemsize) if wide else answer
        form = centring.raw.form
        finish = Finish(centring, answer, kind, ddof) if form.finishes else None
        with self._device.together():
            self._launches.gram(form, centring, SUM, sums, self._limit, mirrored=False, finish=finish)
            if finish is None:
                centring.covariance(self._device, sums, answer, kind, ddof)

    def complete_covariance(
        self, X: Matrix, *, dtype: np.dtype[Any], ddof: int, out: Matrix | None = None
    ) -> CompleteCovariance | None:
        """Return what `Engine.complete_covariance` does: the host brings the data and takes the matrix.

        Whether something is missing is looked at before anything is multiplied only if something was in the
        last matrix: to look takes the host longer than the device centres. Answers have the same bits.
        """
        columns = X.shape[1]
        if not self._device.fp64 or self._packed or X.size < max(self.centred_from, 1):
            return None
        # where memory is short, products are taken in blocks
        with suppress(MemoryError), self._settled():
            held = contiguous(X)
            centring = self._centring(held, dtype, finite=self._gaps)
            if centring is None:
                return None
            answer, matrix = self._room((columns, columns), dtype, out)
            self._queue_covariance(centring, answer, ddof)
            self._device.receive(answer, matrix)
            # of a column that misses something, or was not ordinary, all is NaN
            self._gaps = bool(np.isnan(np.diagonal(matrix)).any())
            # those of float64 are all 1
            scales = np.ones(columns) if dtype == SUM else centring.scales(self._device)
            # a variance of a tiny column may not be a number of float32
            if self._gaps or not SMALLEST_SCALE[dtype] <= scales.min() <= scales.max() <= LARGEST_SCALE:
                return None
            return CompleteCovariance(matrix, 1 - np.frexp(scales)[1].astype(np.int64))
        return None

    def _gram_of_centred(self, Z: Matrix) -> Matrix:
        # a column is within 1 or all NaN; a few columns are done by the time that another form is found right
        if not self._device.fp64 or Z.size < max(self.centred_from, 1):
            return super()._gram_of_centred(Z)
        return self._gram_in_blocks(Z, SUM, form=self._form_of_centred(Z.dtype.name))

    def _moments_on_device(self, X: Operand, dtype: np.dtype[Any], *, finite: bool = False) -> Moments | None:
        """The moments of `X`, or None where a column is not ordinary or a buffer would be too large.

        With `finite` None too where a column holds NaN or inf, which is told before anything is multiplied.
        """
        rows, columns = X.shape
        held = X if isinstance(X, DeviceMatrix) else contiguous(X)
        if isinstance(X, DeviceMatrix):
            self._check_owner(X)
        with self._settled():
            centring = self._centring(held, dtype, finite=finite)
            if centring is None:
                return None
            target, comoment = self._device.result("product", (columns, columns), SUM)
            self._launches.gram(centring.raw.form, centring, SUM, target, self._limit)
            # first, as pages of the array are made while the device multiplies
            products = self._device.receive(target, comoment).astype(SUM, copy=False)
            chosen = centring.chosen(self._device)
            if chosen is None:
                return None
            mean = centring.mean(self._device)
        return Moments(rows, *chosen, mean, without_residue(products, mean, rows))

    def _centring(self, X: Operand, dtype: np.dtype[Any], *, finite: bool = False) -> Centring | None:
        """`X`, contiguous, as it is centred for products of `dtype`; None as `_moments_on_device` says."""
        (rows, columns), size = X.shape, dtype.itemsize
        whole, form = (columns, rows, columns), self._form_of_centred(dtype.name)
        if block_sizes(form, whole, size=size, total=SUM.itemsize, limit=self._limit, square=True) != whole:
            return None
        source, steps = self._launches.source("right", X)
        raw = Uncentred(source, (rows, columns), steps, X.dtype, dtype, form)
        if raw.largest_buffer > self._limit:
            return None
        slabs = spans(rows, slab_depth(form, whole, size=size, units=self._device.units))
        return raw.centring(self._device, slabs, finite=finite)

    @abstractmethod
    def form_in_use(self, dtype: str) -> Form:
        """Return the form of products of `dtype`."""

    @abstractmethod
    def _form_of_centred(self, dtype: str) -> Form:
        """Return the form of products of columns that are centred."""

    @abstractmethod
    def _check_owner(self, X: DeviceMatrix) -> None:
        """Refuse a matrix of another engine."""
