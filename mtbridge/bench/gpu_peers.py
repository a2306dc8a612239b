"""Peers of `mtbridge bench gpu`: cuBLAS and statistics by torch, cuBLAS's own X'X by cupy.

Neither package is a dependency; a row says why its peer did not run. Times are CUDA events. A card's memory
that a peer has taken is given back when its case is done.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.bench.gpu_data import Case, Lines, RollingCorrelation
from mtbridge.bench.gpu_trial import Contender, Trial
from mtbridge.errors import DeviceError

PEERS = ("torch", "cupy")

Work = Callable[[Any, Case, tuple[Any, ...], Any], Any]
"""Takes torch, a case, one copy of its inputs and a tensor for the answer; see `TorchTrial`."""


def peers_of(case: Case, packages: Sequence[str], copies: int) -> list[Contender]:
    """Return the peers of a case that use one of `packages`."""
    operation = case.named.operation
    name, work, note = TORCH[operation]
    found = []
    if "torch" in packages:
        found.append(contender(name, "torch", lambda torch: TorchTrial(torch, case, copies, work), note))
    if "cupy" in packages and operation == "gram":
        found.append(
            contender(
                "cublas syrk",
                "cupy",
                lambda cupy: SyrkTrial(cupy, case, copies),
                "one triangle, not mirrored",
            )
        )
    return found


def contender(name: str, package: str, make: Callable[[Any], Trial], note: str) -> Contender:
    """Return a peer's row, which says so where its package or a card for it is missing."""
    try:
        module, device = {"torch": torch_with_card, "cupy": cupy_with_card}[package]()
    except DeviceError as absent:
        return Contender(name=name, note=str(absent))
    return Contender(name=name, device=device, make=lambda: make(module), note=note)


def release() -> None:
    """Give back the memory of a card that the packages keep for later, where they were used."""
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
        sys.modules["torch"].cuda.empty_cache()
    if "cupy" in sys.modules:
        # which raises where it found no card
        with suppress(RuntimeError):
            sys.modules["cupy"].get_default_memory_pool().free_all_blocks()


def imported(package: str) -> Any:
    try:
        return importlib.import_module(package)
    except ImportError as error:
        # cupy is a package of another name for each version of CUDA
        given = (
            f"pip install {package}" if package == "torch" else "see cupy.dev for the package of your CUDA"
        )
        raise DeviceError(f"{package} cannot be imported ({error}): {given}") from None


def torch_with_card() -> tuple[Any, str]:
    """Return torch, with float32 products in float32, and the name of its card.

    Raises
    ------
    DeviceError
        If torch or a card for it is not there; the sentence has no end mark.
    """
    torch = imported("torch")
    if not torch.cuda.is_available():
        raise DeviceError("torch finds no CUDA device")
    torch.backends.cuda.matmul.allow_tf32 = False
    return torch, str(torch.cuda.get_device_name())


def cupy_with_card() -> tuple[Any, str]:
    """Return cupy and the name of its card; errors as of `torch_with_card`."""
    cupy = imported("cupy")
    try:
        properties = cupy.cuda.runtime.getDeviceProperties(cupy.cuda.runtime.getDevice())
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise DeviceError(f"cupy finds no CUDA device ({error})") from None
    return cupy, properties["name"].decode()


@contextmanager
def failures_named() -> Iterator[None]:
    """Turn what torch or CUDA raises, memory that is missing among it, into a DeviceError of one line."""
    try:
        yield
    except RuntimeError as fault:
        raise DeviceError(str(fault).strip().partition("\n")[0]) from fault


