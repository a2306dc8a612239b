"""Are products right? The check of settings, against float64, on sizes beside every edge of their form.

An error is given as a share of its bound, ``inner * eps * |A| |B|``: at most 1 is right, and NaN is wrong.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mtbridge.compute.forms import Form
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.matrix import Matrix

LONG = 2100
"""An inner size that the engine cuts into slices where a result is small."""

WRONG = float("inf")


def first_error(engine: OpenCLEngine, dtype: str, random: np.random.Generator) -> float:
    """Return the largest error of products and of X'X in `dtype` beside the edges of its tiles and blocks."""
    form = engine.form_in_use(dtype)
    return max(_error(engine, dtype, shape, random) for shape in beside(form))


def every_error(engine: OpenCLEngine, dtype: str, random: np.random.Generator) -> float:
    """Return the largest error as `first_error`, and of inner sizes cut in slices, and of centred columns."""
    form = engine.form_in_use(dtype)
    errors = [first_error(engine, dtype, random)]
    for shape in ((form.left + 1, LONG, form.right - 1), (1, LONG + form.inner, form.right + 1)):
        errors.append(_error(engine, dtype, shape, random))
    errors += [_centred_error(engine, dtype, inner, form.right + 1, random) for inner in (1, 65, LONG)]
    return max(errors)


def beside(form: Form) -> list[tuple[int, int, int]]:
    """Return shapes (rows, inner, columns) one above and below the edges of a form."""
    deep = max(form.defines.get(name, 0) for name in ("BLOCK_INNER", "STRIP_INNER")) + form.inner
    return [
        (1, 1, 1),
        (form.left - 1, form.inner + 1, form.right + 1),
        (form.rows + 1, deep + 1, form.columns - 1),
        (form.rows - 1, max(deep - 1, 1), form.columns + 1),
    ]


def _error(
    engine: OpenCLEngine, dtype: str, shape: tuple[int, int, int], random: np.random.Generator
) -> float:
    rows, inner, columns = shape
    A = random.standard_normal((rows, inner)).astype(dtype)
    B = random.standard_normal((inner, columns)).astype(dtype)
    C, G = engine.multiply(A, B), engine.gram(B)
    if not np.array_equal(G, G.T):
        return WRONG
    return max(share(C, A, B), share(G, B.T, B))


def _centred_error(
    engine: OpenCLEngine, dtype: str, inner: int, columns: int, random: np.random.Generator
) -> float:
    """Return the error of co-moments: of float32 they are summed in float64."""
    X = random.standard_normal((inner, columns)).astype(dtype)
    found = engine.moments(X)
    exact = X.astype(np.float64) - X.astype(np.float64).mean(axis=0)
    # columns are centred and scaled before they are rounded: one eps more than for a product
    bound = (inner + 1) * np.finfo(dtype).eps * (np.abs(exact).T @ np.abs(exact))
    return _largest(np.abs(found.covariance(ddof=0) * inner - exact.T @ exact), bound)


def share(C: Matrix, A: Matrix, B: Matrix) -> float:
    """Return the largest error of `C` = A B as a share of its bound."""
    left, right = A.astype(np.float64), B.astype(np.float64)
    bound = A.shape[1] * np.finfo(A.dtype).eps * (np.abs(left) @ np.abs(right))
    return _largest(np.abs(C - left @ right), bound)


def _largest(errors: NDArray[np.float64], bound: NDArray[np.float64]) -> float:
    if not errors.size:
        return 0.0
    shares = np.divide(errors, bound, out=np.where(errors == 0, 0.0, WRONG), where=bound > 0)
    largest = float(shares.max())
    return largest if largest == largest else WRONG
