"""Rolling matrices for tests: the histories, the answers of an engine, and those of exact arithmetic."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import exact
import mpmath
import numpy as np
from numpy.typing import NDArray

from mtbridge.compute import Engine
from mtbridge.compute.opencl_rolling import OpenCLRolling
from mtbridge.compute.sequence import MatrixSequence, Statistic, Wanted
from mtbridge.compute.windows import Rolling

Opener = Callable[..., MatrixSequence]
Floats = NDArray[np.float64]
ROWS, WINDOW = 36, 9


def on_device(engine: Engine, *, gpu: bool = False) -> Opener:
    device = engine.kernels_device  # type: ignore[attr-defined]

    def opened(X: Any, plan: Rolling, wanted: Wanted, *, limit: int = 1 << 28) -> MatrixSequence:
        return OpenCLRolling(device, X, plan, wanted, limit=limit, gpu=gpu)

    return opened


def answers(opened: Opener, X: Any, plan: Rolling, *pieces: int, **options: Any) -> NDArray[Any]:
    """The whole answer, written in pieces of these lengths and the rest."""
    wanted = Wanted(**options)
    sequence = opened(X, plan, wanted)
    out = np.full((len(plan), *sequence.shape), -777, wanted.dtype)
    for length in pieces:
        sequence.write(out[sequence.done : sequence.done + length])
    sequence.write(out[sequence.done :])
    assert sequence.done == len(plan)
    return out


def history(name: str) -> Floats:
    random = np.random.default_rng(11)
    X = random.standard_normal((ROWS, 5)).cumsum(axis=0)
    match name:
        case "high level":
            X = np.round(X, 2) + np.array([1e7, 1.1, 2400, 1e5, -3e8])
        case "constants":
            X[:, 1] = 0.1
            X[10:25, 2] = 1.81
            X[:, 3] = X[:, 0]
        case "spikes":
            X[7, 0] = 1e12
            X[20, 1] = -1e12
            X[21, 1] = 1e7
        case "magnitudes":
            X *= [1e-170, 1e200, 1.0, 1e-308, 1e307]
            X[12, 0] = 1e200
            X[13, 2] = 1e-170
            X[14, 1] = 1e-170
        case "constants among magnitudes":
            X *= [1e-300, 1.0, 1e-170, 1.0, 1e170]
            X[:, 1], X[:, 3] = 1e200 / 3, 5e-324
            X[20:, 0], X[23::4, 0] = 0.0, 5e-324
        case "missing":
            X[random.random(X.shape) < 0.2] = np.nan
            X[:17, 1] = np.nan
            X[:, 2] = np.nan
            X[9:24, 4] = np.nan
        case "missing constants":
            X[:, 1] = 0.1
            X[10:25, 2] = 1.81
            X[random.random(X.shape) < 0.2] = np.nan
        case "infinite":
            X[5, 0] = np.inf
            X[15, 1], X[16, 1] = -np.inf, np.inf
            X[10:25, 2] = 1.81
        case "infinite and missing":
            X[random.random(X.shape) < 0.2] = np.nan
            X[5, 0] = np.inf
            X[6, 1], X[24, 1] = -np.inf, np.inf
        case "missing and still":
            X = np.round(X)
            X[:, 1] = 0.1
            X[:20, 3] = 1e-200
            X[5, 3], X[9, 3] = 2e-200, 3e-190
            X[random.random(X.shape) < 0.2] = np.nan
        case "missing magnitudes":
            X *= [1e-170, 1e200, 1.0, 1e-308, 1e12]
            X[random.random(X.shape) < 0.2] = np.nan
            X[12, 0] = 1e200
        case "ordinary":
            pass
        case _:
            raise AssertionError(name)
    return X


HISTORIES = (
    *("ordinary", "high level", "constants", "spikes", "magnitudes", "constants among magnitudes"),
    *("missing", "missing constants", "missing magnitudes", "missing and still"),
    *("infinite", "infinite and missing"),
)


@cache
def exact_sums(name: str, window: int) -> list[dict[tuple[int, int], Any]]:
    """What `exact.sums` says of each pair in each window."""
    X = history(name)
    found = []
    for end in range(1, ROWS + 1):
        part = X[max(end - window, 0) : end].T.tolist()
        found.append({(i, j): exact.sums(part[i], part[j]) for i in range(X.shape[1]) for j in range(i + 1)})
    return found


def exact_answer(
    name: str, window: int, statistic: Statistic, ddof: int = 1, min_periods: int = 1
) -> tuple[Floats, Floats]:
    """The exact answer, and the numbers of which an error is a share."""
    columns = history(name).shape[1]
    right = np.full((ROWS, columns, columns), np.nan)
    size = np.ones_like(right)
    with mpmath.workdps(40):
        for k, pairs in enumerate(exact_sums(name, window)):
            for pair, found in pairs.items():
                for i, j in {pair, pair[::-1]}:
                    if found is None or found[0] < max(min_periods, 1):
                        continue
                    n, product, *squares = found
                    # of the columns in their order in `pair`, which is turned below the diagonal
                    one, other = squares if (i, j) == pair else squares[::-1]
                    roots = [mpmath.sqrt(mpmath.mpf(v.numerator) / v.denominator) for v in (one, other)]
                    value = mpmath.mpf(product.numerator) / product.denominator
                    if statistic == "covariance" and n > ddof:
                        right[k, i, j] = float(value / (n - ddof))
                        size[k, i, j] = float(roots[0] * roots[1] / (n - ddof))
                    elif statistic == "correlation" and one and other:
                        right[k, i, j] = float(value / (roots[0] * roots[1]))
                    elif statistic == "beta" and one:
                        right[k, i, j] = float(value / roots[0] ** 2)
                        size[k, i, j] = float(roots[1] / roots[0])
    return right, size


def check(found: NDArray[Any], right: Floats, size: Floats, bound: float) -> None:
    __tracebackhide__ = True
    assert found.shape == right.shape
    wrong = np.isnan(found) != np.isnan(right)
    assert not wrong.any(), f"NaN or not at {np.argwhere(wrong)[:5].tolist()}"
    # an answer past the range of float64 is inf, at its small end it has few digits
    same = (found == right) | np.isnan(right)
    with np.errstate(invalid="ignore", over="ignore"):
        off = np.where(same, 0, np.abs(found - right) / np.maximum(size, 5e-324 / bound * 4))
    assert off.max() <= bound, f"{off.max()} at {np.argwhere(off > bound)[:5].tolist()}"
