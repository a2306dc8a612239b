"""The `auto` engine: numpy or OpenCL, whichever is faster for the call, by a measurement of this machine."""

from __future__ import annotations

import logging
import math
import sys
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute import calibration as calibrations
from mtbridge.compute import devices
from mtbridge.compute.batch_plan import LARGEST
from mtbridge.compute.calibration import Calibration, Shape
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.engine import Engine
from mtbridge.compute.host import NumpyEngine
from mtbridge.compute.masked import holds_missing
from mtbridge.compute.moments import CompleteCovariance, Moments
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.decay import Decay
    from mtbridge.compute.opencl_engine import OpenCLEngine
    from mtbridge.compute.pair_moments import PairMoments
    from mtbridge.compute.sequence import MatrixSequence, Wanted
    from mtbridge.compute.windows import Rolling

log = logging.getLogger(__name__)

SMALL_PRODUCTS = 1 << 22
"""Multiplications below which numpy is taken unasked: both engines are done within a millisecond then."""

SMALL_STATISTICS = 1 << 16
"""Elements of work of a statistic below which numpy is done before a device would have been asked."""

# two measurements at once would disturb each other, and the second finds what the first has stored
_measuring = threading.Lock()


class AutoEngine(Engine):
    """Hands each call to numpy or to OpenCL; an uploaded matrix stays on its device.

    Small calls go to numpy at once. The first larger one looks for a stored calibration, and without one
    makes it: a few seconds, once a machine, with a line on stderr. `prepare` does that beforehand.

    Parameters
    ----------
    wanted : which OpenCL device, as for `devices.choose`; it is opened when it is first chosen
    calibration : use this one, and measure nothing

    Raises
    ------
    DeviceError
        If no device is usable.
    """

    name = "auto"

    def __init__(self, wanted: str | None = None, *, calibration: Calibration | None = None) -> None:
        self._wanted = wanted
        self._verdict = devices.choose(wanted)
        self._calibration = calibration
        self._looked = calibration is not None
        self._numpy = NumpyEngine()
        self._opencl: OpenCLEngine | None = None
        self._lost = ""
        self._used: Engine = self._numpy
        self._choice: tuple[str, str, Shape, str] | None = None
        self.device = f"{self._numpy.device} (numpy) and {self._verdict.name} (opencl)"

    @property
    def used(self) -> Engine:
        """The engine that did the last call."""
        return self._used

    @property
    def why(self) -> str:
        """A sentence about the last choice, empty before the first."""
        if self._choice is None:
            return ""
        operation, dtype, (down, inner, across), reason = self._choice
        what = f"{down}x{inner} by {inner}x{across}" if operation == "multiply" else f"{inner}x{across}"
        return f"auto chose {self._used.name} for {operation} of {what} {dtype}: {reason}"

    def prepare(self) -> None:
        """Open the device, and calibrate if that was never done, so that no later call has to."""
        if self._device_engine() is not None:
            self._measured()
        self._looked = True

    def moments(self, X: Any, *, dtype: np.dtype[Any] | None = None) -> Moments:
        if X.ndim > 2:
            return self._batch_moments(X, np.dtype(dtype or X.dtype))
        shape = X.shape[1], X.shape[0], X.shape[1]
        return self._chosen("moments", dtype or X.dtype, shape, X).moments(X, dtype=dtype)

    def complete_covariance(
        self, X: Matrix, *, dtype: np.dtype[Any], ddof: int, out: Matrix | None = None
    ) -> CompleteCovariance | None:
        shape = X.shape[1], X.shape[0], X.shape[1]
        engine = self._chosen("moments", dtype, shape, X)
        return engine.complete_covariance(X, dtype=dtype, ddof=ddof, out=out)

    def pair_moments(self, X: Any, *, dtype: np.dtype[Any] | None = None) -> PairMoments:
        if not isinstance(X, DeviceMatrix) and holds_missing(X):
            engine = self._for_statistics("pairwise moments", X, X.size * X.shape[1])
        else:
            shape = X.shape[1], X.shape[0], X.shape[1]
            engine = self._chosen("moments", np.dtype(dtype or X.dtype), shape, X)
        return engine.pair_moments(X, dtype=dtype)

    def sequence(self, X: Matrix, plan: Rolling | Decay, wanted: Wanted) -> MatrixSequence:
        work = len(plan) * math.prod(wanted.shape(X.shape[1]))
        return self._for_statistics("windows", X, work).sequence(X, plan, wanted)

    def spearman(self, X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return self._for_statistics("ranks", X, X.size * X.shape[1]).spearman(X)

    def kendall(self, X: Matrix) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        return self._for_statistics("ranks", X, X.size * X.shape[1]).kendall(X)

    def _for_statistics(self, what: str, X: Matrix, work: int) -> Engine:
        """Return the device where the `work`, in elements, is worth a launch, else numpy."""
        device = self._device_engine() if self._verdict.fp64 and work >= SMALL_STATISTICS else None
        self._used = self._numpy if device is None else device
        if device is not None:
            reason = "one kernel does it in one pass"
        else:
            small = "it is too small for a device to pay"
            reason = self._lost or (small if self._verdict.fp64 else f"{self._verdict.name} has no float64")
        self._choice = what, X.dtype.name, (X.shape[-1], X.shape[-2], X.shape[-1]), reason
        return self._used

    def _products(self, A: Any, B: Any) -> Any:
        engine = self._for_batch(A, B)
        return super()._products(A, B) if engine is None else engine._products(A, B)

    def _grams(self, X: Any) -> Any:
        engine = self._for_batch(X)
        return super()._grams(X) if engine is None else engine._grams(X)

    def _batch_moments(self, X: Any, dtype: np.dtype[Any]) -> Moments:
        engine = self._for_batch(X)
        return super()._batch_moments(X, dtype) if engine is None else engine._batch_moments(X, dtype)

    def batch_covariance(self, X: Matrix, ddof: int) -> tuple[Matrix, NDArray[np.bool_]] | None:
        engine = self._for_batch(X)
        return None if engine is None else engine.batch_covariance(X, ddof)

    def _for_batch(self, *operands: Any) -> Engine | None:
        """Return who does a batch of small matrices; None for large ones, each with a choice of its own."""
        if any(isinstance(X, DeviceMatrix) for X in operands):
            self._used = self._resident()
            return self._used
        if max(X.shape[-2] * X.shape[-1] for X in operands) > LARGEST:
            return None
        return self._for_statistics("a batch", operands[0], max(X.size for X in operands))

    def upload(self, X: Matrix) -> Any:
        """Return `X` on the device, or `X` itself where there is none that computes in its dtype."""
        device = self._device_engine() if self._able(X.dtype) else None
        return X if device is None else device.upload(X)

    def download(self, X: Any, out: Matrix | None = None) -> Matrix:
        if isinstance(X, DeviceMatrix):
            return self._resident().download(X, out)
        return super().download(X, out)

    def close(self) -> None:
        if self._opencl is not None:
            self._opencl.close()
            self._opencl = None

    def _pinned(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> NDArray[Any]:
        device = self._device_engine()
        return super()._pinned(shape, dtype) if device is None else device._pinned(shape, dtype)

    def _product(self, A: Any, B: Any) -> Any:
        shape = A.shape[0], A.shape[1], B.shape[1]
        return self._chosen("multiply", A.dtype, shape, A, B)._product(A, B)

    def _gram(self, X: Any, *, wide: bool) -> Any:
        shape = X.shape[1], X.shape[0], X.shape[1]
        return self._chosen("gram", X.dtype, shape, X)._gram(X, wide=wide)

    def _product_into(self, A: Any, B: Any, out: Matrix) -> Matrix:
        if A.ndim > 2:
            return super()._product_into(A, B, out)
        shape = A.shape[0], A.shape[1], B.shape[1]
        return self._chosen("multiply", A.dtype, shape, A, B)._product_into(A, B, out)

    def _gram_into(self, X: Any, out: Matrix) -> Matrix:
        if X.ndim > 2:
            return super()._gram_into(X, out)
        shape = X.shape[1], X.shape[0], X.shape[1]
        return self._chosen("gram", X.dtype, shape, X)._gram_into(X, out)

    def _chosen(self, operation: str, dtype: np.dtype[Any], shape: Shape, *operands: Any) -> Engine:
        """Return the engine for a call, and note why."""
        if any(isinstance(X, DeviceMatrix) for X in operands):
            self._used, reason = self._resident(), "it lies on the device"
        else:
            self._used, reason = self._faster(operation, dtype, shape)
        self._choice = operation, dtype.name, shape, reason
        if log.isEnabledFor(logging.DEBUG):
            log.debug("%s", self.why)
        return self._used

    def _faster(self, operation: str, dtype: np.dtype[Any], shape: Shape) -> tuple[Engine, str]:
        if math.prod(shape) < SMALL_PRODUCTS:
            return self._numpy, "it is too small for a device to pay"
        if not self._able(dtype):
            return self._numpy, f"{self._verdict.name} has no {dtype.name}"
        measured = self._measured()
        if measured is not None:
            host, there = (
                measured.seconds(name, operation, dtype.name, shape) for name in ("numpy", "opencl")
            )
            device = self._device_engine() if there < host else None
            if device is not None:
                return device, f"about {1e3 * there:.3g} ms, numpy about {1e3 * host:.3g} ms"
            if not self._lost:
                beside = f"opencl about {1e3 * there:.3g} ms" if there < math.inf else "opencl cannot do it"
                return self._numpy, f"about {1e3 * host:.3g} ms, {beside}"
        return self._numpy, self._lost or "nothing has been measured"

    def _able(self, dtype: np.dtype[Any]) -> bool:
        return dtype != np.float64 or self._verdict.fp64

    def _measured(self) -> Calibration | None:
        """Return the calibration: given, stored, or made now; None where the device is lost."""
        if self._looked:
            return self._calibration
        self._looked = True
        with _measuring:
            identity = calibrations.identity_of(self._verdict.key)
            self._calibration = calibrations.stored(identity)
            if self._calibration is None and (device := self._device_engine()) is not None:
                print(
                    f"mtbridge: numpy and OpenCL on {self._verdict.name} are timed, once, for some seconds; "
                    "--engine names one without that.",
                    file=sys.stderr,
                    flush=True,
                )
                self._calibration = calibrations.measure(identity, device, self._numpy)
                calibrations.keep(self._calibration)
        return self._calibration

    def _device_engine(self) -> OpenCLEngine | None:
        """Return the engine on the device, opened once; None where that fails, with a line on stderr."""
        if self._opencl is None and not self._lost:
            try:
                self._opencl = self._open()
            except DeviceError as error:
                self._lost = str(error)
                say_fallback(self._lost)
        return self._opencl

    def _resident(self) -> OpenCLEngine:
        """Return the engine that holds uploaded matrices."""
        if self._opencl is None:
            self._opencl = self._open()
        return self._opencl

    def _open(self) -> OpenCLEngine:
        from mtbridge.compute.opencl_engine import open_opencl

        return open_opencl(self._wanted)


@cache
def say_fallback(reason: str) -> None:
    """Say that numpy is used and why, once a process."""
    print(f"mtbridge: numpy is used, since {reason}", file=sys.stderr)
