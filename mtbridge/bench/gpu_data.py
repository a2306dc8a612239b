"""What the cases of `mtbridge bench gpu` compute from, and how far an answer is from the exact one.

An answer is looked at in lines: the rows of a matrix, or the windows of a sequence. The reference is
float64 for float32 work and long double for float64 work, on a grid of elements.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.bench import statistic_references as exact
from mtbridge.bench.contenders import normal, wider
from mtbridge.bench.gpu_cases import Named
from mtbridge.matrix import Matrix

Lines = NDArray[np.int64]

CHECKED, CHECKED_WINDOWS, CHECKED_VARIANCES = 24, 6, 64
MISSING = 0.05
FACTORS = 5


class Case(ABC):
    """A case in one type.

    Attributes
    ----------
    named : which
    dtype : of the answer
    inputs : what it is computed from
    count : lines of the answer
    shape : of one line
    terms : how many products make an element; an error of ``terms * eps`` or more is a fault
    flops : floating-point operations, None where they are not what the time goes into
    written : bytes of the answer, and of data that are as large; None where they are not
    """

    named: Named
    dtype: np.dtype[Any]
    inputs: tuple[Matrix, ...]
    count: int
    shape: tuple[int, ...]
    terms: int
    flops: float | None = None
    written: int | None = None

    @abstractmethod
    def error(self, found: NDArray[Any], some: Lines) -> float:
        """Return the largest error of checked elements in `found`, the lines `some` of an answer."""

    def bias(self, found: NDArray[Any], some: Lines) -> float | None:
        """Return the mean relative error of the diagonal of a covariance matrix."""
        return None

    @property
    def line_bytes(self) -> int:
        """Bytes of one line."""
        return int(np.prod(self.shape)) * self.dtype.itemsize


class Product(Case):
    """A B, or X'X; an error is a share of the product of absolute values."""

    def __init__(self, named: Named, dtype: str) -> None:
        self.named, self.dtype = named, np.dtype(dtype)
        A = normal((named.shape[0], named.shape[1]), dtype, seed=1)
        self.gram = named.operation == "gram"
        B = A if self.gram else normal((named.shape[1], named.shape[2]), dtype, seed=2)
        self.inputs = (A,) if self.gram else (A, B)
        self._left, self._right = (A.T if self.gram else A), B
        self.count, self.shape = len(self._left), (self._right.shape[1],)
        self.terms = len(self._right)
        self.flops = float(self.count * self.terms * self.shape[0] * (1 if self.gram else 2))

    def error(self, found: NDArray[Any], some: Lines) -> float:
        wide = wider(self.dtype)
        places, columns = spread_over(len(some), CHECKED), spread_over(self.shape[0], CHECKED)
        left, right = self._left[some[places]].astype(wide), self._right[:, columns].astype(wide)
        distance = np.abs(found[np.ix_(places, columns)] - left @ right)
        return float((distance / (np.abs(left) @ np.abs(right))).max())


class Covariance(Case):
    """The covariance matrix of columns of different scales, with values missing where the name says so.

    An error is a share of the root of the product of two variances.
    """

    def __init__(self, named: Named, dtype: str) -> None:
        self.named, self.dtype = named, np.dtype(dtype)
        rows, columns = named.shape
        random = np.random.default_rng(3)
        X = normal((rows, columns), dtype, seed=4)
        X *= np.exp(random.standard_normal(columns) / 2).astype(dtype)
        if named.gaps == "scattered":
            X[random.random(X.shape, np.float32) < MISSING] = np.nan
        elif named.gaps == "leading":
            # as many are missing, and some columns are there from the first row on
            begins = (random.random(columns) * 2 * MISSING * rows).astype(np.int64)
            X[np.arange(rows)[:, np.newaxis] < begins] = np.nan
        self.inputs = (X,)
        self.count, self.shape, self.terms = columns, (columns,), rows
        self.flops = float(rows * columns**2) if named.operation in ("covariance", "several") else None
        self._exact: dict[tuple[str, bytes], NDArray[np.float64]] = {}

    def error(self, found: NDArray[Any], some: Lines) -> float:
        places = spread_over(len(some), CHECKED)
        columns = some[places]
        covariances = self._kept("covariances", columns, self._covariances)
        root = np.sqrt(np.diagonal(covariances))
        # elements of both triangles, and of the diagonal
        distance = np.abs(found[np.ix_(places, columns)] - covariances)
        return float((distance / np.outer(root, root)).max())

    def bias(self, found: NDArray[Any], some: Lines) -> float | None:
        places = spread_over(len(some), CHECKED_VARIANCES)
        variances = self._kept("variances", some[places], self._variances)
        return float(np.mean(found[places, some[places]] / variances - 1))

    def _kept(
        self, what: str, columns: Lines, make: Callable[[Lines], NDArray[np.float64]]
    ) -> NDArray[np.float64]:
        """Return an exact answer that every contender is compared with, computed once."""
        key = (what, columns.tobytes())
        if key not in self._exact:
            self._exact[key] = make(columns)
        return self._exact[key]

    def _covariances(self, columns: Lines) -> NDArray[np.float64]:
        if self.named.gaps:
            held = [self._column(column) for column in columns]
            return np.array([[exact.pair(x, y, correlated=False) for y in held] for x in held])
        Z = self.inputs[0][:, columns].T.astype(wider(self.dtype))
        Z -= Z.mean(axis=1, keepdims=True)
        return (Z @ Z.T / (self.terms - 1)).astype(np.float64)

    def _variances(self, columns: Lines) -> NDArray[np.float64]:
        held = (self._column(column) for column in columns)
        return np.array([exact.pair(x, x, correlated=False) for x in held])

    def _column(self, column: int) -> NDArray[Any]:
        return np.ascontiguousarray(self.inputs[0][:, column])


