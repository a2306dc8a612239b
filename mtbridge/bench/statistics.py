"""Benchmark of pairwise, rolling, weighted, ranked and lagged matrices beside pandas, numbagg and others."""

from __future__ import annotations

import importlib.metadata
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtbridge.bench.contenders import Contender, Engines, Row, Say, Shape, measured
from mtbridge.bench.measure import ROUNDS
from mtbridge.bench.statistic_cases import CASES, PEERS, Case, Work


def measure_statistics(
    say: Say,
    *,
    names: tuple[str, ...] = tuple(CASES),
    shape: Shape | None = None,
    device: str | None = None,
    peers: tuple[str, ...] = PEERS,
    rounds: int = ROUNDS,
) -> list[Row]:
    """Return rows for each case: our engines from array to array, `opencl frame` from frame to frame, peers.

    The error of an element is its distance from long double sums; a covariance's is a share of the root of
    the product of its two variances.

    Parameters
    ----------
    shape : (rows, symbols) of all cases instead of the usual one of each
    """
    rows: list[Row] = []
    with Engines(device) as engines:
        for name in names:
            usual, make = CASES[name]
            size = (shape[0], shape[1]) if shape else usual
            title = f"{name} {size[0]}x{size[1]}"
            say(title)
            rows += _measure(title, make(size), engines, peers, rounds)
    return rows


def _measure(title: str, case: Case, engines: Engines, peers: tuple[str, ...], rounds: int) -> list[Row]:
    import pandas as pd

    frame, columns = pd.DataFrame(case.X), case.X.shape[1]
    multiplications = case.X.size * columns * (len(case.X) if case.counted else 1)
    contenders = [
        engines.contender(name, multiplications, lambda engine: case.ours(case.X, engine))
        for name in ("opencl", "numpy", "serial")
    ]
    framed = engines.contender("opencl", multiplications, lambda engine: case.ours(frame, engine))
    contenders.insert(1, replace(framed, name="opencl frame"))
    others = {name: work for name, work in case.peers.items() if name.split()[0] in peers}
    for name, work in others.items():
        contenders.append(peer(name, work))
    return measured(
        title,
        "float64",
        contenders,
        flops=None,
        error=partial(error, case),
        versus=tuple(others),
        rounds=rounds,
        read=lambda answer: stack(answer, columns) if case.stacked else np.asarray(answer),
    )


def peer(name: str, work: Work) -> Contender:
    """Return the row of a peer, which says so where its package is not installed."""
    package = name.split()[0]
    try:
        device = f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return Contender(name=name, note=f"{package} is not installed: pip install 'mtbridge[bench]'")
    return Contender(name=name, device=device, threads=None, work=work)


def stack(answer: Any, columns: int) -> NDArray[Any]:
    """Return matrices, of an array or below each other in a DataFrame, as an array of three dimensions."""
    return np.asarray(answer).reshape(-1, columns, columns)


def error(case: Case, found: NDArray[Any], some: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return how far `found` is from the exact rows or windows `some`; inf where only one of them is NaN."""
    exact = np.array([case.exact(int(number)) for number in some])
    distance: NDArray[np.float64] = np.abs(found - exact)
    distance[np.isnan(distance)] = np.inf
    distance[np.isnan(found) & np.isnan(exact)] = 0
    if case.scaled:
        deviations = np.nanstd(case.X, axis=0)
        scale = np.outer(deviations, deviations)
        distance /= scale if case.stacked else scale[some]
    return distance
