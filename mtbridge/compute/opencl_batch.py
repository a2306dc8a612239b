"""Batches of small matrices on an OpenCL device: one launch for all of them, one work-group for each.

A launch takes longer than the products of a small matrix, so thousands of them one by one spend their time on
launches. What is done with a matrix depends on its shape alone, so its answer has the same bits in any batch;
matrices that are too large for one group are done one by one, as if they were no batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.aligned import aligned_empty
from mtbridge.compute.batch_plan import FULL_RATE, BatchPlan, Card, Processor, centring
from mtbridge.compute.blocks import spans
from mtbridge.compute.device_matrix import DeviceMatrix
from mtbridge.compute.launches import Operand
from mtbridge.compute.moments import Moments
from mtbridge.compute.opencl_moments import SUM
from mtbridge.compute.opencl_statistics import OpenCLStatistics
from mtbridge.compute.parameters import Limits
from mtbridge.compute.strided import SPARSE, Strided, dense_steps, stacked
from mtbridge.errors import DeviceError
from mtbridge.matrix import Matrix, narrowed

PART_BYTES = 1 << 28
"""Data, or answers, of one launch on a device with memory of its own."""

KNOWN = 3
"""Rows of numbers that a kernel tells of a matrix: origins, exponents, means."""

Source: TypeAlias = tuple[Any, int, tuple[int, ...]]
"""A buffer, where in it the first matrix begins, and steps from one matrix, row and column to the next."""

Planned: TypeAlias = Callable[[Processor | Card], BatchPlan | None]


class OpenCLBatches(OpenCLStatistics):
    """The methods of an engine that take batches. What they cannot do, the loops of `Engine` do.

    Attributes
    ----------
    batch_plans : how matrices are given to groups; chosen with the first batch
    """

    limits: Limits
    batch_plans: Processor | Card | None = None

    def moments(self, X: Operand, *, dtype: np.dtype[Any] | None = None) -> Moments:
        """Return the `Moments` of the rows of `X`, (…, rows, columns); see `Engine.moments`."""
        if X.ndim > 2:
            return self._batch_moments(X, np.dtype(dtype or X.dtype))
        return super().moments(X, dtype=dtype)

    def batch_covariance(self, X: Matrix, ddof: int) -> tuple[Matrix, NDArray[np.bool_]] | None:
        plan = None if X.shape[-2] <= ddof else self._plan_of_covariance(X)
        if plan is None:
            return None
        lead, columns = X.shape[:-2], X.shape[-1]
        out = aligned_empty((*lead, columns, columns), X.dtype)
        odd = np.empty(math.prod(lead), np.uint8)
        with suppress(MemoryError), self._settled():
            share = np.float64(1 / (X.shape[-2] - ddof))
            self._fill(plan, (X,), {"product": stacked(out), "odd": odd}, share)
            return out, odd.reshape(lead) != 0
        return None

    def covariance_on_device(self, X: DeviceMatrix, *, ddof: int = 1) -> DeviceMatrix:
        """Return covariance matrices that stay on the device; see `OpenCLStatistics.covariance_on_device`."""
        if X.ndim == 2:
            return super().covariance_on_device(X, ddof=ddof)
        self._check_owner(X)
        plan = None if X.shape[-2] <= ddof else self._plan_of_covariance(X)
        if plan is not None:
            with suppress(MemoryError), self._settled():
                odd = np.empty(math.prod(X.shape[:-2]), np.uint8)
                flags = self._device.buffer("batch odd", odd.nbytes)
                share = np.float64(1 / (X.shape[-2] - ddof))
                shape = (*X.shape[:-2], X.shape[-1], X.shape[-1])
                found = self._resident(plan, (X,), shape, X.dtype, flags, share)
                if not self._device.downloaded(flags, odd).any():
                    return found
        return self._uploaded_batch(narrowed(self.moments(X).covariance(ddof), X.dtype))

    def _plan_of_covariance(self, X: Operand) -> BatchPlan | None:
        """The plan of covariances in the type of `X`, of products in float64; a processor has none."""
        if self._packed or not self._device.fp64:
            return None
        centre = centring(X.itemsize, subnormals=self._device.subnormals, covariance=True)
        rows, columns = X.shape[-2:]
        return self._plan(lambda plans: plans.gram((rows, columns), SUM.itemsize, centre), X)

    def _products(self, A: Operand, B: Operand) -> Any:
        shape = (A.shape[-2], A.shape[-1], B.shape[-1])
        plan = self._plan(lambda plans: plans.product(shape, A.itemsize), A, B)
        return self._answered(plan, (A, B), shape[::2], super()._products)

    def _grams(self, X: Operand) -> Any:
        rows, columns = X.shape[-2:]
        plan = self._plan(lambda plans: plans.gram((rows, columns), X.itemsize, None), X)
        return self._answered(plan, (X,), (columns, columns), super()._grams)

    def _batch_moments(self, X: Operand, dtype: np.dtype[Any]) -> Moments:
        rows, columns = X.shape[-2:]
        plan = None
        if self._device.fp64:
            centre = centring(X.itemsize, subnormals=self._device.subnormals)
            plan = self._plan(lambda plans: plans.gram((rows, columns), dtype.itemsize, centre), X)
        if plan is not None:
            with suppress(MemoryError):
                return self._ordinary_first(plan, X, dtype)
        return super()._batch_moments(self.download(X) if isinstance(X, DeviceMatrix) else X, dtype)

    def _ordinary_first(self, plan: BatchPlan, X: Operand, dtype: np.dtype[Any]) -> Moments:
        """The moments of each matrix of `X`, those with a column that is not ordinary by the host."""
        (rows, columns), count = X.shape[-2:], math.prod(X.shape[:-2])
        comoment = aligned_empty((count, columns, columns), SUM)
        known = aligned_empty((count, KNOWN, columns), SUM)
        with self._settled():
            self._fill(plan, (X,), {"product": comoment, "known": known})
        found = Moments(rows, known[:, 0], known[:, 1].astype(np.int64), known[:, 2], comoment)
        again = np.flatnonzero(np.isnan(found.mean).any(axis=1))
        if len(again):
            matrices = stacked(self.download(X) if isinstance(X, DeviceMatrix) else X)
            for at in again:
                found.put(at, self.moments(matrices[at], dtype=dtype))
        return found.shaped(X.shape[:-2])

    def _plan(self, planned: Planned, *operands: Operand) -> BatchPlan | None:
        """What is launched for these operands, once its kernel is built; None where they go one by one."""
        if any(0 in X.shape or X.dtype.name not in self.dtypes for X in operands):
            return None
        plans = self.batch_plans = self.batch_plans or self._fitting_plans()
        plan = planned(plans)
        if plan is not None:
            try:
                self._device.kernel(plan.name, plan.files, plan.defines)
            except (DeviceError, MemoryError):
                if not isinstance(plans, Card) or plans.tensor is None:
                    raise
                self.batch_plans = Card(self.limits)
                return self._plan(planned, *operands)
        return plan

    def _fitting_plans(self) -> Processor | Card:
        if self._packed:
            widths = {
                np.dtype(name).itemsize: self.form_in_use(name).defines["WIDTH"] for name in self.dtypes
            }
            return Processor(self.limits, widths)
        # tensor cores are trusted with batches where they are with products
        capability = self._device.capability
        trusted = capability in FULL_RATE and self.form_in_use("float64").file == "dmma"
        return Card(self.limits, capability if trusted else None)

    def _answered(
        self,
        plan: BatchPlan | None,
        given: Sequence[Operand],
        shape: tuple[int, ...],
        one_by_one: Callable[..., Matrix],
    ) -> Any:
        """Return the products of batches, on the device if one of them lies there, else as an array."""
        lead, kind = given[0].shape[:-2], given[0].dtype
        if any(isinstance(X, DeviceMatrix) for X in given):
            if plan is not None:
                return self._resident(plan, given, (*lead, *shape), kind)
            arrays = (self.download(X) if isinstance(X, DeviceMatrix) else X for X in given)
            return self.upload(one_by_one(*arrays))
        if plan is not None:
            out = aligned_empty((*lead, *shape), kind)
            with suppress(MemoryError), self._settled():
                self._fill(plan, given, {"product": stacked(out)})
                return out
        return one_by_one(*given)

    def _resident(
        self,
        plan: BatchPlan,
        given: Sequence[Operand],
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        *more: Any,
    ) -> DeviceMatrix:
        """Queue the launch for all of a batch; `more` are its other target and its last argument, if any."""
        held = [X if isinstance(X, DeviceMatrix) else self.upload(X) for X in given]
        for X in held:
            self._check_owner(X)
        target = self._device.allocate(math.prod(shape) * dtype.itemsize)
        sources: list[Source] = [(X.buffer, 0, X.steps) for X in held]
        self._queue(plan, math.prod(shape[:-2]), sources, (target, *more[:1]), *more[1:])
        return DeviceMatrix(target, shape, dtype, dense_steps(shape), self._device)

    def _fill(
        self,
        plan: BatchPlan,
        given: Sequence[Operand],
        answers: Mapping[str, NDArray[Any]],
        *scalars: np.float64,
    ) -> None:
        """Fill `answers`, arrays of as many matrices as the `given` batches have, by names of their buffers.

        The `scalars` are the last arguments of the kernel.

        Raises
        ------
        MemoryError
            If the device has too little memory, or its largest buffer is smaller than one matrix.
        """
        device = self._device
        most = self._limit if device.host_memory else min(self._limit, PART_BYTES)
        batches = [X if isinstance(X, DeviceMatrix) else stacked(X) for X in given]
        count = math.prod(given[0].shape[:-2])
        # a batch that is sent as it lies takes up to SPARSE times its elements
        sent = [SPARSE * X.nbytes // count for X in batches if not isinstance(X, DeviceMatrix)]
        each = max([*sent, *(answer[0].nbytes for answer in answers.values())])
        if each > self._limit:
            raise MemoryError(f"a matrix of {each} bytes is larger than a buffer of {self.device}")
        for part in spans(count, max(most // each, 1)):
            # both must live until the device has read them
            lying = [X if isinstance(X, DeviceMatrix) else Strided.of(X[part]) for X in batches]
            outs = {f"batch {name}": answer[part] for name, answer in answers.items()}
            sources: list[Source] = [
                (device.send(f"batch {n}", X.flat), X.begin, X.steps)
                if isinstance(X, Strided)
                else (X.buffer, part.start * X.steps[0], X.steps)
                for n, X in enumerate(lying)
            ]
            targets = [device.over(name, out) for name, out in outs.items()]
            self._queue(plan, part.stop - part.start, sources, targets, *scalars)
            for target, out in zip(targets, outs.values(), strict=True):
                device.receive(target, out)

    def _queue(
        self,
        plan: BatchPlan,
        count: int,
        sources: Sequence[Source],
        targets: Sequence[Any],
        *scalars: np.float64,
    ) -> None:
        """Queue the launch for `count` matrices; targets and scalars are in the order of the kernel's."""
        device = self._device
        groups, local, numbers = plan.launch(count, device.units)
        device.run(
            device.kernel(plan.name, plan.files, plan.defines),
            groups,
            local,
            *(buffer for buffer, _, _ in sources),
            *targets,
            *(device.local(size) for size in plan.local),
            *(np.int32(number) for number in numbers),
            *(np.int64(number) for _, begin, steps in sources for number in (begin, *steps)),
            *scalars,
        )

    def _uploaded_batch(self, X: Matrix) -> DeviceMatrix:
        """Return a batch on the device; what its matrices share in memory they share there too."""
        if not X.size:
            return DeviceMatrix(
                self._device.allocate(0), X.shape, X.dtype, dense_steps(X.shape), self._device
            )
        one = Strided.of(stacked(X))
        if one.begin:
            one = Strided.of(np.ascontiguousarray(stacked(X)))
        return DeviceMatrix(self._device.uploaded(one.flat), X.shape, X.dtype, one.steps, self._device)

    def _downloaded_batch(self, X: DeviceMatrix) -> Matrix:
        """Return an array of its own with a batch that lies on the device."""
        count = math.prod(X.shape[:-2])
        if not X.nbytes:
            return np.empty(X.shape, X.dtype)
        lengths = (count, *X.shape[-2:])
        extent = 1 + sum((length - 1) * step for length, step in zip(lengths, X.steps, strict=True))
        flat = self._device.downloaded(X.buffer, aligned_empty((extent,), X.dtype))
        if X.steps == dense_steps(X.shape):
            return flat.reshape(X.shape)
        steps = tuple(step * X.itemsize for step in X.steps)
        return np.lib.stride_tricks.as_strided(flat, lengths, steps).copy().reshape(X.shape)
