"""What an engine is: one device, and the same few methods on every one.

An engine owns its device (context, queue, programs, kept buffers). It belongs to one thread at a
time; several engines work side by side. An engine implements `_product` and `_gram` for single
matrices; the rest is shared.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.aligned import aligned_empty, checked_dtype, checked_lengths
from mtbridge.compute.centre import centre
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.moments import CompleteCovariance, Moments, without_residue
from mtbridge.errors import InputError, ShapeError
from mtbridge.matrix import DTYPES, Matrix

if TYPE_CHECKING:
    from mtbridge.compute.decay import Decay
    from mtbridge.compute.pair_moments import PairMoments
    from mtbridge.compute.sequence import MatrixSequence, Wanted
    from mtbridge.compute.windows import Rolling

_TYPES = tuple(np.dtype(name) for name in DTYPES)


class Engine(ABC):
    """The methods that every engine has.

    Arrays are float32 or float64 of shape (…, rows, columns), in C or Fortran order; leading dimensions
    are a batch. NaN and inf travel through products as in IEEE arithmetic and stay in their own rows and
    columns.

    Attributes
    ----------
    name : "opencl", "numpy", "serial", or "auto" for one that hands each call to another
    device : the device's own name
    """

    name: str
    device: str

    @property
    def used(self) -> Engine:
        """The engine that did the last call: this one, or the one that this one chose."""
        return self

    @property
    def why(self) -> str:
        """A sentence about the choice of the engine for the last call; empty where there was none."""
        return ""

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The element types in which it computes."""
        return DTYPES

    def multiply(self, A: Matrix, B: Matrix, *, out: Matrix | None = None) -> Matrix:
        """Return the product of `A`, (…, rows, inner), and `B`, (…, inner, columns), in their dtype.

        The error of an element is at most ``inner * eps * (|A| |B|)``, eps of the dtype, unless float32 was
        asked for in another precision (`open_engine`).

        Parameters
        ----------
        out : C-ordered array that the product is written to, such as one of `empty_pinned`

        Raises
        ------
        ShapeError
            If the inner sizes or the batches differ, or the dtypes do; or if `out` has another shape or
            dtype, is read-only, not C-ordered, or shares memory with a factor.
        InputError
            If an array is neither float32 nor float64 in the byte order of this machine.
        """
        _check("A", A)
        _check("B", B)
        if A.dtype != B.dtype:
            raise ShapeError(f"A is {A.dtype} but B is {B.dtype}; convert one of them.")
        if A.shape[-1] != B.shape[-2]:
            raise ShapeError(f"A has {A.shape[-1]} columns but B has {B.shape[-2]} rows; they must be equal.")
        if A.shape[:-2] != B.shape[:-2]:
            raise ShapeError(f"A is a batch of {A.shape[:-2]} matrices but B one of {B.shape[:-2]}.")
        if out is not None:
            check_out((*A.shape[:-1], B.shape[-1]), A.dtype, out, A, B)
            return self._product_into(A, B, out)
        return self._product(A, B) if A.ndim == 2 else self._products(A, B)

    def gram(self, X: Matrix, Y: Matrix | None = None, *, out: Matrix | None = None) -> Matrix:
        """Return X'X, or X'Y, in the dtype of `X`.

        X'X is computed in its upper triangle and mirrored, so it is symmetric bit for bit. `out` is as for
        `multiply`.

        Raises
        ------
        ShapeError
            If X and Y have different numbers of rows, or as for `multiply`.
        InputError
            As for `multiply`.
        """
        _check("X", X)
        if Y is not None:
            _check("Y", Y)
            if X.shape[-2] != Y.shape[-2]:
                raise ShapeError(f"X has {X.shape[-2]} rows but Y has {Y.shape[-2]}; they must be equal.")
            turned = X.transposed if isinstance(X, DeviceMatrix) else np.swapaxes(X, -1, -2)
            return self.multiply(turned, Y, out=out)
        if out is not None:
            check_out((*X.shape[:-2], X.shape[-1], X.shape[-1]), X.dtype, out, X)
            return self._gram_into(X, out)
        return self._gram(X, wide=False) if X.ndim == 2 else self._grams(X)

    def moments(self, X: Matrix, *, dtype: np.dtype[Any] | None = None) -> Moments:
        """Return the `Moments` of the rows of `X`, of shape (…, rows, columns); those of a batch are stacked.

        Centred in float64, multiplied in `dtype` (that of `X` by default), summed in float64. A NaN or inf
        makes NaN of its own row and column of its own matrix.
        """
        if X.ndim > 2:
            return self._batch_moments(X, np.dtype(dtype or X.dtype))
        if isinstance(X, DeviceMatrix):
            X = self.download(X)
        rows, columns = X.shape
        if rows == 0:
            return Moments.empty(columns)
        centred = centre(X, dtype)
        comoment = self._gram_of_centred(centred.values).astype(np.float64, copy=False)
        without_residue(comoment, centred.mean, rows)
        return Moments(rows, centred.origin, centred.exponent, centred.mean, comoment)

    def complete_covariance(
        self, X: Matrix, *, dtype: np.dtype[Any], ddof: int, out: Matrix | None = None
    ) -> CompleteCovariance | None:
        """Return the covariance matrix of `X`, (rows, columns), rows > `ddof`, if no `Moments` are needed.

        That is so for ordinary columns in which nothing is missing, on an engine whose device makes all of
        the matrix. Products are taken in `dtype`, and the matrix is returned in it, or written to `out`,
        which fits; that may have been written to where the answer is None.
        """
        return None

    def pair_moments(self, X: Matrix, *, dtype: np.dtype[Any] | None = None) -> PairMoments:
        """Return the `PairMoments` of `X`, where NaN is missing: each pair of columns on its own common rows.

        Products are taken in `dtype` (that of `X` by default), all else is float64. A pair whose products
        would have lost digits is done again with care.
        """
        from mtbridge.compute.masked import masked_moments

        return masked_moments(self, X, dtype)

    def lagged_moments(
        self, X: Matrix, lags: Sequence[int], *, dtype: np.dtype[Any] | None = None
    ) -> list[PairMoments]:
        """Return, for each lag of 0 or more, the moments of column i at row t - lag with j at row t."""
        from mtbridge.compute.lagged import lagged_moments

        return lagged_moments(self, X, lags, dtype)

    def sequence(self, X: Matrix, plan: Rolling | Decay, wanted: Wanted) -> MatrixSequence:
        """Open the matrices of the windows of `X` that `plan` names; sums are float64."""
        from mtbridge.compute.host_decay import HostDecay
        from mtbridge.compute.host_rolling import HostRolling
        from mtbridge.compute.windows import Rolling

        if isinstance(plan, Rolling):
            return HostRolling(X, plan, wanted)
        return HostDecay(X, plan, wanted)

    def spearman(self, X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return Spearman's rank correlations and the counts; each pair is ranked on its common rows."""
        from mtbridge.compute.ranks import host_spearman

        return host_spearman(self, X)

    def kendall(self, X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return Kendall's tau-b of each pair of columns on its common rows, and the counts."""
        from mtbridge.compute.ranks import kendall

        return kendall(self, X)

    def upload(self, X: Matrix) -> Any:
        """Return `X` where this engine computes; on the host that is `X` itself."""
        return X

    def download(self, X: Any, out: Matrix | None = None) -> Matrix:
        """Return an uploaded or computed matrix as an array: a new one, or `out`.

        Raises
        ------
        ShapeError
            If `out` has another shape or dtype, is read-only, or not C-ordered.
        """
        if out is None:
            return np.asarray(X)
        check_out(X.shape, X.dtype, out)
        out[...] = X
        return out

    def empty_pinned(self, shape: int | tuple[int, ...], dtype: Any = "float64") -> NDArray[Any]:
        """Return an uninitialised C-ordered array, float32 or float64, for what goes to this engine often.

        A CPU device computes on it where it lies; for a graphics card it is page-locked, so that `upload`,
        the products and ``download(..., out=)`` copy it straight, without the driver's own copy on the way.
        Worth it for arrays that are used again: page-locking costs more than one copy.

        Raises
        ------
        ShapeError
            If a length is negative or no whole number.
        OptionError
            If `dtype` is another type.
        """
        return self._pinned(checked_lengths(shape), checked_dtype(dtype))

    def _pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        return aligned_empty(shape, dtype)

    def prepare(self) -> None:  # noqa: B027
        """Do now what would delay a later call, such as a measurement that is made once."""

    # an engine on the host has nothing to release
    def close(self) -> None:  # noqa: B027
        """Release the device; may be called twice."""

    @abstractmethod
    def _product(self, A: Matrix, B: Matrix) -> Matrix:
        """The product of two matrices of one dtype whose sizes fit."""

    @abstractmethod
    def _gram(self, X: Matrix, *, wide: bool) -> Matrix:
        """X'X, symmetric bit for bit, in the dtype of `X`; summed and returned in float64 if `wide`."""

    def _gram_of_centred(self, Z: Matrix) -> Matrix:
        """Z'Z of columns that `centre` returned, as `_gram` in wide."""
        return self._gram(Z, wide=True)

    def _product_into(self, A: Matrix, B: Matrix, out: Matrix) -> Matrix:
        """Write a product, or those of a batch, to `out`, which fits; who can write there at once does so."""
        return self._brought(self._product(A, B) if A.ndim == 2 else self._products(A, B), out)

    def _gram_into(self, X: Matrix, out: Matrix) -> Matrix:
        """X'X, or those of a batch, as `_product_into`."""
        return self._brought(self._gram(X, wide=False) if X.ndim == 2 else self._grams(X), out)

    def _brought(self, found: Any, out: Matrix) -> Matrix:
        if isinstance(found, DeviceMatrix):
            return self.download(found, out)
        out[...] = found
        return out

    def _products(self, A: Matrix, B: Matrix) -> Matrix:
        """The products of two batches that fit, one by one; who can do many in one launch does so."""
        out = np.empty((*A.shape[:-1], B.shape[-1]), A.dtype)
        for index in np.ndindex(*A.shape[:-2]):
            out[index] = self._product(A[index], B[index])
        return out

    def _grams(self, X: Matrix) -> Matrix:
        """X'X of each matrix of a batch, as `_products`."""
        out = np.empty((*X.shape[:-2], X.shape[-1], X.shape[-1]), X.dtype)
        for index in np.ndindex(*X.shape[:-2]):
            out[index] = self._gram(X[index], wide=False)
        return out

    def batch_covariance(self, X: Matrix, ddof: int) -> tuple[Matrix, NDArray[np.bool_]] | None:
        """Return the covariances of the columns of each matrix of `X`, of shape (…, rows, columns).

        Products are taken in float64. None where this engine has no better way than `moments`.

        Returns
        -------
        matrices : array of the dtype of `X`, of shape (…, columns, columns)
        odd : bool array of shape (…): the matrix there is none, for NaN, inf or a value past the range of its
            dtype, and has to go the way of `moments`
        """
        return None

    def _batch_moments(self, X: Matrix, dtype: np.dtype[Any]) -> Moments:
        """The moments of each matrix of a batch, as `_products`."""
        found = Moments.stack(X.shape[-2], X.shape[:-2], X.shape[-1])
        for index in np.ndindex(*X.shape[:-2]):
            found.put(index, self.moments(X[index], dtype=dtype))
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.device})"


