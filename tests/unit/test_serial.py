"""The serial engine: the loop that a terminal would run, in the order that it would run it."""

from __future__ import annotations

import os

import numpy as np
import pytest

from mtbridge.compute import Engine
from mtbridge.compute.serial import compiled_loops, gram_loop, multiply_loop


def by_hand(A: np.ndarray, B: np.ndarray) -> np.ndarray:  # type: ignore[type-arg]
    """Row, inner, column; each product rounded and each sum rounded in the element type."""
    C = np.zeros((A.shape[0], B.shape[1]), A.dtype)
    for r in range(A.shape[0]):
        for i in range(A.shape[1]):
            C[r] += A[r, i] * B[i]
    return C


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_it_adds_in_the_element_type_in_the_order_of_the_loop(serial_engine: Engine, dtype: str) -> None:
    random = np.random.default_rng(0)
    A = random.standard_normal((17, 300)).astype(dtype)
    B = random.standard_normal((300, 13)).astype(dtype)
    assert np.array_equal(serial_engine.multiply(A, B), by_hand(A, B))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_plain_loops_and_the_compiled_ones_give_the_same_bits(dtype: str) -> None:
    random = np.random.default_rng(1)
    A = random.standard_normal((9, 31)).astype(dtype)
    B = random.standard_normal((31, 7)).astype(dtype)
    compiled = compiled_loops()
    for plain, fast, left, right, shape in (
        (multiply_loop, compiled[0], A, B, (9, 7)),
        (gram_loop, compiled[1], B, B, (7, 7)),
    ):
        one, other = np.zeros(shape, dtype), np.zeros(shape, dtype)
        plain(left, right, one)
        fast(left, right, other)
        assert np.array_equal(one, other)


def test_it_says_how_it_runs(serial_engine: Engine) -> None:
    assert "one thread" in serial_engine.device
    assert "numba, not vectorised" in serial_engine.device or "plain Python" in serial_engine.device


def test_compiling_leaves_the_environment_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NUMBA_LOOP_VECTORIZE", "1")
    monkeypatch.delenv("NUMBA_SLP_VECTORIZE", raising=False)
    compiled_loops.__wrapped__()
    assert os.environ["NUMBA_LOOP_VECTORIZE"] == "1"
    assert "NUMBA_SLP_VECTORIZE" not in os.environ


def test_it_works_without_numba(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "numba", None)
    assert compiled_loops.__wrapped__() == (multiply_loop, gram_loop, False)