class BatchCovariance(Case):
    """The covariance matrix of each of many small matrices; an error is a share as that of `Covariance`.

    Parameters
    ----------
    few : take so many of the matrices only
    """

    def __init__(self, named: Named, dtype: str, *, few: int | None = None) -> None:
        self.named, self.dtype = named, np.dtype(dtype)
        count, rows, width = named.shape
        X = normal((count * rows, width), dtype, seed=6).reshape(named.shape)[:few]
        self.inputs = (X,)
        self.count, self.terms, columns = self.inputs[0].shape
        self.shape = (columns, columns)
        # each number is read and written once, and neither is the smaller part
        self.written = self.count * self.line_bytes + X.nbytes

    def error(self, found: NDArray[Any], some: Lines) -> float:
        places = spread_over(len(some), CHECKED)
        Z = self.inputs[0][some[places]].astype(wider(self.dtype))
        Z -= Z.mean(axis=1, keepdims=True)
        covariances = Z.swapaxes(1, 2) @ Z / (self.terms - 1)
        root = np.sqrt(np.einsum("mii->mi", covariances))
        distance = np.abs(found[places] - covariances)
        return float((distance / root[:, np.newaxis] / root[:, :, np.newaxis]).max())


class RollingCorrelation(Case):
    """The correlation matrices of all windows of price levels that share some factors.

    The input is float64 whatever the answer is; an error is a distance.
    """

    def __init__(self, named: Named, dtype: str) -> None:
        self.named, self.dtype = named, np.dtype(dtype)
        symbols, rows, self.window = named.shape
        random = np.random.default_rng(5)
        shared = random.standard_normal((rows, FACTORS)) @ random.standard_normal((FACTORS, symbols))
        steps = 1e-3 * (0.3 * shared + random.standard_normal((rows, symbols)))
        self.inputs = (1.1 * np.exp(np.cumsum(steps, axis=0)),)
        self.count, self.shape, self.terms = rows - self.window + 1, (symbols, symbols), self.window
        self.written = self.count * self.line_bytes

    def error(self, found: NDArray[Any], some: Lines) -> float:
        (X,), worst = self.inputs, 0.0
        for place in spread_over(len(some), CHECKED_WINDOWS):
            correlations = exact.window_correlation(X[some[place] : some[place] + self.window])
            worst = max(worst, float(np.abs(found[place] - self.line_of(correlations)).max()))
        return worst

    def line_of(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the line that stands for a matrix."""
        return matrix


class PackedCorrelation(RollingCorrelation):
    """The same as packed triangles, of elements with j >= i, row by row."""

    def __init__(self, whole: RollingCorrelation) -> None:
        self.named, self.dtype, self.inputs = whole.named, whole.dtype, whole.inputs
        self.window, self.count, self.terms = whole.window, whole.count, whole.terms
        symbols = whole.shape[0]
        self.shape = (symbols * (symbols + 1) // 2,)
        self.written = self.count * self.line_bytes

    def line_of(self, matrix: NDArray[Any]) -> NDArray[Any]:
        return matrix[np.triu_indices(len(matrix))]


def case_of(named: Named, dtype: str) -> Case:
    """Make the data of a case."""
    kinds: dict[str, type[Product | Covariance | RollingCorrelation | BatchCovariance]] = {
        "gram": Product,
        "multiply": Product,
        "covariance": Covariance,
        "pairwise cov": Covariance,
        "covariance host": Covariance,
        "rolling corr": RollingCorrelation,
        "batch": BatchCovariance,
        "several": Covariance,
    }
    return kinds[named.operation](named, dtype)


def spread_over(count: int, most: int) -> Lines:
    """Return up to `most` of the numbers below `count`, the first and the last among them."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).astype(np.int64))
