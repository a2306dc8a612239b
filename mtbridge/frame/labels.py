"""Answers of many windows as DataFrames, labelled as pandas labels its own."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray


def stacked(matrices: NDArray[Any], rows: Any, left: Any, right: Any) -> Any:
    """Return matrices of shape (windows, left, right) as a DataFrame of (row label, symbol) x symbols.

    The index is that of ``DataFrame.rolling().corr()``; the numbers are not copied.

    Parameters
    ----------
    rows, left, right : Index, the labels of the windows and of both sides of a matrix
    """
    pandas = sys.modules["pandas"]
    windows, across, columns = matrices.shape
    levels, codes, names = [], [], []
    for index, spread in ((rows, _repeated), (left, _tiled)):
        for level, code, name in _levels(index):
            levels.append(level)
            codes.append(spread(code, windows, across))
            names.append(name)
    index = pandas.MultiIndex(levels=levels, codes=codes, names=names, verify_integrity=False)
    values = matrices.reshape(windows * across, columns)
    return pandas.DataFrame(values, index=index, columns=right, copy=False)


def flat(values: NDArray[Any], rows: Any, columns: Any) -> Any:
    """Return values of shape (windows, columns) as a DataFrame, without a copy."""
    return sys.modules["pandas"].DataFrame(values, index=rows, columns=columns, copy=False)


def series(values: NDArray[Any], rows: Any, name: str) -> Any:
    """Return one value a window as a Series, without a copy."""
    return sys.modules["pandas"].Series(values, index=rows, name=name, copy=False)


def pair_labels(labels: Any, left: Any, right: Any) -> Any:
    """Return the labels of pairs of columns, of two levels, for columns given by number."""
    pandas = sys.modules["pandas"]
    ((level, codes, _),) = _levels(labels.to_flat_index())
    return pandas.MultiIndex(
        levels=[level, level],
        codes=[codes.take(left), codes.take(right)],
        names=["left", "right"],
        verify_integrity=False,
    )


def ranked(values: NDArray[Any], pairs: NDArray[Any], rows: Any, columns: Any, name: str) -> Any:
    """Return pairs of columns and their values, a DataFrame of (row label, rank) x (left, right, `name`)."""
    pandas = sys.modules["pandas"]
    windows, k = values.shape
    ranks = pandas.RangeIndex(1, k + 1, name="rank")
    index = stacked(np.empty((windows, k, 0)), rows, ranks, pandas.RangeIndex(0)).index
    frame = pandas.DataFrame(index=index)
    columns = columns.to_flat_index()
    for number, side in enumerate(("left", "right")):
        chosen = pairs[..., number].ravel()
        named = pandas.Series(columns.take(np.maximum(chosen, 0)), index=index)
        frame[side] = named if (chosen >= 0).all() else named.where(chosen >= 0)
    frame[name] = values.ravel()
    return frame


def _levels(index: Any) -> list[tuple[Any, NDArray[Any], Any]]:
    """The levels of an index, where each row lies in them, and their names."""
    pandas = sys.modules["pandas"]
    if index.nlevels > 1:
        return list(zip(index.levels, map(np.asarray, index.codes), index.names, strict=True))
    if index.is_unique:
        return [(index, np.arange(len(index)), index.name)]
    codes, level = pandas.factorize(index)
    return [(level, codes, index.name)]


def _repeated(codes: NDArray[Any], windows: int, across: int) -> NDArray[Any]:
    return np.repeat(_small(codes), across)


def _tiled(codes: NDArray[Any], windows: int, across: int) -> NDArray[Any]:
    return np.tile(_small(codes), windows)


def _small(codes: NDArray[Any]) -> NDArray[Any]:
    """The codes in the narrowest type, as pandas keeps them: it would convert the long arrays."""
    kind = np.min_scalar_type(-max(1, int(codes.max(initial=0)) + 1))
    return codes.astype(kind)
