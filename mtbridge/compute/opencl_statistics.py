"""Moments, windows and ranks on one OpenCL device: each by its kernels where they can, else by the host."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.blocks import block_sizes, spans
from mtbridge.compute.centre import ordinary_centre
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.forms import Form
from mtbridge.compute.launches import Operand, contiguous
from mtbridge.compute.moments import Moments, without_residue
from mtbridge.compute.opencl_blocks import BlockedProducts
from mtbridge.compute.opencl_moments import SUM, Uncentred
from mtbridge.compute.slices import slab_depth
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.decay import Decay
    from mtbridge.compute.pair_moments import PairMoments
    from mtbridge.compute.sequence import MatrixSequence, Wanted
    from mtbridge.compute.windows import Rolling


class OpenCLStatistics(BlockedProducts):
    """The statistics of an engine on a device.

    Attributes
    ----------
    centred_from : elements from which on a matrix is centred on the device
    _packed : whether the kernels are those of a processor
    """

    centred_from: int
    _packed: bool

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
                # a column that misses something is found before anything is multiplied
                complete = self._moments_on_device(X, kind)
                if complete is not None:
                    return PairMoments.of(complete)
                if isinstance(X, DeviceMatrix):
                    X = self.download(X)
                found = pair_moments(
                    self._device, self._launches, self.form_in_use(kind.name), X, kind, limit=self._limit
                )
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

    def _moments_on_device(self, X: Operand, dtype: np.dtype[Any]) -> Moments | None:
        """The moments of `X`, or None where a column is not ordinary or a buffer would be too large."""
        (rows, columns), size = X.shape, dtype.itemsize
        whole, form = (columns, rows, columns), self._form_of_centred(dtype.name)
        held = X if isinstance(X, DeviceMatrix) else contiguous(X)
        if isinstance(X, DeviceMatrix):
            self._check_owner(X)
        if block_sizes(form, whole, size=size, total=SUM.itemsize, limit=self._limit, square=True) != whole:
            return None
        with self._settled():
            source, steps = self._launches.source("right", held)
            raw = Uncentred(source, (rows, columns), steps, X.dtype, dtype, form)
            if raw.largest_buffer > self._limit:
                return None
            total, low, high = raw.measured(self._device)
            chosen = ordinary_centre(total, low, high, rows=rows, dtype=dtype)
            # a device that takes subnormal numbers for 0 sees a constant where there may be none
            doubtful = not self._device.subnormals and ((low == 0) & (high == 0)).any()
            if chosen is None or doubtful:
                return None
            slabs = spans(rows, slab_depth(form, whole, size=size, units=self._device.units))
            centring = raw.centred(self._device, *chosen, slabs)
            target, comoment = self._device.result("product", (columns, columns), SUM)
            self._launches.gram(form, centring, SUM, target, self._limit)
            products = self._device.receive(target, comoment).astype(SUM, copy=False)
            mean = centring.mean(self._device)
        return Moments(rows, *chosen, mean, without_residue(products, mean, rows))

    @abstractmethod
    def form_in_use(self, dtype: str) -> Form:
        """Return the form of products of `dtype`."""

    @abstractmethod
    def _form_of_centred(self, dtype: str) -> Form:
        """Return the form of products of columns that are centred."""

    @abstractmethod
    def _check_owner(self, X: DeviceMatrix) -> None:
        """Refuse a matrix of another engine."""
