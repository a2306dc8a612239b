"""Reducers of small matrices of any kind, against exact fractions, sorting and mpmath."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import mpmath  # type: ignore[import-untyped]
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from mtbridge.compute.opencl_engine import OpenCLEngine
from mtbridge.compute.opencl_reducers import reduced_on_device
from mtbridge.compute.opencl_sequence import OpenCLSequence
from mtbridge.compute.reduced import reduced_on_host
from mtbridge.compute.reducers import (
    LargestEigenvalue,
    MeanOffDiagonal,
    QuadraticForm,
    Reducer,
    TopPairs,
)
from mtbridge.compute.sequence import MatrixSequence, Wanted

EPS = float(np.finfo(np.float64).eps)
FEW = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
NUMBERS = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, math.nan]),
    st.floats(-1.0, 1.0),
    st.builds(lambda m, e: m * 10.0**e, st.floats(-10, 10), st.integers(-90, 90)),
)


class Triangles(MatrixSequence):
    def __init__(self, packed: Any, columns: int) -> None:
        super().__init__(Wanted(packed=True), columns, len(packed))
        self.packed = packed

    def _write(self, out: Any, start: int) -> None:
        out[...] = self.packed[start : start + len(out)]


class TrianglesOnDevice(OpenCLSequence):
    def __init__(self, device: Any, packed: Any, columns: int) -> None:
        super().__init__(device, Wanted(packed=True), columns, len(packed), limit=1 << 24)
        self.packed = packed

    def _queue(self, target: Any, start: int, count: int) -> None:
        import pyopencl as cl

        cl.enqueue_copy(self.device.queue, target, self.packed[start : start + count])


@st.composite
def triangles(draw: st.DrawFn, numbers: Any = NUMBERS, least: int = 1) -> tuple[Any, int]:
    """Packed triangles of up to 3 matrices of up to 11 columns."""
    columns = draw(st.integers(least, 11))
    shape = (draw(st.integers(1, 3)), columns * (columns + 1) // 2)
    return draw(arrays(np.float64, shape, elements=numbers)), columns


def ways(engine: OpenCLEngine, packed: Any, columns: int, reducer: Reducer[Any]) -> list[Any]:
    """What numpy, and the kernels in both forms, keep of the matrices."""
    device = engine.kernels_device
    return [
        reduced_on_host(Triangles(packed, columns), reducer),
        *(
            reduced_on_device(TrianglesOnDevice(device, packed, columns), reducer, grouped=grouped)
            for grouped in (False, True)
        ),
    ]


def whole(triangle: Any, columns: int) -> Any:
    matrix = np.zeros((columns, columns))
    i, j = np.triu_indices(columns)
    matrix[i, j] = matrix[j, i] = triangle
    return matrix


@FEW
@given(given_triangles=triangles())
def test_a_mean_is_the_exact_one_but_for_its_roundings(
    opencl_engine: OpenCLEngine, given_triangles: tuple[Any, int]
) -> None:
    packed, columns = given_triangles
    for found in ways(opencl_engine, packed, columns, MeanOffDiagonal()):
        for value, triangle in zip(found, packed, strict=True):
            pairs = whole(triangle, columns)[np.triu_indices(columns, 1)]
            exact = [Fraction(pair) for pair in pairs.tolist() if not math.isnan(pair)]
            if not exact:
                assert math.isnan(value)
                continue
            error = abs(Fraction(float(value)) - sum(exact, Fraction(0)) / len(exact))
            scale = sum(map(abs, exact), Fraction(0)) / len(exact)
            assert error <= Fraction((columns + 1) * EPS) * scale + Fraction(2) ** -1074


@FEW
@given(given_triangles=triangles(), data=st.data())
def test_a_quadratic_form_is_the_exact_one_but_for_its_roundings(
    opencl_engine: OpenCLEngine, given_triangles: tuple[Any, int], data: st.DataObject
) -> None:
    packed, columns = given_triangles
    weights = data.draw(
        arrays(np.float64, (len(packed), columns), elements=st.sampled_from([0.0, 1.0, -0.3, 1e-20, 7e20]))
    )
    for found in ways(opencl_engine, packed, columns, QuadraticForm(weights)):
        for m, value in enumerate(found):
            matrix = whole(packed[m], columns)
            held = np.flatnonzero(weights[m])
            inner = matrix[np.ix_(held, held)]
            if np.isnan(inner).any():
                assert math.isnan(value)
                continue
            terms = [
                Fraction(float(weights[m, i]))
                * Fraction(float(matrix[i, j]))
                * Fraction(float(weights[m, j]))
                for i in held
                for j in held
            ]
            error = abs(Fraction(float(value)) - sum(terms, Fraction(0)))
            # an element below the normal numbers has few digits, and the weights are up to 7e20
            least = Fraction(1e21) ** 2 * Fraction(2) ** -1074 * columns**2
            assert error <= Fraction((columns + 2) * EPS) * sum(map(abs, terms), Fraction(0)) + least


@FEW
@given(
    given_triangles=triangles(
        st.sampled_from([0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e308, -math.inf, math.inf, math.nan, 0.25]),
        2,
    ),
    by=st.sampled_from(["absolute", "value"]),
    data=st.data(),
)
def test_the_largest_pairs_are_those_that_sorting_finds(
    opencl_engine: OpenCLEngine, given_triangles: tuple[Any, int], by: Any, data: st.DataObject
) -> None:
    packed, columns = given_triangles
    k = data.draw(st.integers(1, columns * (columns - 1) // 2))
    for found in ways(opencl_engine, packed, columns, TopPairs(k, by=by)):
        for m, triangle in enumerate(packed):
            matrix = whole(triangle, columns)
            pairs = [(matrix[i, j], i, j) for i in range(columns) for j in range(i + 1, columns)]
            pairs = [pair for pair in pairs if not math.isnan(pair[0])]
            pairs.sort(key=lambda pair: -abs(pair[0]) if by == "absolute" else -pair[0])
            right = pairs[:k]
            assert found.values[m, : len(right)].tolist() == [pair[0] for pair in right]
            assert found.pairs[m, : len(right)].tolist() == [[i, j] for _, i, j in right]
            assert np.isnan(found.values[m, len(right) :]).all()
            assert (found.pairs[m, len(right) :] == -1).all()


@pytest.mark.parametrize("symmetric", ["any", "positive"])
@settings(FEW, max_examples=60)
@given(given_triangles=triangles())
def test_the_largest_eigenvalue_is_mpmaths(
    opencl_engine: OpenCLEngine, given_triangles: tuple[Any, int], symmetric: str
) -> None:
    packed, columns = given_triangles
    i, j = np.triu_indices(columns)
    if symmetric == "positive":
        # what is not NaN any more makes matrices like covariances
        factors = [np.triu(whole(np.nan_to_num(triangle), columns)) for triangle in packed]
        packed = np.stack([(factor.T @ factor)[i, j] for factor in factors])
    for found in ways(opencl_engine, packed, columns, LargestEigenvalue()):
        for value, triangle in zip(found, packed, strict=True):
            if np.isnan(triangle).any():
                assert math.isnan(value)
                continue
            matrix = whole(triangle, columns)
            with mpmath.workdps(60):
                values = mpmath.eigsy(mpmath.matrix(matrix.tolist()), eigvals_only=True)
                right, scale = max(values), max(abs(each) for each in values)
                error = abs(mpmath.mpf(float(value)) - right)
                assert error <= 1e-10 * abs(right) + 4 * columns * EPS * scale + mpmath.mpf(2) ** -1000
