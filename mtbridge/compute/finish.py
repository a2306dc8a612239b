"""Covariances made by the very kernel that sums up products of centred columns (kernels/finish.clh).

A kernel after it would read all sums again, and they are of float64.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mtbridge.compute.blocks import spans
from mtbridge.compute.forms import Form
from mtbridge.compute.opencl_moments import SUM, Centring, Uncentred
from mtbridge.compute.slices import slab_depth
from mtbridge.matrix import Matrix

if TYPE_CHECKING:
    from mtbridge.compute.opencl import Device

GROUP = 64
"""Items of a group that looks at columns."""

SHAPES = ((37, 130), (5003, 400))
"""(rows, columns) of what is checked: the second has blocks inside the triangle, and parts that are kept."""

MOST_ERROR = 1e-6
"""What a covariance may be wrong by, in standard deviations of its two columns."""


@dataclass(frozen=True, slots=True, eq=False)
class Finish:
    """A covariance matrix to be made.

    Attributes
    ----------
    centring : the columns, of which all slabs are packed by the time that `queue` is called
    answer : buffer for the matrix, of `dtype` and of shape (columns, columns)
    ddof : what is subtracted from the rows to divide by
    """

    centring: Centring
    answer: Any
    dtype: np.dtype[Any]
    ddof: int = 1

    @property
    def defines(self) -> dict[str, int]:
        """The macros of kernels that make the matrix."""
        return finishing(self.dtype, summed=self.centring.raw.summed)

    def queue(self, device: Device) -> tuple[Any, ...]:
        """Queue what is to be known of each column; return the arguments that such kernels take last."""
        rows, width = self.centring.shape[0], self.centring.raw.width
        chunks = len(self.centring.found) - 2
        share = SUM.type(1 / (rows - self.ddof) if rows > self.ddof else np.nan)
        if not self.centring.raw.summed:
            # a launch less
            units = np.int32((chunks + 1) * width)
            return (self.answer, self.centring.target, SUM.type(rows), share, units)
        terms = device.buffer("terms", 2 * width * SUM.itemsize)
        kernel = device.kernel("terms_of", ("moments/terms.cl",), {"SUM_BITS": 64, "GROUP": GROUP})
        sizes = (np.int32(width), np.int32(chunks), SUM.type(rows))
        device.run(kernel, (-(-width // GROUP),), (GROUP,), self.centring.target, terms, *sizes)
        return (self.answer, terms, SUM.type(rows), share, np.int32(width))


def finishing(dtype: np.dtype[Any], *, summed: bool) -> dict[str, int]:
    """Return the macros of kernels that make a covariance matrix of `dtype`; for `summed` see `Uncentred`."""
    return {"FINISHED": 1, "SOURCE_BITS": 8 * dtype.itemsize, "SUMMED": int(summed)}


def fault_of(device: Device, form: Form) -> str:
    """Return what is wrong with covariances that `form` finishes, without an end mark, or nothing."""
    random = np.random.default_rng(1)
    for shape in SHAPES if form.finishes else ():
        X = (1000 + random.standard_normal(shape) * np.exp(random.standard_normal(shape[1]))).astype(
            np.float32
        )
        X[3, 1] = np.nan
        found, exact = covariances(device, form, X)
        norms = np.sqrt(np.diagonal(exact))
        others = np.delete(np.arange(shape[1]), 1)
        near = np.abs(found - exact) <= MOST_ERROR * np.outer(norms, norms)
        if not near[np.ix_(others, others)].all() or not np.isnan(found[1]).all():
            return f"a covariance of {shape[0]} x {shape[1]} is wrong"
        if not np.array_equal(found, found.T, equal_nan=True):
            return f"a covariance of {shape[0]} x {shape[1]} is not symmetric"
    return ""


def covariances(device: Device, form: Form, X: Matrix) -> tuple[Matrix, Matrix]:
    """Return the covariances of the columns of `X`, float32, by `form`, and in float64 by numpy."""
    from mtbridge.compute.launches import Launches

    launches, (rows, columns) = Launches(device), X.shape
    source, steps = launches.source("right", X)
    raw = Uncentred(source, X.shape, steps, X.dtype, X.dtype, form)
    depth = slab_depth(form, (columns, rows, columns), size=X.itemsize, units=device.units)
    centring = raw.self_centred(device, spans(rows, depth))
    sums, _ = device.result("product", (columns, columns), SUM)
    answer, found = device.result("covariances", (columns, columns), X.dtype)
    launches.gram(form, centring, SUM, sums, device.largest_buffer, finish=Finish(centring, answer, X.dtype))
    found = device.receive(answer, found).copy()
    return found, np.cov(X.astype(np.float64), rowvar=False)
