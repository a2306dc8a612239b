"""The largest eigenvalue of each matrix of a sequence: LAPACK's on the host, Lanczos' on the device."""

from __future__ import annotations

from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from given_matrices import WAYS, GivenOnDevice, Reduce, correlations, reduce_by

from mtbridge.compute import opencl_reducers
from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.opencl_reducers import reduced_on_device, starting_vectors
from mtbridge.compute.reducers import LargestEigenvalue
from mtbridge.compute.sequence import Wanted
from mtbridge.matrix import DTYPES

EPS = float(np.finfo(np.float64).eps)


@pytest.fixture(params=WAYS)
def reduce(request: pytest.FixtureRequest, opencl_engine: OpenCLEngine) -> Reduce:
    """Reduce whole matrices by one of the ways there are."""
    return reduce_by(request.param, opencl_engine.kernels_device)


def turned(values: np.ndarray[Any, Any], first: np.ndarray[Any, Any] | None = None) -> np.ndarray[Any, Any]:
    """A symmetric matrix with these eigenvalues; the vector of the first of them is `first`."""
    basis = np.random.default_rng(len(values)).standard_normal((len(values), len(values)))
    if first is not None:
        basis[:, 0] = first
    vectors, _ = np.linalg.qr(basis)
    found = (vectors * values) @ vectors.T
    symmetric: np.ndarray[Any, Any] = (found + found.T) / 2
    return symmetric


def largest(matrix: np.ndarray[Any, Any]) -> Any:
    """The largest eigenvalue to 30 digits."""
    with mpmath.workdps(30):
        found: Any = max(mpmath.eigsy(mpmath.matrix(matrix.tolist()), eigvals_only=True))
        return found


AWKWARD = {
    "one": np.array([[3.25]]),
    "a negative one": np.array([[-3.25]]),
    "two": np.array([[1.0, 0.5], [0.5, 1.0]]),
    "two that are not": np.array([[1.0, np.nextafter(1, 0)], [np.nextafter(1, 0), 1.0]]),
    "two with nothing between": np.diag([1.0, 2.0]),
    "the identity": np.eye(9),
    "ones": np.ones((17, 17)),
    "one of many equal": np.diag([2.0] * 5 + [1.0] * 6),
    "all negative": -np.eye(7) - 0.1,
    "the largest is not of the largest magnitude": turned(np.array([1.0, -100.0, 0.5, 0.2, -3.0])),
    "opposite ends": turned(np.array([5.0, -5.0, 1.0, 0.0, 0.0, 0.0])),
    "nearly equal": turned(np.array([1 + 1e-9, 1.0, 1 - 1e-9, 0.5, 0.1, -0.3, 0.2, 0.1])),
    "many scales": turned(10.0 ** -np.arange(12.0)),
    "rank one": np.outer(np.arange(1.0, 14.0), np.arange(1.0, 14.0)),
    "two blocks": np.kron(np.eye(2), np.full((6, 6), 0.5)) + np.diag(np.full(12, 0.5)),
    "vast": turned(np.array([1.0, 0.9, -0.7, 0.1])) * 1e200,
    "tiny": turned(np.array([1.0, 0.9, -0.7, 0.1])) * 1e-200,
    "far apart": np.diag([1e150, 1e-150, 1.0]),
}


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("name", AWKWARD)
def test_the_largest_eigenvalue_of_an_awkward_matrix_is_right(
    reduce: Reduce, name: str, packed: bool
) -> None:
    right = largest(AWKWARD[name])
    found = reduce(AWKWARD[name][np.newaxis], LargestEigenvalue(), packed=packed)
    assert abs(found[0] - right) <= 1e-10 * abs(right)


def test_the_eigenvalue_of_zeros_is_zero(reduce: Reduce) -> None:
    assert reduce(np.zeros((3, 12, 12)), LargestEigenvalue()).tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("packed", [True, False])
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("columns", [1, 2, 3, 7, 8, 9, 33, 50, 65, 130, 200])
def test_the_largest_eigenvalue_is_lapacks(reduce: Reduce, columns: int, dtype: str, packed: bool) -> None:
    matrices = correlations(4, columns).astype(dtype)
    found = reduce(matrices, LargestEigenvalue(), packed=packed, dtype=np.dtype(dtype))
    right = np.linalg.eigvalsh(matrices.astype(np.float64))[:, -1]
    assert (np.abs(found - right) <= 1e-10 * right).all()


@pytest.mark.parametrize("columns", [40, 150])
def test_a_start_without_a_share_of_the_eigenvector_does_no_harm(reduce: Reduce, columns: int) -> None:
    """The first starting vector is orthogonal to the largest eigenvalue's, to the last digit."""
    start = starting_vectors(columns)[0]
    vector = np.random.default_rng(3).standard_normal(columns)
    vector -= start * (start @ vector)
    vector -= start * (start @ vector)
    values = np.concatenate([[2.0], np.linspace(1.0, 0.1, columns - 1)])
    matrix = turned(values, vector)
    found = reduce(matrix[np.newaxis], LargestEigenvalue())
    assert found[0] == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize(
    "values",
    [np.linspace(-1, 1, 170), 1 - 1e-7 * np.arange(170), np.concatenate([[-1e4], np.linspace(0.9, 1, 169)])],
    ids=["even", "crowded", "far from a crowd"],
)
def test_an_eigenvalue_that_lanczos_is_slow_to_find_is_found(
    reduce: Reduce, values: np.ndarray[Any, Any]
) -> None:
    matrix = turned(values)
    found = reduce(matrix[np.newaxis], LargestEigenvalue())
    # the reference itself is off by eps of the largest magnitude
    assert (
        abs(found[0] - np.linalg.eigvalsh(matrix)[-1])
        <= 1e-10 * abs(values.max()) + 170 * EPS * abs(values).max()
    )


@pytest.mark.parametrize("grouped", [False, True])
def test_what_the_kernel_is_not_sure_of_is_solved_whole(
    opencl_engine: OpenCLEngine, grouped: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With 4 steps a cycle a crowd of eigenvalues does not meet its bound, what lies apart does."""
    monkeypatch.setattr(opencl_reducers, "STEPS", 4)
    crowd = [turned(1 - 1e-5 * np.arange(60.0) * (1 + m)) for m in range(3)]
    matrices = np.stack([correlations(1, 60)[0], crowd[0], np.eye(60), crowd[1], crowd[2]])
    right = np.linalg.eigvalsh(matrices)[:, -1]
    solved: list[int] = []
    solve = np.linalg.eigvalsh

    def counted(matrix: Any, UPLO: Any) -> Any:
        solved.append(len(matrix))
        return solve(matrix, UPLO)

    monkeypatch.setattr(np.linalg, "eigvalsh", counted)
    sequence = GivenOnDevice(opencl_engine.kernels_device, matrices, Wanted(packed=True))
    found = reduced_on_device(
        sequence, LargestEigenvalue(), block_bytes=2 * sequence.matrix_bytes, grouped=grouped
    )
    assert solved == [1, 1, 1]
    assert (np.abs(found - right) <= 1e-10 * right).all()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("columns", [1, 5, 70])
def test_an_eigenvalue_is_nan_where_an_element_is_no_number(reduce: Reduce, columns: int, bad: float) -> None:
    matrices = correlations(3, columns)
    matrices[1, 0, -1] = matrices[1, -1, 0] = bad
    found = reduce(matrices, LargestEigenvalue())
    assert np.isnan(found).tolist() == [False, True, False]
