"""Who takes part in a case of `mtbridge bench gpu`: the engine's choice, each family of kernels, and peers.

To be imported after `devices.load`, as everything that imports pyopencl.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from mtbridge.bench.gpu_batch import FEW, OneByOneTrial
from mtbridge.bench.gpu_data import (
    BatchCovariance,
    Case,
    Covariance,
    PackedCorrelation,
    Product,
    RollingCorrelation,
)
from mtbridge.bench.gpu_device import ResidentDevice
from mtbridge.bench.gpu_families import CHOSEN, PORTABLE, Families
from mtbridge.bench.gpu_host import NOTE, PINNED, peers_of_host, pinned_trial, straight_trial
from mtbridge.bench.gpu_peers import peers_of
from mtbridge.bench.gpu_several import OPERATION, Cards
from mtbridge.bench.gpu_trial import Contender, Trial
from mtbridge.bench.gpu_windows import (
    REDUCERS,
    FloorTrial,
    ReducedCorrelation,
    ReducerTrial,
    RollingTrial,
    reducer_of,
)
from mtbridge.bench.gpu_works import CovarianceTrial, ProductTrial, copies_of
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
        self.cards = Cards(key)

    def contenders(self, case: Case) -> list[Contender]:
        """Return the rows of a case; one that cannot run says why."""
        ours: list[Contender]
        if case.named.operation == "covariance host":
            return [*self._host(case), *peers_of_host(case, self.peers, self.copies(case))]
        if case.named.operation == OPERATION:
            return self.cards.contenders(case, self.copies(case))
        if isinstance(case, RollingCorrelation):
            ours = self._rolling(case)
        elif isinstance(case, BatchCovariance):
            ours = self._batch(case)
        elif isinstance(case, Covariance) and case.named.gaps:
            ours = self._pairwise(case)
        elif isinstance(case, (Covariance, Product)):
            ours = self._resident(case)
        return [*ours, *peers_of(case, self.peers, self.copies(case))]

    def release(self) -> None:
        """Give back what is kept of a case that is done."""
        self.device.release_kept()
        self.cards.release()

    def close(self) -> None:
        """Close the devices beside the first."""
        self.cards.close()

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
        return self._by_family(
            case, lambda engine: CovarianceTrial(self.device, engine, case, copies()), "resident", ("torch",)
        )

    def _pairwise(self, case: Covariance) -> list[Contender]:
        """Covariances with gaps, and `dense`: the kernels of one of that size in which nothing is missing."""
        dtype = case.dtype.name
        whole = Covariance(replace(case.named, operation="covariance", gaps=""), dtype)

        def trial(engine: OpenCLEngine, one: Covariance) -> Trial:
            copies = copies_of(engine, one, self.copies(one))
            gaps = bool(one.named.gaps)
            return CovarianceTrial(self.device, engine, one, copies, gaps=gaps, kernels_only=True)

        def make() -> Trial:
            return trial(self.families.engine(CHOSEN, dtype), whole)

        note = "resident, its kernels alone; the host looks at each column once between them"
        ours = self._by_family(case, lambda engine: trial(engine, case), note, ("dense", "torch"))

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

    def _host(self, case: Case) -> list[Contender]:
        """Covariances from array to array, of ordinary arrays and of page-locked ones."""
        copies = self.copies(case)

        def straight(engine: OpenCLEngine) -> Trial:
            return straight_trial(self.device, engine, case, copies)

        def pinned(engine: OpenCLEngine) -> Trial:
            return pinned_trial(engine, case, copies)

        return [
            self._contender(CHOSEN, case, straight, NOTE, ("torch", "numpy")),
            self._contender(f"{CHOSEN} pinned", case, pinned, PINNED, ("torch", "torch pinned")),
        ]

    def _batch(self, case: BatchCovariance) -> list[Contender]:
        """Covariances of many small matrices, by the chosen kernels and the portable ones, and one by one."""

        @cache
        def copies() -> Any:
            return copies_of(self.families.chosen, case, self.copies(case))

        def together(engine: OpenCLEngine) -> Trial:
            return CovarianceTrial(self.device, engine, case, copies())

        few = BatchCovariance(case.named, case.dtype.name, few=FEW)

        def apart(engine: OpenCLEngine) -> Trial:
            return OneByOneTrial(self.device, engine, few, case.count)

        note = f"resident; {few.count} of them timed, the rest reckoned"
        single = self._contender("one by one", few, apart, note)
        return [
            self._contender(CHOSEN, case, together, "resident, one launch", ("one by one", "torch")),
            self._contender(PORTABLE, case, together, "resident, one launch", ("torch",)),
            single,
        ]

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
