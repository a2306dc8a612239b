"""Reducers of sequences of matrices: numpy's on the host, kernels on the device, in both of their forms."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from typing import Any

import numpy as np
import pytest
from given_matrices import WAYS, Given, GivenOnDevice, Reduce, correlations, reduce_by

from mtbridge.compute import Engine, opencl_reducers
from mtbridge.compute.decay import Decay
from mtbridge.compute.devices import Verdict
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.reducers import (
    LargestEigenvalue,
    MeanOffDiagonal,
    Pairs,
    QuadraticForm,
    Reducer,
    TopPairs,
    reduced,
)
from mtbridge.compute.sequence import Wanted
from mtbridge.compute.windows import Rolling
from mtbridge.matrix import DTYPES

EPS = float(np.finfo(np.float64).eps)
SIZES = [1, 2, 3, 7, 8, 9, 33, 50, 65, 130]


@pytest.fixture(params=WAYS)
def reduce(request: pytest.FixtureRequest, opencl_engine: OpenCLEngine) -> Reduce:
    """Reduce whole matrices by one of the ways there are."""
    return reduce_by(request.param, opencl_engine.kernels_device)


def above(matrix: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    found: np.ndarray[Any, Any] = matrix[np.triu_indices(len(matrix), 1)]
    return found


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", SIZES)
def test_the_mean_is_of_the_pairs_that_are_there(
    reduce: Reduce, columns: int, dtype: str, packed: bool
) -> None:
    matrices = correlations(5, columns, missing=True).astype(dtype)
    found = reduce(matrices, MeanOffDiagonal(), packed=packed, dtype=np.dtype(dtype))
    assert found.shape == (5,)
    assert found.dtype == np.float64
    for value, matrix in zip(found, matrices, strict=True):
        pairs = above(matrix)[~np.isnan(above(matrix))].astype(np.longdouble)
        if not len(pairs):
            assert np.isnan(value)
        else:
            assert abs(value - pairs.mean()) <= columns * EPS * np.abs(pairs).mean()


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", SIZES)
@pytest.mark.parametrize("one", [True, False], ids=["fixed", "a row each"])
def test_the_quadratic_form_is_that_of_the_weights(
    reduce: Reduce, columns: int, dtype: str, packed: bool, one: bool
) -> None:
    matrices = correlations(6, columns).astype(dtype)
    weights = np.random.default_rng(1).standard_normal(columns if one else (6, columns))
    found = reduce(matrices, QuadraticForm(weights), packed=packed, dtype=np.dtype(dtype), block_bytes=1)
    for m, value in enumerate(found):
        w = (weights if one else weights[m]).astype(np.longdouble)
        terms = w[:, np.newaxis] * matrices[m] * w
        # a weight times an element times a weight is rounded twice, then the sums are
        assert abs(value - terms.sum()) <= (columns + 2) * EPS * np.abs(terms).sum()


def test_what_has_weight_0_does_not_matter(reduce: Reduce) -> None:
    matrices = correlations(3, 20)
    weights = np.random.default_rng(2).standard_normal((3, 20))
    weights[:, [0, 7, 19]] = 0.0
    right = reduce(matrices, QuadraticForm(weights))
    for gone in (0, 7, 19):
        matrices[:, gone] = matrices[:, :, gone] = np.nan
    assert np.array_equal(reduce(matrices, QuadraticForm(weights)), right)
    matrices[1, 3, 4] = matrices[1, 4, 3] = np.nan
    assert np.isnan(reduce(matrices, QuadraticForm(weights))).tolist() == [False, True, False]
    weights[1, 4] = 0.0
    assert not np.isnan(reduce(matrices, QuadraticForm(weights))).any()
    assert (reduce(matrices, QuadraticForm(np.zeros(20))) == 0).all()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", ["packed", "whole", "rows"])
def test_pairs_are_the_elements_themselves(reduce: Reduce, form: str, dtype: str) -> None:
    matrices = correlations(9, 11, missing=True).astype(dtype)
    reducer = Pairs([7, 0, 10, 3, 7], [2, 10, 10, 3, 8])
    wanted: dict[str, Any] | None = {"packed": {"packed": True}, "whole": {"packed": False}}.get(form)
    if wanted is None:
        opened = reducer.wanted(Wanted("correlation"))
        assert opened.left == (0, 3, 7, 10)
        wanted = {"packed": False, "left": opened.left}
    found = reduce(matrices, reducer, dtype=np.dtype(dtype), **wanted)
    assert found.dtype == np.dtype(dtype)
    assert np.array_equal(found, matrices[:, reducer.i, reducer.j], equal_nan=True)


def best_pairs(matrix: np.ndarray[Any, Any], k: int, by: str) -> list[tuple[float, int, int]]:
    """The largest pairs by sorting all of them in Python."""
    size = len(matrix)
    pairs = [(float(matrix[i, j]), i, j) for i in range(size) for j in range(i + 1, size)]
    pairs = [pair for pair in pairs if not np.isnan(pair[0])]
    return sorted(pairs, key=lambda p: (-abs(p[0]) if by == "absolute" else -p[0], p[1], p[2]))[:k]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("by", ["absolute", "value"])
@pytest.mark.parametrize(("columns", "k"), [(2, 1), (3, 3), (9, 1), (9, 5), (9, 36), (50, 7), (70, 300)])
@pytest.mark.parametrize("levels", [0, 3, 1])
def test_the_largest_pairs_are_those_that_sorting_finds(
    reduce: Reduce, columns: int, k: int, by: Any, dtype: str, packed: bool, levels: int
) -> None:
    """Also where there are few different values, so that most pairs are equal, and both zeros among them."""
    matrices = correlations(4, columns, missing=True)
    if levels:
        matrices = np.round(matrices * levels) / levels
        matrices[matrices == 0] *= -1
    matrices = matrices.astype(dtype)
    found = reduce(matrices, TopPairs(k, by=by), packed=packed, dtype=np.dtype(dtype))
    assert found.values.dtype == np.dtype(dtype)
    assert found.pairs.shape == (4, k, 2)
    for m, matrix in enumerate(matrices):
        right = best_pairs(matrix, k, by)
        held = len(right)
        assert [tuple(pair) for pair in found.pairs[m, :held].tolist()] == [(i, j) for _, i, j in right]
        assert found.values[m, :held].tolist() == [value for value, _, _ in right]
        assert np.isnan(found.values[m, held:]).all()
        assert (found.pairs[m, held:] == -1).all()


def test_infinite_elements_are_the_largest(reduce: Reduce) -> None:
    matrices = correlations(1, 6)
    matrices[0, 1, 4] = matrices[0, 4, 1] = -np.inf
    matrices[0, 2, 3] = matrices[0, 3, 2] = np.inf
    assert reduce(matrices, TopPairs(2)).pairs.tolist() == [[[1, 4], [2, 3]]]
    found = reduce(matrices, TopPairs(15, by="value"))
    assert found.values[0, 0] == np.inf
    assert found.values[0, -1] == -np.inf
    assert found.pairs[0, -1].tolist() == [1, 4]


REDUCERS: dict[str, Reducer[Any]] = {
    "mean": MeanOffDiagonal(),
    "pairs": Pairs([0, 3], [4, 1]),
    "top": TopPairs(6),
    "eigenvalue": LargestEigenvalue(),
    "one w": QuadraticForm(np.linspace(-1, 2, 21)),
    "w": QuadraticForm(np.random.default_rng(5).standard_normal((29, 21))),
}


def flat(found: Any) -> np.ndarray[Any, Any]:
    """All numbers of an answer, in one row."""
    return np.concatenate(
        [np.ravel(part) for part in found] if isinstance(found, tuple) else [np.ravel(found)]
    )


@pytest.mark.parametrize("name", REDUCERS)
def test_blocks_of_any_size_give_the_same_bits(reduce: Reduce, name: str) -> None:
    matrices = correlations(29, 21, missing=name != "eigenvalue")
    size = 8 * 21 * 22 // 2
    right = flat(reduce(matrices, REDUCERS[name]))
    for block_bytes in (1, 3 * size, 5 * size + 1, 28 * size, 1 << 30):
        found = flat(reduce(matrices, REDUCERS[name], block_bytes=block_bytes))
        assert np.array_equal(found, right, equal_nan=True)


@pytest.mark.parametrize("name", REDUCERS)
def test_whole_matrices_and_triangles_give_the_same_bits(reduce: Reduce, name: str) -> None:
    matrices = correlations(29, 21, missing=name != "eigenvalue")
    if name == "eigenvalue":
        # a whole matrix is multiplied row by row where items are neighbours
        assert flat(reduce(matrices, REDUCERS[name])) == pytest.approx(
            flat(reduce(matrices, REDUCERS[name], packed=False)), rel=1e-13
        )
        return
    assert np.array_equal(
        flat(reduce(matrices, REDUCERS[name])),
        flat(reduce(matrices, REDUCERS[name], packed=False)),
        equal_nan=True,
    )


def test_a_matrix_cut_into_slices_gives_the_same_sums(
    reduce: Reduce, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opencl_reducers, "SLICE", {"cpu": 100, "gpu": 100})
    matrices = correlations(3, 90, missing=True)
    right = [np.nanmean(above(matrix)) for matrix in matrices[:2]]
    assert reduce(matrices, MeanOffDiagonal())[:2] == pytest.approx(right, rel=1e-13)
    matrices = correlations(3, 90)
    weights = np.linspace(-1, 1, 90)
    assert reduce(matrices, QuadraticForm(weights)) == pytest.approx(weights @ matrices @ weights, rel=1e-12)


def test_only_what_is_left_of_a_sequence_is_reduced(opencl_engine: OpenCLEngine) -> None:
    matrices = correlations(10, 6)
    weights = np.random.default_rng(6).standard_normal((10, 6))
    right = reduced(Given(matrices, Wanted(packed=True)), QuadraticForm(weights))
    for sequence in (
        Given(matrices, Wanted(packed=True)),
        GivenOnDevice(opencl_engine.kernels_device, matrices, Wanted(packed=True)),
    ):
        sequence.write(np.empty((4, 21)))
        found = reduced(sequence, QuadraticForm(weights), block_bytes=400)
        assert found == pytest.approx(right[4:], rel=1e-14)
        assert sequence.done == 10
        assert reduced(sequence, MeanOffDiagonal()).shape == (0,)
        assert reduced(sequence, TopPairs(2)).pairs.shape == (0, 2, 2)


def test_progress_tells_the_matrices_done(reduce: Reduce) -> None:
    told: list[tuple[int, int]] = []
    reduce(
        correlations(7, 4),
        MeanOffDiagonal(),
        block_bytes=3 * 80,
        progress=lambda done, count: told.append((done, count)),
    )
    assert told == [(3, 7), (6, 7), (7, 7)]


def test_reducers_want_no_more_than_they_reduce() -> None:
    wanted = Wanted("correlation", min_periods=3, dtype=np.dtype(np.float32))
    for reducer in (MeanOffDiagonal(), TopPairs(1), LargestEigenvalue(), QuadraticForm(np.ones(2))):
        opened = reducer.wanted(wanted)
        assert opened.packed
        assert (opened.statistic, opened.min_periods, opened.dtype) == (
            "correlation",
            3,
            np.dtype(np.float32),
        )
    assert Pairs([3, 1, 3], [0, 0, 1]).wanted(wanted).left == (1, 3)


def test_betas_of_chosen_pairs_are_served() -> None:
    matrices = np.arange(18.0).reshape(2, 3, 3)
    reducer = Pairs([2, 1], [0, 1])
    found = reduced(Given(matrices, reducer.wanted(Wanted("beta"))), reducer)
    assert found.tolist() == [[6.0, 4.0], [15.0, 13.0]]


PLANS: dict[str, Rolling | Decay] = {
    "windows": Rolling.by_rows(150, 20),
    "every third window": Rolling.by_rows(150, 20, 3),
    "weights that fade": Decay.exponential(150, 0.1),
}


@pytest.mark.parametrize("name", PLANS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_matrices_of_a_history_are_reduced_as_if_they_were_written(
    engine: Engine, name: str, dtype: str
) -> None:
    random = np.random.default_rng(8)
    X = 100 + random.standard_normal((150, 7)).cumsum(axis=0)
    X[random.random(X.shape) < 0.05] = np.nan
    plan = PLANS[name]
    weights = random.standard_normal((len(plan), 7))
    reducers: list[Reducer[Any]] = [
        MeanOffDiagonal(),
        TopPairs(4),
        LargestEigenvalue(),
        QuadraticForm(weights),
        Pairs([0, 5], [5, 6]),
    ]
    for reducer in reducers:
        wanted = reducer.wanted(Wanted("covariance", min_periods=5, dtype=np.dtype(dtype)))
        found = flat(reduced(engine.sequence(X, plan, wanted), reducer, block_bytes=5000))
        written = engine.sequence(X, plan, Wanted("covariance", min_periods=5, dtype=np.dtype(dtype)))
        matrices = np.empty((len(plan), 7, 7), dtype)
        written.write(matrices)
        right = flat(reduced(Given(matrices, Wanted(packed=True, dtype=np.dtype(dtype))), reducer))
        assert np.array_equal(np.isnan(found), np.isnan(right))
        assert found == pytest.approx(right, rel=1e-10, abs=1e-12, nan_ok=True)


def test_a_long_history_is_reduced_in_little_memory(verdict: Verdict) -> None:
    """Of 200,000 triangles of 20 columns, 336 MB, never more than a block exists."""
    program = """
        import resource
        import numpy as np
        from mtbridge.compute.opencl_engine import open_opencl
        from mtbridge.compute.reducers import MeanOffDiagonal, reduced
        from mtbridge.compute.sequence import Wanted
        from mtbridge.compute.windows import Rolling

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

        X = np.random.default_rng(0).standard_normal((200_000, 20))
        reducer = MeanOffDiagonal()
        wanted = reducer.wanted(Wanted("correlation"))
        with open_opencl("cpu") as engine:
            reduced(engine.sequence(X[:100], Rolling.by_rows(100, 60), wanted), reducer)
            before = peak()
            found = reduced(engine.sequence(X, Rolling.by_rows(len(X), 60), wanted), reducer)
            print(len(found), np.isfinite(found[1:]).all(), peak() - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    count, finite, grown = done.stdout.split()
    assert (count, finite) == ("200000", "True")
    assert float(grown) < 80, f"memory grew by {grown} MB"
