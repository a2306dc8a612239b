"""Who takes part in a case of `mtbridge bench gpu`: the engine's choice, each family of kernels, and peers.

To be imported after `devices.load`, as everything that imports pyopencl.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from mtbridge.bench.gpu_data import Case, Covariance, PackedCorrelation, Product, RollingCorrelation
from mtbridge.bench.gpu_device import ResidentDevice
from mtbridge.bench.gpu_families import CHOSEN, Families
from mtbridge.bench.gpu_peers import peers_of
from mtbridge.bench.gpu_trial import Contender, Trial
from mtbridge.bench.gpu_windows import (
    REDUCERS,
    FloorTrial,
    ReducedCorrelation,
    ReducerTrial,
    RollingTrial,
    reducer_of,
)
from mtbridge.bench.gpu_works import CovarianceTrial, PairwiseTrial, ProductTrial, copies_of
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.errors import DeviceError

COPIES = 3
SHARE_OF_MEMORY = 8
"""Copies of an input take no more than this part of a device's memory, if there is more than one."""


class Bed:
    """A device with its engines, and which peers are wanted beside them."""

    def __init__(self, device: ResidentDevice, key: str, peers: Sequence[str]) -> None:
        self.device, self.peers = device, peers
        self.families = Families(device, key)

    def contenders(self, case: Case) -> list[Contender]:
        """Return the rows of a case; one that cannot run says why."""
        ours: list[Contender]
        if isinstance(case, RollingCorrelation):
            ours = self._rolling(case)
        elif isinstance(case, Covariance) and case.named.gaps:
            ours = self._pairwise(case)
        elif isinstance(case, (Covariance, Product)):
            ours = self._resident(case)
        return [*ours, *peers_of(case, self.peers, self.copies(case))]

    def copies(self, case: Case) -> int:
        """Return how many copies of the inputs are taken in turn."""
        size = sum(X.nbytes for X in case.inputs)
        return max(1, min(COPIES, self.device.memory_bytes // SHARE_OF_MEMORY // max(size, 1)))

    def _resident(self, case: Product | Covariance) -> list[Contender]:
        """Products, and covariances in which nothing is missing: every family on the same copies."""

        @cache
        def copies() -> Any:
            return copies_of(self.families.chosen, case, self.copies(case))

        if isinstance(case, Product):
            return self._by_family(
                case,
                lambda engine: ProductTrial(self.device, engine, case, copies()),
                "resident",
                ("cublas", "cublas syrk"),
            )
        note = "resident, sums of products; the host divides"
        return self._by_family(
            case, lambda engine: CovarianceTrial(self.device, engine, case, copies()), note, ("torch",)
        )

    def _pairwise(self, case: Covariance) -> list[Contender]:
        """Covariances with gaps, and `dense`: the kernels of one of that size in which nothing is missing."""
        note = "from array to array, its kernels alone; the host makes lists between them"
        ours = self._by_family(
            case, lambda engine: PairwiseTrial(self.device, engine, case), note, ("dense", "torch")
        )
        dtype = case.dtype.name
        whole = Covariance(replace(case.named, operation="covariance", gaps=""), dtype)

        def make() -> Trial:
            engine = self.families.engine(CHOSEN, dtype)
            copies = copies_of(engine, whole, self.copies(whole))
            return CovarianceTrial(self.device, engine, whole, copies, kernels_only=True)

        dense = Contender(
            name="dense",
            device=self.device.name,
            make=make,
            note="nothing missing, kernels alone",
            case=whole,
        )
        return [*ours, dense]

    def _rolling(self, case: RollingCorrelation) -> list[Contender]:
        """Matrices, triangles and reducers, beside a kernel that only writes as many bytes."""
        packed, copies = PackedCorrelation(case), self.copies(case)

        @cache
        def target() -> Any:
            return self.device.allocate(case.count * case.line_bytes)

        def windows(one: RollingCorrelation) -> Callable[[OpenCLEngine], Trial]:
            return lambda engine: RollingTrial(self.device, engine, one, target(), copies)

        def written(one: RollingCorrelation) -> Callable[[OpenCLEngine], Trial]:
            return lambda engine: FloorTrial(self.device, one, target())

        bytes_alone = "only writes as many bytes"
        if self.device.kind == "cpu":
            bytes_alone += "; a form for graphics cards"
        found = [
            self._contender(CHOSEN, case, windows(case), "resident", ("floor", "torch")),
            self._contender(f"{CHOSEN} packed", packed, windows(packed), "resident", ("floor packed",)),
            *(
                replace(self._contender(name, one, written(one), bytes_alone), answers=False)
                for name, one in (("floor", case), ("floor packed", packed))
            ),
        ]
        # they reduce matrices of float64
        for name in REDUCERS if case.dtype == "float64" else ():
            reduced = ReducedCorrelation(case, reducer_of(name, case.shape[0]))
            found.append(self._reducer(name, reduced, copies))
        return found

    def _reducer(self, name: str, case: ReducedCorrelation, copies: int) -> Contender:
        return self._contender(
            f"{CHOSEN} {name}",
            case,
            lambda engine: ReducerTrial(self.device, engine, case, copies),
            "to numbers on the host",
        )

    def _by_family(
        self, case: Case, make: Callable[[OpenCLEngine], Trial], note: str, against: tuple[str, ...]
    ) -> list[Contender]:
        """Return a row for each family of kernels that there is for a case."""
        names = self.families.names(case.named.operation, case.dtype.name)
        found = [self._contender(name, case, make, note, against) for name in names]
        # the first is what the engine chooses, which may be one of the others or the kernels of processors
        if found[0].make is not None:
            file = self.families.file(case.named.operation, case.dtype.name)
            found[0] = replace(found[0], note=f"{note}; {file} chosen")
        return found

    def _contender(
        self,
        name: str,
        case: Case,
        make: Callable[[OpenCLEngine], Trial],
        note: str,
        against: tuple[str, ...] = (),
    ) -> Contender:
        """Return a row of ours; where `name` is no family, by the engine as it is."""
        family = name if name in self.families.names(case.named.operation, case.dtype.name) else CHOSEN
        try:
            engine = self.families.engine(family, case.dtype.name)
        except DeviceError as fault:
            return Contender(name=name, device=self.device.name, note=str(fault))
        return Contender(
            name=name,
            device=self.device.name,
            make=lambda: make(engine),
            note=note,
            case=case,
            against=against,
        )