class TorchTrial(Trial):
    """Work of torch on tensors that lie on a card.

    Parameters
    ----------
    work : takes torch, one copy of the inputs and a tensor of NaN for the answer, which it may use or not,
        and returns the answer
    """

    place = "cuda"

    def __init__(self, torch: Any, case: Case, copies: int, work: Work) -> None:
        self._torch, self._case, self._work = torch, case, work
        kind = getattr(torch, case.dtype.name)
        with failures_named():
            self._copies = [
                tuple(torch.from_numpy(X).to(self.place, kind, copy=True) for X in levelled(case))
                for _ in range(copies)
            ]
        self._answer: Any = None

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        operands = self._copies[turn % len(self._copies)]
        with failures_named():
            if self._answer is None:
                shape = (self._case.count, *self._case.shape)
                kind = operands[0].dtype
                self._answer = self._torch.empty(shape, dtype=kind, device=operands[0].device)
            if poisoned:
                self._answer.fill_(float("nan"))
            return self._seconds(lambda: self._work(self._torch, self._case, operands, self._answer))

    def _seconds(self, work: Callable[[], Any]) -> float:
        begin, end = (self._torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        self._answer = work()
        end.record()
        self._torch.cuda.synchronize()
        return 1e-3 * float(begin.elapsed_time(end))

    def lines(self, some: Lines) -> NDArray[Any]:
        places = self._torch.from_numpy(some).to(self._answer.device)
        found: NDArray[Any] = self._answer[places].cpu().numpy()
        return found


def levelled(case: Case) -> tuple[NDArray[Any], ...]:
    """Return the inputs; of prices, which torch takes in the type of the answer, without their level."""
    if isinstance(case, RollingCorrelation):
        return tuple(X - X.mean(axis=0) for X in case.inputs)
    return case.inputs


def matmul(torch: Any, case: Case, operands: tuple[Any, ...], out: Any) -> Any:
    """Return A B, or both triangles of X'X, by cuBLAS."""
    left, right = operands if len(operands) > 1 else (operands[0].T, operands[0])
    return torch.matmul(left, right, out=out)


def covariance(torch: Any, case: Case, operands: tuple[Any, ...], out: Any) -> Any:
    """Return the covariance matrix; torch has no way to give it memory for the answer."""
    return torch.cov(operands[0].T)


def masked_products(torch: Any, case: Case, operands: tuple[Any, ...], out: Any) -> Any:
    """Return pairwise covariances by products of zero-filled values and masks."""
    (X,) = operands
    there = ~torch.isnan(X)
    M = there.to(X.dtype)
    Z = torch.where(there, X - torch.nanmean(X, dim=0), 0)
    counts, sums = M.T @ M, Z.T @ M
    torch.matmul(Z.T, Z, out=out)
    return out.sub_(sums * sums.T / counts).div_(counts - 1)


def batched(torch: Any, case: Case, operands: tuple[Any, ...], out: Any) -> Any:
    """Return the covariances of many small matrices: centred, and multiplied in a batch."""
    Z = operands[0] - operands[0].mean(1, keepdim=True)
    return torch.bmm(Z.transpose(1, 2), Z, out=out).div_(case.terms - 1)


def unfolded(torch: Any, case: Case, operands: tuple[Any, ...], out: Any) -> Any:
    """Return the correlations of all windows: unfolded, normalised, and multiplied in a batch."""
    Z = operands[0].unfold(0, case.terms, 1)
    Z = Z - Z.mean(2, keepdim=True)
    Z = Z / Z.norm(dim=2, keepdim=True)
    return torch.bmm(Z, Z.transpose(1, 2), out=out)


TORCH: dict[str, tuple[str, Work, str]] = {
    "gram": ("cublas", matmul, "torch.matmul, both triangles computed"),
    "multiply": ("cublas", matmul, "torch.matmul"),
    "covariance": ("torch", covariance, "torch.cov"),
    "pairwise cov": ("torch", masked_products, "products with masks"),
    "rolling corr": ("torch", unfolded, "unfold and bmm"),
    "batch": ("torch", batched, "centred, and bmm"),
}
"""Name of the row, work and note for each operation."""


class SyrkTrial(Trial):
    """The lower triangle of X'X by cuBLAS's ssyrk or dsyrk."""

    def __init__(self, cupy: Any, case: Case, copies: int) -> None:
        self._cupy, self._case = cupy, case
        cublas, device = (imported(name) for name in ("cupy_backends.cuda.libs.cublas", "cupy.cuda.device"))
        (X,) = case.inputs
        with failures_named():
            self._copies = [cupy.array(X) for _ in range(copies)]
            self._answer = cupy.empty((case.count, case.count), case.dtype)
            self._handle = device.get_cublas_handle()
        # read by cuBLAS where they lie
        self._one, self._zero = np.ones(1, case.dtype), np.zeros(1, case.dtype)
        self._syrk = cublas.ssyrk if case.dtype == np.float32 else cublas.dsyrk

    def run(self, turn: int, *, poisoned: bool = False) -> float:
        cuda, X = self._cupy.cuda, self._copies[turn % len(self._copies)]
        inner, columns = X.shape
        if poisoned:
            self._answer.fill(np.nan)
        begin, end = cuda.Event(), cuda.Event()
        # column by column, as cuBLAS reads it, X is its transpose, and the upper triangle is our lower one
        upper, straight = 1, 0
        factors = (self._one.ctypes.data, X.data.ptr, columns, self._zero.ctypes.data)
        answer = (self._answer.data.ptr, columns)
        with failures_named():
            begin.record()
            self._syrk(self._handle, upper, straight, columns, inner, *factors, *answer)
            end.record()
            end.synchronize()
        return 1e-3 * float(cuda.get_elapsed_time(begin, end))

    def lines(self, some: Lines) -> NDArray[Any]:
        places = self._cupy.asarray(some)
        below, beside = (
            self._cupy.asnumpy(part) for part in (self._answer[places], self._answer[:, places].T)
        )
        found: NDArray[Any] = np.where(np.arange(self._case.count) <= some[:, np.newaxis], below, beside)
        return found