def gram_in(engine: Engine, Z: Matrix, dtype: str) -> Matrix:
    """Return Z'Z computed in `dtype`: by `engine`, or on the host where its device lacks that type."""
    Z = np.asarray(Z, dtype)
    return engine.gram(Z) if dtype in engine.dtypes else Z.T @ Z


def check_out(shape: tuple[int, ...], dtype: np.dtype[Any], out: Matrix, *operands: Any) -> None:
    """Refuse an array that an answer of this shape and type cannot be written to while `operands` are read.

    They are arrays, or matrices of a device, which share memory with none.
    """
    if out.shape != shape or out.dtype != dtype:
        raise ShapeError(f"out is {out.dtype} of shape {out.shape}; it must be {dtype} of {shape}.")
    if not out.flags.c_contiguous or not out.flags.writeable:
        raise ShapeError("out is read-only or not C-ordered; take one that `empty_pinned` returned.")
    if any(isinstance(X, np.ndarray) and np.may_share_memory(X, out) for X in operands):
        raise ShapeError("out lies in the memory of an operand; take another array.")


def _check(name: str, X: Matrix) -> None:
    """Refuse what is no matrix, or a batch of some, of a type that the engines compute in."""
    if X.ndim < 2:
        raise ShapeError(f"{name} has {X.ndim} dimensions; a matrix has two, rows and columns.")
    if X.dtype not in _TYPES:
        raise InputError(f"{name} holds {X.dtype} values; convert them to float32 or float64.")
